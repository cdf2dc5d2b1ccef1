/* What owners of a watch request may do within its functions. */
#include "kubeclient/watch/watch_request.h"

#include "kubeclient/watch/watch_fixture_test.h"

enum action { DO_NOTHING, DO_CANCEL, DO_FREE, DO_RESTART, DO_WITHHOLD };

/* Embeds a request, as an informer does. */
struct owner {
    struct watch_request request;
    struct vigil_kube *kube;
    struct watch_test *t;
    enum action action;
    size_t at; /* the number of the event at which the action is done */
    size_t events, ends;
    bool restarts_at_end;
};

static const struct vigil_kube_target pods = {.version = "v1", .resource = "pods"};

static void start(struct owner *o)
{
    struct watch_params params = {.target = &pods, .version = "1"};
    struct error error;
    assert_int_equal(watch_request_start(&o->request, o->kube, &params, &error), ST_OK);
    watch_request_check(&o->request);
}

/* The event is still valid after this. */
static void act(struct owner *o)
{
    switch (o->action) {
    case DO_CANCEL:
        watch_request_cancel(&o->request);
        break;
    case DO_FREE:
        watch_request_cancel(&o->request);
        free(o);
        break;
    case DO_RESTART:
        watch_request_cancel(&o->request);
        start(o);
        break;
    case DO_WITHHOLD:
        watch_request_withhold(&o->request, true);
        break;
    default:
        break;
    }
}

static void on_event(struct watch_request *request, const struct received_event *event)
{
    struct owner *o = CONTAINER_OF(request, struct owner, request);
    struct watch_test *t = o->t;
    char version[20];
    snprintf(version, sizeof(version), "%.*s", SLICE_ARGS(event->version));
    if (++o->events == o->at)
        act(o);
    assert_true(slice_equal(event->version, slice_from_text(version)));
    watch_test_log(t, "%d %s\n", event->type, version);
}

static void on_end(struct watch_request *request, const struct watch_result *result)
{
    struct owner *o = CONTAINER_OF(request, struct owner, request);
    watch_request_check(request);
    assert_int_equal(request->state, WATCH_REQUEST_IDLE);
    assert_true(result->reason != NULL);
    o->ends++;
    watch_test_log(o->t, "end %d\n", result->end);
    if (o->restarts_at_end) {
        o->restarts_at_end = false;
        start(o);
    }
}

static const struct watch_request_ops ops = {.on_event = on_event, .on_end = on_end};

/* The body arrives in pieces, so that an event may be in the framer's buffer. */
static struct owner *begin(struct watch_test *t, enum sim_protocol protocol,
                           const struct watch_step *steps, size_t count)
{
    struct owner *o = calloc(1, sizeof(*o));
    assert_non_null(o);
    watch_test_init(t, protocol, steps, count);
    *o = (struct owner){.request.ops = &ops, .kube = t->w.kube, .t = t};
    return o;
}

static void end(struct watch_test *t, struct owner *o)
{
    if (o) {
        watch_request_check(&o->request);
        watch_request_cancel(&o->request);
        watch_request_cancel(&o->request);
        watch_request_check(&o->request);
        assert_int_equal(atomic_load(&t->w.kube->counters.watches), 0);
    }
    free(o);
    watch_test_fini(t);
}

#define THREE EVENT("ADDED", "a", "2") EVENT("ADDED", "b", "3") EVENT("DELETED", "a", "4")
#define THREE_LOG "0 2\n0 3\n2 4\n"

static void events_are_valid_after_a_cancel(void **state)
{
    (void)state;
    static const struct watch_step step = {.text = THREE};
    static const char *const logs[] = {"", "0 2\n", "0 2\n0 3\n", THREE_LOG};
    for (enum sim_protocol protocol = SIM_HTTP1; protocol <= SIM_HTTP2; protocol++) {
        for (size_t at = 1; at <= 3; at++) {
            struct watch_test t;
            struct owner *o = begin(&t, protocol, &step, 1);
            o->action = DO_CANCEL;
            o->at = at;
            start(o);
            watch_test_run(&t);
            assert_string_equal(t.log, logs[at]);
            assert_int_equal(o->ends, 0);
            end(&t, o);

            o = begin(&t, protocol, &step, 1);
            o->action = DO_FREE;
            o->at = at;
            start(o);
            watch_test_run(&t);
            assert_string_equal(t.log, logs[at]);
            end(&t, NULL);
        }
    }
}

