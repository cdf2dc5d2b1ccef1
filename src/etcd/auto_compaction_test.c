#include "etcd/auto_compaction.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define MINUTE (60 * NS_PER_S)
#define HOUR (60 * MINUTE)

static int64_t parsed(enum auto_compaction_mode mode, const char *text)
{
    int64_t value = -1;
    return auto_compaction_parse(mode, text, &value) == ST_OK ? value : -1;
}

static void retention_is_parsed_like_etcd(void **state)
{
    (void)state;
    assert_int_equal(parsed(AUTO_COMPACTION_PERIODIC, ""), 0);
    assert_int_equal(parsed(AUTO_COMPACTION_PERIODIC, "0"), 0);
    assert_int_equal(parsed(AUTO_COMPACTION_PERIODIC, "1"), HOUR);
    assert_int_equal(parsed(AUTO_COMPACTION_PERIODIC, "010"), 10 * HOUR);
    assert_int_equal(parsed(AUTO_COMPACTION_PERIODIC, "1h"), HOUR);
    assert_int_equal(parsed(AUTO_COMPACTION_PERIODIC, "30m"), 30 * MINUTE);
    assert_int_equal(parsed(AUTO_COMPACTION_PERIODIC, "5m30s"), 5 * MINUTE + 30 * NS_PER_S);
    assert_int_equal(parsed(AUTO_COMPACTION_PERIODIC, "+2"), 2 * HOUR);
    assert_int_equal(parsed(AUTO_COMPACTION_PERIODIC, "-1"), -1);
    assert_int_equal(parsed(AUTO_COMPACTION_PERIODIC, "-1h"), -1);
    assert_int_equal(parsed(AUTO_COMPACTION_PERIODIC, "1d"), -1);
    assert_int_equal(parsed(AUTO_COMPACTION_PERIODIC, "99999999999"), -1);
    assert_int_equal(parsed(AUTO_COMPACTION_REVISION, "1000"), 1000);
    assert_int_equal(parsed(AUTO_COMPACTION_REVISION, "1us"), 1000);
    assert_int_equal(parsed(AUTO_COMPACTION_REVISION, "0x10"), -1);
}

/* Makes steps like a loop: at next_ns, with a revision that grows by one each minute. */
struct compaction_run {
    struct auto_compaction compaction;
    int64_t now;
    int64_t compacted_at[64], compacted_to[64];
    size_t count;
    bool fails;
};

static int64_t revision_at(int64_t now)
{
    return 1 + now / MINUTE;
}

static void run_until(struct compaction_run *run, int64_t end)
{
    while (run->compaction.next_ns <= end) {
        run->now = run->compaction.next_ns;
        int64_t to = auto_compaction_step(&run->compaction, run->now, revision_at(run->now));
        if (to == 0)
            continue;
        assert_true(run->count < 64);
        run->compacted_at[run->count] = run->now / MINUTE;
        run->compacted_to[run->count++] = to;
        auto_compaction_done(&run->compaction, run->now, to, !run->fails, revision_at(run->now));
    }
}

/* The noted revision of a compaction: at first that of the start, then that of one interval more
 * than an hour ago. */
static int64_t noted_before(int round)
{
    return round == 0 ? 1 : 1 + 60 * round - 6;
}

static void one_hour_of_history_is_kept(void **state)
{
    (void)state;
    struct compaction_run run = {0};
    auto_compaction_init(&run.compaction, AUTO_COMPACTION_PERIODIC, HOUR, 0, 1);
    assert_int_equal(run.compaction.interval_ns, 6 * MINUTE);
    run_until(&run, 59 * MINUTE);
    assert_int_equal(run.count, 0);
    run_until(&run, 3 * HOUR);
    assert_int_equal(run.count, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(run.compacted_at[i], 60 * (i + 1));
        assert_int_equal(run.compacted_to[i], noted_before(i));
    }
    auto_compaction_fini(&run.compaction);
}

/* After the first compaction there is one every hour, to the revision of a day before. */
static void one_day_of_history_is_compacted_every_hour(void **state)
{
    (void)state;
    struct compaction_run run = {0};
    auto_compaction_init(&run.compaction, AUTO_COMPACTION_PERIODIC, 24 * HOUR, 0, 1);
    assert_int_equal(run.compaction.interval_ns, 6 * MINUTE);
    run_until(&run, 27 * HOUR);
    assert_int_equal(run.count, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(run.compacted_at[i], 60 * (24 + i));
        assert_int_equal(run.compacted_to[i], noted_before(i));
    }
    assert_int_equal(run.compaction.noted_count, 241);
    auto_compaction_fini(&run.compaction);
}

static void idle_store_is_compacted_once(void **state)
{
    (void)state;
    struct auto_compaction compaction;
    auto_compaction_init(&compaction, AUTO_COMPACTION_PERIODIC, 10 * NS_PER_S, 0, 7);
    int compactions = 0;
    for (int64_t now = 0; now < 100 * NS_PER_S; now += NS_PER_S) {
        int64_t to = auto_compaction_step(&compaction, now, 7);
        if (to == 0)
            continue;
        assert_int_equal(to, 7);
        compactions++;
        auto_compaction_done(&compaction, now, to, true, 7);
    }
    assert_int_equal(compactions, 1);
    auto_compaction_fini(&compaction);
}

static void failed_compaction_is_retried_after_a_tenth(void **state)
{
    (void)state;
    struct compaction_run run = {.fails = true};
    auto_compaction_init(&run.compaction, AUTO_COMPACTION_PERIODIC, HOUR, 0, 1);
    run_until(&run, 72 * MINUTE);
    assert_int_equal(run.count, 3);
    assert_int_equal(run.compacted_at[1], 66);
    assert_int_equal(run.compacted_to[1], 1);
    assert_int_equal(run.compacted_to[2], 7);
    run.fails = false;
    run_until(&run, 78 * MINUTE);
    run_until(&run, 78 * MINUTE + 59 * MINUTE);
    assert_int_equal(run.count, 4);
    auto_compaction_fini(&run.compaction);
}

