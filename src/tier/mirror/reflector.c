#include "tier/mirror/reflector.h"

#include "base/clock.h"
#include "kubeclient/data/status.h"

#include <stdio.h>

#define DELAY_MIN_NS (800 * NS_PER_MS)
#define DELAY_MAX_NS (30 * NS_PER_S)
#define DELAY_RESET_NS (120 * NS_PER_S) /* without a failure for this long */
#define SHORT_WATCH_NS (1 * NS_PER_S)   /* one that ends as soon without an event is a failure */
#define BEHIND_NS (5 * NS_PER_S)        /* a replica that lags longer has another history */
#define REFUSED_NS (30 * NS_PER_S)      /* that what was served is refused before it is given up */
#define REFUSED_DELAY_MAX_NS (2500 * NS_PER_MS) /* and at most twice that is waited meanwhile */

enum {
    TIMEOUT_MIN_S = 300,
    WATCH_FAILURES_MAX = 5, /* in a row, before the state is requested again */
    REFUSALS_MAX = 3,  /* a server that starts may not know a kind yet, and refuses some watches */
    TOO_LARGE_MAX = 3, /* refusals of a version in a row */
    BEHIND_MAX = 3,    /* states in a row that are too old, before they are believed */
    REASON_BYTES = 256,
};

#define TO(state) (1u << TIER_REFLECTOR_##state)
#define ENDS (TO(STOPPED) | TO(WAITING) | TO(REFUSED))

/* Drawn in reflector.h. */
static const unsigned moves[] = {
    [TIER_REFLECTOR_STOPPED] = TO(PROBING),
    [TIER_REFLECTOR_PROBING] = ENDS | TO(STREAMING) | TO(LISTING),
    [TIER_REFLECTOR_STREAMING] = ENDS | TO(LISTING) | TO(WATCHING),
    [TIER_REFLECTOR_LISTING] = ENDS | TO(LISTING) | TO(WATCHING),
    [TIER_REFLECTOR_WATCHING] = ENDS | TO(WATCHING),
    [TIER_REFLECTOR_WAITING] = ENDS | TO(PROBING) | TO(STREAMING) | TO(LISTING) | TO(WATCHING),
    [TIER_REFLECTOR_REFUSED] = TO(STOPPED) | TO(PROBING),
};

static void move(struct tier_reflector *r, enum tier_reflector_state next)
{
    STATE_MOVE(r->state, moves, next);
}

void tier_reflector_init(struct tier_reflector *r, const struct tier_reflector_ops *ops, void *ctx,
                         uint64_t seed)
{
    *r = (struct tier_reflector){.ops = ops,
                                 .ctx = ctx,
                                 .after_answer.next_ns = DELAY_MIN_NS,
                                 .after_refusal.next_ns = DELAY_MIN_NS,
                                 .after_silence.next_ns = DELAY_MIN_NS};
    random_init(&r->random, seed);
}

void tier_reflector_fini(struct tier_reflector *r)
{
    buf_fini(&r->token);
}

/* -- Requests -- */

static bool has_request(const struct tier_reflector *r)
{
    return r->state >= TIER_REFLECTOR_PROBING && r->state <= TIER_REFLECTOR_WATCHING;
}

static void probe(struct tier_reflector *r)
{
    struct tier_reflector_request request = {.kind = TIER_REFLECTOR_PROBING, .limit = 1};
    move(r, TIER_REFLECTOR_PROBING);
    r->ops->request(r->ctx, &request);
}

static void request_page(struct tier_reflector *r)
{
    struct tier_reflector_request request = {
        .kind = TIER_REFLECTOR_LISTING,
        .token = buf_slice(&r->token),
        .limit = r->whole ? 0 : TIER_PAGE_OBJECTS,
    };
    r->ops->request(r->ctx, &request);
}

static void list(struct tier_reflector *r)
{
    move(r, TIER_REFLECTOR_LISTING);
    buf_reset(&r->token, 0);
    r->ops->state(r->ctx, true);
    request_page(r);
}

