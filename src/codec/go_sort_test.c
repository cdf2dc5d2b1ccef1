#include "codec/go_sort.h"

#include "base/macros.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { COUNT_MAX = 700 };

static uint32_t keys[COUNT_MAX];

static bool has_smaller_key(void *context, uint32_t a, uint32_t b)
{
    (void)context;
    return keys[a] < keys[b];
}

static bool has_no_order(void *context, uint32_t a, uint32_t b)
{
    (void)context;
    return (a * 31 ^ b * 17) % 3 == 0;
}

static void make_keys(uint32_t count, uint32_t modulus)
{
    for (uint32_t i = 0; i < count; i++)
        keys[i] = count % 5 == 1            ? i / 3
                  : count % 5 == 2          ? count - i
                  : count % 5 == 3 && i > 0 ? (i % 97 == 5 ? 0 : i)
                                            : (i * i * 2654435761u >> 7) % modulus;
}

/* Sorts 0, 1, 2 … and adds the order to a checksum. */
static uint32_t sort_and_hash(uint32_t count, go_sort_less_fn *less, uint32_t hash)
{
    /* Exactly as large, for the sanitizer. */
    uint32_t *items = malloc(count * sizeof(*items) + !count);
    assert_non_null(items);
    for (uint32_t i = 0; i < count; i++)
        items[i] = i;
    go_sort(items, count, less, NULL);
    for (uint32_t i = 0; i < count; i++) {
        if (less == has_smaller_key && i > 0)
            assert_true(keys[items[i - 1]] <= keys[items[i]]);
        hash = (hash ^ items[i]) * 16777619;
    }
    free(items);
    return hash;
}

/* The checksums were computed with Go's sort.Slice. */
static void equal_items_have_the_order_of_go(void **state)
{
    static const struct {
        uint32_t modulus, hash;
    } cases[] = {{1, 0x90b25357},
                 {2, 0xdc497acd},
                 {7, 0x8e79ced3},
                 {101, 0x303405e5},
                 {1000003, 0x30fca1e3}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        uint32_t hash = 2166136261;
        for (uint32_t count = 0; count < COUNT_MAX; count++) {
            make_keys(count, cases[i].modulus);
            hash = sort_and_hash(count, has_smaller_key, hash);
        }
        assert_int_equal(hash, cases[i].hash);
    }
}

static void items_without_an_order_have_the_order_of_go(void **state)
{
    uint32_t hash = 2166136261;
    (void)state;
    for (uint32_t count = 0; count < 300; count++)
        hash = sort_and_hash(count, has_no_order, hash);
    assert_int_equal(hash, 0x6242530d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_items_have_the_order_of_go),
        cmocka_unit_test(items_without_an_order_have_the_order_of_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
