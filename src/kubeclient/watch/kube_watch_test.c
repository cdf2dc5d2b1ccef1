/* A watch without `resume`: client-go's Request.Watch and StreamWatcher. */
#include "kubeclient/watch/watch_fixture_test.h"

#include "kubeclient/data/samples_test.h"
#include "kubeclient/watch/watch_request.h"

/* One watch over the script. */
static void watch(struct watch_test *t, const struct watch_step *steps, size_t count,
                  const char *log)
{
    watch_test_init(t, SIM_HTTP2, steps, count);
    watch_test_watch(t, "1");
    watch_test_expect(t, log);
}

#define WATCH(t, log, ...)                             \
    watch(t, (const struct watch_step[]){__VA_ARGS__}, \
          sizeof((const struct watch_step[]){__VA_ARGS__}) / sizeof(struct watch_step), log)

#define EVENTS \
    EVENT("ADDED", "a", "2") EVENT("MODIFIED", "a", "3") BOOKMARK("4") EVENT("DELETED", "a", "5")
#define EVENTS_LOG "ADDED a 2\nMODIFIED a 3\nBOOKMARK 4\nDELETED a 5\n"

/* -- Events -- */

/* TestWatch, TestStreamWatcher */
static void events_are_delivered_in_order(void **state)
{
    (void)state;
    for (enum sim_protocol protocol = 0; protocol < SIM_PROTOCOLS; protocol++) {
        struct watch_test t;
        const struct watch_step step = {.text = EVENTS};
        watch_test_init(&t, protocol, &step, 1);
        watch_test_watch(&t, "1");
        watch_test_expect(&t, EVENTS_LOG "ENDED complete\n");
        assert_string_equal(kube_server_last(&t.w.server)->target,
                            "/api/v1/pods?allowWatchBookmarks=true&resourceVersion=1&watch=true");
        assert_string_equal(kube_server_last(&t.w.server)->accept, "application/json");
        vigil_kube_watch_stats stats = watch_test_stats(&t);
        assert_int_equal(stats.events, 3);
        assert_int_equal(stats.bookmarks, 1);
        assert_int_equal(stats.requests, 1);
        assert_int_equal(stats.retries, 0);
        assert_int_equal(stats.bytes, strlen(EVENTS));
        assert_int_equal(stats.ends_complete, 1);
        watch_test_fini(&t);
    }
}

static void bookmarks_and_initial_events_are_passed_on(void **state)
{
    (void)state;
    static const struct watch_step step = {
        .text = EVENT("ADDED", "a", "2") "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{"
                                         "\"resourceVersion\":\"9\",\"annotations\":{"
                                         "\"k8s.io/initial-events-end\":\"true\"}}}}",
        .stays = true};
    struct watch_test t;
    watch_test_init(&t, SIM_HTTP2, &step, 1);
    t.options.initial_events = 1;
    watch_test_watch(&t, NULL);
    watch_test_expect(&t, "ADDED a 2\nBOOKMARK 9 end\n");
    assert_string_equal(kube_server_last(&t.w.server)->target,
                        "/api/v1/pods?allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
                        "&sendInitialEvents=true&watch=true");
    watch_test_fini(&t);
}

static void append_frame(struct buf *to, struct slice frame)
{
    uint8_t head[4] = {0, 0, (uint8_t)(frame.len >> 8), (uint8_t)frame.len};
    assert_int_equal(buf_append(to, slice_of(head, sizeof(head))), ST_OK);
    assert_int_equal(buf_append(to, frame), ST_OK);
}

