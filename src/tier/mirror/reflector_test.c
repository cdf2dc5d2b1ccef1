/* What the mirror requests of a collection: the rules that need no server to be seen. The others
 * are in mirror_test.c and history_test.c. */
#include "tier/mirror/reflector.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static struct world {
    struct tier_reflector reflector;
    struct tier_reflector_request request;
    int64_t now_ns, wait_ns;
    unsigned requests, cancels, states, waits, failures, refusals;
} w;

static void on_request(void *ctx, const struct tier_reflector_request *request)
{
    (void)ctx;
    w.request = *request;
    w.requests++;
}

static void on_cancel(void *ctx)
{
    (void)ctx;
    w.cancels++;
}

static void on_wait(void *ctx, int64_t delay_ns)
{
    (void)ctx;
    w.wait_ns = delay_ns;
    w.waits++;
}

static void on_state(void *ctx, bool begins)
{
    (void)ctx;
    w.states += begins;
}

static void on_failed(void *ctx, const char *reason, bool refused)
{
    (void)ctx;
    assert_true(reason[0]);
    w.failures++;
    w.refusals += refused;
}

static void begin(void)
{
    static const struct tier_reflector_ops ops = {on_request, on_cancel, on_wait, on_state,
                                                  on_failed};
    w = (struct world){.now_ns = 1000 * NS_PER_S};
    tier_reflector_init(&w.reflector, &ops, NULL, 1);
    tier_reflector_start(&w.reflector);
    assert_int_equal(w.request.kind, TIER_REFLECTOR_PROBING);
    assert_int_equal(w.request.limit, 1);
    tier_reflector_probed(&w.reflector, w.now_ns);
    assert_int_equal(w.request.kind, TIER_REFLECTOR_STREAMING);
    assert_int_equal(w.states, 1);
}

static void begin_watching(uint64_t version)
{
    begin();
    assert_true(tier_reflector_believes(&w.reflector, version, w.now_ns));
    tier_reflector_loaded(&w.reflector, version, w.now_ns);
    assert_int_equal(w.reflector.state, TIER_REFLECTOR_WATCHING);
    assert_int_equal(w.requests, 2); /* the same request continues */
}

static void end(void)
{
    tier_reflector_check(&w.reflector);
    tier_reflector_stop(&w.reflector);
    tier_reflector_fini(&w.reflector);
}

static void refuse(int code, const char *reason)
{
    struct vigil_kube_status status = {.code = code, .retry_after_s = -1};
    snprintf(status.reason, sizeof(status.reason), "%s", reason);
    tier_reflector_failed(&w.reflector, &status, w.now_ns);
    tier_reflector_check(&w.reflector);
}

static void wait_is_over(void)
{
    assert_int_equal(w.reflector.state, TIER_REFLECTOR_WAITING);
    w.now_ns += w.wait_ns;
    tier_reflector_resume(&w.reflector, w.now_ns);
}

/* After lost history, to the next state. */
static void lose_history(void)
{
    refuse(410, "Expired");
    wait_is_over();
    assert_int_equal(w.request.kind, TIER_REFLECTOR_PROBING);
    tier_reflector_probed(&w.reflector, w.now_ns);
}

static void an_older_state_is_believed_after_three_in_five_seconds(void **state)
{
    (void)state;
    begin_watching(100);
    lose_history();
    int64_t first_ns = w.now_ns;
    assert_false(tier_reflector_believes(&w.reflector, 99, w.now_ns));
    wait_is_over();
    w.now_ns = first_ns + NS_PER_S;
    assert_false(tier_reflector_believes(&w.reflector, 99, w.now_ns));
    wait_is_over();
    w.now_ns = first_ns + 5 * NS_PER_S - 1;
    assert_false(tier_reflector_believes(&w.reflector, 99, w.now_ns)); /* three, but too soon */
    wait_is_over();
    w.now_ns = first_ns + 5 * NS_PER_S;
    assert_true(tier_reflector_believes(&w.reflector, 99, w.now_ns));
    tier_reflector_loaded(&w.reflector, 99, w.now_ns);
    /* From then on it is what is known. */
    lose_history();
    assert_false(tier_reflector_believes(&w.reflector, 98, w.now_ns));
    end();
}

static void two_older_states_are_not_believed(void **state)
{
    (void)state;
    begin_watching(100);
    lose_history();
    assert_false(tier_reflector_believes(&w.reflector, 99, w.now_ns));
    wait_is_over();
    w.now_ns += 100 * NS_PER_S;
    assert_false(tier_reflector_believes(&w.reflector, 99, w.now_ns));
    wait_is_over();
    /* One that is not older begins the count again. */
    assert_true(tier_reflector_believes(&w.reflector, 100, w.now_ns));
    tier_reflector_loaded(&w.reflector, 100, w.now_ns);
    lose_history();
    assert_false(tier_reflector_believes(&w.reflector, 99, w.now_ns));
    end();
}

