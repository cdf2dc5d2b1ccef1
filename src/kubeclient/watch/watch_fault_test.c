/*
 * One thing goes wrong at every byte of a watch. With `resume` every event is delivered exactly
 * once and in order; without it, what was delivered before the end is the beginning of the history.
 */
#include "kubeclient/watch/watch_fixture_test.h"

/* Names have sequences of two to four bytes, so that some cuts are within one of them. */
static const char *const history[] = {EVENT("ADDED", "o\xc3\xa9", "2"),
                                      EVENT("MODIFIED", "o\xe2\x82\xac", "3"), BOOKMARK("4"),
                                      EVENT("DELETED", "o\xf0\x9f\x98\x80", "5")};
static const char history_log[] = "ADDED o\xc3\xa9 2\nMODIFIED o\xe2\x82\xac 3\nBOOKMARK 4\n"
                                  "DELETED o\xf0\x9f\x98\x80 5\n";
enum { FIRST_VERSION = 2 };

/* Sends each event by itself, and stays open. */
static void answer_history(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    const char *version = strstr(request->target, "resourceVersion=");
    assert_non_null(version);
    long after = strtol(version + strlen("resourceVersion="), NULL, 10);
    (void)ctx;
    sim_reply_begin(reply, 200, "application/json;stream=watch");
    for (size_t i = 0; i < COUNT_OF(history); i++)
        if ((long)i + FIRST_VERSION > after)
            sim_reply_text(reply, history[i]);
}

static void check_history(struct kube_world *w)
{
    const struct watch_test *t = CONTAINER_OF(w, struct watch_test, w);
    const char *end = strstr(t->log, "ENDED");
    size_t len = end ? (size_t)(end - t->log) : t->log_len;
    assert_true(len < sizeof(history_log));
    assert_memory_equal(t->log, history_log, len);
}

static void begin(struct watch_test *t, enum sim_protocol protocol, bool resume)
{
    watch_test_prepare(t, protocol, NULL, 0);
    t->w.server.routes[0].answer = answer_history;
    t->w.check = check_history;
    t->options.resume = resume;
}

/* The bytes that are received until the last event. */
static struct faults undisturbed(enum sim_protocol protocol)
{
    struct watch_test t;
    begin(&t, protocol, true);
    assert_true(kube_world_start(&t.w));
    watch_test_watch(&t, "1");
    kube_world_run(&t.w, 5 * NS_PER_S);
    assert_string_equal(t.log, history_log);
    struct faults totals = faults;
    watch_test_fini(&t);
    return totals;
}

static void disturb(struct watch_test *t, enum fault_kind kind, size_t at, int64_t seconds)
{
    assert_true(kube_world_start(&t->w));
    faults.kind = kind;
    faults.at = at;
    watch_test_watch(t, "1");
    kube_world_run(&t->w, seconds * NS_PER_S);
}

static const enum fault_kind kinds[] = {FAULT_LOST_READING, FAULT_LOST_WRITING, FAULT_RESET,
                                        FAULT_END};

static void every_event_is_delivered_once_after(const enum fault_kind *tried, size_t count,
                                                enum sim_protocol protocol)
{
    struct faults totals = undisturbed(protocol);
    for (size_t k = 0; k < count; k++) {
        for (size_t at = 0; at < fault_places(tried[k], &totals); at++) {
            struct watch_test t;
            begin(&t, protocol, true);
            disturb(&t, tried[k], at, 100);
            assert_true(faults.happened);
            if (strcmp(t.log, history_log) != 0)
                fail_msg("fault %d at byte %zu: %s", (int)tried[k], at, t.log);
            watch_test_fini(&t);
        }
    }
}

static void chunked_watch_survives_every_cut(void **state)
{
    (void)state;
    every_event_is_delivered_once_after(kinds, COUNT_OF(kinds), SIM_HTTP1);
}

static void http2_watch_survives_every_cut(void **state)
{
    (void)state;
    every_event_is_delivered_once_after(kinds, COUNT_OF(kinds), SIM_HTTP2);
}

static void http2_watch_survives_silence(void **state)
{
    (void)state;
    static const enum fault_kind silence = FAULT_SILENCE;
    every_event_is_delivered_once_after(&silence, 1, SIM_HTTP2);
}

/* As in client-go, in contrast to one that is refused. */
static void a_connection_that_times_out_is_tried_again(void **state)
{
    (void)state;
    struct watch_test t;
    begin(&t, SIM_HTTP2, false);
    disturb(&t, FAULT_SILENCE, 0, 100);
    assert_string_equal(t.log, history_log);
    assert_int_equal(watch_test_stats(&t).retries, 1);
    watch_test_fini(&t);
}

/* Only timeouts of the connection end such a watch. */
static void silent_chunked_watch_can_be_freed(void **state)
{
    (void)state;
    struct faults totals = undisturbed(SIM_HTTP1);
    for (size_t at = 0; at < totals.bytes_read; at += 7) {
        struct watch_test t;
        begin(&t, SIM_HTTP1, true);
        t.w.check = check_history;
        disturb(&t, FAULT_SILENCE, at, 100);
        watch_test_fini(&t);
    }
}