static void last_revisions_are_kept(void **state)
{
    (void)state;
    struct compaction_run run = {0};
    auto_compaction_init(&run.compaction, AUTO_COMPACTION_REVISION, 10, 0, 1);
    run_until(&run, 9 * MINUTE);
    assert_int_equal(run.count, 0); /* at five minutes there were six revisions */
    run_until(&run, 20 * MINUTE);
    assert_int_equal(run.count, 3);
    assert_int_equal(run.compacted_at[0], 10);
    assert_int_equal(run.compacted_to[0], 1);
    assert_int_equal(run.compacted_to[2], 11);
    /* There are no new revisions, so there is nothing to do. */
    assert_int_equal(auto_compaction_step(&run.compaction, 25 * MINUTE, 21), 0);
    assert_int_equal(auto_compaction_step(&run.compaction, 30 * MINUTE, 22), 12);
    auto_compaction_fini(&run.compaction);
}

/* A machine that was suspended makes one step, not one for every missed round. */
static void long_sleep_causes_one_round(void **state)
{
    (void)state;
    struct auto_compaction compaction;
    auto_compaction_init(&compaction, AUTO_COMPACTION_PERIODIC, HOUR, 0, 1);
    assert_int_equal(auto_compaction_step(&compaction, 50 * HOUR, 100), 1);
    auto_compaction_done(&compaction, 50 * HOUR, 1, true, 100);
    assert_int_equal(compaction.next_ns, 50 * HOUR + 6 * MINUTE);
    assert_int_equal(auto_compaction_step(&compaction, 50 * HOUR + MINUTE, 101), 0);
    auto_compaction_fini(&compaction);
}

static void shortest_retention_does_not_spin(void **state)
{
    (void)state;
    struct auto_compaction compaction;
    auto_compaction_init(&compaction, AUTO_COMPACTION_PERIODIC, 1, 0, 1);
    assert_int_equal(compaction.interval_ns, NS_PER_MS);
    assert_int_equal(auto_compaction_step(&compaction, NS_PER_MS, 5), 1);
    auto_compaction_done(&compaction, NS_PER_MS, 1, true, 5);
    auto_compaction_fini(&compaction);
}

/* Makes steps with this many bytes in use until a compaction; returns its revision. */
static int64_t compacted_with(struct auto_compaction *compaction, int64_t bytes, int64_t *now,
                              int64_t *revision, int steps_max)
{
    for (; steps_max > 0; steps_max--) {
        *now = compaction->next_ns;
        auto_compaction_measure(compaction, bytes);
        int64_t to = auto_compaction_step(compaction, *now, ++*revision);
        if (!to)
            continue;
        auto_compaction_done(compaction, *now, to, true, *revision);
        return to;
    }
    return 0;
}

static void history_that_grows_too_large_is_compacted_early(void **state)
{
    (void)state;
    struct auto_compaction compaction;
    int64_t now = 0, revision = 1;
    auto_compaction_init(&compaction, AUTO_COMPACTION_PERIODIC, HOUR, 0, 1);
    auto_compaction_limit(&compaction, 1000);
    assert_int_equal(compacted_with(&compaction, 500, &now, &revision, 5), 0);
    assert_int_equal(compacted_with(&compaction, 1500, &now, &revision, 1), 0);
    /* Beyond the limit, the three newest notes stay, which are of the three steps before. */
    int64_t to = compacted_with(&compaction, 1501, &now, &revision, 1);
    assert_int_equal(to, revision - 3);
    /* Nothing is freed yet, and the bytes in use now do not count as growth. */
    assert_int_equal(compacted_with(&compaction, 2500, &now, &revision, 2), 0);
    assert_int_equal(compacted_with(&compaction, 100, &now, &revision, 1), 0);
    to = compacted_with(&compaction, 1101, &now, &revision, 1);
    assert_int_equal(to, revision - 3);
    auto_compaction_fini(&compaction);
}

static void idle_store_is_not_compacted_early_again(void **state)
{
    (void)state;
    struct auto_compaction compaction;
    int64_t now = 0, revision = 1;
    auto_compaction_init(&compaction, AUTO_COMPACTION_PERIODIC, HOUR, 0, 1);
    auto_compaction_limit(&compaction, 1000);
    auto_compaction_measure(&compaction, 0);
    auto_compaction_measure(&compaction, 5000);
    compaction.next_ns = 0;
    assert_int_equal(auto_compaction_step(&compaction, now, revision), 1);
    auto_compaction_done(&compaction, now, 1, true, revision);
    for (int i = 0; i < 9; i++) {
        auto_compaction_measure(&compaction, 5000);
        assert_int_equal(auto_compaction_step(&compaction, compaction.next_ns, revision), 0);
    }
    auto_compaction_fini(&compaction);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(retention_is_parsed_like_etcd),
        cmocka_unit_test(one_hour_of_history_is_kept),
        cmocka_unit_test(one_day_of_history_is_compacted_every_hour),
        cmocka_unit_test(idle_store_is_compacted_once),
        cmocka_unit_test(failed_compaction_is_retried_after_a_tenth),
        cmocka_unit_test(last_revisions_are_kept),
        cmocka_unit_test(long_sleep_causes_one_round),
        cmocka_unit_test(shortest_retention_does_not_spin),
        cmocka_unit_test(history_that_grows_too_large_is_compacted_early),
        cmocka_unit_test(idle_store_is_not_compacted_early_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
