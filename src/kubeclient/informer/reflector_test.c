/* A reflector and a small model of a server: its objects, its history, and everything that may go
 * wrong between the two. */
#include "kubeclient/informer/reflector.h"

#include "base/clock.h"
#include "kubeclient/data/objects_test.h"
#include "kubeclient/data/status.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { NAMES = 20, EVENTS_MAX = 4000 };

struct change {
    int name, revision;
    bool deletes;
};

struct world {
    struct random random;
    struct cache cache;
    struct reflector reflector;
    int64_t now_ns;
    /* The server. */
    int versions[NAMES]; /* 0: does not exist */
    struct change history[EVENTS_MAX];
    int revision;  /* revision of the last change */
    int compacted; /* changes up to this one are forgotten */
    bool no_streaming;
    bool in_pages;
    bool stops; /* the program stops the reflector when something fails */
    /* The request under way. */
    bool open;
    enum reflector_state kind;
    int at;      /* for a watch: the revision of the last event that was sent */
    int sent;    /* for a stream: initial events; for a list: objects of earlier pages */
    int list_at; /* the revision of a list, of all its pages, or of a stream's initial events */
    int listed[NAMES];
    int limit;
    char version[REFLECTOR_VERSION_BYTES];
    bool waits;
    int64_t delay_ns; /* length of the last wait */
    /* What happened. */
    unsigned requests[REFLECTOR_WAITING + 1];
    unsigned syncs, failures;
    int seen[NAMES];  /* the newest version that was reported for a name */
    int first_synced; /* the revision of the first whole state */
    int delivered;    /* changes that were reported after it */
};

/* -- What the reflector calls -- */

static void on_request(void *ctx, const struct reflector_request *request)
{
    struct world *w = ctx;
    assert_false(w->open || w->waits);
    w->open = true;
    w->kind = request->kind;
    w->requests[request->kind]++;
    w->limit = request->limit;
    snprintf(w->version, sizeof(w->version), "%s", request->version);
    if (request->kind == REFLECTOR_LISTING && request->continue_token.len == 0)
        w->sent = 0;
    if (request->kind != REFLECTOR_LISTING) {
        assert_in_range(request->timeout_s, 300, 599);
        w->sent = 0;
    }
    if (request->kind == REFLECTOR_WATCHING)
        w->at = (int)strtol(request->version, NULL, 10);
    else if (w->sent == 0)
        w->list_at = 0; /* not decided */
}

static void on_cancel(void *ctx)
{
    struct world *w = ctx;
    w->open = false;
}

static void on_wait(void *ctx, int64_t delay_ns)
{
    struct world *w = ctx;
    assert_in_range(delay_ns, 800 * NS_PER_MS, 300 * NS_PER_S);
    w->waits = true;
    w->delay_ns = delay_ns;
}

static void on_synced(void *ctx)
{
    struct world *w = ctx;
    if (w->syncs++ == 0)
        w->first_synced = (int)strtol(w->reflector.version, NULL, 10);
}

static void on_failed(void *ctx, const struct vigil_kube_status *status)
{
    struct world *w = ctx;
    assert_true(status->message[0] || status->reason[0]);
    w->failures++;
    if (w->stops)
        reflector_stop(&w->reflector);
}

static const struct reflector_ops ops = {
    .request = on_request,
    .cancel = on_cancel,
    .wait = on_wait,
    .synced = on_synced,
    .failed = on_failed,
};

/* Versions never go back. */
static void on_change(void *ctx, const struct cache_change *change)
{
    struct world *w = ctx;
    const struct vigil_kube_object *about = change->now ? change->now : change->old;
    int name = test_number(object_key(about)), version = test_number(object_version(about));
    assert_true(version > w->seen[name] || change->state_unknown);
    if (version > w->seen[name])
        w->seen[name] = version;
    w->delivered += w->syncs > 0 && !change->in_list;
}

/* -- The server -- */

static struct slice json_of(char json[128], int name, int version)
{
    int n = snprintf(json, 128, "{\"metadata\":{\"name\":\"%d\",\"resourceVersion\":\"%d\"}}", name,
                     version);
    return slice_of(json, (size_t)n);
}

