/* How often the keeper sleeps, counted by the kernel: nothing else here gives up the core. */
#include "store/upkeep/yield.h"

#include "store/fixture_test.h"

#include <sys/resource.h>

enum { PUTS = 20000, VERSION_BYTES = 64 /* at least, of a page */ };

static long sleeps(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
    return usage.ru_nvcsw;
}

/* Often enough for what so many versions change, and not for each of them. */
static void assert_sleeps_for(int versions, long count)
{
    assert_in_range(count, versions * VERSION_BYTES / YIELD_BYTES, versions / 100);
}

static int64_t put_one_key(struct fixture *f)
{
    for (int i = 1; i < PUTS; i++)
        fixture_put(f, "key", "value");
    return fixture_put(f, "key", "last");
}

static long sleeps_of_checkpoint(struct fixture *f)
{
    long before = sleeps();
    assert_int_equal(upkeep_checkpoint(f->upkeep), ST_OK);
    return sleeps() - before;
}

static void keeper_sleeps_between_the_records_that_it_adds(void **state)
{
    struct fixture *f = *state;
    put_one_key(f);
    fixture_commit(f);
    assert_sleeps_for(PUTS, sleeps_of_checkpoint(f));
}

static void keeper_sleeps_between_the_versions_that_it_drops(void **state)
{
    struct fixture *f = *state;
    int64_t newest = put_one_key(f);
    fixture_commit(f);
    (void)sleeps_of_checkpoint(f);
    fixture_compact(f, newest);
    fixture_commit(f);
    while (store_is_trimming(f->store))
        assert_int_equal(store_trim_step(f->store), ST_OK);
    assert_sleeps_for(PUTS, sleeps_of_checkpoint(f));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(keeper_sleeps_between_the_records_that_it_adds),
        TEST(keeper_sleeps_between_the_versions_that_it_drops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
