#include "wire/h2/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

enum { MANY = 60000 };

static void *streams_new(uint32_t step)
{
    struct h2_stream *streams = calloc(MANY, sizeof(*streams));
    for (uint32_t i = 0; i < MANY; i++)
        streams[i].id = 1 + i * step;
    return streams;
}

static double cpu_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

/* Ids that rise by two, and ids chosen to be far apart: both must cost about the same a stream. */
static void add_and_remove_all(uint32_t step)
{
    struct h2_stream *streams = streams_new(step);
    struct h2_table table = {0};
    double start = cpu_seconds();
    for (uint32_t i = 0; i < MANY; i++) {
        assert_int_equal(h2_table_reserve(&table), ST_OK);
        h2_table_add(&table, &streams[i]);
    }
    for (uint32_t i = 0; i < MANY; i++)
        assert_ptr_equal(h2_table_find(&table, streams[i].id), &streams[i]);
    for (uint32_t i = 0; i < MANY; i++)
        h2_table_remove(&table, &streams[i]);
    /* Quadratic work takes minutes here; this is a hundred times what it needs. */
    assert_true(cpu_seconds() - start < 3);
    assert_int_equal(table.count, 0);
    assert_null(h2_table_find(&table, 1));
    h2_table_fini(&table);
    free(streams);
}

static void removing_many_neighbours_is_cheap(void **state)
{
    (void)state;
    add_and_remove_all(2);
}

static void ids_that_are_far_apart_do_not_fall_together(void **state)
{
    (void)state;
    add_and_remove_all(2 << 12);
    add_and_remove_all(2 << 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(removing_many_neighbours_is_cheap),
        cmocka_unit_test(ids_that_are_far_apart_do_not_fall_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