static void change(struct world *w)
{
    int name = (int)random_below(&w->random, NAMES);
    bool deletes = w->versions[name] && random_chance(&w->random, 1, 3);
    if (w->revision + 1 == EVENTS_MAX)
        return;
    w->revision++;
    w->history[w->revision] = (struct change){name, w->revision, deletes};
    w->versions[name] = deletes ? 0 : w->revision;
}

/* The state as of a revision. */
static void state_at(const struct world *w, int revision, int ret_versions[NAMES])
{
    memset(ret_versions, 0, NAMES * sizeof(*ret_versions));
    for (int i = 1; i <= revision; i++)
        ret_versions[w->history[i].name] = w->history[i].deletes ? 0 : i;
}

static void refuse(struct world *w, int code, const char *reason)
{
    struct vigil_kube_status status = {.code = code, .retry_after_s = -1};
    snprintf(status.reason, sizeof(status.reason), "%s", reason);
    snprintf(status.message, sizeof(status.message), "failed with %d", code);
    w->open = false;
    reflector_failed(&w->reflector, &status, w->now_ns);
}

static void send_event(struct world *w, enum received_type type, struct slice object, int version,
                       bool ends)
{
    char digits[16];
    int n = snprintf(digits, sizeof(digits), "%d", version);
    struct received_event event = {.type = type,
                                   .object = object,
                                   .version = slice_of(digits, (size_t)n),
                                   .ends_initial_events = ends};
    reflector_received(&w->reflector, &event, w->now_ns);
}

static void send_expired(struct world *w)
{
    struct received_event event = {
        .type = RECEIVED_ERROR,
        .object = SLICE_LITERAL(
            "{\"kind\":\"Status\",\"reason\":\"Expired\",\"code\":410,\"message\":\"too old\"}")};
    reflector_received(&w->reflector, &event, w->now_ns);
}

static void serve_watch(struct world *w)
{
    char json[128];
    if (w->at < w->compacted) {
        send_expired(w);
        return;
    }
    if (w->at == w->revision) {
        if (random_chance(&w->random, 1, 4))
            send_event(w, RECEIVED_BOOKMARK, SLICE_LITERAL("{}"), w->at, false);
        return;
    }
    const struct change *next = &w->history[++w->at];
    send_event(w, next->deletes ? RECEIVED_DELETED : RECEIVED_ADDED,
               json_of(json, next->name, w->at), w->at, false);
}

/* A cache of the server may be a little behind, if the client accepts that. */
static void choose_state(struct world *w)
{
    int behind = w->version[0] ? (int)random_below(&w->random, 4) : 0;
    int least = (int)strtol(w->version, NULL, 10);
    w->list_at = w->revision - behind > least ? w->revision - behind : least;
    state_at(w, w->list_at, w->listed);
}

static void serve_stream(struct world *w)
{
    char json[128];
    if (w->no_streaming) {
        refuse(w, 422, "Invalid");
        return;
    }
    if (w->sent == 0 && !w->list_at)
        choose_state(w);
    while (w->sent < NAMES && !w->listed[w->sent])
        w->sent++;
    if (w->sent < NAMES) {
        int name = w->sent++;
        send_event(w, RECEIVED_ADDED, json_of(json, name, w->listed[name]), w->listed[name], false);
        return;
    }
    w->at = w->list_at;
    w->kind = REFLECTOR_WATCHING;
    send_event(w, RECEIVED_BOOKMARK, SLICE_LITERAL("{}"), w->list_at, true);
}

static void serve_list(struct world *w)
{
    char json[128], version[16];
    if (w->sent == 0)
        choose_state(w);
    else if (w->list_at < w->compacted) {
        refuse(w, 410, "Expired");
        return;
    }
    int page = w->in_pages && w->limit ? 5 : NAMES;
    for (int n = 0; n < page && w->sent < NAMES; n++, w->sent++) {
        if (w->listed[w->sent])
            reflector_listed(&w->reflector, json_of(json, w->sent, w->listed[w->sent]), w->now_ns);
        if (w->waits)
            return; /* the object did not fit */
    }
    int n = snprintf(version, sizeof(version), "%d", w->list_at);
    w->open = false;
    char token[16];
    snprintf(token, sizeof(token), "%d", w->sent);
    reflector_page_ended(&w->reflector, slice_of(version, (size_t)n),
                         w->sent < NAMES ? slice_from_text(token) : SLICE_EMPTY, w->now_ns);
}