static void begin_watch(struct tier_reflector *r, enum tier_reflector_state kind, int64_t now_ns)
{
    /* Between once and twice the minimum, so that not all watches of a server end together. */
    struct tier_reflector_request request = {
        .kind = kind,
        .version = kind == TIER_REFLECTOR_WATCHING ? r->version : 0,
        .timeout_s = TIMEOUT_MIN_S + (int)random_below(&r->random, TIMEOUT_MIN_S),
    };
    r->events = 0;
    r->begun_ns = now_ns;
    r->ops->request(r->ctx, &request);
}

static void watch(struct tier_reflector *r, int64_t now_ns)
{
    move(r, TIER_REFLECTOR_WATCHING);
    begin_watch(r, TIER_REFLECTOR_WATCHING, now_ns);
}

static void request_state(struct tier_reflector *r, int64_t now_ns)
{
    if (r->lists) {
        list(r);
        return;
    }
    move(r, TIER_REFLECTOR_STREAMING);
    r->ops->state(r->ctx, true);
    begin_watch(r, TIER_REFLECTOR_STREAMING, now_ns);
}

void tier_reflector_start(struct tier_reflector *r)
{
    assert(r->state == TIER_REFLECTOR_STOPPED || r->state == TIER_REFLECTOR_REFUSED);
    r->failures = r->too_large = r->behind = 0;
    r->serves = false;
    r->refused_ns = 0;
    probe(r);
}

void tier_reflector_stop(struct tier_reflector *r)
{
    if (r->state == TIER_REFLECTOR_STOPPED)
        return;
    if (has_request(r))
        r->ops->cancel(r->ctx);
    r->ops->state(r->ctx, false);
    move(r, TIER_REFLECTOR_STOPPED);
}

void tier_reflector_resume(struct tier_reflector *r, int64_t now_ns)
{
    if (r->state != TIER_REFLECTOR_WAITING)
        return;
    if (r->again == TIER_REFLECTOR_WATCHING)
        watch(r, now_ns);
    else if (r->again == TIER_REFLECTOR_LISTING)
        list(r);
    else if (r->again == TIER_REFLECTOR_STREAMING)
        request_state(r, now_ns);
    else
        probe(r);
}

/* -- Failures -- */

/* The delay doubles, and up to as much again is added at random. */
static int64_t next_of(struct tier_reflector *r, struct tier_reflector_delay *delay, int64_t max_ns,
                       int64_t now_ns)
{
    if (delay != &r->after_silence) /* the server is back */
        r->after_silence.next_ns = DELAY_MIN_NS;
    if (now_ns - delay->failed_ns > DELAY_RESET_NS)
        delay->next_ns = DELAY_MIN_NS;
    delay->failed_ns = now_ns;
    int64_t delay_ns = delay->next_ns;
    delay->next_ns = 2 * delay_ns < max_ns ? 2 * delay_ns : max_ns;
    return delay_ns + (int64_t)random_below(&r->random, (uint64_t)delay_ns);
}

static int64_t next_delay(struct tier_reflector *r, bool answered, int64_t now_ns)
{
    return next_of(r, answered ? &r->after_answer : &r->after_silence, DELAY_MAX_NS, now_ns);
}

/* The request is over. `again` says what follows the wait. */
static void wait_before(struct tier_reflector *r, enum tier_reflector_state again, int64_t delay_ns)
{
    r->again = again;
    r->ops->state(r->ctx, false);
    move(r, TIER_REFLECTOR_WAITING);
    r->ops->wait(r->ctx, delay_ns);
}

static void wait_after(struct tier_reflector *r, enum tier_reflector_state again,
                       const struct vigil_kube_status *status, int64_t now_ns)
{
    int64_t delay_ns = next_delay(r, status->code != 0, now_ns);
    int after_s = status->retry_after_s < KUBE_RETRY_AFTER_MAX_S ? status->retry_after_s
                                                                 : KUBE_RETRY_AFTER_MAX_S;
    int64_t asked_ns = after_s * NS_PER_S;
    wait_before(r, again, delay_ns > asked_ns ? delay_ns : asked_ns);
}

