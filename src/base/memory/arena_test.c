#include "base/memory/arena.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void small_allocations_stay_in_the_first_bytes(void **state)
{
    (void)state;
    _Alignas(16) uint8_t first[256];
    struct arena arena;
    arena_init(&arena, first, sizeof(first), 1 << 20);

    uint8_t *a = arena_alloc(&arena, 10);
    uint8_t *b = arena_alloc(&arena, 10);

    assert_true(a >= first && a < first + sizeof(first));
    assert_int_equal(b - a, 16);
    assert_int_equal(arena.held_bytes, 0);
    arena_fini(&arena);
}

static void growth_stops_at_the_limit(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, NULL, 0, 100000);
    size_t got = 0;
    assert_false(arena_ran_out(&arena));
    while (arena_alloc(&arena, 1000))
        got += 1000;

    assert_true(arena_ran_out(&arena));
    assert_true(got >= 90000 && got <= 100000);
    assert_true(arena.held_bytes <= 100000);
    assert_null(arena_alloc(&arena, SIZE_MAX));
    assert_null(arena_calloc(&arena, SIZE_MAX / 2, 4));
    arena_fini(&arena);
    arena_init(&arena, NULL, 0, 100000);
    assert_false(arena_ran_out(&arena));
    assert_null(arena_calloc(&arena, SIZE_MAX / 2, 4));
    assert_true(arena_ran_out(&arena));
    arena_fini(&arena);
}

static void dup_copies(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, NULL, 0, 1 << 20);
    char text[] = "hello";
    struct slice copy;
    assert_int_equal(arena_dup(&arena, slice_from_text(text), &copy), ST_OK);
    text[0] = 'j';
    assert_true(slice_equal(copy, SLICE_LITERAL("hello")));
    arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_allocations_stay_in_the_first_bytes),
        cmocka_unit_test(growth_stops_at_the_limit),
        cmocka_unit_test(dup_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