static void protobuf_is_decoded(void **state)
{
    (void)state;
    AUTO(buf_fini) struct buf body = {0};
    append_frame(&body, SLICE_LITERAL(SAMPLE_ADDED));
    append_frame(&body, SLICE_LITERAL(SAMPLE_BOOKMARK));
    append_frame(&body, SLICE_LITERAL(SAMPLE_ERROR));
    struct watch_step step = {.text = (const char *)body.ptr,
                              .text_bytes = body.len,
                              .type = "application/vnd.kubernetes.protobuf;stream=watch"};
    struct watch_test t;
    watch_test_init(&t, SIM_HTTP2, &step, 1);
    t.options.protobuf = 1;
    watch_test_watch(&t, "1");
    watch_test_expect(&t, "ADDED n/a 12\nBOOKMARK 99 end\nERROR 410 Expired\nENDED error\n");
    assert_string_equal(kube_server_last(&t.w.server)->accept,
                        "application/vnd.kubernetes.protobuf,application/json");
    watch_test_fini(&t);
}

/* TestWatchNonDefaultContentType */
static void the_server_may_answer_with_json_instead(void **state)
{
    (void)state;
    static const struct watch_step step = {.text = EVENTS, .type = "application/json"};
    struct watch_test t;
    watch_test_init(&t, SIM_HTTP2, &step, 1);
    t.options.protobuf = 1;
    watch_test_watch(&t, "1");
    watch_test_expect(&t, EVENTS_LOG "ENDED complete\n");
    assert_string_equal(t.reason, "the server ended the watch");
    watch_test_fini(&t);
}

static void options_are_checked(void **state)
{
    (void)state;
    static const struct watch_step step = {.stays = true};
    static const char *const bad_names[] = {"a/b", "a=b"};
    char long_version[200];
    struct watch_test t;
    watch_test_init(&t, SIM_HTTP2, &step, 1);
    vigil_kube_watch_options good = t.options;
    memset(long_version, '1', sizeof(long_version) - 1);
    long_version[sizeof(long_version) - 1] = 0;
    for (size_t i = 0; i < COUNT_OF(bad_names); i++) {
        t.options.target.name = bad_names[i];
        watch_test_watch(&t, NULL);
        assert_int_equal(t.code, VIGIL_ERROR_ARGUMENT);
    }
    t.options = good;
    t.options.timeout_s = -1;
    watch_test_watch(&t, NULL);
    assert_int_equal(t.code, VIGIL_ERROR_ARGUMENT);
    t.options = good;
    watch_test_watch(&t, long_version);
    assert_int_equal(t.code, VIGIL_ERROR_ARGUMENT);
    t.options.size = sizeof(t.options) + 1;
    watch_test_watch(&t, NULL);
    assert_int_equal(t.code, VIGIL_ERROR_ARGUMENT);
    t.options = good;
    assert_int_equal(vigil_kube_watch_new(t.w.kube, &good, NULL, &t, &t.watch),
                     VIGIL_ERROR_ARGUMENT);
    assert_null(t.watch);
    watch_test_fini(&t);
}

/* -- Silence -- */

static void silent_server_ends_the_watch_after_its_time(void **state)
{
    (void)state;
    static const struct watch_step step = {.text = EVENT("ADDED", "a", "2"), .stays = true};
    for (enum sim_protocol protocol = 0; protocol < SIM_PROTOCOLS; protocol++) {
        struct watch_test t;
        watch_test_init(&t, protocol, &step, 1);
        t.options.timeout_s = 60;
        watch_test_watch(&t, "1");
        kube_world_run(&t.w, 89 * NS_PER_S);
        assert_string_equal(t.log, "ADDED a 2\n");
        kube_world_run(&t.w, 32 * NS_PER_S); /* once more, because something has arrived */
        assert_string_equal(t.log, "ADDED a 2\nENDED timeout\n");
        assert_non_null(strstr(t.reason, "silent"));
        watch_test_fini(&t);
    }
}

static void say_nothing(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    (void)reply, (void)request, (void)ctx;
}

static void server_that_does_not_even_begin_to_answer_ends_the_watch(void **state)
{
    (void)state;
    static const struct watch_step step = {.stays = true};
    struct watch_test t;
    watch_test_prepare(&t, SIM_HTTP1, &step, 1);
    t.w.server.routes[0].answer = say_nothing;
    assert_true(kube_world_start(&t.w));
    t.options.timeout_s = 60;
    watch_test_watch(&t, "1");
    kube_world_run(&t.w, 89 * NS_PER_S);
    assert_string_equal(t.log, "");
    kube_world_run(&t.w, 2 * NS_PER_S);
    assert_string_equal(t.log, "ENDED failed 0\n");
    watch_test_fini(&t);
}

