/*
 * The cases of client-go's reflector_test.go and reflector_watchlist_test.go, over a network. A
 * script has every request that the informer is expected to make, in order, and its answer.
 */
#include "kubeclient/informer/informer.h"

#include "kubeclient/call/kube_server_sim_test.h"

enum step_end { STAYS_OPEN, ENDS, BREAKS };

struct step {
    const char *query; /* with no timeoutSeconds, which is checked apart */
    unsigned code;     /* 0: 200 */
    const char *body;
    enum step_end end; /* how a watch ends */
};

#define POD(name, version) \
    "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version "\"}}"
#define LIST(meta, items) "{\"kind\":\"PodList\",\"metadata\":{" meta "},\"items\":[" items "]}"
#define AT(version) "\"resourceVersion\":\"" version "\""
#define CONTINUED(version, token) AT(version) ",\"continue\":\"" token "\""
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define STATUS(code, reason, more) \
    "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"" reason "\",\"code\":" code more "}"
#define END_OF_STATE(version)                                                     \
    EVENT("BOOKMARK", "{\"metadata\":{" AT(version) ",\"annotations\":{\"k8s.io/" \
                                                    "initial-events-end\":\"true\"}}}")
#define WATCH_FROM(version) "allowWatchBookmarks=true&resourceVersion=" version "&watch=true"
#define STREAM \
    "allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&watch=true"
#define FIRST_LIST "limit=500&resourceVersion=0"
#define EXPIRED_EVENT EVENT("ERROR", STATUS("410", "Expired", ""))
#define EXPIRED STATUS("410", "Expired", "")

static struct kube_world world;
static vigil_kube_informer *informer;
static const struct step *script;
static size_t step_count, steps_made;
static int64_t made_ns[64]; /* when each request arrived */

/* "a=b&timeoutSeconds=311&c=d" without the number, which is between five and ten minutes. */
static void take_timeout(char *query)
{
    char *at = strstr(query, "timeoutSeconds=");
    if (!at)
        return;
    char *rest;
    assert_in_range(strtol(at + strlen("timeoutSeconds="), &rest, 10), 300, 600);
    memmove(at, rest + 1, strlen(rest + 1) + 1);
}

static void begin_watch(struct sim_reply *reply, const struct step *step)
{
    sim_reply_begin(reply, 200, "application/json");
    sim_reply_text(reply, step->body);
    if (step->end == ENDS)
        sim_reply_end(reply);
    else if (step->end == BREAKS)
        sim_reply_break(reply);
}

static void answer(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    char query[1024];
    (void)ctx;
    const char *asked = strchr(request->target, '?');
    snprintf(query, sizeof(query), "%s", asked ? asked + 1 : "");
    take_timeout(query);
    assert_true(steps_made < step_count);
    const struct step *step = &script[steps_made];
    made_ns[steps_made++] = request->at_ns;
    assert_string_equal(query, step->query);
    if (step->code)
        sim_reply_json(reply, step->code, step->body);
    else if (strstr(query, "watch=true"))
        begin_watch(reply, step);
    else
        sim_reply_json(reply, 200, step->body);
}

static void begin(bool no_streaming)
{
    vigil_kube_informer_options options;
    vigil_kube_informer_options_init(&options);
    options.target = (vigil_kube_target){.version = "v1", .resource = "pods"};
    options.no_streaming = no_streaming;
    kube_world_init(&world, SIM_HTTP2, NULL);
    kube_server_route(&world.server, "GET", "/api/v1/pods", answer, NULL);
    assert_true(kube_world_start(&world));
    assert_int_equal(vigil_kube_informer_new(world.kube, &options, &informer), VIGIL_OK);
    steps_made = 0;
}

static void run_steps(const struct step *steps, size_t count)
{
    script = steps;
    step_count = count;
    assert_int_equal(vigil_kube_informer_start(informer), VIGIL_OK);
    KUBE_WORLD_RUN_UNTIL(&world, steps_made == step_count);
    assert_int_equal(steps_made, step_count);
    kube_world_run(&world, 200 * NS_PER_MS);
    informer_check(informer);
}

static void end(void)
{
    vigil_kube_informer_free(informer);
    kube_world_run(&world, NS_PER_S);
    assert_true(list_empty(&world.server.replies)); /* nothing is left under way */
    kube_world_fini(&world);
}

