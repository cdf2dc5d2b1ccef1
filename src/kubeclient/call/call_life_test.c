/* How calls end: timeouts, cancellation, faults at every byte, every allocation. */
#include "kubeclient/call/call_world_test.h"

static void answer_nothing(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    (void)reply, (void)request, (void)ctx;
}

static void answer_busy(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    (void)request, (void)ctx;
    sim_reply_field(reply, "Retry-After", "3600");
    sim_reply_status(reply, 503, "ServiceUnavailable", "come back later");
}

static void answer_half(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    (void)request, (void)ctx;
    sim_reply_begin(reply, 200, "application/json");
    sim_reply_text(reply, "{\"kind\":");
}

/* A call that will not complete by itself, in the states that last; see below for calls that
 * wait for their turn. */
static const struct lasting {
    sim_answer *answer;
    const char *text;
} lasting[] = {
    {answer_nothing, "no answer within 5000 ms"},
    {answer_half, "no answer within 5000 ms"},
    {answer_busy, "no answer within 5000 ms"},
};

static void begin_lasting(struct kube_world *w, const struct lasting *l, struct call_result *r)
{
    call_world_init(w, SIM_HTTP2, l->answer, NULL);
    w->options.call_timeout_ms = 5000;
    assert_true(kube_world_start(w));
    call_start(w, r, vigil_kube_get(w->kube, &call_pod));
}

static void timeout_ends_a_call_in_every_state(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(lasting); i++) {
        struct kube_world w;
        struct call_result r = {.code = 0};
        begin_lasting(&w, &lasting[i], &r);
        int64_t from = kube_world_now(&w);
        KUBE_WORLD_RUN_UNTIL(&w, r.completions);
        assert_int_equal(r.code, VIGIL_ERROR_TIMEOUT);
        assert_int_equal(r.outcome, VIGIL_UNKNOWN);
        assert_in_range(r.at_ns - from, 5 * NS_PER_S, 5 * NS_PER_S + 10 * NS_PER_MS);
        assert_string_equal(vigil_kube_call_error(r.call)->text, lasting[i].text);
        call_end(&r);
        kube_world_fini(&w);
    }
}

/* One call per second. */
static void begin_throttled(struct kube_world *w, struct call_result *r, size_t count)
{
    call_world_init(w, SIM_HTTP2, call_answer_pod, NULL);
    w->options.calls_per_second = 1;
    w->options.calls_burst = 1;
    w->options.call_timeout_ms = 5000;
    assert_true(kube_world_start(w));
    for (size_t i = 0; i < count; i++)
        call_start(w, &r[i], vigil_kube_get(w->kube, &call_pod));
}

static void throttled_calls_honour_their_timeout(void **state)
{
    (void)state;
    struct kube_world w;
    struct call_result r[10] = {{.code = 0}};
    begin_throttled(&w, r, COUNT_OF(r));
    int64_t from = kube_world_now(&w);
    kube_world_run(&w, 60 * NS_PER_S);
    for (size_t i = 0; i < COUNT_OF(r); i++) {
        assert_int_equal(r[i].completions, 1);
        assert_int_equal(r[i].code, i < 5 ? VIGIL_OK : VIGIL_ERROR_TIMEOUT);
        assert_int_equal(r[i].outcome, VIGIL_NOT_SENT);
        if (i < 5)
            assert_in_range(w.server.requests[i].at_ns - from, i * (uint64_t)NS_PER_S,
                            i * (uint64_t)NS_PER_S + 10 * NS_PER_MS);
        call_end(&r[i]);
    }
    assert_int_equal(w.server.request_count, 5);
    kube_world_fini(&w);
}

static void throttled_call_that_is_cancelled_leaves_its_turn(void **state)
{
    (void)state;
    struct kube_world w;
    struct call_result r[3] = {{.code = 0}};
    begin_throttled(&w, r, COUNT_OF(r));
    kube_world_run(&w, NS_PER_MS);
    vigil_kube_call_cancel(r[1].call);
    kube_world_run(&w, 1500 * NS_PER_MS);
    assert_int_equal(r[1].code, VIGIL_ERROR_CANCELED);
    assert_int_equal(r[1].outcome, VIGIL_NOT_SENT);
    assert_int_equal(r[2].completions, 1);
    assert_int_equal(r[2].code, VIGIL_OK);
    for (size_t i = 0; i < COUNT_OF(r); i++)
        call_end(&r[i]);
    kube_world_fini(&w);
}