static void send_more(struct sim_reply *reply, void *ctx)
{
    (void)ctx;
    sim_reply_text(reply, EVENT("MODIFIED", "a", "3"));
    sim_reply_after(reply, 20 * NS_PER_S, send_more, NULL);
}

static void answer_for_ever(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    (void)request, (void)ctx;
    sim_reply_begin(reply, 200, "application/json;stream=watch");
    send_more(reply, NULL);
}

static void server_that_sends_longer_is_not_silent(void **state)
{
    (void)state;
    static const struct watch_step step = {.stays = true};
    struct watch_test t;
    watch_test_prepare(&t, SIM_HTTP1, &step, 1);
    t.w.server.routes[0].answer = answer_for_ever;
    assert_true(kube_world_start(&t.w));
    t.options.timeout_s = 60;
    watch_test_watch(&t, "1");
    kube_world_run(&t.w, 300 * NS_PER_S);
    assert_int_equal(t.ends, 0);
    assert_in_range(t.delivered, 14, 16);
    watch_test_fini(&t);
}

/* Nothing is read while it is paused, so nothing can be said about the server. */
static void paused_watch_is_not_silent(void **state)
{
    (void)state;
    static const struct watch_step step = {.text = EVENT("ADDED", "a", "2"), .stays = true};
    struct watch_test t;
    watch_test_init(&t, SIM_HTTP1, &step, 1);
    t.options.timeout_s = 60;
    t.pause_every = 1;
    watch_test_watch(&t, "1");
    kube_world_run(&t.w, 400 * NS_PER_S);
    assert_string_equal(t.log, "ADDED a 2\n");
    t.pause_every = 0;
    vigil_kube_watch_resume(t.watch);
    kube_world_run(&t.w, 61 * NS_PER_S);
    assert_string_equal(t.log, "ADDED a 2\nENDED timeout\n");
    watch_test_fini(&t);
}

static void any_time_can_be_given(void **state)
{
    (void)state;
    static const struct watch_step step = {.text = EVENT("ADDED", "a", "2"), .stays = true};
    static const int64_t times[] = {0, INT64_MAX, INT64_MAX / NS_PER_S, 365 * 24 * 3600 - 1};
    for (size_t i = 0; i < COUNT_OF(times); i++) {
        struct watch_test t;
        watch_test_init(&t, SIM_HTTP1, &step, 1);
        t.options.timeout_s = times[i];
        watch_test_watch(&t, "1");
        watch_test_expect(&t, "ADDED a 2\n");
        watch_test_fini(&t);
    }
}

/* -- Request.Watch: TestRequestWatch -- */

static void refusal_ends_the_watch_with_its_status(void **state)
{
    (void)state;
    struct watch_test t;
    WATCH(&t, "ENDED refused 403\n",
          {.code = 403,
           .text =
               "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"secrets is forbidden\","
               "\"reason\":\"Forbidden\",\"code\":403}"});
    assert_string_equal(t.status.message, "secrets is forbidden");
    assert_string_equal(t.status.reason, "Forbidden");
    assert_string_equal(t.reason, "secrets is forbidden");
    watch_test_fini(&t);
    WATCH(&t, "ENDED refused 403\n", {.code = 403});
    assert_string_equal(t.status.reason, "Forbidden");
    watch_test_fini(&t);
    WATCH(&t, "ENDED refused 401\n", {.code = 401});
    assert_string_equal(t.status.reason, "Unauthorized");
    watch_test_fini(&t);
    WATCH(&t, "ENDED refused 401\n",
          {.code = 401, .text = "{\"kind\":\"Status\",\"reason\":\"Unauthorized\"}"});
    assert_int_equal(watch_test_stats(&t).requests, 1);
    assert_int_equal(watch_test_stats(&t).ends_error, 0);
    watch_test_fini(&t);
    WATCH(&t, "ENDED refused 410\n", {.code = 410});
    watch_test_fini(&t);
}

