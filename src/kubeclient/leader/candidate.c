#include "kubeclient/leader/candidate.h"

#include "kubeclient/data/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <vigil/client.h>

enum { LEASE_BYTES_MAX = 1 << 20 };
#define RELEASE_NS (2 * NS_PER_S) /* for giving the lease back */

/* What the user wants, as bits of shared. */
enum { WANTS_START = 1, WANTS_END = 2 };

#define TO(state) (1u << CANDIDATE_##state)

static const unsigned candidate_moves[] = {
    [CANDIDATE_NEW] = TO(RUNNING) | TO(ENDED),
    [CANDIDATE_RUNNING] = TO(RELEASING) | TO(ENDED),
    [CANDIDATE_RELEASING] = TO(ENDED),
    [CANDIDATE_ENDED] = 0,
};

static int64_t now_of(const struct vigil_kube_candidate *c)
{
    return loop_now_ns(c->kube->driver.loop);
}

static int64_t wall_of(const struct vigil_kube_candidate *c)
{
    return clock_real_ns(loop_clock(c->kube->driver.loop));
}

/* -- Life -- */

static void candidate_unref(struct vigil_kube_candidate *c)
{
    if (!driver_shared_unref(&c->shared))
        return;
    struct vigil_kube *kube = c->kube;
    buf_fini(&c->answer);
    buf_fini(&c->lease);
    free(c);
    driver_unref(&kube->driver);
}

/* No effect if it has ended. */
static void end(struct vigil_kube_candidate *c)
{
    if (c->state == CANDIDATE_ENDED)
        return;
    if (c->state != CANDIDATE_NEW) {
        list_remove(&c->member.in_driver);
        kube_exchange_cancel(&c->exchange);
        loop_timer_cancel(c->kube->driver.loop, &c->timer);
    }
    STATE_MOVE(c->state, candidate_moves, CANDIDATE_ENDED);
    atomic_store(&c->leads_until_ns, 0);
    lock_take(&c->kube->driver.lock);
    c->over = true;
    driver_changed(&c->kube->driver);
    lock_release(&c->kube->driver.lock);
    candidate_unref(c);
}

/* -- Callbacks -- */

static void report(struct vigil_kube_candidate *c, int news, const char *leader)
{
    if (c->state == CANDIDATE_ENDED || !driver_callback_begin(&c->kube->driver, &c->object))
        return;
    c->fn(c, news, leader, c->user);
    driver_callback_end(&c->kube->driver);
}

/* What has changed since the last time. The caller has a reference. */
static void report_changes(struct vigil_kube_candidate *c)
{
    bool leads = c->election.leads;
    const char *leader = election_leader(&c->election);
    atomic_store(&c->leads_until_ns, leads ? election_deadline_ns(&c->election) : 0);
    if (c->led && !leads) {
        c->led = false;
        report(c, VIGIL_KUBE_NOT_LEADING, leader);
    }
    if (strcmp(c->known, leader) != 0) {
        snprintf(c->known, sizeof(c->known), "%s", leader);
        report(c, VIGIL_KUBE_NEW_LEADER, leader);
    }
    if (!c->led && leads) {
        c->led = true;
        report(c, VIGIL_KUBE_LEADING, leader);
    }
}

static void log_failure(struct vigil_kube_candidate *c, const char *reason)
{
    if (strncmp(c->failure, reason, sizeof(c->failure) - 1) == 0)
        return;
    snprintf(c->failure, sizeof(c->failure), "%.*s", (int)sizeof(c->failure) - 1, reason);
    char line[512];
    snprintf(line, sizeof(line), "leader election by lease %s/%s: %s", c->name_space, c->name,
             reason);
    driver_log(&c->kube->driver, VIGIL_LOG_WARN, line);
}

/* -- Requests -- */

static enum status write_body(struct vigil_kube_candidate *c, struct buf *to)
{
    if (c->state == CANDIDATE_RELEASING) {
        struct lease_record released = election_release(&c->election, wall_of(c));
        return lease_write_update(to, buf_slice(&c->lease), &released);
    }
    if (c->election.state == ELECTION_READING)
        return ST_OK;
    return c->election.creates ? lease_write_new(to, c->name_space, c->name, &c->election.wanted)
                               : lease_write_update(to, buf_slice(&c->lease), &c->election.wanted);
}

