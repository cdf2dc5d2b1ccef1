/* Answers that refuse the tier and not its client, and forwards that are stopped. */
#include "tier/forward/forward_fixture_test.h"

static void refusal_of_the_tier_is_not_the_clients_answer(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pool_test_request r = {.target = "/f/fields?403"};
        begin(&cases[i]);
        t.listens_for = "the body";
        exchange(&r);
        assert_int_equal(r.ends, 1);
        assert_int_equal(r.status, 403);
        assert_string_equal(r.type, "application/json");
        assert_non_null(strstr(r.text, "the tier is refused with 403"));
        assert_null(strstr(r.head, "\"a\"")); /* the Etag */
        r.target = "/f/fields?401";
        exchange(&r);
        assert_non_null(strstr(r.text, "the tier is refused with 401"));
        assert_int_equal(t.listened.asked, 2);
        end();
    }
}

static void refusal_of_the_client_is_passed_on(void **state)
{
    static const struct {
        const char *method, *target;
        unsigned status, asked;
    } rows[] = {
        {"GET", "/f/fields?403", 403, 1},  {"GET", "/f/fields?401", 401, 1},
        {"HEAD", "/f/fields?403", 403, 1}, {"GET", "/f/fields?404", 404, 0},
        {"GET", "/f/fields?200", 200, 0},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        begin(&cases[i]);
        t.listens_for = "another body";
        for (size_t k = 0; k < COUNT_OF(rows); k++) {
            struct pool_test_request r = {.method = rows[k].method, .target = rows[k].target};
            t.listened.asked = 0;
            exchange(&r);
            assert_int_equal(r.end, ST_OK);
            assert_int_equal(r.status, rows[k].status);
            assert_string_equal(r.text, strcmp(rows[k].method, "HEAD") == 0 ? "" : "the body");
            assert_non_null(strstr(r.head, "\"a\""));
            assert_int_equal(t.listened.asked, rows[k].asked);
        }
        end();
    }
}

/* Only its beginning is held. */
static void long_refusal_arrives_whole(void **state)
{
    static const size_t sizes[] = {0, 1, TIER_REFUSAL_BYTES - 1, TIER_REFUSAL_BYTES, 1 << 20};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        begin(&cases[i]);
        t.listens_for = "";
        for (size_t k = 0; k < COUNT_OF(sizes); k++) {
            char target[64];
            struct pool_test_request r = {.target = target};
            snprintf(target, sizeof(target), "/f/refuse?%zu", sizes[k]);
            t.listened.asked = 0;
            exchange(&r);
            assert_true(pool_test_succeeded(&r) || r.status == 403);
            assert_int_equal(r.end, ST_OK);
            assert_int_equal(r.received, sizes[k]);
            assert_int_equal(t.listened.asked, 1);
            assert_true(t.listened.body_bytes >= size_min(sizes[k], TIER_REFUSAL_BYTES));
            assert_true(t.listened.body_bytes <= 10 * TIER_REFUSAL_BYTES);
        }
        end();
    }
}

static void without_a_listener_refusals_are_the_clients(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pool_test_request r = {.target = "/f/fields?403"};
        begin(&cases[i]);
        exchange(&r);
        assert_int_equal(r.status, 403);
        assert_string_equal(r.text, "the body");
        end();
    }
}

static void stopped_answer_is_cut_off(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct kube_status status = {0};
        struct pool_test_request ticks = {.target = "/f/ticks?watch=1", .waits = true};
        struct pool_test_request later = {.target = "/f/later"};
        begin(&cases[i]);
        t.listens_for = "";
        (void)!kube_fail(&status, KUBE_FORBIDDEN, "the right is gone");
        exchange(&ticks);
        assert_int_equal(ticks.status, 200);
        assert_int_equal(ticks.ends, 0);
        tier_forward_stop(t.front_exchange, &status);
        run(2 * NS_PER_S);
        assert_int_equal(ticks.ends, 1);
        assert_int_equal(ticks.end, ST_CLOSED);
        assert_int_equal(t.ticks_ended, 1);
        /* Before the answer has begun, it is this one. */
        exchange(&later);
        assert_int_equal(later.ends, 0);
        tier_forward_stop(t.front_exchange, &status);
        run(NS_PER_S);
        assert_int_equal(later.ends, 1);
        assert_int_equal(later.status, 403);
        assert_non_null(strstr(later.text, "the right is gone"));
        assert_int_equal(t.listened.ended, 2);
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusal_of_the_tier_is_not_the_clients_answer),
        cmocka_unit_test(refusal_of_the_client_is_passed_on),
        cmocka_unit_test(long_refusal_arrives_whole),
        cmocka_unit_test(without_a_listener_refusals_are_the_clients),
        cmocka_unit_test(stopped_answer_is_cut_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