/* TestRequestWatchWithRetry */
static void retry_after_is_obeyed(void **state)
{
    (void)state;
    static const unsigned codes[] = {429, 500, 503, 504};
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        struct watch_test t;
        WATCH(&t, "ADDED a 2\nENDED complete\n", {.code = codes[i], .retry_after = "7"},
              {.code = codes[i], .retry_after = "0"}, {.text = EVENT("ADDED", "a", "2")});
        const struct sim_request *requests = t.w.server.requests;
        assert_int_equal(t.w.server.request_count, 3);
        assert_in_range(requests[1].at_ns - requests[0].at_ns, 7 * NS_PER_S,
                        7 * NS_PER_S + NS_PER_S / 2);
        assert_in_range(requests[2].at_ns - requests[1].at_ns, 0, NS_PER_S / 2);
        assert_int_equal(watch_test_stats(&t).retries, 2);
        watch_test_fini(&t);
    }
}

static void a_server_cannot_ask_for_days(void **state)
{
    (void)state;
    static const struct watch_step steps[] = {{.code = 429, .retry_after = "86400"},
                                              {.text = EVENTS}};
    struct watch_test t;
    watch_test_init(&t, SIM_HTTP1, steps, COUNT_OF(steps));
    watch_test_watch(&t, "1");
    kube_world_run(&t.w, 299 * NS_PER_S);
    assert_string_equal(t.log, "");
    kube_world_run(&t.w, 3 * NS_PER_S);
    assert_string_equal(t.log, EVENTS_LOG "ENDED complete\n");
    watch_test_fini(&t);
}

static void refusal_without_retry_after_is_final(void **state)
{
    (void)state;
    static const unsigned codes[] = {429, 500, 503};
    struct watch_test t;
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        char log[40];
        snprintf(log, sizeof(log), "ENDED refused %u\n", codes[i]);
        WATCH(&t, log, {.code = codes[i]}, {.text = EVENTS});
        assert_int_equal(watch_test_stats(&t).requests, 1);
        watch_test_fini(&t);
    }
    WATCH(&t, "ENDED refused 404\n", {.code = 404, .retry_after = "1"}, {.text = EVENTS});
    watch_test_fini(&t);
    WATCH(&t, "ENDED refused 429\n", {.code = 429, .retry_after = "soon"}, {.text = EVENTS});
    watch_test_fini(&t);
}

static void throttling_ends_after_ten_retries(void **state)
{
    (void)state;
    struct watch_test t;
    WATCH(&t, "ENDED refused 500\n", {.code = 500, .retry_after = "1"});
    assert_int_equal(watch_test_stats(&t).requests, 11);
    assert_int_equal(watch_test_stats(&t).retries, 10);
    assert_string_equal(t.status.reason, "InternalError");
    watch_test_fini(&t);
}

static void broken_connection_is_tried_again_after_a_second(void **state)
{
    (void)state;
    struct watch_test t;
    WATCH(&t, "ADDED a 2\nENDED complete\n", {.breaks = true}, {.breaks = true},
          {.text = EVENT("ADDED", "a", "2")});
    const struct sim_request *requests = t.w.server.requests;
    assert_int_equal(t.w.server.request_count, 3);
    for (int i = 0; i < 2; i++)
        assert_in_range(requests[i + 1].at_ns - requests[i].at_ns, NS_PER_S, NS_PER_S * 3 / 2);
    watch_test_fini(&t);
}

static void broken_connections_give_an_empty_watch(void **state)
{
    (void)state;
    for (enum sim_protocol protocol = SIM_HTTP1; protocol <= SIM_HTTP2; protocol++) {
        const struct watch_step step = {.breaks = true};
        struct watch_test t;
        watch_test_init(&t, protocol, &step, 1);
        watch_test_watch(&t, "1");
        watch_test_expect(&t, "ENDED retries\n");
        assert_int_equal(watch_test_stats(&t).requests, 11);
        watch_test_fini(&t);
    }
}