static void serve(struct world *w)
{
    if (w->waits) {
        w->waits = false;
        w->now_ns += 60 * NS_PER_S;
        reflector_resume(&w->reflector, w->now_ns);
    } else if (w->kind == REFLECTOR_STREAMING) {
        serve_stream(w);
    } else if (w->kind == REFLECTOR_LISTING) {
        serve_list(w);
    } else {
        serve_watch(w);
    }
    reflector_check(&w->reflector);
}

static void break_request(struct world *w)
{
    static const struct {
        int code;
        const char *reason;
    } faults[] = {{0, "Unreachable"}, {429, "TooManyRequests"}, {500, "InternalError"}};
    if (!w->open)
        return;
    if (w->kind != REFLECTOR_LISTING && random_chance(&w->random, 1, 2)) {
        w->open = false;
        reflector_watch_ended(&w->reflector, w->now_ns);
    } else {
        size_t i = (size_t)random_below(&w->random, COUNT_OF(faults));
        refuse(w, faults[i].code, faults[i].reason);
    }
    reflector_check(&w->reflector);
}

/* -- Tests -- */

static void world_init(struct world *w, uint64_t seed)
{
    *w = (struct world){.now_ns = 1000 * NS_PER_S};
    random_init(&w->random, seed);
    w->no_streaming = random_chance(&w->random, 1, 3);
    w->in_pages = random_chance(&w->random, 1, 2);
    cache_init(&w->cache, seed, on_change, w);
    reflector_init(&w->reflector, &w->cache, &ops, w, seed);
    for (int i = 0; i < 10; i++)
        change(w);
    reflector_start(&w->reflector, w->now_ns);
}

static void world_fini(struct world *w)
{
    reflector_stop(&w->reflector);
    assert_false(w->open);
    reflector_fini(&w->reflector);
    cache_fini(&w->cache);
}

static bool is_current(struct world *w)
{
    return w->reflector.state == REFLECTOR_WATCHING && w->open && w->at == w->revision;
}

static void settle(struct world *w)
{
    int steps = 0;
    for (; !is_current(w) && steps < 20000; steps++)
        serve(w);
    assert_true(steps < 20000);
}

static void expect_equal(struct world *w)
{
    size_t count = 0;
    for (int i = 0; i < NAMES; i++) {
        char name[8];
        int n = snprintf(name, sizeof(name), "%d", i % 1000);
        const struct vigil_kube_object *found =
            indexer_get(&w->cache.indexer, slice_of(name, (size_t)n));
        assert_int_equal(found ? test_number(object_version(found)) : 0, w->versions[i]);
        count += found != NULL;
    }
    assert_int_equal(indexer_count(&w->cache.indexer), count);
}

static void live(struct world *w, bool compacts)
{
    for (int step = 0; step < 600; step++) {
        uint64_t what = random_below(&w->random, 20);
        w->now_ns += (int64_t)random_below(&w->random, 2000) * NS_PER_MS;
        if (what < 6)
            change(w);
        else if (what == 6)
            break_request(w);
        else if (what == 7 && compacts && random_chance(&w->random, 1, 4))
            w->compacted = w->revision - (int)random_below(&w->random, 3);
        else
            serve(w);
    }
}

/* Breaks, errors, compactions, servers with and without streams and pages. */
static void cache_converges_on_the_server(void **state)
{
    (void)state;
    unsigned relists = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        struct world w;
        world_init(&w, seed);
        live(&w, true);
        settle(&w);
        expect_equal(&w);
        relists += w.syncs > 1;
        world_fini(&w);
    }
    assert_true(relists > 100);
}

/* While the history is available, every change after the first state is delivered exactly once. */
static void no_change_is_missed_while_the_history_is_available(void **state)
{
    (void)state;
    for (uint64_t seed = 1000; seed < 1200; seed++) {
        struct world w;
        world_init(&w, seed);
        live(&w, false);
        settle(&w);
        expect_equal(&w);
        if (w.syncs == 1)
            assert_int_equal(w.delivered, w.revision - w.first_synced);
        world_fini(&w);
    }
}

