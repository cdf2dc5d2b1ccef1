#include "base/memory/pool.h"

#include "base/memory/slab.h"
#include "base/random.h"
#include "base/xalloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void every_size_gets_a_class_that_holds_it_and_wastes_little(void **state)
{
    (void)state;
    struct pool *pool = pool_new();
    for (size_t bytes = 1; bytes <= SLAB_OBJECT_BYTES_MAX; bytes += 1 + bytes / 50) {
        void *object = pool_alloc(pool, bytes);
        size_t given = slab_of(object)->object_bytes;
        assert_true(given >= bytes);
        assert_true(given - bytes <= size_max(7, bytes / 8));
        assert_int_equal(given, pool_usable_bytes(bytes));
        pool_free_object(pool, object);
    }
    pool_free(pool);
}

static void objects_of_all_sizes_keep_their_bytes(void **state)
{
    (void)state;
    enum { OBJECTS = 300 };
    struct random random;
    random_init(&random, 5);
    struct pool *pool = pool_new();
    uint8_t *objects[OBJECTS] = {0};
    size_t sizes[OBJECTS] = {0};
    for (unsigned step = 0; step < 10000; step++) {
        size_t at = (size_t)random_below(&random, OBJECTS);
        if (objects[at]) {
            assert_int_equal(objects[at][0], at % 256);
            assert_int_equal(objects[at][sizes[at] - 1], at % 256);
        }
        pool_free_object(pool, objects[at]);
        sizes[at] = 1 + (size_t)random_below(&random, (uint64_t)1 << random_below(&random, 20));
        objects[at] = pool_alloc(pool, sizes[at]);
        objects[at][0] = objects[at][sizes[at] - 1] = (uint8_t)(at % 256);
    }
    for (size_t i = 0; i < OBJECTS; i++)
        pool_free_object(pool, objects[i]);
    assert_int_equal(pool_objects(pool), 0);
    pool_free(pool);
}

static void objects_may_outlive_the_owner(void **state)
{
    (void)state;
    struct pool *pool = pool_new();
    uint8_t *small = pool_alloc(pool, 10);
    uint8_t *large = pool_alloc(pool, 1 << 20);
    pool_free(pool);

    small[9] = 1;
    large[(1 << 20) - 1] = 1;
    pool_free_object(pool, small);
    pool_free_object(pool, large);
}

static void held_bytes_follow_use(void **state)
{
    (void)state;
    struct pool *pool = pool_new();
    size_t before = pool_bytes_held(pool);
    void *large = pool_alloc(pool, 1 << 20);
    assert_true(pool_bytes_held(pool) >= before + (1 << 20));
    pool_free_object(pool, large);
    assert_int_equal(pool_bytes_held(pool), before);
    pool_free(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size_gets_a_class_that_holds_it_and_wastes_little),
        cmocka_unit_test(objects_of_all_sizes_keep_their_bytes),
        cmocka_unit_test(objects_may_outlive_the_owner),
        cmocka_unit_test(held_bytes_follow_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