/* Appends the path of the Lease, or of the collection if there is no name. */
static enum status append_path(struct buf *to, const char *name_space, const char *name)
{
    struct error error;
    struct vigil_kube_target target = {
        .group = "coordination.k8s.io",
        .version = "v1",
        .resource = "leases",
        .name_space = name_space,
        .name = name,
    };
    return url_append_target(to, &target, &error);
}

static enum status send_request(struct vigil_kube_candidate *c)
{
    AUTO(buf_fini) struct buf path = {0};
    AUTO(buf_fini) struct buf body = {0};
    bool creates = c->state == CANDIDATE_RUNNING && c->election.state == ELECTION_WRITING &&
                   c->election.creates;
    TRY(append_path(&path, c->name_space, creates ? NULL : c->name));
    TRY(write_body(c, &body));
    struct exchange_request request = {
        .method = creates    ? "POST"
                  : body.len ? "PUT"
                             : "GET",
        .target = buf_slice(&path),
        .accept = "application/json",
        .content_type = body.len ? "application/json" : NULL,
        .body = buf_slice(&body),
    };
    c->answer.len = 0;
    c->answer_lost = false;
    return kube_exchange_start(&c->exchange, c->kube, &request);
}

/* Makes the request that the election wants, until one is under way or it waits. */
static void request_next(struct vigil_kube_candidate *c)
{
    while (c->election.state != ELECTION_WAITING && c->exchange.state == EXCHANGE_IDLE) {
        c->request_until_ns = clock_add(now_of(c), c->election.options.deadline_ns);
        if (send_request(c) != ST_OK)
            election_failed(&c->election, now_of(c));
    }
}

/* After everything that may have changed the election. */
static void settle(struct vigil_kube_candidate *c)
{
    driver_shared_ref(&c->shared);
    if (c->state == CANDIDATE_RUNNING)
        report_changes(c);
    if (c->state == CANDIDATE_RUNNING) { /* the callback has not ended it */
        request_next(c);
        int64_t next =
            c->exchange.state != EXCHANGE_IDLE ? c->request_until_ns : c->election.next_ns;
        int64_t deadline = election_deadline_ns(&c->election);
        loop_timer_set(c->kube->driver.loop, &c->timer, next < deadline ? next : deadline);
    }
    candidate_unref(c);
}

static void on_timer(struct timer *timer)
{
    struct vigil_kube_candidate *c = CONTAINER_OF(timer, struct vigil_kube_candidate, timer);
    int64_t now = now_of(c);
    if (c->state == CANDIDATE_RELEASING) {
        end(c);
        return;
    }
    if (c->exchange.state != EXCHANGE_IDLE && c->request_until_ns <= now) {
        kube_exchange_cancel(&c->exchange);
        log_failure(c, "the server has not answered in time");
        election_failed(&c->election, now);
    }
    if (election_deadline_ns(&c->election) <= now) {
        kube_exchange_cancel(&c->exchange);
        election_stop_leading(&c->election, now);
    }
    if (c->election.state == ELECTION_WAITING && c->election.next_ns <= now)
        election_begin(&c->election, now, wall_of(c));
    settle(c);
}

/* -- Answers -- */

static void on_head(struct kube_exchange *exchange, unsigned status,
                    const struct http_field *fields, size_t field_count)
{
    (void)exchange, (void)status, (void)fields, (void)field_count;
}

static void on_body(struct kube_exchange *exchange, struct slice bytes)
{
    struct vigil_kube_candidate *c = CONTAINER_OF(exchange, struct vigil_kube_candidate, exchange);
    if (c->answer.len + bytes.len > LEASE_BYTES_MAX || buf_append(&c->answer, bytes) != ST_OK)
        c->answer_lost = true;
}

/* The Lease was read or written. */
static void take_answer(struct vigil_kube_candidate *c)
{
    struct buf before = c->lease;
    c->lease = c->answer;
    c->answer = before;
    c->failure[0] = '\0';
    if (c->election.state == ELECTION_READING)
        election_read(&c->election, buf_slice(&c->lease), now_of(c), wall_of(c));
    else
        election_wrote(&c->election, now_of(c));
}

static bool is_absent(const struct vigil_kube_candidate *c, const struct exchange_result *result)
{
    return result->end == EXCHANGE_REFUSED && result->status->code == 404 &&
           c->election.state == ELECTION_READING;
}