static void server_without_streams_is_listed_and_asked_only_once(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 1);
    w.no_streaming = true;
    settle(&w);
    assert_int_equal(w.requests[REFLECTOR_STREAMING], 1);
    assert_int_equal(w.requests[REFLECTOR_LISTING], w.in_pages ? 4 : 1);
    send_expired(&w);
    settle(&w);
    assert_int_equal(w.requests[REFLECTOR_STREAMING], 1);
    assert_int_equal(w.syncs, 2);
    world_fini(&w);
}

static void watch_resumes_at_the_version_of_a_bookmark(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 2);
    w.no_streaming = false;
    settle(&w);
    send_event(&w, RECEIVED_BOOKMARK, SLICE_LITERAL("{}"), 999, false);
    w.open = false;
    w.now_ns += 10 * NS_PER_S;
    reflector_watch_ended(&w.reflector, w.now_ns);
    assert_int_equal(w.kind, REFLECTOR_WATCHING);
    assert_string_equal(w.version, "999");
    world_fini(&w);
}

static void watch_that_ends_at_once_is_not_repeated_at_once(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 3);
    w.no_streaming = false;
    settle(&w);
    w.open = false;
    w.now_ns += 10 * NS_PER_S;
    reflector_watch_ended(&w.reflector, w.now_ns); /* after its events: watches again */
    assert_true(w.open);
    w.open = false;
    reflector_watch_ended(&w.reflector, w.now_ns);
    assert_true(w.waits);
    world_fini(&w);
}

static void stop_ends_the_request_in_every_state(void **state)
{
    (void)state;
    for (int steps = 0; steps < 60; steps++) {
        struct world w;
        world_init(&w, 4);
        for (int i = 0; i < steps; i++) {
            serve(&w);
            if (i == 40)
                break_request(&w);
        }
        reflector_stop(&w.reflector);
        reflector_stop(&w.reflector);
        reflector_check(&w.reflector);
        w.waits = false;
        reflector_start(&w.reflector, w.now_ns);
        settle(&w);
        expect_equal(&w);
        world_fini(&w);
    }
}

static void restored_server_is_followed_back(void **state)
{
    (void)state;
    for (int streams = 0; streams < 2; streams++) {
        struct world w;
        world_init(&w, 6);
        w.no_streaming = !streams;
        for (int i = 0; i < 50; i++)
            change(&w);
        settle(&w);
        w.revision = 20; /* the revision of the backup */
        state_at(&w, w.revision, w.versions);
        memset(w.seen, 0, sizeof(w.seen));
        refuse(&w, 410, "Expired"); /* the watch; then the state that is not older than it: */
        serve(&w);
        struct vigil_kube_status status = {
            .code = 504, .retry_after_s = -1, .message = "Too large resource version: 60"};
        w.open = false;
        reflector_failed(&w.reflector, &status, w.now_ns);
        settle(&w);
        expect_equal(&w);
        world_fini(&w);
    }
}

/* A world whose server streams, with a request under way. */
static void world_init_streaming(struct world *w, uint64_t seed)
{
    world_init(w, seed);
    w->no_streaming = false;
    assert_int_equal(w->kind, REFLECTOR_STREAMING);
}

static void expired_version_is_not_followed_by_a_request_at_once(void **state)
{
    (void)state;
    struct world w;
    world_init_streaming(&w, 7);
    settle(&w);
    send_expired(&w);
    assert_true(w.waits);
    serve(&w);
    assert_int_equal(w.kind, REFLECTOR_STREAMING);
    world_fini(&w);
}

/* The reflector's delays double from 0.8 s and have a random part of as much again. */
static void outage_does_not_delay_the_state_after_it(void **state)
{
    (void)state;
    struct world w;
    world_init_streaming(&w, 17);
    settle(&w);
    for (int i = 0; i < 10; i++) {
        refuse(&w, 0, "");
        w.now_ns += w.delay_ns;
        w.waits = false;
        reflector_resume(&w.reflector, w.now_ns);
    }
    assert_in_range(w.delay_ns, 30 * NS_PER_S, 60 * NS_PER_S);
    /* The server is back, and has forgotten the version. */
    send_expired(&w);
    assert_in_range(w.delay_ns, 800 * NS_PER_MS, 1600 * NS_PER_MS);
    w.waits = false;
    reflector_resume(&w.reflector, w.now_ns);
    assert_int_equal(w.kind, REFLECTOR_STREAMING);
    /* The next outage begins with the shortest delay again. */
    refuse(&w, 0, "");
    assert_in_range(w.delay_ns, 800 * NS_PER_MS, 1600 * NS_PER_MS);
    world_fini(&w);
}