enum ending { CANCEL, SHUTDOWN, FREE_CALL, FREE_CLIENT, FREE_IN_CALLBACK, ENDINGS };

static void calls_can_be_ended_in_every_state(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(lasting); i++) {
        for (enum ending ending = 0; ending < ENDINGS; ending++) {
            for (int64_t wait_ms = 0; wait_ms < 3; wait_ms++) {
                struct kube_world w;
                struct call_result r = {.frees = ending == FREE_IN_CALLBACK};
                begin_lasting(&w, &lasting[i], &r);
                kube_world_run(&w, wait_ms * NS_PER_MS);
                if (ending == CANCEL)
                    vigil_kube_call_cancel(r.call);
                else if (ending == SHUTDOWN)
                    vigil_kube_shutdown(w.kube);
                else if (ending == FREE_CALL)
                    call_end(&r);
                else if (ending == FREE_CLIENT)
                    kube_world_free_client(&w);
                kube_world_run(&w, 10 * NS_PER_S);
                assert_int_equal(r.completions, ending == FREE_CALL ? 0 : 1);
                if (ending != FREE_CALL)
                    assert_int_equal(r.code, ending == FREE_IN_CALLBACK ? VIGIL_ERROR_TIMEOUT
                                                                        : VIGIL_ERROR_CANCELED);
                if (ending == FREE_CLIENT)
                    assert_int_equal(vigil_kube_call_error(r.call)->code, VIGIL_ERROR_CANCELED);
                call_end(&r);
                kube_world_fini(&w);
            }
        }
    }
}

static void call_is_started_once(void **state)
{
    (void)state;
    struct kube_world w;
    struct call_result r = {.code = 0};
    call_world_start(&w, SIM_HTTP1, call_answer_pod, NULL);
    vigil_kube_call *call = vigil_kube_get(w.kube, &call_pod);
    assert_int_equal(vigil_kube_call_error(call)->code, VIGIL_OK);
    assert_int_equal(vigil_kube_call_body(call).size, 0);
    call_start(&w, &r, call);
    assert_int_equal(vigil_kube_call_start(call, NULL, NULL), VIGIL_ERROR_ARGUMENT);
    assert_int_equal(vigil_kube_call_run(call), VIGIL_ERROR_ARGUMENT);
    KUBE_WORLD_RUN_UNTIL(&w, r.completions);
    vigil_kube_call_cancel(call);
    kube_world_run(&w, NS_PER_S);
    assert_int_equal(r.completions, 1);
    call_end(&r);
    call = vigil_kube_get(w.kube, &call_pod);
    vigil_kube_call_cancel(call); /* before it is started */
    call_run(&w, &r, call);
    assert_int_equal(r.code, VIGIL_ERROR_CANCELED);
    call_end(&r);
    vigil_kube_call_free(vigil_kube_get(w.kube, &call_pod)); /* it was never started */
    kube_world_fini(&w);
}

static void missing_call_is_a_call_without_memory(void **state)
{
    (void)state;
    vigil_kube_call_set_timeout(NULL, 1);
    vigil_kube_call_want_protobuf(NULL);
    vigil_kube_call_cancel(NULL);
    vigil_kube_call_free(NULL);
    assert_int_equal(vigil_kube_call_start(NULL, NULL, NULL), VIGIL_ERROR_MEMORY);
    assert_int_equal(vigil_kube_call_run(NULL), VIGIL_ERROR_MEMORY);
    assert_int_equal(vigil_kube_call_error(NULL)->code, VIGIL_ERROR_MEMORY);
    assert_int_equal(vigil_kube_call_status(NULL)->code, 0);
    assert_int_equal(vigil_kube_call_body(NULL).size, 0);
    assert_null(vigil_kube_call_object(NULL));
    assert_string_equal(vigil_kube_call_version(NULL), "");
    assert_string_equal(vigil_kube_call_continue(NULL), "");
    assert_null(vigil_kube_call_user(NULL));
}

/* -- Faults -- */

/* A server that counts what it has executed. */
struct executed {
    unsigned creates;
};

static void answer_create(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    (void)request;
    ((struct executed *)ctx)->creates++;
    sim_reply_begin(reply, 201, "application/json");
    sim_reply_text(reply, CALL_POD);
    sim_reply_end(reply);
}

