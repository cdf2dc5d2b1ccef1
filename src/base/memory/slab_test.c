#include "base/memory/slab.h"

#include "base/random.h"
#include "base/xalloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void objects_are_packed_and_aligned(void **state)
{
    (void)state;
    struct slab slab;
    slab_init(&slab, 40);
    uint8_t *a = slab_alloc(&slab);
    uint8_t *b = slab_alloc(&slab);

    assert_int_equal(b - a, 40);
    assert_int_equal((uintptr_t)a % 8, 0);
    assert_ptr_equal(slab_of(a), &slab);
    slab_free(a);
    slab_free(b);
    slab_fini(&slab);
}

static void a_small_slab_holds_one_page(void **state)
{
    (void)state;
    struct slab slab;
    slab_init(&slab, 64);
    void *object = slab_alloc(&slab);

    assert_int_equal(slab.held_bytes, 4096);
    slab_free(object);
    slab_fini(&slab);
}

static void freed_object_is_allocated_again(void **state)
{
    (void)state;
    struct slab slab;
    slab_init(&slab, 24);
    void *first = slab_alloc(&slab);
    void *second = slab_alloc(&slab);
    slab_free(first);

    assert_ptr_equal(slab_alloc(&slab), first);
    slab_free(first);
    slab_free(second);
    slab_fini(&slab);
}

/* Each comes back in the reverse order, from whatever chunk it is. */
static void objects_freed_last_are_allocated_first(void **state)
{
    (void)state;
    enum { OBJECTS = 4096, FREED = 300, BYTES = 1024 };
    struct slab slab;
    slab_init(&slab, BYTES);
    void *objects[OBJECTS], *freed[FREED];
    for (unsigned i = 0; i < OBJECTS; i++)
        objects[i] = slab_alloc(&slab);
    assert_true(slab.chunks > 1);
    for (unsigned i = 0; i < FREED; i++) {
        freed[i] = objects[i * (OBJECTS / FREED)];
        slab_free(freed[i]);
    }
    for (unsigned i = FREED; i > 0; i--)
        assert_ptr_equal(slab_alloc(&slab), freed[i - 1]);

    for (unsigned i = 0; i < OBJECTS; i++)
        slab_free(objects[i]);
    slab_fini(&slab);
}

static void few_freed_objects_are_kept_from_their_chunks(void **state)
{
    (void)state;
    enum { OBJECTS = 9000, BYTES = 64, LARGE = 64 };
    struct slab slab;
    void **objects = calloc(OBJECTS, sizeof(*objects));
    slab_init(&slab, BYTES);
    for (unsigned i = 0; i < OBJECTS; i++)
        objects[i] = slab_alloc(&slab);
    for (unsigned i = 0; i < OBJECTS; i++) {
        slab_free(objects[i]);
        assert_true(slab.recent_count <= 512);
        assert_true(slab.recent_count <= slab.objects / 8);
    }
    slab_fini(&slab);

    slab_init(&slab, SLAB_OBJECT_BYTES_MAX);
    for (unsigned i = 0; i < LARGE; i++)
        objects[i] = slab_alloc(&slab);
    for (unsigned i = 0; i < LARGE; i++) {
        slab_free(objects[i]);
        assert_true(slab.recent_count * SLAB_OBJECT_BYTES_MAX <= 512 << 10);
    }
    slab_fini(&slab);
    free(objects);
}

/* Each object is filled with its own number, so that an overlap is found. */
static void objects_keep_their_bytes_through_random_use(void **state)
{
    (void)state;
    enum { OBJECTS = 3000, BYTES = 3000 };
    struct random random;
    random_init(&random, 3);
    struct slab slab;
    slab_init(&slab, BYTES);
    uint32_t **objects = xcalloc(OBJECTS, sizeof(objects[0]));
    for (unsigned step = 0; step < 30000; step++) {
        uint32_t at = (uint32_t)random_below(&random, OBJECTS);
        if (objects[at]) {
            assert_int_equal(objects[at][0], at);
            assert_int_equal(objects[at][BYTES / 4 - 1], at);
            slab_free(objects[at]);
            objects[at] = NULL;
        } else {
            objects[at] = slab_alloc(&slab);
            objects[at][0] = objects[at][BYTES / 4 - 1] = at;
        }
    }
    for (unsigned i = 0; i < OBJECTS; i++)
        if (objects[i])
            slab_free(objects[i]);
    free(objects);
    assert_int_equal(slab.objects, 0);
    slab_fini(&slab);
}

static void empty_chunks_give_their_memory_back(void **state)
{
    (void)state;
    enum { OBJECTS = 100 };
    struct slab slab;
    slab_init(&slab, SLAB_OBJECT_BYTES_MAX);
    void *objects[OBJECTS];
    for (unsigned i = 0; i < OBJECTS; i++)
        objects[i] = slab_alloc(&slab);
    assert_int_equal(slab.chunks, (OBJECTS + 6) / 7);
    for (unsigned i = 0; i < OBJECTS; i++)
        slab_free(objects[i]);

    assert_int_equal(slab.chunks, 1);
    assert_int_equal(slab.held_bytes, 4096);
    slab_fini(&slab);
}

static void large_object_has_its_own_mapping(void **state)
{
    (void)state;
    size_t bytes = 10 << 20;
    uint8_t *object = slab_alloc_alone(bytes);
    memset(object, 1, bytes);

    assert_null(slab_of(object));
    assert_true(slab_alone_bytes(object) >= bytes);
    assert_true(slab_alone_bytes(object) < bytes + (128 << 10));
    slab_free_alone(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_are_packed_and_aligned),
        cmocka_unit_test(a_small_slab_holds_one_page),
        cmocka_unit_test(freed_object_is_allocated_again),
        cmocka_unit_test(objects_keep_their_bytes_through_random_use),
        cmocka_unit_test(objects_freed_last_are_allocated_first),
        cmocka_unit_test(few_freed_objects_are_kept_from_their_chunks),
        cmocka_unit_test(empty_chunks_give_their_memory_back),
        cmocka_unit_test(large_object_has_its_own_mapping),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