static void refuse(struct tier_reflector *r, const char *reason)
{
    r->ops->state(r->ctx, false);
    move(r, TIER_REFLECTOR_REFUSED);
    r->version = 0;
    r->serves = false;
    r->refused_ns = 0;
    r->ops->failed(r->ctx, reason, true);
}

void tier_reflector_refuse(struct tier_reflector *r, const char *reason)
{
    if (has_request(r))
        r->ops->cancel(r->ctx);
    if (r->state != TIER_REFLECTOR_REFUSED)
        refuse(r, reason);
}

/* There is no such resource, we may not read it, or not like this. */
static bool is_refusal(const struct vigil_kube_status *status)
{
    return status->code == 403 || status->code == 404 || status->code == 405 ||
           status->code == 406 || status->code == 415;
}

/* An older server, or one that is configured not to stream the state. Other errors may pass. */
static bool cannot_stream(const struct vigil_kube_status *status)
{
    return status->code == 400 || status->code == 405 || status->code == 422;
}

/* The server does not have this version any more, or does not have it yet. */
static bool is_version_unavailable(const struct vigil_kube_status *status)
{
    return kube_status_is_expired(status) || kube_status_is_too_large_version(status);
}

static void stream_failed(struct tier_reflector *r, const struct vigil_kube_status *status,
                          int64_t now_ns)
{
    r->ops->state(r->ctx, false);
    r->lists |= cannot_stream(status);
    if (status->code == 0 || status->code == 429)
        wait_after(r, TIER_REFLECTOR_STREAMING, status, now_ns);
    else
        list(r); /* which may work although streaming does not */
}

static void list_failed(struct tier_reflector *r, const struct vigil_kube_status *status,
                        int64_t now_ns)
{
    bool too_slow = r->token.len > 0 && !r->whole && is_version_unavailable(status);
    if (too_slow) { /* for the server's history */
        r->whole = true;
        list(r);
    } else {
        wait_after(r, TIER_REFLECTOR_LISTING, status, now_ns);
    }
}

/* After too many failures in a row, the state may help where the changes do not. */
static enum tier_reflector_state after_watch(const struct tier_reflector *r)
{
    bool resumes = r->failures <= WATCH_FAILURES_MAX && r->too_large < TOO_LARGE_MAX;
    return resumes ? TIER_REFLECTOR_WATCHING : TIER_REFLECTOR_PROBING;
}

static void watch_failed(struct tier_reflector *r, const struct vigil_kube_status *status,
                         int64_t now_ns)
{
    bool lost = kube_status_is_expired(status) || strcmp(status->reason, "StoreReadError") == 0;
    r->failures += status->code != 0 && status->code != 429;
    r->too_large += kube_status_is_too_large_version(status);
    wait_after(r, lost ? TIER_REFLECTOR_PROBING : after_watch(r), status, now_ns);
}

/* A server that starts does not know its roles and custom resources yet. What was served is not
 * given up because of that; what was not is tried again when it is read again. */
static bool gives_up(const struct tier_reflector *r)
{
    if (r->serves)
        return r->refused_ns >= REFUSED_NS;
    return r->state != TIER_REFLECTOR_WATCHING || r->failures >= REFUSALS_MAX;
}

static void refused(struct tier_reflector *r, const char *reason, int64_t now_ns)
{
    bool watches = r->state == TIER_REFLECTOR_WATCHING;
    r->failures += !r->serves; /* the state does not help where the changes are refused */
    if (gives_up(r)) {
        refuse(r, reason);
        return;
    }
    int64_t delay_ns = next_of(r, &r->after_refusal, REFUSED_DELAY_MAX_NS, now_ns);
    r->refused_ns += delay_ns;
    r->ops->failed(r->ctx, reason, false);
    wait_before(r, watches ? TIER_REFLECTOR_WATCHING : TIER_REFLECTOR_PROBING, delay_ns);
}