/* The event in the middle is longer than what is read at once. */
static void events_of_several_pieces_are_valid_after_a_cancel(void **state)
{
    (void)state;
    AUTO(buf_fini) struct buf body = {0};
    watch_test_append(&body, "a", "2", 10);
    watch_test_append(&body, "b", "3", 200000);
    watch_test_append(&body, "c", "4", 10);
    struct watch_step step = {.text = (const char *)body.ptr, .text_bytes = body.len};
    for (enum sim_protocol protocol = SIM_HTTP1; protocol <= SIM_HTTP2; protocol++) {
        for (enum action action = DO_CANCEL; action <= DO_FREE; action++) {
            struct watch_test t;
            struct owner *o = begin(&t, protocol, &step, 1);
            o->action = action;
            o->at = 2;
            start(o);
            watch_test_run(&t);
            assert_string_equal(t.log, "0 2\n0 3\n");
            end(&t, action == DO_FREE ? NULL : o);
        }
    }
}

/* The same for one that was withheld. */
static void withheld_events_are_valid_after_a_cancel(void **state)
{
    (void)state;
    static const struct watch_step step = {.text = THREE};
    struct watch_test t;
    struct owner *o = begin(&t, SIM_HTTP2, &step, 1);
    watch_request_withhold(&o->request, true);
    start(o);
    watch_test_run(&t);
    o->action = DO_FREE;
    o->at = 2;
    watch_request_withhold(&o->request, false);
    watch_test_run(&t);
    assert_string_equal(t.log, "0 2\n0 3\n");
    end(&t, NULL);
}

static void a_request_may_start_again_within_an_event(void **state)
{
    (void)state;
    static const struct watch_step steps[] = {{.text = THREE}, {.text = EVENT("ADDED", "z", "9")}};
    static const char *const logs[] = {"", "0 2\n0 9\nend 0\n", "0 2\n0 3\n0 9\nend 0\n",
                                       THREE_LOG "0 9\nend 0\n"};
    for (size_t at = 1; at <= 3; at++) {
        struct watch_test t;
        struct owner *o = begin(&t, SIM_HTTP2, steps, COUNT_OF(steps));
        o->action = DO_RESTART;
        o->at = at;
        start(o);
        watch_test_run(&t);
        assert_string_equal(t.log, logs[at]);
        end(&t, o);
    }
}

static void a_request_may_start_again_at_its_end(void **state)
{
    (void)state;
    static const struct watch_step steps[] = {
        {.text = EVENT("ADDED", "a", "2")}, {.code = 404}, {.text = "?"}};
    struct watch_test t;
    struct owner *o = begin(&t, SIM_HTTP1, steps, COUNT_OF(steps));
    o->restarts_at_end = true;
    start(o);
    kube_world_run(&t.w, NS_PER_S);
    assert_string_equal(t.log, "0 2\nend 0\nend 4\n");
    start(o);
    watch_test_run(&t);
    assert_string_equal(t.log, "0 2\nend 0\nend 4\nend 6\n");
    end(&t, o);
}

static void withheld_events_follow_in_order(void **state)
{
    (void)state;
    static const struct watch_step step = {.text = THREE};
    for (enum sim_protocol protocol = 0; protocol < SIM_PROTOCOLS; protocol++) {
        struct watch_test t;
        struct owner *o = begin(&t, protocol, &step, 1);
        o->action = DO_WITHHOLD;
        o->at = 2;
        start(o);
        watch_test_run(&t);
        assert_string_equal(t.log, "0 2\n0 3\n");
        assert_int_equal(o->request.state, WATCH_REQUEST_ENDING);
        watch_request_check(&o->request);
        watch_request_withhold(&o->request, false);
        watch_request_check(&o->request);
        assert_string_equal(t.log, "0 2\n0 3\n");
        watch_test_run(&t);
        assert_string_equal(t.log, THREE_LOG "end 0\n");
        end(&t, o);
    }
}