/* The copy is exactly this: "bar 3, foo 2", in the order of names. */
static void expect_copy(const char *expected)
{
    char text[512] = "";
    vigil_kube_objects objects;
    assert_int_equal(vigil_kube_informer_list(informer, &objects), VIGIL_OK);
    size_t left = objects.count;
    for (const char *at = expected; *at;) {
        char name[32];
        size_t len = strcspn(at, " ");
        snprintf(name, sizeof(name), "%.*s", (int)len, at);
        vigil_kube_object *object = vigil_kube_informer_get(informer, vigil_text(name));
        struct slice version = object ? object_version(object) : SLICE_EMPTY;
        size_t end = strlen(text);
        snprintf(text + end, sizeof(text) - end, "%s%s %.*s", end ? ", " : "", name,
                 SLICE_ARGS(version));
        vigil_kube_object_unref(object);
        left--;
        at += strcspn(at, ",");
        at += *at ? 2 : 0;
    }
    assert_string_equal(text, expected);
    assert_int_equal(left, 0);
    vigil_kube_objects_free(&objects);
}

static vigil_kube_informer_stats stats(void)
{
    vigil_kube_informer_stats read;
    vigil_kube_informer_get_stats(informer, &read, sizeof(read));
    return read;
}

#define RUN(no_streaming, copy, ...)                      \
    do {                                                  \
        static const struct step steps[] = {__VA_ARGS__}; \
        begin(no_streaming);                              \
        run_steps(steps, COUNT_OF(steps));                \
        expect_copy(copy);                                \
        end();                                            \
    } while (0)

/* -- Watches -- */

static void close_watch_channel_on_error(void **state)
{
    (void)state;
    static const struct step steps[] = {
        {.query = FIRST_LIST, .body = LIST(AT("1"), POD("foo", "1"))},
        {.query = WATCH_FROM("1"), .body = EVENT("ERROR", STATUS("500", "InternalError", ""))},
        {.query = WATCH_FROM("1"), .body = ""},
    };
    begin(true);
    run_steps(steps, COUNT_OF(steps));
    assert_int_equal(list_length(&world.server.replies), 1); /* the first one was cancelled */
    end();
}

static void stop_at_step(const struct step *steps, size_t count)
{
    begin(true);
    script = steps;
    step_count = count;
    assert_int_equal(vigil_kube_informer_start(informer), VIGIL_OK);
    KUBE_WORLD_RUN_UNTIL(&world, steps_made == step_count);
    end(); /* which checks that nothing is left, and any further request would fail the script */
}

/* TestReflectorWatchStoppedBefore, TestReflectorHandleWatchStoppedBefore: also before the list has
 * arrived. TestReflectorWatchStoppedAfter, TestReflectorHandleWatchStoppedAfter,
 * TestReflectorStopWatch: while it watches. */
static void run_until(void **state)
{
    (void)state;
    static const struct step steps[] = {
        {.query = FIRST_LIST, .body = LIST(AT("1"), POD("foo", "1"))},
        {.query = WATCH_FROM("1"), .body = EVENT("MODIFIED", POD("foo", "2"))},
    };
    stop_at_step(steps, 1);
    stop_at_step(steps, 2);
}

static void reflector_watch_handler(void **state)
{
    (void)state;
    RUN(true, "bar 55, baz 32",
        {.query = FIRST_LIST, .body = LIST(AT("3"), POD("foo", "2") "," POD("bar", "3"))},
        {.query = WATCH_FROM("3"),
         .body = EVENT("DELETED", POD("foo", "4")) EVENT("MODIFIED", POD("bar", "55"))
             EVENT("ADDED", POD("baz", "32")),
         .end = ENDS},
        {.query = WATCH_FROM("32"), .body = ""});
}

static void reflector_resource_version_update(void **state)
{
    (void)state;
    RUN(true, "", {.query = FIRST_LIST, .body = LIST(AT("10"), "")},
        {.query = WATCH_FROM("10"), .body = EVENT("ADDED", POD("a", "10")), .end = ENDS},
        {.query = WATCH_FROM("10"), .body = EVENT("MODIFIED", POD("a", "20")), .end = ENDS},
        {.query = WATCH_FROM("20"),
         .body = EVENT("BOOKMARK", "{\"metadata\":{" AT("30") "}}"),
         .end = ENDS},
        {.query = WATCH_FROM("30"), .body = EVENT("DELETED", POD("a", "40")), .end = ENDS},
        {.query = WATCH_FROM("40"), .body = ""});
}

static void reflector_replaces_store_on_unsafe_delete(void **state)
{
    (void)state;
    RUN(true, "foo-1 1, foo-2 2, foo-3 3",
        {.query = FIRST_LIST,
         .body = LIST(AT("3"), POD("foo-1", "1") "," POD("foo-2", "2") "," POD("foo-3", "3"))},
        {.query = WATCH_FROM("3"),
         .body = EVENT("ADDED", POD("foo", "4"))
             EVENT("ERROR", STATUS("500", "StoreReadError", ",\"message\":\"corrupt object\""))},
        {.query = "resourceVersion=4",
         .body = LIST(AT("5"), POD("foo-1", "1") "," POD("foo-2", "2") "," POD("foo-3", "3"))},
        {.query = WATCH_FROM("5"), .body = ""});
}