void tier_reflector_failed(struct tier_reflector *r, const struct vigil_kube_status *status,
                           int64_t now_ns)
{
    char reason[REASON_BYTES];
    assert(has_request(r));
    snprintf(reason, sizeof(reason), "%s%s%.*s", status->reason,
             status->reason[0] && status->message[0] ? ": " : "", REASON_BYTES - 100,
             status->message);
    if (!reason[0])
        snprintf(reason, sizeof(reason), "the server answered with %d", status->code);
    bool streams = r->state == TIER_REFLECTOR_STREAMING;
    if (is_refusal(status) && !(streams && cannot_stream(status))) {
        refused(r, reason, now_ns);
        return;
    }
    r->ops->failed(r->ctx, reason, false);
    if (streams)
        stream_failed(r, status, now_ns);
    else if (r->state == TIER_REFLECTOR_PROBING)
        wait_after(r, TIER_REFLECTOR_PROBING, status, now_ns);
    else if (r->state == TIER_REFLECTOR_LISTING)
        list_failed(r, status, now_ns);
    else
        watch_failed(r, status, now_ns);
}

void tier_reflector_retry(struct tier_reflector *r, const char *reason, int64_t now_ns)
{
    assert(has_request(r));
    enum tier_reflector_state again = r->state;
    r->ops->cancel(r->ctx);
    r->ops->failed(r->ctx, reason, false);
    r->failures++;
    if (again == TIER_REFLECTOR_WATCHING)
        again = after_watch(r);
    wait_before(r, again, next_delay(r, true, now_ns));
}

void tier_reflector_restart(struct tier_reflector *r, const char *reason, int64_t now_ns)
{
    if (r->state == TIER_REFLECTOR_WAITING)
        r->again = TIER_REFLECTOR_PROBING;
    if (!has_request(r))
        return;
    r->ops->cancel(r->ctx);
    r->ops->failed(r->ctx, reason, false);
    wait_before(r, TIER_REFLECTOR_PROBING, next_delay(r, true, now_ns));
}

/* -- Answers -- */

void tier_reflector_probed(struct tier_reflector *r, int64_t now_ns)
{
    assert(r->state == TIER_REFLECTOR_PROBING);
    request_state(r, now_ns);
}

void tier_reflector_accepted(struct tier_reflector *r)
{
    if (r->state != TIER_REFLECTOR_WATCHING)
        return;
    r->serves = true;
    r->refused_ns = 0;
}

void tier_reflector_page_ended(struct tier_reflector *r, struct slice token, int64_t now_ns)
{
    assert(r->state == TIER_REFLECTOR_LISTING);
    assert(token.len);
    const char *fault = NULL;
    if (token.len > TIER_CONTINUE_BYTES_MAX)
        fault = "the server sent a continue token that is too long";
    else if (slice_equal(token, buf_slice(&r->token)))
        fault = "the server sent the same continue token again";
    r->token.len = 0;
    if (!fault && buf_append(&r->token, token) != ST_OK)
        fault = "out of memory";
    if (fault)
        tier_reflector_retry(r, fault, now_ns);
    else
        request_page(r);
}

/* A consistent list cannot be older than what the same server has delivered. */
static bool is_believed(struct tier_reflector *r, uint64_t version, int64_t now_ns)
{
    if (version >= r->version)
        return true;
    if (r->behind++ == 0)
        r->behind_ns = now_ns;
    return r->behind >= BEHIND_MAX && now_ns - r->behind_ns >= BEHIND_NS;
}

bool tier_reflector_believes(struct tier_reflector *r, uint64_t version, int64_t now_ns)
{
    assert(r->state == TIER_REFLECTOR_STREAMING || r->state == TIER_REFLECTOR_LISTING);
    if (is_believed(r, version, now_ns))
        return true;
    tier_reflector_retry(r, "the server sent a state that is older than what is known", now_ns);
    return false;
}

