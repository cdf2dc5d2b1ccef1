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

/* Refuses every request until it is given up. Returns after how long. */
static int64_t refuse_all(int code)
{
    int64_t begun_ns = w.now_ns;
    while (!w.refusals) {
        unsigned requests = w.requests;
        refuse(code, "Refused");
        if (w.refusals)
            break;
        assert_in_range(w.wait_ns, 1, 5 * NS_PER_S);
        wait_is_over();
        assert_int_equal(w.requests, requests + 1);
    }
    assert_int_equal(w.reflector.state, TIER_REFLECTOR_REFUSED);
    return w.now_ns - begun_ns;
}

static const int refusals[] = {403, 404, 405, 406, 415};

static void what_is_watched_is_given_up_after_half_a_minute_of_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(refusals); i++) {
        begin_watching(100);
        assert_in_range(refuse_all(refusals[i]), 30 * NS_PER_S, 36 * NS_PER_S);
        assert_in_range(w.failures, 7, 12);
        /* From then on it is new. */
        w.refusals = 0;
        tier_reflector_start(&w.reflector);
        assert_int_equal(w.request.kind, TIER_REFLECTOR_PROBING);
        refuse(refusals[i], "Refused");
        assert_int_equal(w.refusals, 1);
        end();
    }
}

/* As at a server that starts: each request may be the one that comes too early. */
static void refusals_of_a_state_that_is_read_again_pass(void **state)
{
    (void)state;
    for (int at = 0; at < 3; at++) {
        begin_watching(100);
        w.reflector.lists = at == 2;
        refuse(410, "Expired");
        wait_is_over();
        assert_int_equal(w.request.kind, TIER_REFLECTOR_PROBING);
        if (at > 0) {
            tier_reflector_probed(&w.reflector, w.now_ns);
            assert_int_equal(w.request.kind,
                             at == 1 ? TIER_REFLECTOR_STREAMING : TIER_REFLECTOR_LISTING);
        }
        for (int n = 0; n < 5; n++) {
            refuse(n % 2 ? 403 : 404, "Refused");
            wait_is_over();
            assert_int_equal(w.request.kind, TIER_REFLECTOR_PROBING);
        }
        assert_int_equal(w.refusals, 0);
        tier_reflector_probed(&w.reflector, w.now_ns);
        assert_true(tier_reflector_believes(&w.reflector, 110, w.now_ns));
        tier_reflector_loaded(&w.reflector, 110, w.now_ns);
        tier_reflector_accepted(&w.reflector);
        assert_int_equal(w.reflector.state, TIER_REFLECTOR_WATCHING);
        /* Another half a minute, also if the server cannot be reached meanwhile. */
        int64_t begun_ns = w.now_ns;
        for (int n = 0; n < 4; n++) {
            refuse(403, "Forbidden");
            wait_is_over();
            refuse(0, "");
            wait_is_over();
        }
        assert_int_equal(w.refusals, 0);
        (void)refuse_all(404);
        assert_true(w.now_ns - begun_ns >= 30 * NS_PER_S);
        end();
    }
}

/* A server that starts has often lost the history, too. */
static void refusals_do_not_delay_the_state_that_is_read_next(void **state)
{
    (void)state;
    begin_watching(100);
    for (int n = 0; n < 5; n++) {
        refuse(403, "Forbidden");
        wait_is_over();
    }
    tier_reflector_accepted(&w.reflector);
    refuse(410, "Expired");
    assert_in_range(w.wait_ns, 800 * NS_PER_MS, 1600 * NS_PER_MS);
    end();
}

/* Nothing is known of a state that cannot be watched. */
static void what_was_never_watched_is_given_up_soon(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(refusals); i++) {
        begin();
        if (refusals[i] == 405) { /* which means that it does not stream */
            refuse(405, "MethodNotAllowed");
            assert_int_equal(w.request.kind, TIER_REFLECTOR_LISTING);
        }
        refuse(refusals[i], "Refused");
        assert_int_equal(w.refusals, 1);
        end();
        begin();
        refuse(400, "BadRequest");
        assert_true(tier_reflector_believes(&w.reflector, 100, w.now_ns));
        tier_reflector_loaded(&w.reflector, 100, w.now_ns);
        assert_int_equal(w.request.kind, TIER_REFLECTOR_WATCHING);
        assert_in_range(refuse_all(refusals[i]), 0, 10 * NS_PER_S);
        assert_int_equal(w.failures, 1 + 3);
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
        cmocka_unit_test(what_is_watched_is_given_up_after_half_a_minute_of_refusals),
        cmocka_unit_test(refusals_of_a_state_that_is_read_again_pass),
        cmocka_unit_test(refusals_do_not_delay_the_state_that_is_read_next),
        cmocka_unit_test(what_was_never_watched_is_given_up_soon),
        cmocka_unit_test(a_watch_that_ends_at_once_is_not_repeated_at_once),
        cmocka_unit_test(limits_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