static void watch_timeout(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) /* take_timeout checks it */
        RUN(true, "", {.query = FIRST_LIST, .body = LIST(AT("10"), "")},
            {.query = WATCH_FROM("10"), .body = ""});
}

/* -- Lists and watches -- */

static void reflector_list_and_watch(void **state)
{
    (void)state;
    RUN(false, "bar 3, baz 4, foo 2, qux 5, zoo 6",
        {.query = STREAM,
         .body =
             EVENT("ADDED", POD("foo", "1")) END_OF_STATE("1") EVENT("MODIFIED", POD("foo", "2"))
                 EVENT("ADDED", POD("bar", "3")) EVENT("ADDED", POD("baz", "4"))
                     EVENT("ADDED", POD("qux", "5")) EVENT("ADDED", POD("zoo", "6"))});
    RUN(true, "bar 3, baz 4, foo 2, qux 5, zoo 6",
        {.query = FIRST_LIST, .body = LIST(AT("1"), POD("foo", "1"))},
        {.query = WATCH_FROM("1"),
         .body = EVENT("MODIFIED", POD("foo", "2")) EVENT("ADDED", POD("bar", "3"))
             EVENT("ADDED", POD("baz", "4")) EVENT("ADDED", POD("qux", "5"))
                 EVENT("ADDED", POD("zoo", "6"))});
}

/* A watch that fails is repeated, and only one that expires is followed by a list: client-go lists
 * after most errors. */
static void reflector_list_and_watch_with_errors(void **state)
{
    (void)state;
    RUN(true, "bar 3, baz 6, qux 5",
        {.query = FIRST_LIST, .code = 500, .body = STATUS("500", "InternalError", "")},
        {.query = FIRST_LIST, .body = LIST(AT("1"), "")},
        {.query = WATCH_FROM("1"),
         .body = EVENT("ADDED", POD("foo", "2")) EVENT("ADDED", POD("bar", "3")),
         .end = ENDS},
        {.query = WATCH_FROM("3"),
         .body = EVENT("DELETED", POD("foo", "4")) EVENT("ADDED", POD("qux", "5")) EXPIRED_EVENT},
        {.query = "resourceVersion=5", .code = 500, .body = STATUS("500", "InternalError", "")},
        {.query = "resourceVersion=5", .body = LIST(AT("5"), POD("bar", "3") "," POD("qux", "5"))},
        {.query = WATCH_FROM("5"), .code = 500, .body = STATUS("500", "InternalError", "")},
        {.query = WATCH_FROM("5"), .body = EVENT("ADDED", POD("baz", "6"))});
}

static void reflector_list_and_watch_init_conn_backoff(void **state)
{
    (void)state;
    static const struct step steps[] = {{.query = FIRST_LIST, .body = LIST(AT("1"), "")},
                                        {.query = WATCH_FROM("1"), .body = ""}};
    begin(true);
    kube_server_stop(&world.server);
    int64_t from = kube_world_now(&world);
    assert_int_equal(vigil_kube_informer_start(informer), VIGIL_OK);
    KUBE_WORLD_RUN_UNTIL(&world, stats().failures == 6);
    double took = (double)(kube_world_now(&world) - from) / 1e9; /* 0.8 + 1.6 … 12.8, or twice */
    assert_true(took >= 24.8 && took < 2 * 24.8 + 1);
    from = kube_world_now(&world);
    KUBE_WORLD_RUN_UNTIL(&world, stats().failures == 16);
    took = (double)(kube_world_now(&world) - from) / 1e9; /* 25.6, and then 30, or twice */
    assert_true(took >= 290 && took < 600);
    kube_server_start(&world.server);
    run_steps(steps, COUNT_OF(steps));
    end();
}

