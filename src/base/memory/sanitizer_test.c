/* The sanitizers know what our allocators do. In a build without them there is nothing to see. */
#include "base/memory/sanitizer.h"

#include "base/memory/arena.h"
#include "base/memory/slab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void assert_hidden(const void *byte)
{
#ifdef SANITIZER_ADDRESS
    assert_true(__asan_address_is_poisoned(byte));
#else
    (void)byte;
#endif
}

static void assert_shown(void *bytes, size_t count)
{
#ifdef SANITIZER_ADDRESS
    assert_null(__asan_region_is_poisoned(bytes, count));
#else
    (void)bytes, (void)count;
#endif
}

static void assert_undefined(const void *bytes, size_t count)
{
#ifdef SANITIZER_MEMORY
    for (size_t i = 0; i < count; i++)
        assert_int_equal(__msan_test_shadow((const uint8_t *)bytes + i, 1), 0);
#else
    (void)bytes, (void)count;
#endif
}

static void byte_after_an_allocation_of_an_arena_is_hidden(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, NULL, 0, 1 << 20);
    uint8_t *bytes = arena_alloc(&arena, 24);

    assert_shown(bytes, 24);
    assert_hidden(bytes + 24);
    assert_hidden(bytes + 32);
    arena_fini(&arena);
}

static void bytes_that_an_arena_uses_again_are_undefined(void **state)
{
    (void)state;
    _Alignas(16) uint8_t first[64] = {0};
    struct arena arena;
    arena_init(&arena, first, sizeof(first), 1 << 20);

    assert_undefined(arena_alloc(&arena, 40), 40);
    arena_fini(&arena);
}

static void freed_object_of_a_slab_is_hidden(void **state)
{
    (void)state;
    struct slab slab;
    slab_init(&slab, 64);
    uint8_t *other = slab_alloc(&slab);
    uint8_t *object = slab_alloc(&slab);
    slab_free(object);

    assert_hidden(object + 32);
    assert_shown(other, 64);
    slab_free(other);
    slab_fini(&slab);
}

static void object_that_a_slab_uses_again_is_undefined(void **state)
{
    (void)state;
    struct slab slab;
    slab_init(&slab, 64);
    uint8_t *other = slab_alloc(&slab);
    uint8_t *object = slab_alloc(&slab);
    assert_undefined(object, 64);
    memset(object, 1, 64);
    slab_free(object);

    assert_ptr_equal(slab_alloc(&slab), object);
    assert_shown(object, 64);
    assert_undefined(object, 64);
    slab_free(object);
    slab_free(other);
    slab_fini(&slab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(byte_after_an_allocation_of_an_arena_is_hidden),
        cmocka_unit_test(bytes_that_an_arena_uses_again_are_undefined),
        cmocka_unit_test(freed_object_of_a_slab_is_hidden),
        cmocka_unit_test(object_that_a_slab_uses_again_is_undefined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