static void without_resume_the_beginning_is_delivered(void **state)
{
    (void)state;
    for (enum sim_protocol protocol = SIM_HTTP1; protocol <= SIM_HTTP2; protocol++) {
        struct faults totals = undisturbed(protocol);
        for (size_t at = 0; at < totals.bytes_read; at++) {
            struct watch_test t;
            begin(&t, protocol, false);
            disturb(&t, FAULT_END, at, 100);
            const char *end = strstr(t.log, "ENDED");
            if (end)
                assert_true(strcmp(end, "ENDED cut off\n") == 0 ||
                            strcmp(end, "ENDED failed 0\n") == 0);
            else
                assert_string_equal(t.log, history_log); /* it was repeated before its head */
            watch_test_fini(&t);
        }
    }
}

/* Wrong bytes may also be a valid event, so only that it ends in an orderly way is known. */
static void wrong_bytes_do_no_harm(void **state)
{
    (void)state;
    for (enum sim_protocol protocol = SIM_HTTP1; protocol <= SIM_HTTP2; protocol++) {
        struct faults totals = undisturbed(protocol);
        for (size_t at = 0; at < totals.bytes_read; at++) {
            for (int resume = 0; resume < 2; resume++) {
                struct watch_test t;
                begin(&t, protocol, resume);
                t.w.check = NULL;
                disturb(&t, FAULT_GARBAGE, at, 20);
                assert_true(t.delivered <= 2 * COUNT_OF(history) + 2);
                watch_test_fini(&t);
            }
        }
    }
}

/* -- Memory -- */

enum { NEVER = 1000000 };

/* Returns the number of allocations that would have to be made for the next one to fail. */
static size_t run_with_missing_memory(enum sim_protocol protocol, size_t at, bool on, bool resume)
{
    struct watch_test t;
    begin(&t, protocol, resume);
    t.pause_every = 3;
    faulty_memory_at = at;
    memory_fail_on = on;
    if (kube_world_start(&t.w)) {
        watch_test_watch(&t, "1");
        kube_world_run(&t.w, 5 * NS_PER_S);
        if (t.watch)
            vigil_kube_watch_resume(t.watch);
        kube_world_run(&t.w, 5 * NS_PER_S);
        bool complete = strcmp(t.log, history_log) == 0;
        assert_true(complete || on || t.code == VIGIL_ERROR_MEMORY || t.ends == 1);
    }
    size_t left = faulty_memory_at;
    faulty_memory_at = 0;
    memory_fail_on = false;
    watch_test_fini(&t);
    return left;
}

static void each_missing_allocation_is_survived(void **state)
{
    (void)state;
    for (enum sim_protocol protocol = SIM_HTTP1; protocol <= SIM_HTTP2; protocol++) {
        for (int resume = 0; resume < 2; resume++) {
            size_t total = NEVER - run_with_missing_memory(protocol, NEVER, false, resume);
            for (size_t at = 1; at <= total; at++) {
                (void)run_with_missing_memory(protocol, at, false, resume);
                (void)run_with_missing_memory(protocol, at, true, resume);
            }
        }
    }
}

/* -- GOAWAY -- */

static uint32_t goaway_last_stream;

/* Behind the first frame with data. */
static void add_goaway(struct h2_frame frame, struct slice payload, struct buf *out)
{
    uint8_t head[H2_FRAME_HEAD_BYTES], body[8] = {0};
    h2_frame_put(head, frame.len, frame.type, frame.flags, frame.stream_id);
    assert_int_equal(buf_append(out, slice_of(head, sizeof(head))), ST_OK);
    assert_int_equal(buf_append(out, payload), ST_OK);
    if (faults.rewritten || frame.type != (goaway_last_stream ? H2_DATA : H2_SETTINGS))
        return;
    body[3] = (uint8_t)goaway_last_stream;
    h2_frame_put(head, sizeof(body), H2_GOAWAY, 0, 0);
    assert_int_equal(buf_append(out, slice_of(head, sizeof(head))), ST_OK);
    assert_int_equal(buf_append(out, slice_of(body, sizeof(body))), ST_OK);
}

static void a_server_that_leaves_finishes_the_watch(void **state)
{
    (void)state;
    for (uint32_t last = 0; last < 2; last++) {
        struct watch_test t;
        begin(&t, SIM_HTTP2, false);
        assert_true(kube_world_start(&t.w));
        goaway_last_stream = last;
        faults.rewrite = add_goaway;
        watch_test_watch(&t, "1");
        kube_world_run(&t.w, 5 * NS_PER_S);
        assert_int_equal(faults.rewritten, 1);
        assert_string_equal(t.log, history_log);
        assert_int_equal(faults.connects, last ? 1 : 2);
        vigil_kube_watch *first = t.watch;
        t.w.check = NULL;
        t.log_len = t.delivered = 0;
        watch_test_watch(&t, "4");
        kube_world_run(&t.w, 5 * NS_PER_S);
        assert_string_equal(t.log, strstr(history_log, "DELETED"));
        assert_int_equal(faults.connects, 2);
        vigil_kube_watch_free(first);
        watch_test_fini(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunked_watch_survives_every_cut),
        cmocka_unit_test(http2_watch_survives_every_cut),
        cmocka_unit_test(http2_watch_survives_silence),
        cmocka_unit_test(a_connection_that_times_out_is_tried_again),
        cmocka_unit_test(silent_chunked_watch_can_be_freed),
        cmocka_unit_test(without_resume_the_beginning_is_delivered),
        cmocka_unit_test(wrong_bytes_do_no_harm),
        cmocka_unit_test(each_missing_allocation_is_survived),
        cmocka_unit_test(a_server_that_leaves_finishes_the_watch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