/* TestNoRelistOnTooManyRequests: neither is the state requested again. */
static void backoff_on_too_many_requests(void **state)
{
    (void)state;
    static const struct step steps[] = {
        {.query = FIRST_LIST, .body = LIST(AT("1"), "")},
        {.query = WATCH_FROM("1"), .code = 429, .body = STATUS("429", "TooManyRequests", "")},
        {.query = WATCH_FROM("1"), .code = 429, .body = STATUS("429", "TooManyRequests", "")},
        {.query = WATCH_FROM("1"), .body = EVENT("ERROR", STATUS("429", "TooManyRequests", ""))},
        {.query = WATCH_FROM("1"), .body = EVENT("ERROR", STATUS("429", "TooManyRequests", ""))},
        {.query = WATCH_FROM("1"), .body = ""},
    };
    begin(true);
    run_steps(steps, COUNT_OF(steps));
    for (size_t i = 2; i < COUNT_OF(steps); i++)
        assert_true(made_ns[i] - made_ns[i - 1] >= 800 * NS_PER_MS);
    end();
}

/* -- Pages and versions of lists -- */

static void reflector_watch_list_page_size(void **state)
{
    (void)state;
    RUN(true, "pod-0 1, pod-1 2, pod-2 3",
        {.query = FIRST_LIST, .body = LIST(CONTINUED("10", "C1"), POD("pod-0", "1"))},
        {.query = "continue=C1&limit=500", .body = LIST(CONTINUED("10", "C2"), POD("pod-1", "2"))},
        {.query = "continue=C2&limit=500", .body = LIST(AT("10"), POD("pod-2", "3"))},
        {.query = WATCH_FROM("10"), .body = ""});
}

/* With a version, the server answers from its cache if there is no limit. */
static void reflector_not_paginating_not_consistent_reads(void **state)
{
    (void)state;
    RUN(true, "foo 1", {.query = FIRST_LIST, .body = LIST(AT("10"), POD("foo", "1"))},
        {.query = WATCH_FROM("10"), .body = EXPIRED_EVENT},
        {.query = "resourceVersion=10", .body = LIST(AT("11"), POD("foo", "1"))},
        {.query = WATCH_FROM("11"), .body = ""});
}

/* A server that cuts the first list into pages has no cache. */
static void reflector_paginating_non_consistent_reads_if_watch_cache_disabled(void **state)
{
    (void)state;
    RUN(true, "bar 2, foo 1",
        {.query = FIRST_LIST, .body = LIST(CONTINUED("10", "C1"), POD("foo", "1"))},
        {.query = "continue=C1&limit=500", .body = LIST(AT("10"), POD("bar", "2"))},
        {.query = WATCH_FROM("10"), .body = EXPIRED_EVENT},
        {.query = "limit=500&resourceVersion=10",
         .body = LIST(CONTINUED("11", "C2"), POD("foo", "1"))},
        {.query = "continue=C2&limit=500", .body = LIST(AT("11"), POD("bar", "2"))},
        {.query = WATCH_FROM("11"), .body = ""});
}

static void reflector_resync_with_resource_version(void **state)
{
    (void)state;
    RUN(true, "bar 11, foo 1", {.query = FIRST_LIST, .body = LIST(AT("10"), POD("foo", "1"))},
        {.query = WATCH_FROM("10"), .code = 410, .body = EXPIRED},
        {.query = "resourceVersion=10",
         .body = LIST(AT("11"), POD("foo", "1") "," POD("bar", "11"))},
        {.query = WATCH_FROM("11"), .body = ""});
}

static void reflector_expired_exact_resource_version(void **state)
{
    (void)state;
    RUN(true, "bar 11, foo 1", {.query = FIRST_LIST, .body = LIST(AT("10"), POD("foo", "1"))},
        {.query = WATCH_FROM("10"), .code = 410, .body = EXPIRED},
        {.query = "resourceVersion=10", .code = 410, .body = EXPIRED},
        {.query = "limit=500", .body = LIST(AT("11"), POD("foo", "1") "," POD("bar", "11"))},
        {.query = WATCH_FROM("11"), .body = ""});
}

static void reflector_full_list_if_expired(void **state)
{
    (void)state;
    RUN(true, "bar 11, foo 1",
        {.query = FIRST_LIST, .body = LIST(CONTINUED("10", "C1"), POD("foo", "1"))},
        {.query = "continue=C1&limit=500", .code = 410, .body = EXPIRED},
        {.query = "resourceVersion=1",
         .body = LIST(AT("11"), POD("foo", "1") "," POD("bar", "11"))},
        {.query = WATCH_FROM("11"), .body = ""});
}