/* TestRequestWatchWithWrapPreviousError */
static void an_error_names_the_one_before_it(void **state)
{
    (void)state;
    struct watch_test t;
    WATCH(&t, "ENDED refused 403\n", {.breaks = true}, {.code = 403, .text = "no"});
    assert_non_null(
        strstr(t.reason, "no - error from a previous attempt: lost the connection to "));
    watch_test_fini(&t);
}

/* TestWatchUnknownContentType */
static void an_answer_that_is_not_a_watch_fails(void **state)
{
    (void)state;
    static const struct {
        struct watch_step step;
        const char *reason;
    } rows[] = {
        {{.text = EVENTS, .type = "foobar"},
         "the server answered a watch with the unknown media type \"foobar\""},
        {{.text = "<html>", .type = "text/html"},
         "the server answered a watch with the unknown media type \"text/html\""},
        {{.code = 204, .type = ""}, "the server answered a watch with status 204"},
        {{.code = 206, .text = EVENTS}, "the server answered a watch with status 206"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct watch_test t;
        watch(&t, &rows[i].step, 1, "ENDED failed 500\n");
        assert_string_equal(t.reason, rows[i].reason);
        assert_string_equal(t.status.reason, "InternalError");
        assert_int_equal(watch_test_stats(&t).requests, 1);
        watch_test_fini(&t);
    }
}

static void an_unreachable_server_ends_the_watch(void **state)
{
    (void)state;
    static const struct watch_step step = {.text = EVENTS};
    for (enum sim_protocol protocol = SIM_HTTP1; protocol <= SIM_HTTP2; protocol++) {
        struct watch_test t;
        watch_test_init(&t, protocol, &step, 1);
        kube_server_stop(&t.w.server);
        watch_test_watch(&t, "1");
        watch_test_expect(&t, "ENDED failed 0\n");
        assert_non_null(strstr(t.reason, "connection refused"));
        assert_string_equal(t.status.message, t.reason);
        watch_test_fini(&t);
    }
}

/* -- StreamWatcher -- */

static void errors_of_the_server_end_the_watch(void **state)
{
    (void)state;
    struct watch_test t;
    WATCH(&t, "ADDED a 2\nERROR 410 Expired\nENDED error\n",
          {.text = EVENT("ADDED", "a", "2") STATUS_EVENT("410", "Expired", "") EVENTS});
    assert_int_equal(watch_test_stats(&t).ends_error, 1);
    watch_test_fini(&t);
    WATCH(&t, "ERROR 500 InternalError\nENDED error\n",
          {.text = "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Pod\"}}", .stays = true});
    watch_test_fini(&t);
}

/* TestStreamWatcherError */
static void what_cannot_be_decoded_is_one_error(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "hello",
        "{\"type\":\"ADDED\"}",
        "{\"type\":\"CHANGED\",\"object\":{}}",
        "{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":500}",
        "{\"kind\":\"PodList\",\"metadata\":{},\"items\":[]}",
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{}}}",
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"\xc3\x28\"}}}",
    };
    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        char body[600];
        struct watch_test t;
        snprintf(body, sizeof(body), "%s%s%s", EVENT("ADDED", "a", "2"), bodies[i], EVENTS);
        WATCH(&t, "ADDED a 2\nERROR 500 InternalError\nENDED error\n", {.text = body});
        assert_int_equal(t.status.cause_count, 2);
        assert_string_equal(t.status.causes[0].reason, "UnexpectedServerResponse");
        assert_string_equal(t.status.causes[1].reason, "ClientWatchDecoding");
        assert_non_null(strstr(t.status.causes[1].message,
                               "unable to decode an event from the watch stream: "));
        assert_non_null(strstr(t.status.message, "an error on the server (\"unable to decode"));
        assert_int_equal(watch_test_stats(&t).ends_error, 1);
        watch_test_fini(&t);
    }
}