static void a_version_that_stays_too_large_ends_the_history(void **state)
{
    (void)state;
    begin_watching(100);
    for (int i = 0; i < 3; i++) {
        struct vigil_kube_status status = {.code = 504, .retry_after_s = 1, .cause_count = 1};
        snprintf(status.causes[0].reason, sizeof(status.causes[0].reason),
                 "ResourceVersionTooLarge");
        assert_int_equal(w.reflector.state, TIER_REFLECTOR_WATCHING);
        tier_reflector_failed(&w.reflector, &status, w.now_ns);
        assert_true(w.wait_ns >= NS_PER_S);
        wait_is_over();
    }
    assert_int_equal(w.request.kind, TIER_REFLECTOR_PROBING);
    end();
}

static void a_watch_that_fails_is_made_again_and_then_the_state_is_read(void **state)
{
    (void)state;
    begin_watching(100);
    for (int i = 0; i < 5; i++) {
        refuse(500, "InternalError");
        wait_is_over();
        assert_int_equal(w.request.kind, TIER_REFLECTOR_WATCHING);
        assert_int_equal(w.request.version, 100);
    }
    /* An event shows that it works. */
    struct received_event event = {.type = RECEIVED_BOOKMARK};
    assert_true(tier_reflector_received(&w.reflector, &event, 110, w.now_ns));
    for (int i = 0; i < 6; i++) {
        assert_int_equal(w.request.kind, TIER_REFLECTOR_WATCHING);
        refuse(500, "InternalError");
        wait_is_over();
    }
    assert_int_equal(w.request.kind, TIER_REFLECTOR_PROBING);
    end();
}

/* Neither an outage nor a server that is busy costs the history. */
static void an_outage_ends_nothing(void **state)
{
    (void)state;
    begin_watching(100);
    for (int i = 0; i < 100; i++) {
        refuse(i % 2 ? 0 : 429, "");
        assert_in_range(w.wait_ns, 800 * NS_PER_MS, 60 * NS_PER_S);
        wait_is_over();
        assert_int_equal(w.request.kind, TIER_REFLECTOR_WATCHING);
    }
    end();
}

static void a_watch_that_is_refused_is_tried_three_times(void **state)
{
    static const int codes[] = {403, 404, 405, 406, 415};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        begin_watching(100);
        refuse(codes[i], "Refused");
        wait_is_over();
        refuse(codes[i], "Refused");
        wait_is_over();
        assert_int_equal(w.refusals, 0);
        refuse(codes[i], "Refused");
        assert_int_equal(w.refusals, 1);
        assert_int_equal(w.reflector.state, TIER_REFLECTOR_REFUSED);
        tier_reflector_start(&w.reflector);
        assert_int_equal(w.request.kind, TIER_REFLECTOR_PROBING);
        end();
    }
}

static void a_watch_that_ends_at_once_is_not_repeated_at_once(void **state)
{
    (void)state;
    begin_watching(100);
    w.now_ns += 2 * NS_PER_S;
    tier_reflector_watch_ended(&w.reflector, w.now_ns);
    assert_int_equal(w.requests, 3);
    assert_in_range(w.request.timeout_s, 300, 600);
    tier_reflector_watch_ended(&w.reflector, w.now_ns + NS_PER_MS);
    assert_int_equal(w.requests, 3);
    wait_is_over();
    assert_int_equal(w.request.kind, TIER_REFLECTOR_WATCHING);
    end();
}

static void limits_tokens(void **state)
{
    static uint8_t token[TIER_CONTINUE_BYTES_MAX + 1];
    (void)state;
    begin();
    refuse(422, "Invalid");
    assert_int_equal(w.request.kind, TIER_REFLECTOR_LISTING);
    assert_int_equal(w.request.limit, 500);
    tier_reflector_page_ended(&w.reflector, slice_of(token, TIER_CONTINUE_BYTES_MAX), w.now_ns);
    assert_int_equal(w.request.token.len, TIER_CONTINUE_BYTES_MAX);
    tier_reflector_page_ended(&w.reflector, slice_of(token, sizeof(token)), w.now_ns);
    wait_is_over();
    assert_int_equal(w.request.kind, TIER_REFLECTOR_LISTING);
    assert_int_equal(w.request.token.len, 0);
    /* Nor does the same token twice lead anywhere. */
    tier_reflector_page_ended(&w.reflector, SLICE_LITERAL("a"), w.now_ns);
    tier_reflector_page_ended(&w.reflector, SLICE_LITERAL("a"), w.now_ns);
    assert_int_equal(w.reflector.state, TIER_REFLECTOR_WAITING);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_older_state_is_believed_after_three_in_five_seconds),
        cmocka_unit_test(two_older_states_are_not_believed),
        cmocka_unit_test(a_version_that_stays_too_large_ends_the_history),
        cmocka_unit_test(a_watch_that_fails_is_made_again_and_then_the_state_is_read),
        cmocka_unit_test(an_outage_ends_nothing),
        cmocka_unit_test(a_watch_that_is_refused_is_tried_three_times),
        cmocka_unit_test(a_watch_that_ends_at_once_is_not_repeated_at_once),
        cmocka_unit_test(limits_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