static void an_end_alone_is_withheld(void **state)
{
    (void)state;
    static const struct watch_step step = {.text = EVENT("ADDED", "a", "2"),
                                           .text_bytes = sizeof(EVENT("ADDED", "a", "2")) - 2};
    struct watch_test t;
    struct owner *o = begin(&t, SIM_HTTP2, &step, 1);
    o->action = DO_WITHHOLD;
    o->at = 1;
    start(o);
    watch_test_run(&t);
    assert_string_equal(t.log, "0 2\n");
    assert_int_equal(o->request.rest.len, 0);
    watch_request_withhold(&o->request, false);
    watch_test_run(&t);
    assert_string_equal(t.log, "0 2\nend 0\n");
    end(&t, o);
}

static void a_withheld_request_delivers_nothing(void **state)
{
    (void)state;
    static const struct watch_step step = {.text = THREE};
    struct watch_test t;
    struct owner *o = begin(&t, SIM_HTTP2, &step, 1);
    watch_request_withhold(&o->request, true);
    start(o);
    watch_test_run(&t);
    assert_string_equal(t.log, "");
    watch_request_withhold(&o->request, false);
    watch_request_withhold(&o->request, true);
    watch_test_run(&t);
    assert_string_equal(t.log, "");
    watch_request_withhold(&o->request, false);
    watch_test_run(&t);
    assert_string_equal(t.log, THREE_LOG "end 0\n");
    end(&t, o);
}

static void a_withheld_request_holds_a_bounded_amount(void **state)
{
    (void)state;
    AUTO(buf_fini) struct buf body = {0};
    for (int i = 0; i < 1000; i++)
        watch_test_append(&body, "a", "2", 2000);
    struct watch_step step = {.text = (const char *)body.ptr, .text_bytes = body.len};
    for (enum sim_protocol protocol = SIM_HTTP1; protocol <= SIM_HTTP2; protocol++) {
        struct watch_test t;
        struct owner *o = begin(&t, protocol, &step, 1);
        watch_request_withhold(&o->request, true);
        start(o);
        watch_test_run(&t);
        assert_in_range(o->request.rest.len, 1, WATCH_WITHHELD_BYTES_MAX / 2);
        watch_request_withhold(&o->request, false);
        watch_test_run(&t);
        assert_int_equal(o->events, 1000);
        assert_int_equal(o->ends, 1);
        end(&t, o);
    }
}

static void a_withheld_request_can_be_cancelled(void **state)
{
    (void)state;
    static const struct watch_step steps[] = {{.text = THREE}, {.text = THREE, .stays = true}};
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        struct watch_test t;
        struct owner *o = begin(&t, SIM_HTTP1, &steps[i], 1);
        o->action = DO_WITHHOLD;
        o->at = 1;
        start(o);
        watch_test_run(&t);
        watch_request_withhold(&o->request, false);
        watch_request_cancel(&o->request);
        watch_test_run(&t);
        assert_string_equal(t.log, "0 2\n");
        end(&t, o);
    }
}

/* Also of those that cannot begin because the server is down. */
static void a_request_can_be_cancelled_at_every_step(void **state)
{
    (void)state;
    static const struct watch_step steps[] = {{.breaks = true}, {.text = THREE}};
    for (int down = 0; down < 2; down++) {
        for (int turns = 0; turns < 40; turns++) {
            struct watch_test t;
            struct owner *o = begin(&t, SIM_HTTP2, steps, COUNT_OF(steps));
            if (down)
                kube_server_stop(&t.w.server);
            start(o);
            for (int i = 0; i < turns; i++) {
                (void)sim_step(t.w.sim);
                watch_request_check(&o->request);
                if (down && o->request.state == WATCH_REQUEST_IDLE)
                    start(o);
            }
            end(&t, o);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_valid_after_a_cancel),
        cmocka_unit_test(events_of_several_pieces_are_valid_after_a_cancel),
        cmocka_unit_test(withheld_events_are_valid_after_a_cancel),
        cmocka_unit_test(a_request_may_start_again_within_an_event),
        cmocka_unit_test(a_request_may_start_again_at_its_end),
        cmocka_unit_test(withheld_events_follow_in_order),
        cmocka_unit_test(an_end_alone_is_withheld),
        cmocka_unit_test(a_withheld_request_delivers_nothing),
        cmocka_unit_test(a_withheld_request_holds_a_bounded_amount),
        cmocka_unit_test(a_withheld_request_can_be_cancelled),
        cmocka_unit_test(a_request_can_be_cancelled_at_every_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