/* TestDecoder_SourceClose, TestEmptyDecoder */
static void ends_are_silent_and_distinguished(void **state)
{
    (void)state;
    struct watch_test t;
    WATCH(&t, "ADDED a 2\nENDED cut off\n", {.text = EVENT("ADDED", "a", "2") "{\"type\":\"ADD"});
    assert_int_equal(watch_test_stats(&t).ends_cut_off, 1);
    assert_int_equal(watch_test_stats(&t).ends_complete, 0);
    watch_test_fini(&t);
    WATCH(&t, "ADDED a 2\nENDED cut off\n", {.text = EVENT("ADDED", "a", "2"), .breaks = true});
    assert_int_equal(watch_test_stats(&t).ends_cut_off, 1);
    watch_test_fini(&t);
    WATCH(&t, "ENDED complete\n", {.text = ""});
    watch_test_fini(&t);
    WATCH(&t, "ENDED complete\n", {.text = " \n\t"});
    watch_test_fini(&t);
}

/* TestReadClientTimeout */
static void a_silent_connection_is_a_timeout(void **state)
{
    (void)state;
    static const struct watch_step step = {.text = EVENT("ADDED", "a", "2"), .stays = true};
    struct watch_test t;
    watch_test_init(&t, SIM_HTTP2, &step, 1);
    watch_test_watch(&t, "1");
    kube_world_run(&t.w, NS_PER_S);
    assert_string_equal(t.log, "ADDED a 2\n");
    faults.kind = FAULT_SILENCE;
    faults.at = faults.bytes_read;
    watch_test_expect(&t, "ADDED a 2\nENDED timeout\n");
    assert_int_equal(watch_test_stats(&t).ends_timeout, 1);
    watch_test_fini(&t);
}

static void large_objects_arrive(void **state)
{
    (void)state;
    for (enum sim_protocol protocol = 0; protocol < SIM_PROTOCOLS; protocol++) {
        AUTO(buf_fini) struct buf body = {0};
        watch_test_append(&body, "a", "2", 1500000);
        watch_test_append(&body, "b", "3", 10);
        watch_test_append(&body, "c", "4", 1500000);
        struct watch_step step = {.text = (const char *)body.ptr, .text_bytes = body.len};
        struct watch_test t;
        watch_test_init(&t, protocol, &step, 1);
        watch_test_watch(&t, "1");
        watch_test_expect(&t, "ADDED a 2\nADDED b 3\nADDED c 4\nENDED complete\n");
        watch_test_fini(&t);
    }
}

static void an_event_over_the_limit_ends_the_watch(void **state)
{
    (void)state;
    AUTO(buf_fini) struct buf body = {0};
    watch_test_append(&body, "a", "2", 10);
    watch_test_append(&body, "b", "3", FRAMER_BYTES_MAX);
    watch_test_append(&body, "c", "4", 10);
    struct watch_step step = {.text = (const char *)body.ptr, .text_bytes = body.len};
    struct watch_test t;
    watch_test_init(&t, SIM_HTTP1, &step, 1);
    watch_test_watch(&t, "1");
    watch_test_expect(&t, "ADDED a 2\nERROR 500 InternalError\nENDED error\n");
    assert_non_null(strstr(t.status.message, "an event is longer than 16 MiB"));
    watch_test_fini(&t);
}

/* -- The program's side -- */

/* TestStreamWatcherRace: also while an error waits to be delivered */
static void free_inside_the_callback(void **state)
{
    (void)state;
    static const struct watch_step step = {.text =
                                               EVENTS STATUS_EVENT("410", "Expired", "") EVENTS};
    for (size_t at = 1; at <= 6; at++) {
        struct watch_test t;
        watch_test_init(&t, SIM_HTTP2, &step, 1);
        t.free_at = at;
        watch_test_watch(&t, "1");
        watch_test_run(&t);
        assert_null(t.watch);
        assert_int_equal(t.delivered, at);
        assert_int_equal(atomic_load(&t.w.kube->counters.watches), 0);
        watch_test_fini(&t);
    }
}