static void requests_to_a_server_that_always_forgets_become_rare(void **state)
{
    (void)state;
    struct world w;
    world_init_streaming(&w, 18);
    for (int i = 0; i < 12; i++) {
        settle(&w);
        send_expired(&w);
        w.now_ns += w.delay_ns;
        w.waits = false;
        reflector_resume(&w.reflector, w.now_ns);
        /* An outage in between does not make it forget the delay. */
        refuse(&w, 0, "");
        w.waits = false;
        reflector_resume(&w.reflector, w.now_ns);
    }
    settle(&w);
    send_expired(&w);
    assert_in_range(w.delay_ns, 30 * NS_PER_S, 60 * NS_PER_S);
    world_fini(&w);
}

static void pages_that_always_expire_are_not_requested_without_a_pause(void **state)
{
    (void)state;
    struct world w;
    world_init_streaming(&w, 8);
    refuse(&w, 422, "Invalid");
    for (int i = 0; i < 3; i++) { /* in pages, at once, and the most recent state */
        w.open = false;
        reflector_page_ended(&w.reflector, SLICE_LITERAL("1"), SLICE_LITERAL("more"), w.now_ns);
        assert_int_equal(w.kind, REFLECTOR_LISTING);
        refuse(&w, 410, "Expired");
        assert_int_equal(w.waits, i == 2);
    }
    world_fini(&w);
}

static void passing_error_does_not_end_streaming_for_good(void **state)
{
    (void)state;
    struct world w;
    world_init_streaming(&w, 9);
    refuse(&w, 503, "ServiceUnavailable");
    assert_int_equal(w.kind, REFLECTOR_LISTING);
    settle(&w);
    send_expired(&w);
    serve(&w);
    assert_int_equal(w.kind, REFLECTOR_STREAMING);
    settle(&w);
    expect_equal(&w);
    world_fini(&w);
}

/* Servers before 1.19 ignore sendInitialEvents, and never send the bookmark at the end. */
static void server_that_ignores_streaming_is_listed(void **state)
{
    (void)state;
    char json[128];
    struct world w;
    world_init_streaming(&w, 10);
    send_event(&w, RECEIVED_ADDED, json_of(json, 1, 3), 3, false);
    assert_int_equal(w.kind, REFLECTOR_STREAMING);
    send_event(&w, RECEIVED_BOOKMARK, SLICE_LITERAL("{}"), 9, false);
    assert_int_equal(w.kind, REFLECTOR_LISTING);
    memset(w.seen, 0, sizeof(w.seen));
    settle(&w);
    send_expired(&w);
    settle(&w);
    assert_int_equal(w.requests[REFLECTOR_STREAMING], 1);
    world_fini(&w);
}

static void stream_without_an_end_is_followed_by_a_list(void **state)
{
    (void)state;
    struct world w;
    world_init_streaming(&w, 11);
    w.open = false;
    w.now_ns += 400 * NS_PER_S;
    reflector_watch_ended(&w.reflector, w.now_ns);
    assert_true(w.waits);
    serve(&w);
    assert_int_equal(w.kind, REFLECTOR_LISTING);
    settle(&w);
    expect_equal(&w);
    world_fini(&w);
}

static void reflector_may_be_stopped_when_something_fails(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        struct world w;
        world_init_streaming(&w, 12);
        if (kind > 0)
            settle(&w);
        w.stops = true;
        if (kind == 0)
            refuse(&w, 500, "InternalError");
        else if (kind == 1)
            send_event(&w, RECEIVED_ADDED, SLICE_LITERAL("{}"), 12, false);
        else
            send_expired(&w);
        assert_int_equal(w.reflector.state, REFLECTOR_STOPPED);
        assert_false(w.open || w.waits);
        world_fini(&w);
    }
}

/* The next state may not have it any more. */
static void event_that_always_fails_is_passed_by_a_list(void **state)
{
    (void)state;
    struct world w;
    world_init_streaming(&w, 13);
    settle(&w);
    for (int i = 0; i < 20 && w.requests[REFLECTOR_STREAMING] == 1; i++) {
        send_event(&w, RECEIVED_ADDED, SLICE_LITERAL("{}"), 12, false);
        assert_true(w.waits);
        serve(&w);
    }
    assert_int_equal(w.requests[REFLECTOR_STREAMING], 2);
    world_fini(&w);
}