static void reflector_full_list_if_too_large(void **state)
{
    (void)state;
    RUN(true, "", {.query = FIRST_LIST, .body = LIST(AT("20"), "")},
        {.query = WATCH_FROM("20"), .code = 410, .body = EXPIRED},
        {.query = "resourceVersion=20",
         .code = 504,
         .body = STATUS("504", "Timeout",
                        ",\"details\":{\"causes\":[{\"reason\":\"ResourceVersionTooLarge\"}]}")},
        {.query = "limit=500", .body = LIST(AT("30"), "")},
        {.query = WATCH_FROM("30"), .code = 410, .body = EXPIRED},
        {.query = "resourceVersion=30",
         .code = 504,
         .body = STATUS("504", "Timeout",
                        ",\"details\":{\"causes\":[{\"message\":\"Too large resource "
                        "version\"}]}")},
        {.query = "limit=500", .body = LIST(AT("40"), "")},
        {.query = WATCH_FROM("40"), .code = 410, .body = EXPIRED},
        {.query = "resourceVersion=40",
         .code = 504,
         .body = STATUS("504", "Timeout", ",\"message\":\"Too large resource version\"")},
        {.query = "limit=500", .body = LIST(AT("50"), "")},
        {.query = WATCH_FROM("50"), .body = ""});
}

/* -- Streams -- */

/* TestWatchListResourceVersion: after a gap the state is at least as new as what is known. */
static void watch_list(void **state)
{
    (void)state;
    /* It is not synced without the bookmark. */
    static const struct step incomplete[] = {
        {.query = STREAM, .body = EVENT("ADDED", POD("p1", "1"))}};
    begin(false);
    run_steps(incomplete, 1);
    assert_int_equal(vigil_kube_informer_has_synced(informer), 0);
    end();
    /* A server that refuses to stream is listed. */
    RUN(false, "p1 1", {.query = STREAM, .code = 422, .body = STATUS("422", "Invalid", "")},
        {.query = FIRST_LIST, .body = LIST(AT("1"), POD("p1", "1"))},
        {.query = WATCH_FROM("1"), .body = ""});
    RUN(false, "p1 1, p2 2", {.query = STREAM, .code = 500, .body = "dummy error"},
        {.query = FIRST_LIST, .body = LIST(AT("1"), POD("p1", "1"))},
        {.query = WATCH_FROM("1"), .body = EVENT("ADDED", POD("p2", "2"))});
    /* Changes also arrive before the bookmark. */
    RUN(false, "p1 3",
        {.query = STREAM,
         .body = EVENT("ADDED", POD("p1", "1")) EVENT("ADDED", POD("p2", "2"))
             EVENT("MODIFIED", POD("p1", "3")) EVENT("DELETED", POD("p2", "4")) END_OF_STATE("4")});
    /* The next watch after it is an ordinary one. */
    RUN(false, "p1 1, p3 3",
        {.query = STREAM, .body = EVENT("ADDED", POD("p1", "1")) END_OF_STATE("2"), .end = ENDS},
        {.query = WATCH_FROM("2"), .body = EVENT("ADDED", POD("p3", "3"))});
    /* After 429 it streams again. */
    RUN(false, "p1 1", {.query = STREAM, .code = 429, .body = STATUS("429", "TooManyRequests", "")},
        {.query = STREAM, .body = EVENT("ADDED", POD("p1", "1")) END_OF_STATE("1")});
    /* After a gap. */
    RUN(false, "p1 1, p2 3",
        {.query = STREAM, .body = EVENT("ADDED", POD("p1", "1")) END_OF_STATE("2") EXPIRED_EVENT},
        {.query = "allowWatchBookmarks=true&resourceVersion=2&resourceVersionMatch=NotOlderThan&"
                  "sendInitialEvents=true&watch=true",
         .code = 410,
         .body = EXPIRED},
        {.query = STREAM,
         .body = EVENT("ADDED", POD("p1", "1")) EVENT("ADDED", POD("p2", "3")) END_OF_STATE("3")});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(close_watch_channel_on_error),
        cmocka_unit_test(run_until),
        cmocka_unit_test(reflector_watch_handler),
        cmocka_unit_test(reflector_resource_version_update),
        cmocka_unit_test(reflector_replaces_store_on_unsafe_delete),
        cmocka_unit_test(watch_timeout),
        cmocka_unit_test(reflector_list_and_watch),
        cmocka_unit_test(reflector_list_and_watch_with_errors),
        cmocka_unit_test(reflector_list_and_watch_init_conn_backoff),
        cmocka_unit_test(backoff_on_too_many_requests),
        cmocka_unit_test(reflector_watch_list_page_size),
        cmocka_unit_test(reflector_not_paginating_not_consistent_reads),
        cmocka_unit_test(reflector_paginating_non_consistent_reads_if_watch_cache_disabled),
        cmocka_unit_test(reflector_resync_with_resource_version),
        cmocka_unit_test(reflector_expired_exact_resource_version),
        cmocka_unit_test(reflector_full_list_if_expired),
        cmocka_unit_test(reflector_full_list_if_too_large),
        cmocka_unit_test(watch_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