static void on_end(struct kube_exchange *exchange, const struct exchange_result *result)
{
    struct vigil_kube_candidate *c = CONTAINER_OF(exchange, struct vigil_kube_candidate, exchange);
    if (c->state == CANDIDATE_RELEASING) {
        end(c);
        return;
    }
    if (result->end == EXCHANGE_COMPLETE && c->answer.len && !c->answer_lost) {
        take_answer(c);
    } else if (is_absent(c, result)) {
        c->lease.len = 0;
        election_read(&c->election, SLICE_EMPTY, now_of(c), wall_of(c));
    } else {
        /* A conflict is the ordinary end of a race. */
        if (result->end != EXCHANGE_REFUSED || result->status->code != 409)
            log_failure(c, result->end == EXCHANGE_COMPLETE ? "the answer is empty or too long"
                                                            : result->reason);
        election_failed(&c->election, now_of(c));
    }
    settle(c);
}

/* -- Commands -- */

/* The client was shut down. */
static void end_member(struct driver_member *member)
{
    struct vigil_kube_candidate *c = CONTAINER_OF(member, struct vigil_kube_candidate, member);
    driver_shared_ref(&c->shared);
    kube_exchange_cancel(&c->exchange);
    atomic_store(&c->leads_until_ns, 0);
    if (c->state == CANDIDATE_RUNNING && c->led)
        report(c, VIGIL_KUBE_NOT_LEADING, "");
    end(c);
    candidate_unref(c);
}

static void start(struct vigil_kube_candidate *c)
{
    if (c->kube->driver.ended) {
        end(c);
        return;
    }
    list_push_back(&c->kube->driver.members, &c->member.in_driver);
    STATE_MOVE(c->state, candidate_moves, CANDIDATE_RUNNING);
    election_begin(&c->election, now_of(c), wall_of(c));
    settle(c);
}

/* The program has freed it: gives the lease back if it has it. A renewal that is under way may
 * still reach the server, and then the release fails because of its version. */
static void leave(struct vigil_kube_candidate *c)
{
    if (c->state != CANDIDATE_RUNNING || !c->election.leads || c->keeps) {
        end(c);
        return;
    }
    kube_exchange_cancel(&c->exchange);
    STATE_MOVE(c->state, candidate_moves, CANDIDATE_RELEASING);
    atomic_store(&c->leads_until_ns, 0);
    loop_timer_set(c->kube->driver.loop, &c->timer, clock_add(now_of(c), RELEASE_NS));
    if (send_request(c) != ST_OK)
        end(c);
}

static void run_command(struct driver_command *command)
{
    struct vigil_kube_candidate *c =
        CONTAINER_OF(command, struct vigil_kube_candidate, shared.command);
    uint32_t wanted = driver_shared_wanted(&c->shared);
    if ((wanted & WANTS_START) && !(wanted & WANTS_END)) /* freed before it was started */
        start(c);
    if ((wanted & WANTS_END) && c->state != CANDIDATE_ENDED)
        leave(c);
    candidate_unref(c);
}

/* -- Public functions -- */

void vigil_kube_leader_options_init(vigil_kube_leader_options *options)
{
    *options = (vigil_kube_leader_options){
        .size = sizeof(*options),
        .lease_duration_ms = 15000,
        .renew_deadline_ms = 10000,
        .retry_period_ms = 2000,
    };
}

static bool is_valid(const vigil_kube_leader_options *o)
{
    return o->name && o->name[0] && o->retry_period_ms > 0 && o->lease_duration_ms >= 1000 &&
           o->renew_deadline_ms < o->lease_duration_ms / 1000 * 1000 &&
           o->retry_period_ms < o->renew_deadline_ms / 6 * 5 &&
           o->lease_duration_ms <= INT64_C(1000) * INT32_MAX &&
           (!o->identity || (o->identity[0] && strlen(o->identity) < LEASE_IDENTITY_BYTES));
}

/* Also that the Lease can be requested, so that the program learns of a wrong name at once. */
static int check_options(const vigil_kube_leader_options *o)
{
    AUTO(buf_fini) struct buf path = {0};
    if (!is_valid(o))
        return VIGIL_ERROR_ARGUMENT;
    enum status status = append_path(&path, o->name_space, o->name);
    if (status != ST_OK)
        return status == ST_NOMEM ? VIGIL_ERROR_MEMORY : VIGIL_ERROR_ARGUMENT;
    return VIGIL_OK;
}

/* As client-go's users do: the host name and something unique. */
static void invent_identity(char to[LEASE_IDENTITY_BYTES])
{
    uint64_t number;
    char host[128] = "";
    random_secret(&number, sizeof(number));
    (void)gethostname(host, sizeof(host) - 1);
    snprintf(to, LEASE_IDENTITY_BYTES, "%s_%016llx", host, (unsigned long long)number);
}

