#include "cel/library/builtin.h"
#include "cel/value/container.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* tests/cel_oracle.py compares the results of the functions with cel-go's. These tests are about
 * lists that are too long. */

enum { ITEMS = 1000, STEPS = 10000, STEPS_OF_ONE_CALL = 3 * ITEMS, ARENA_BYTES_MAX = 1 << 20 };

static struct cel_value items[2][ITEMS];
static struct cel_array arrays[2] = {{ITEMS, ITEMS, items[0]}, {ITEMS, ITEMS, items[1]}};

/* Two lists without a common item. */
static void fill(struct cel_value ret_lists[2])
{
    for (int64_t i = 0; i < ITEMS; i++) {
        items[0][i] = cel_of_int(i);
        items[1][i] = cel_of_int(ITEMS + i);
    }
    for (int i = 0; i < 2; i++)
        ret_lists[i] = (struct cel_value){.kind = CEL_LIST, .count = ITEMS, .array = &arrays[i]};
}

static struct cel_value call(struct cel_work *work, const char *function, uint32_t count,
                             const struct cel_value *args)
{
    const struct cel_builtin *builtin = cel_builtin_find(slice_from_text(function), count);
    assert_non_null(builtin);
    return builtin->fn(work, args);
}

static void comparing_all_pairs_ends_with_the_work(void **state)
{
    static const struct {
        const char *function;
        uint32_t count;
    } cases[] = {{"distinct", 1}, {"sets.intersects", 2}};
    struct cel_value lists[2];
    (void)state;
    fill(lists);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena;
        arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
        struct cel_work work = {.arena = &arena, .steps_left = STEPS, .overload = -1};
        call(&work, cases[i].function, cases[i].count, lists);
        /* A million pairs were not compared. */
        assert_true(work.steps_left < 0);
        assert_true(work.steps_left > -STEPS_OF_ONE_CALL);
        arena_fini(&arena);
    }
}

static void a_range_that_costs_too_much_is_not_made(void **state)
{
    struct arena arena;
    struct cel_value count = cel_of_int(10000000);
    (void)state;
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    struct cel_work work = {.arena = &arena, .steps_left = INT64_C(64000000)};
    struct cel_value result = call(&work, "lists.range", 1, &count);
    assert_int_equal(result.kind, CEL_ERROR);
    assert_true(slice_is(cel_text(result), "operation cancelled: actual cost limit exceeded"));
    assert_false(arena_ran_out(&arena));
    arena_fini(&arena);
}

static void flattening_needs_no_stack(void **state)
{
    enum { DEPTH = 100000 };
    struct arena arena;
    (void)state;
    arena_init(&arena, NULL, 0, (size_t)64 << 20);
    struct cel_work work = {.arena = &arena, .steps_left = INT64_MAX};
    struct cel_value args[2] = {cel_of_int(7), cel_of_int(INT64_MAX)};
    for (int i = 0; i < DEPTH; i++)
        args[0] = cel_list_append(&work, cel_list_new(&work, 1), args[0]);
    struct cel_value flat = call(&work, "flatten", 2, args);
    assert_int_equal(flat.kind, CEL_LIST);
    assert_int_equal(flat.count, 1);
    assert_int_equal(cel_list_at(&work, flat, 0).i64, 7);
    arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comparing_all_pairs_ends_with_the_work),
        cmocka_unit_test(a_range_that_costs_too_much_is_not_made),
        cmocka_unit_test(flattening_needs_no_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