static void free_at_any_time(void **state)
{
    (void)state;
    static const struct watch_step step = {.text = EVENTS, .stays = true};
    for (int turns = 0; turns < 30; turns++) {
        struct watch_test t;
        watch_test_init(&t, SIM_HTTP2, &step, 1);
        watch_test_watch(&t, "1");
        for (int i = 0; i < turns; i++)
            (void)sim_step(t.w.sim);
        vigil_kube_watch_free(t.watch);
        t.watch = NULL;
        size_t delivered = t.delivered;
        watch_test_run(&t);
        assert_int_equal(t.delivered, delivered);
        assert_int_equal(t.w.server.request_count ? list_empty(&t.w.server.replies) : true, true);
        watch_test_fini(&t);
    }
}

static void shutdown_ends_the_watch(void **state)
{
    (void)state;
    static const struct watch_step steps[] = {
        {.text = EVENTS, .stays = true}, {.breaks = true}, {.code = 429, .retry_after = "3600"}};
    static const char *const logs[] = {EVENTS_LOG "ENDED canceled\n", "ENDED canceled\n",
                                       "ENDED canceled\n"};
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        struct watch_test t;
        watch_test_init(&t, SIM_HTTP2, &steps[i], 1);
        watch_test_watch(&t, "1");
        kube_world_run(&t.w, NS_PER_S / 2);
        vigil_kube_shutdown(t.w.kube);
        watch_test_expect(&t, logs[i]);
        vigil_kube_watch *first = t.watch;
        t.ends = 0;
        t.delivered = 0;
        watch_test_watch(&t, "1");
        watch_test_run(&t);
        assert_int_equal(t.ends, 1);
        vigil_kube_watch_free(first);
        watch_test_fini(&t);
    }
}

static void the_client_may_be_freed_first(void **state)
{
    (void)state;
    static const struct watch_step step = {.text = EVENTS, .stays = true};
    for (int started = 0; started < 2; started++) {
        struct watch_test t;
        watch_test_init(&t, SIM_HTTP2, &step, 1);
        watch_test_watch(&t, "1");
        if (started)
            kube_world_run(&t.w, NS_PER_S);
        kube_world_free_client(&t.w);
        assert_string_equal(t.log, started ? EVENTS_LOG : "");
        vigil_kube_watch_resume(t.watch);
        vigil_kube_watch_free(t.watch);
        t.watch = NULL;
        watch_test_fini(&t);
    }
}

static void pause_holds_everything_back(void **state)
{
    (void)state;
    static const struct watch_step step = {.text = EVENTS STATUS_EVENT("410", "Expired", "")};
    static const char log[] = EVENTS_LOG "ERROR 410 Expired\nENDED error\n";
    struct watch_test t;
    watch_test_init(&t, SIM_HTTP2, &step, 1);
    t.pause_every = 1;
    watch_test_watch(&t, "1");
    for (size_t i = 1; i <= 6; i++) {
        watch_test_run(&t);
        assert_int_equal(t.delivered, i);
        assert_memory_equal(t.log, log, t.log_len);
        vigil_kube_watch_resume(t.watch);
    }
    watch_test_expect(&t, log);
    watch_test_fini(&t);
}

static void a_paused_watch_ends_when_it_is_resumed(void **state)
{
    (void)state;
    static const struct watch_step steps[] = {
        {.text = EVENTS}, {.text = EVENTS "{\"type\"", .breaks = true}, {.text = EVENTS "}"}};
    static const char *const logs[] = {EVENTS_LOG "ENDED complete\n", EVENTS_LOG "ENDED cut off\n",
                                       EVENTS_LOG "ERROR 500 InternalError\nENDED error\n"};
    for (enum sim_protocol protocol = SIM_HTTP1; protocol <= SIM_HTTP2; protocol++) {
        for (size_t i = 0; i < COUNT_OF(steps); i++) {
            struct watch_test t;
            watch_test_init(&t, protocol, &steps[i], 1);
            t.pause_every = 2;
            watch_test_watch(&t, "1");
            watch_test_expect(&t, "ADDED a 2\nMODIFIED a 3\n");
            vigil_kube_watch_resume(t.watch);
            watch_test_expect(&t, EVENTS_LOG);
            vigil_kube_watch_resume(t.watch);
            watch_test_expect(&t, logs[i]);
            watch_test_fini(&t);

            watch_test_init(&t, protocol, &steps[i], 1);
            t.pause_every = 4;
            watch_test_watch(&t, "1");
            watch_test_expect(&t, EVENTS_LOG);
            vigil_kube_watch_resume(t.watch);
            watch_test_expect(&t, logs[i]);
            watch_test_fini(&t);
        }
    }
}

