#include "wire/h2/table.h"

#include "base/rate_limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

enum { COUNT = 3000 };
static struct h2_stream streams[COUNT];

static void streams_are_found_until_removed_in_any_order(void **state)
{
    (void)state;
    struct h2_table table = {0};
    for (uint32_t i = 0; i < COUNT; i++) {
        streams[i].id = 2 * (i * i % 7919 + i * 8000) + 1; /* runs and gaps */
        assert_int_equal(h2_table_reserve(&table), ST_OK);
        h2_table_add(&table, &streams[i]);
    }
    for (uint32_t k = 0; k < COUNT; k++) {
        uint32_t i = k * 1237 % COUNT;
        assert_ptr_equal(h2_table_find(&table, streams[i].id), &streams[i]);
        h2_table_remove(&table, &streams[i]);
        assert_null(h2_table_find(&table, streams[i].id));
        uint32_t later = (k + 1) * 1237 % COUNT;
        if (k + 1 < COUNT)
            assert_ptr_equal(h2_table_find(&table, streams[later].id), &streams[later]);
    }
    assert_int_equal(table.count, 0);
    assert_true(table.capacity <= 256);
    h2_table_fini(&table);
}

enum { MANY = 60000 };

static struct h2_stream *streams_new(uint32_t step)
{
    struct h2_stream *many = calloc(MANY, sizeof(*many));
    for (uint32_t i = 0; i < MANY; i++)
        many[i].id = 1 + i * step;
    return many;
}

static double cpu_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

/* Consecutive ids, and ids chosen to be far apart: both must cost about the same per stream. */
static void add_and_remove_all(uint32_t step)
{
    struct h2_stream *many = streams_new(step);
    struct h2_table table = {0};
    double start = cpu_seconds();
    for (uint32_t i = 0; i < MANY; i++) {
        assert_int_equal(h2_table_reserve(&table), ST_OK);
        h2_table_add(&table, &many[i]);
    }
    for (uint32_t i = 0; i < MANY; i++)
        assert_ptr_equal(h2_table_find(&table, many[i].id), &many[i]);
    for (uint32_t i = 0; i < MANY; i++)
        h2_table_remove(&table, &many[i]);
    /* Quadratic work would take minutes; this is a hundred times what is needed. */
    assert_true(cpu_seconds() - start < 3);
    assert_int_equal(table.count, 0);
    assert_null(h2_table_find(&table, 1));
    h2_table_fini(&table);
    free(many);
}

static void removing_many_neighbours_is_cheap(void **state)
{
    (void)state;
    add_and_remove_all(2);
}

static void ids_that_are_far_apart_do_not_collide(void **state)
{
    (void)state;
    add_and_remove_all(2 << 12);
    add_and_remove_all(2 << 15);
}

static void bucket_empties_and_refills(void **state)
{
    (void)state;
    struct rate_limit limit = {0};
    int64_t now = 5000000000;
    for (int i = 0; i < 10; i++)
        assert_true(rate_limit_take(&limit, 10, 2, now));
    assert_false(rate_limit_take(&limit, 10, 2, now));
    assert_false(rate_limit_take(&limit, 10, 2, now + 400000000));
    assert_true(rate_limit_take(&limit, 10, 2, now + 500000000));
    assert_false(rate_limit_take(&limit, 10, 2, now + 500000000));
    now += 100000000000;
    for (int i = 0; i < 10; i++)
        assert_true(rate_limit_take(&limit, 10, 2, now));
    assert_false(rate_limit_take(&limit, 10, 2, now));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_are_found_until_removed_in_any_order),
        cmocka_unit_test(removing_many_neighbours_is_cheap),
        cmocka_unit_test(ids_that_are_far_apart_do_not_collide),
        cmocka_unit_test(bucket_empties_and_refills),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