static vigil_kube_call *make_create(struct kube_world *w)
{
    faulty_memory_begin();
    vigil_kube_call *call = vigil_kube_create(w->kube, &call_pods, vigil_text(CALL_POD), NULL);
    faulty_memory_end();
    return call;
}

static void check_create(const struct call_result *r, const struct executed *executed)
{
    assert_true(executed->creates <= 1);
    if (r->code == VIGIL_OK)
        assert_int_equal(executed->creates, 1);
    else if (r->outcome != VIGIL_UNKNOWN)
        assert_int_equal(executed->creates, 0);
}

static void outcome_is_true_at_every_fault(void **state)
{
    (void)state;
    static const enum fault_kind kinds[] = {FAULT_LOST_READING, FAULT_LOST_WRITING, FAULT_RESET,
                                            FAULT_END,          FAULT_SILENCE,      FAULT_CALL};
    unsigned unknown = 0;
    for (enum sim_protocol protocol = SIM_HTTP1; protocol <= SIM_HTTP2; protocol++) {
        for (size_t k = 0; k < COUNT_OF(kinds); k++) {
            for (size_t at = 0, places = 1; at < places; at++) {
                struct kube_world w;
                struct call_result r = {.code = 0};
                struct executed executed = {0};
                call_world_start(&w, protocol, answer_create, &executed);
                faults.kind = at ? kinds[k] : FAULT_NONE;
                faults.at = at;
                call_run(&w, &r, make_create(&w));
                check_create(&r, &executed);
                unknown += r.code != VIGIL_OK && executed.creates;
                if (at == 0)
                    places = fault_places(kinds[k], &faults);
                call_end(&r);
                kube_world_fini(&w);
            }
        }
    }
    assert_true(unknown > 100); /* otherwise the faults come too early or too late */
}

static void read_succeeds_after_every_lost_connection(void **state)
{
    (void)state;
    unsigned retried = 0;
    for (enum sim_protocol protocol = SIM_HTTP1; protocol <= SIM_HTTP2; protocol++) {
        for (size_t at = 0, places = 1; at < places; at++) {
            struct kube_world w;
            struct call_result r = {.code = 0};
            call_world_start(&w, protocol, call_answer_pod, NULL);
            faults.kind = at ? FAULT_LOST_READING : FAULT_NONE;
            faults.at = at;
            call_run(&w, &r, vigil_kube_get(w.kube, &call_pod));
            assert_true(r.code == VIGIL_OK || r.code == VIGIL_ERROR_UNAVAILABLE);
            /* Before the first byte of the answer it is repeated. */
            if (r.code != VIGIL_OK)
                assert_string_equal(vigil_kube_call_status(r.call)->reason, "");
            retried += r.code == VIGIL_OK && w.server.request_count == 2;
            if (at == 0)
                places = fault_places(FAULT_LOST_READING, &faults);
            call_end(&r);
            kube_world_fini(&w);
        }
    }
    assert_true(retried > 50);
}

static void missing_memory_is_reported(void **state)
{
    (void)state;
    for (enum sim_protocol protocol = SIM_HTTP1; protocol <= SIM_HTTP2; protocol++) {
        for (size_t at = 1;; at++) {
            struct kube_world w;
            struct call_result r = {.code = 0};
            struct executed executed = {0};
            call_world_init(&w, protocol, answer_create, &executed);
            w.options.calls_per_second = 5;
            faulty_memory_at = at;
            bool created = kube_world_start(&w);
            if (created) {
                call_run(&w, &r, make_create(&w));
                check_create(&r, &executed);
                call_end(&r);
            } else {
                assert_int_equal(w.error.code, VIGIL_ERROR_MEMORY);
            }
            bool failed = faulty_memory_at == 0;
            faulty_memory_at = 0;
            assert_true(failed || r.code == VIGIL_OK);
            kube_world_fini(&w);
            if (!failed)
                break;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timeout_ends_a_call_in_every_state),
        cmocka_unit_test(throttled_calls_honour_their_timeout),
        cmocka_unit_test(throttled_call_that_is_cancelled_leaves_its_turn),
        cmocka_unit_test(calls_can_be_ended_in_every_state),
        cmocka_unit_test(call_is_started_once),
        cmocka_unit_test(missing_call_is_a_call_without_memory),
        cmocka_unit_test(outcome_is_true_at_every_fault),
        cmocka_unit_test(read_succeeds_after_every_lost_connection),
        cmocka_unit_test(missing_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