void tier_reflector_loaded(struct tier_reflector *r, uint64_t version, int64_t now_ns)
{
    assert(r->state == TIER_REFLECTOR_STREAMING || r->state == TIER_REFLECTOR_LISTING);
    bool streams = r->state == TIER_REFLECTOR_STREAMING;
    buf_reset(&r->token, 0);
    r->version = version;
    r->failures = r->too_large = r->behind = 0;
    r->whole = false;
    if (streams) {
        move(r, TIER_REFLECTOR_WATCHING); /* the same request continues */
        tier_reflector_accepted(r);
    } else {
        watch(r, now_ns);
    }
}

static void error_received(struct tier_reflector *r, struct slice object, int64_t now_ns)
{
    struct vigil_kube_status status;
    if (!kube_status_read(object, &status))
        kube_status_from_http(500, SLICE_EMPTY, &status);
    if (status.code == 0)
        status.code = 500; /* 0 would mean that the server could not be reached */
    r->ops->cancel(r->ctx);
    tier_reflector_failed(r, &status, now_ns);
}

/* The first bookmark of a server that streams its state is the one at its end. Servers before 1.19
 * ignore what they do not know of a request, and would never send that one. */
static void unknown_bookmark(struct tier_reflector *r, int64_t now_ns)
{
    struct vigil_kube_status status = {.code = 400, .retry_after_s = -1};
    snprintf(status.reason, sizeof(status.reason), "BadRequest");
    snprintf(status.message, sizeof(status.message), "the server does not stream its state");
    r->ops->cancel(r->ctx);
    tier_reflector_failed(r, &status, now_ns);
}

bool tier_reflector_received(struct tier_reflector *r, const struct received_event *event,
                             uint64_t version, int64_t now_ns)
{
    assert(r->state == TIER_REFLECTOR_STREAMING || r->state == TIER_REFLECTOR_WATCHING);
    if (event->type == RECEIVED_ERROR) {
        error_received(r, event->object, now_ns);
        return false;
    }
    if (r->state == TIER_REFLECTOR_STREAMING && event->type == RECEIVED_BOOKMARK) {
        unknown_bookmark(r, now_ns);
        return false;
    }
    r->events++;
    r->failures = r->too_large = 0;
    if (r->state == TIER_REFLECTOR_WATCHING && version > r->version)
        r->version = version;
    return true;
}

void tier_reflector_watch_ended(struct tier_reflector *r, int64_t now_ns)
{
    assert(r->state == TIER_REFLECTOR_STREAMING || r->state == TIER_REFLECTOR_WATCHING);
    bool too_short = r->events == 0 && now_ns - r->begun_ns < SHORT_WATCH_NS;
    if (r->state == TIER_REFLECTOR_STREAMING) /* the state is incomplete; a list may be shorter */
        wait_before(r, TIER_REFLECTOR_LISTING, next_delay(r, true, now_ns));
    else if (too_short)
        wait_before(r, after_watch(r), next_delay(r, true, now_ns));
    else
        watch(r, now_ns);
}

void tier_reflector_check(const struct tier_reflector *r)
{
    assert(r->state <= TIER_REFLECTOR_REFUSED);
    assert(r->state == TIER_REFLECTOR_LISTING || !r->token.len ||
           r->state == TIER_REFLECTOR_WAITING || r->state == TIER_REFLECTOR_STOPPED ||
           r->state == TIER_REFLECTOR_REFUSED);
    assert(r->state != TIER_REFLECTOR_WATCHING || r->version);
    assert(r->after_answer.next_ns >= DELAY_MIN_NS && r->after_answer.next_ns <= DELAY_MAX_NS);
    assert(r->after_refusal.next_ns >= DELAY_MIN_NS &&
           r->after_refusal.next_ns <= REFUSED_DELAY_MAX_NS);
    assert(r->after_silence.next_ns >= DELAY_MIN_NS && r->after_silence.next_ns <= DELAY_MAX_NS);
}