enum { OBJECTS = 1500 };

/* The server may send as much as it was allowed to, and no more. */
static void a_paused_watch_holds_a_bounded_amount(void **state)
{
    (void)state;
    for (enum sim_protocol protocol = 0; protocol < SIM_PROTOCOLS; protocol++) {
        AUTO(buf_fini) struct buf body = {0};
        char version[20];
        for (int i = 0; i < OBJECTS; i++) {
            snprintf(version, sizeof(version), "%d", i + 1);
            watch_test_append(&body, "a", version, 2000);
        }
        struct watch_step step = {.text = (const char *)body.ptr, .text_bytes = body.len};
        struct watch_test t;
        watch_test_init(&t, protocol, &step, 1);
        t.pause_every = 100;
        watch_test_watch(&t, "1");
        for (size_t i = 1; i <= OBJECTS / 100; i++) {
            kube_world_run(&t.w, NS_PER_S);
            assert_int_equal(t.delivered, i * 100);
            uint64_t received = watch_test_stats(&t).bytes;
            assert_true(received <= i * 100 * (body.len / OBJECTS) + WATCH_WITHHELD_BYTES_MAX / 2);
            vigil_kube_watch_resume(t.watch);
        }
        watch_test_run(&t);
        assert_int_equal(t.delivered, OBJECTS + 1);
        assert_int_equal(t.ends, 1);
        watch_test_fini(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_delivered_in_order),
        cmocka_unit_test(bookmarks_and_initial_events_are_passed_on),
        cmocka_unit_test(protobuf_is_decoded),
        cmocka_unit_test(the_server_may_answer_with_json_instead),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(silent_server_ends_the_watch_after_its_time),
        cmocka_unit_test(server_that_does_not_even_begin_to_answer_ends_the_watch),
        cmocka_unit_test(server_that_sends_longer_is_not_silent),
        cmocka_unit_test(paused_watch_is_not_silent),
        cmocka_unit_test(any_time_can_be_given),
        cmocka_unit_test(refusal_ends_the_watch_with_its_status),
        cmocka_unit_test(retry_after_is_obeyed),
        cmocka_unit_test(a_server_cannot_ask_for_days),
        cmocka_unit_test(refusal_without_retry_after_is_final),
        cmocka_unit_test(throttling_ends_after_ten_retries),
        cmocka_unit_test(broken_connection_is_tried_again_after_a_second),
        cmocka_unit_test(broken_connections_give_an_empty_watch),
        cmocka_unit_test(an_error_names_the_one_before_it),
        cmocka_unit_test(an_answer_that_is_not_a_watch_fails),
        cmocka_unit_test(an_unreachable_server_ends_the_watch),
        cmocka_unit_test(errors_of_the_server_end_the_watch),
        cmocka_unit_test(what_cannot_be_decoded_is_one_error),
        cmocka_unit_test(ends_are_silent_and_distinguished),
        cmocka_unit_test(a_silent_connection_is_a_timeout),
        cmocka_unit_test(large_objects_arrive),
        cmocka_unit_test(an_event_over_the_limit_ends_the_watch),
        cmocka_unit_test(free_inside_the_callback),
        cmocka_unit_test(free_at_any_time),
        cmocka_unit_test(shutdown_ends_the_watch),
        cmocka_unit_test(the_client_may_be_freed_first),
        cmocka_unit_test(pause_holds_everything_back),
        cmocka_unit_test(a_paused_watch_ends_when_it_is_resumed),
        cmocka_unit_test(a_paused_watch_holds_a_bounded_amount),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