/* Extension servers may leave out the version of a list. */
static void without_a_version_a_watch_is_followed_by_a_list(void **state)
{
    (void)state;
    char json[128];
    for (int changed = 0; changed < 2; changed++) {
        struct world w;
        world_init_streaming(&w, 16);
        refuse(&w, 422, "Invalid");
        w.open = false;
        reflector_page_ended(&w.reflector, SLICE_EMPTY, SLICE_EMPTY, w.now_ns);
        assert_int_equal(w.kind, REFLECTOR_WATCHING);
        assert_string_equal(w.version, "");
        send_event(&w, RECEIVED_ADDED, json_of(json, 1, 20), 20, false);
        if (changed)
            send_event(&w, RECEIVED_MODIFIED, json_of(json, 1, 30), 30, false);
        w.open = false;
        w.now_ns += 10 * NS_PER_S;
        reflector_watch_ended(&w.reflector, w.now_ns);
        assert_int_equal(w.waits, !changed);
        if (w.waits)
            serve(&w);
        assert_int_equal(w.kind, changed ? REFLECTOR_WATCHING : REFLECTOR_LISTING);
        assert_string_equal(w.version, changed ? "30" : "20");
        world_fini(&w);
    }
}

/* The test's own function checks the delay. */
static void server_cannot_demand_an_endless_delay(void **state)
{
    (void)state;
    struct world w;
    world_init_streaming(&w, 14);
    struct vigil_kube_status status = {
        .code = 429, .retry_after_s = INT32_MAX, .reason = "TooManyRequests"};
    w.open = false;
    reflector_failed(&w.reflector, &status, w.now_ns);
    assert_true(w.waits);
    world_fini(&w);
}

static void error_event_without_a_code_is_an_answer(void **state)
{
    (void)state;
    struct world w;
    world_init_streaming(&w, 15);
    struct received_event event = {
        .type = RECEIVED_ERROR, .object = SLICE_LITERAL("{\"kind\":\"Status\",\"message\":\"x\"}")};
    reflector_received(&w.reflector, &event, w.now_ns);
    assert_int_equal(w.kind, REFLECTOR_LISTING);
    world_fini(&w);
}

static void object_that_does_not_fit_is_reported_and_tried_again(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 5);
    w.cache.bytes_max = 100;
    for (int i = 0; i < 200 && !w.failures; i++)
        serve(&w);
    assert_true(w.failures > 0);
    w.cache.bytes_max = 0;
    settle(&w);
    expect_equal(&w);
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cache_converges_on_the_server),
        cmocka_unit_test(no_change_is_missed_while_the_history_is_available),
        cmocka_unit_test(server_without_streams_is_listed_and_asked_only_once),
        cmocka_unit_test(watch_resumes_at_the_version_of_a_bookmark),
        cmocka_unit_test(watch_that_ends_at_once_is_not_repeated_at_once),
        cmocka_unit_test(stop_ends_the_request_in_every_state),
        cmocka_unit_test(restored_server_is_followed_back),
        cmocka_unit_test(expired_version_is_not_followed_by_a_request_at_once),
        cmocka_unit_test(outage_does_not_delay_the_state_after_it),
        cmocka_unit_test(requests_to_a_server_that_always_forgets_become_rare),
        cmocka_unit_test(pages_that_always_expire_are_not_requested_without_a_pause),
        cmocka_unit_test(passing_error_does_not_end_streaming_for_good),
        cmocka_unit_test(server_that_ignores_streaming_is_listed),
        cmocka_unit_test(stream_without_an_end_is_followed_by_a_list),
        cmocka_unit_test(reflector_may_be_stopped_when_something_fails),
        cmocka_unit_test(event_that_always_fails_is_passed_by_a_list),
        cmocka_unit_test(without_a_version_a_watch_is_followed_by_a_list),
        cmocka_unit_test(server_cannot_demand_an_endless_delay),
        cmocka_unit_test(error_event_without_a_code_is_an_answer),
        cmocka_unit_test(object_that_does_not_fit_is_reported_and_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
