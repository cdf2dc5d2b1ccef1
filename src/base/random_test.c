#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void same_seed_gives_the_same_numbers(void **state)
{
    (void)state;
    struct random a, b, c;
    random_init(&a, 42);
    random_init(&b, 42);
    random_init(&c, 43);
    int differ = 0;
    for (int i = 0; i < 100; i++) {
        uint64_t x = random_u64(&a);
        assert_true(x == random_u64(&b));
        differ += x != random_u64(&c);
    }
    assert_true(differ > 90);
}

static void below_stays_below_and_reaches_all(void **state)
{
    (void)state;
    struct random r;
    random_init(&r, 0);
    int seen[7] = {0};
    for (int i = 0; i < 7000; i++)
        seen[random_below(&r, 7)]++;
    for (int i = 0; i < 7; i++)
        assert_true(seen[i] > 800 && seen[i] < 1200);
}

static void between_covers_its_ends(void **state)
{
    (void)state;
    struct random r;
    random_init(&r, 1);
    bool low = false, high = false;
    for (int i = 0; i < 1000; i++) {
        int64_t x = random_between(&r, -2, 2);
        assert_true(x >= -2 && x <= 2);
        low |= x == -2;
        high |= x == 2;
    }
    assert_true(low && high);
    (void)random_between(&r, INT64_MIN, INT64_MAX);
}

static void fill_writes_only_its_bytes(void **state)
{
    (void)state;
    struct random r;
    random_init(&r, 3);
    uint8_t bytes[16] = {0};
    random_fill(&r, bytes, 11);
    for (int i = 11; i < 16; i++)
        assert_int_equal(bytes[i], 0);
    assert_true(random_seed_system() != random_seed_system());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_seed_gives_the_same_numbers),
        cmocka_unit_test(below_stays_below_and_reaches_all),
        cmocka_unit_test(between_covers_its_ends),
        cmocka_unit_test(fill_writes_only_its_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
