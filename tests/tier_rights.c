/*
 * The C side of tests/kube/tier_rights_test.py: asks a kube-apiserver who a client is and what it
 * may do, as the watch tier does; see oracle.h for its requests.
 *
 *     o kubeconfig                          connects; before everything else
 *     m login access                        {"user":…,"verdict":…,"status":…}
 *     w login access                        begins a watch
 *     c                                     a role has changed
 *     r milliseconds                        [{"verdict":…,"status":…}], the watches that were lost
 *                                           meanwhile
 *
 * login: "Bearer TOKEN", "" or "certificate ID NAME GROUP…" with zero bytes for the blanks.
 * access: verb, group, version, resource, subresource, namespace, name, label selector and field
 * selector, each followed by a zero byte.
 */
#include "codec/json/writer.h"
#include "io/loop.h"
#include "io/socket.h"
#include "tier/rights/rights.h"
#include "wire/http/certificate.h"

#include "oracle.h"

enum { WATCHES_MAX = 64, CERTIFICATE_BYTES = 4096 };

struct asked {
    struct tier_question question;
    struct tier_right_wait wait;
    struct tier_user *user;
    enum tier_verdict verdict;
    struct buf status;
};

struct watched {
    struct tier_standing standing;
    bool is_lost;
    enum tier_verdict verdict;
    struct buf status;
};

static struct loop *loop;
static bool stopped;
static struct tier_link *upstream;
static struct tier_rights *rights;
static struct watched watches[WATCHES_MAX];
static size_t watch_count;

static const char *const verdicts[] = {"allowed", "denied", "unknown"};

static void must(bool right, const char *why)
{
    if (!right)
        oracle_fail(why);
}

static void on_log(void *ctx, int level, const char *text)
{
    (void)ctx, (void)level;
    fprintf(stderr, "tier_rights: %s\n", text);
}

static void open_upstream(const char *kubeconfig)
{
    vigil_kube_options client;
    struct error error;
    vigil_kube_options_init(&client);
    client.kubeconfig = kubeconfig;
    struct tier_link_options options = {.client = &client, .log = on_log};
    must(network_loop_new(network_posix(), &loop) == ST_OK, "no loop");
    options.loop = loop;
    if (tier_link_new(&options, &upstream, &error) != ST_OK)
        oracle_fail(error.text);
    rights = tier_rights_new(&(struct tier_rights_options){
        .loop = loop, .link = upstream, .ttl_ns = NS_PER_S, .again_ns = 2 * NS_PER_S, .seed = 1});
}

/* -- Who -- */

static void on_identified(struct tier_question *question, struct tier_user *user,
                          const struct kube_status *status)
{
    struct asked *asked = CONTAINER_OF(question, struct asked, question);
    asked->user = user;
    if (!user)
        must(kube_status_write(status, &asked->status) == ST_OK, "memory");
    stopped = true;
}

static void on_limit(struct timer *timer)
{
    (void)timer;
    stopped = true;
}

/* Until it is stopped, at most for this time. */
static void run_for(int64_t ns)
{
    struct timer limit = {.fn = on_limit};
    stopped = false;
    loop_timer_set(loop, &limit, clock_mono_ns(loop_clock(loop)) + ns);
    while (!stopped)
        loop_turn(loop, CLOCK_NEVER);
    loop_timer_cancel(loop, &limit);
}

static void identify(struct asked *asked, struct slice login)
{
    static union {
        struct http_certificate certificate;
        char room[CERTIFICATE_BYTES];
    } c;
    struct http_request request = {0};
    struct http_field field = {SLICE_LITERAL("authorization"), login};
    char name[256];
    if (slice_has_prefix(login, SLICE_LITERAL("certificate"))) {
        (void)slice_cut(&login, '\0');
        struct slice id = slice_cut(&login, '\0'), cn = slice_cut(&login, '\0');
        must(login.len < sizeof(c) - sizeof(c.certificate) && id.len < sizeof(c.certificate.id) &&
                 cn.len < sizeof(name),
             "a login is too long");
        snprintf(c.certificate.id, sizeof(c.certificate.id), "%.*s", SLICE_ARGS(id));
        snprintf(name, sizeof(name), "%.*s", SLICE_ARGS(cn));
        slice_copy(c.certificate.groups, login);
        c.certificate.groups_bytes = login.len;
        request.peer_name = name;
        request.certificate = &c.certificate;
    } else if (login.len) {
        request.fields = &field;
        request.field_count = 1;
    }
    asked->question.done = on_identified;
    run_for(NS_PER_MS); /* the loop's clock is right */
    tier_identify(rights, &asked->question, &request);
    if (!asked->user && !asked->status.len)
        run_for(20 * NS_PER_S);
}

/* -- May they -- */

static void on_decided(struct tier_right_wait *wait, enum tier_verdict verdict,
                       const struct kube_status *status)
{
    struct asked *asked = CONTAINER_OF(wait, struct asked, wait);
    asked->verdict = verdict;
    must(kube_status_write(status, &asked->status) == ST_OK, "memory");
    stopped = true;
}

