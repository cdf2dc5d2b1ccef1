#include "base/container/resumable_sort.h"

#include "base/macros.h"
#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

struct pair {
    uint64_t key, place;
};

static int compare(const void *a, const void *b, void *ctx)
{
    size_t *calls = ctx;
    const struct pair *left = a, *right = b;
    ++*calls;
    return (left->key > right->key) - (left->key < right->key);
}

static void any_number_is_sorted_and_equal_ones_stay_in_order(void **state)
{
    (void)state;
    enum { MAX = 600 };
    struct random random;
    random_init(&random, 5);
    for (size_t count = 0; count < MAX; count += count < 70 ? 1 : 37) {
        struct pair pairs[MAX];
        for (size_t i = 0; i < count; i++)
            pairs[i] = (struct pair){random_below(&random, 50), i};
        struct resumable_sort sort;
        assert_int_equal(resumable_sort_init(&sort, pairs, count, sizeof(pairs[0])), ST_OK);
        size_t calls = 0, steps = 0, moves = 1 + random_below(&random, 40);
        while (!resumable_sort_step(&sort, moves, compare, &calls)) {
            assert_true(calls <= moves * ++steps);
            assert_true(steps < 100000);
        }
        for (size_t i = 1; i < count; i++) {
            const struct pair *a = sort.items[i - 1], *b = sort.items[i];
            assert_true(a->key < b->key || (a->key == b->key && a->place < b->place));
        }
        resumable_sort_fini(&sort);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_is_sorted_and_equal_ones_stay_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