/* The texts of the options, one after the other. NULL: no memory. */
static struct vigil_kube_candidate *allocate(vigil_kube *kube, const vigil_kube_leader_options *o,
                                             const char *identity)
{
    bool given = o->name_space && *o->name_space;
    const char *name_space = given ? o->name_space : vigil_kube_namespace(kube);
    size_t space_bytes = strlen(name_space) + 1, name_bytes = strlen(o->name) + 1;
    size_t identity_bytes = strlen(identity) + 1;
    struct vigil_kube_candidate *c = malloc(sizeof(*c) + space_bytes + name_bytes + identity_bytes);
    if (!c)
        return NULL;
    *c = (struct vigil_kube_candidate){.kube = kube, .keeps = o->keep_when_freed != 0};
    c->name_space = memcpy(c->texts, name_space, space_bytes);
    c->name = memcpy(c->texts + space_bytes, o->name, name_bytes);
    memcpy(c->texts + space_bytes + name_bytes, identity, identity_bytes);
    struct election_options options = {
        .identity = c->texts + space_bytes + name_bytes,
        .duration_ns = o->lease_duration_ms / 1000 * NS_PER_S,
        .deadline_ns = o->renew_deadline_ms * NS_PER_MS,
        .retry_ns = o->retry_period_ms * NS_PER_MS,
    };
    uint64_t seed;
    random_secret(&seed, sizeof(seed));
    election_init(&c->election, &options, seed);
    return c;
}

int vigil_kube_candidate_new(vigil_kube *kube, const vigil_kube_leader_options *options,
                             vigil_kube_leader_fn fn, void *user,
                             vigil_kube_candidate **ret_candidate)
{
    static const struct exchange_ops ops = {on_head, on_body, on_end};
    vigil_kube_leader_options complete;
    char identity[LEASE_IDENTITY_BYTES];
    vigil_kube_leader_options_init(&complete);
    if (options->size == 0 || options->size > sizeof(complete) || !fn)
        return VIGIL_ERROR_ARGUMENT;
    memcpy(&complete, options, options->size);
    int code = check_options(&complete);
    if (code != VIGIL_OK)
        return code;
    if (!complete.identity)
        invent_identity(identity);
    struct vigil_kube_candidate *c =
        allocate(kube, &complete, complete.identity ? complete.identity : identity);
    if (!c)
        return VIGIL_ERROR_MEMORY;
    c->fn = fn;
    c->user = user;
    c->member.end = end_member;
    c->exchange.ops = &ops;
    c->timer.fn = on_timer;
    driver_shared_init(&c->shared, 2, run_command);
    driver_ref(&kube->driver);
    *ret_candidate = c;
    driver_shared_want(&c->shared, &kube->driver, WANTS_START);
    return VIGIL_OK;
}

static bool is_over(struct vigil_kube_candidate *c)
{
    LOCK_SCOPE(&c->kube->driver.lock);
    return c->over;
}

/* Until the lease is released, so that the program may free its client afterwards. */
static void wait_for_end(struct vigil_kube_candidate *c)
{
    struct driver *driver = &c->kube->driver;
    if (!driver->own_thread) {
        while (!is_over(c) && !atomic_load(&driver->loop_ended))
            driver_process_and_wait(driver);
        return;
    }
    LOCK_SCOPE(&driver->lock);
    while (!c->over)
        driver_wait(driver);
}

void vigil_kube_candidate_free(vigil_kube_candidate *c)
{
    if (!c)
        return;
    bool releases = atomic_load(&c->leads_until_ns) && !c->keeps;
    driver_drop(&c->kube->driver, &c->object);
    driver_shared_want(&c->shared, &c->kube->driver, WANTS_END);
    if (releases && !driver_is_inside(&c->kube->driver))
        wait_for_end(c);
    candidate_unref(c);
}

int vigil_kube_candidate_is_leading(const vigil_kube_candidate *c)
{
    int64_t now = clock_mono_ns(loop_clock(c->kube->driver.loop));
    return now < atomic_load(&c->leads_until_ns);
}

void candidate_check(const struct vigil_kube_candidate *c)
{
    election_check(&c->election);
    if (c->state == CANDIDATE_RUNNING) {
        assert(c->timer.set);
        assert((c->exchange.state == EXCHANGE_IDLE) == (c->election.state == ELECTION_WAITING));
    }
}