static struct tier_access access_of(struct slice text, char verb[32])
{
    struct tier_access access = {.verb = verb};
    struct slice first = slice_cut(&text, '\0');
    must(first.len < 32, "a verb is too long");
    slice_copy(verb, first);
    verb[first.len] = 0;
    access.group = slice_cut(&text, '\0');
    access.version = slice_cut(&text, '\0');
    access.resource = slice_cut(&text, '\0');
    access.subresource = slice_cut(&text, '\0');
    access.namespace = slice_cut(&text, '\0');
    access.name = slice_cut(&text, '\0');
    access.label_selector = slice_cut(&text, '\0');
    access.field_selector = slice_cut(&text, '\0');
    return access;
}

static void decide(struct asked *asked, struct slice text)
{
    char verb[32];
    struct tier_access access = access_of(text, verb);
    asked->wait.done = on_decided;
    tier_may(rights, &asked->wait, asked->user, &access);
    if (!asked->status.len)
        run_for(20 * NS_PER_S);
}

static void write_user(struct json_writer *w, const struct tier_user *user)
{
    json_begin_object(w);
    json_member_string(w, "name", user->name);
    json_member_string(w, "uid", user->uid);
    json_key(w, "groups");
    json_strings(w, user->groups, user->group_count);
    if (user->extra.len)
        json_member_raw(w, "extra", user->extra);
    json_end_object(w);
}

static void answer_may(struct slice login, struct slice access, struct buf *out)
{
    struct asked asked = {.verdict = TIER_UNKNOWN};
    struct json_writer w;
    identify(&asked, login);
    if (asked.user)
        decide(&asked, access);
    json_writer_init(&w, out);
    json_begin_object(&w);
    if (asked.user) {
        json_key(&w, "user");
        write_user(&w, asked.user);
    }
    json_member_text(&w, "verdict", verdicts[asked.verdict]);
    json_member_raw(&w, "status", buf_slice(&asked.status));
    json_end_object(&w);
    must(json_writer_finish(&w) == ST_OK, "memory");
    tier_user_unref(asked.user);
    buf_fini(&asked.status);
}

/* -- Watches -- */

static void on_lost(struct tier_standing *standing, enum tier_verdict verdict,
                    const struct kube_status *status)
{
    struct watched *watched = CONTAINER_OF(standing, struct watched, standing);
    watched->is_lost = true;
    watched->verdict = verdict;
    must(kube_status_write(status, &watched->status) == ST_OK, "memory");
}

static void begin_watch(struct slice login, struct slice text)
{
    struct asked asked = {.verdict = TIER_UNKNOWN};
    char verb[32];
    struct tier_access access = access_of(text, verb);
    identify(&asked, login);
    must(asked.user && watch_count < WATCHES_MAX, "a watch without a user, or too many");
    watches[watch_count] = (struct watched){.standing.lost = on_lost};
    must(tier_standing_add(rights, &watches[watch_count++].standing, asked.user, &access) == ST_OK,
         "a watch cannot begin");
    tier_user_unref(asked.user);
}

static void answer_lost(int64_t ms, struct buf *out)
{
    struct json_writer w;
    run_for(ms * NS_PER_MS);
    json_writer_init(&w, out);
    json_begin_array(&w);
    for (size_t i = 0; i < watch_count; i++) {
        if (!watches[i].is_lost)
            continue;
        watches[i].is_lost = false;
        json_begin_object(&w);
        json_member_u64(&w, "watch", i);
        json_member_text(&w, "verdict", verdicts[watches[i].verdict]);
        json_member_raw(&w, "status", buf_slice(&watches[i].status));
        json_end_object(&w);
        buf_fini(&watches[i].status);
    }
    json_end_array(&w);
    must(json_writer_finish(&w) == ST_OK, "memory");
}

/* -- Requests -- */

static void answer(struct arena *arena, int letter, struct buf *out)
{
    char text[4096];
    uint64_t number;
    if (letter == 'o') {
        struct slice path = oracle_read(arena);
        snprintf(text, sizeof(text), "%.*s", SLICE_ARGS(path));
        open_upstream(text);
    } else if (letter == 'm') {
        struct slice login = oracle_read(arena);
        answer_may(login, oracle_read(arena), out);
    } else if (letter == 'w') {
        struct slice login = oracle_read(arena);
        begin_watch(login, oracle_read(arena));
    } else if (letter == 'c') {
        tier_rights_changed(rights);
    } else if (letter == 'r' && slice_decimal(oracle_read(arena), &number)) {
        answer_lost((int64_t)number, out);
    } else {
        oracle_fail("unknown request");
    }
}

int main(void)
{
    for (int letter; (letter = getchar()) != EOF;) {
        AUTO(buf_fini) struct buf out = {0};
        struct arena arena;
        arena_init(&arena, NULL, 0, SIZE_MAX);
        answer(&arena, letter, &out);
        oracle_answer('+', buf_slice(&out));
        arena_fini(&arena);
    }
    for (size_t i = 0; i < watch_count; i++)
        tier_standing_remove(&watches[i].standing);
    tier_rights_free(rights);
    tier_link_free(upstream);
    if (loop)
        loop_free(loop);
    return 0;
}
