#include "kubeclient/connect/server_backoff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { SEED = 7 };

/* TestURLBackoffFunctionality */
static void the_delay_doubles_up_to_its_limit(void **state)
{
    (void)state;
    struct random random;
    struct server_backoff backoff = {0};
    int64_t now = 0, most = SERVER_BACKOFF_MIN_NS;
    random_init(&random, SEED);
    assert_int_equal(server_backoff_delay_ns(&backoff, now, &random), 0);
    for (int i = 0; i < 40; i++) {
        server_backoff_failed(&backoff, now, now, &random);
        int64_t closed = backoff.until_ns - now;
        assert_true(closed >= most / 2 && closed <= most);
        for (int k = 0; k < 50; k++) {
            int64_t delay = server_backoff_delay_ns(&backoff, now, &random);
            assert_true(delay >= closed && delay <= closed + most / 2);
        }
        now = backoff.until_ns;
        assert_int_equal(server_backoff_delay_ns(&backoff, now, &random), 0);
        most = 2 * most < SERVER_BACKOFF_MAX_NS ? 2 * most : SERVER_BACKOFF_MAX_NS;
    }
    assert_int_equal(backoff.delay_ns, SERVER_BACKOFF_MAX_NS);
}

static void attempts_of_the_same_time_count_once(void **state)
{
    (void)state;
    struct random random;
    struct server_backoff backoff = {0};
    random_init(&random, SEED);
    for (int i = 0; i < 1000; i++)
        server_backoff_failed(&backoff, 5, 10 + i, &random);
    assert_int_equal(backoff.delay_ns, SERVER_BACKOFF_MIN_NS);
    assert_true(backoff.until_ns <= 10 + SERVER_BACKOFF_MIN_NS);
}

static void requests_are_spread(void **state)
{
    (void)state;
    struct random random;
    struct server_backoff backoff = {0};
    int64_t first = INT64_MAX, last = 0;
    random_init(&random, SEED);
    server_backoff_failed(&backoff, 0, 0, &random);
    for (int i = 0; i < 1000; i++) {
        int64_t delay = server_backoff_delay_ns(&backoff, 0, &random);
        first = delay < first ? delay : first;
        last = delay > last ? delay : last;
    }
    assert_true(last - first > SERVER_BACKOFF_MIN_NS / 3);
}

static void an_answer_ends_it(void **state)
{
    (void)state;
    struct random random;
    struct server_backoff backoff = {0};
    random_init(&random, SEED);
    server_backoff_failed(&backoff, 0, 0, &random);
    server_backoff_succeeded(&backoff);
    assert_int_equal(server_backoff_delay_ns(&backoff, 0, &random), 0);
    server_backoff_failed(&backoff, 1, 1, &random);
    assert_int_equal(backoff.delay_ns, SERVER_BACKOFF_MIN_NS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_delay_doubles_up_to_its_limit),
        cmocka_unit_test(attempts_of_the_same_time_count_once),
        cmocka_unit_test(requests_are_spread),
        cmocka_unit_test(an_answer_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
