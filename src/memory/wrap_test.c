/* The functions of this program that allocate are wrapped as those of a library are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <vigil/client.h>
/* after them */
#include <cmocka.h>

void *__real_malloc(size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void __real_free(void *memory);

static long held;       /* by the hooks */
static int without_any; /* memory */

static void *allocate(size_t bytes)
{
    if (without_any)
        return NULL;
    held++;
    return __real_malloc(bytes);
}

static void *resize(void *memory, size_t bytes)
{
    return without_any ? NULL : __real_realloc(memory, bytes);
}

static void release(void *memory)
{
    held--;
    __real_free(memory);
}

static int use_hooks(void **state)
{
    (void)state;
    held = without_any = 0;
    vigil_set_allocator(allocate, resize, release);
    return 0;
}

static int use_none(void **state)
{
    (void)state;
    vigil_set_allocator(NULL, NULL, NULL);
    return held != 0;
}

/* Keeps the compiler from assuming that memory which could not be resized is gone. */
static void *(*volatile try_realloc)(void *, size_t) = realloc;

/* Keeps the compiler from knowing what is allocated. */
static size_t some(size_t bytes)
{
    static volatile size_t zero;
    return bytes + zero;
}

/* Keeps it from assuming that memory which is only compared with NULL is never needed. */
static void *seen(void *memory)
{
    static void *volatile place;
    place = memory;
    return place;
}

static size_t beyond(const void *memory, size_t alignment)
{
    return (uintptr_t)memory % alignment;
}

static void all_memory_comes_from_the_hooks(void **state)
{
    (void)state;
    void *memory[] = {malloc(some(10)), calloc(some(3), 5), realloc(NULL, some(7)),
                      aligned_alloc(64, some(128)), strdup("text")};
    assert_int_equal(held, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_non_null(memory[i]);
        assert_int_equal(beyond(memory[i], 16), 0);
        free(memory[i]);
    }
    free(NULL);
    assert_int_equal(held, 0);
}

static void every_alignment_is_kept(void **state)
{
    (void)state;
    for (size_t alignment = 16; alignment <= 4096; alignment *= 2) {
        uint8_t *memory = aligned_alloc(alignment, some(2 * alignment));
        assert_int_equal(beyond(memory, alignment), 0);
        memset(memory, 1, 2 * alignment);
        free(memory);
    }
}

static void content_is_that_of_the_c_library(void **state)
{
    (void)state;
    uint8_t *zeros = calloc(some(100), 1), *grown = malloc(some(4));
    char *copy = strdup("text");
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(zeros[i], 0);
    memset(grown, 7, 4);
    grown = try_realloc(grown, some(100000));
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(grown[i], 7);
    assert_string_equal(copy, "text");
    free(zeros);
    free(grown);
    free(copy);
}

static void missing_memory_is_reported(void **state)
{
    (void)state;
    char *kept = strdup("kept");
    without_any = 1;
    assert_null(seen(malloc(some(1))));
    assert_null(seen(calloc(some(1), 1)));
    assert_null(seen(realloc(NULL, some(1))));
    assert_null(try_realloc(kept, some(100)));
    assert_null(seen(aligned_alloc(64, some(64))));
    assert_null(seen(strdup("text")));
    assert_string_equal(kept, "kept");
    free(kept);
}

static void sizes_that_overflow_are_refused(void **state)
{
    (void)state;
    char *kept = strdup("kept");
    assert_null(seen(malloc(some(SIZE_MAX))));
    assert_null(seen(malloc(some(SIZE_MAX - 15))));
    assert_null(seen(calloc(some(SIZE_MAX / 2), 3)));
    assert_null(try_realloc(kept, some(SIZE_MAX - 15)));
    assert_null(seen(aligned_alloc(4096, some(SIZE_MAX - 4095))));
    assert_int_equal(held, 1);
    free(kept);
}

static void without_hooks_the_c_library_is_used(void **state)
{
    (void)state;
    uint8_t *memory = calloc(some(3), 4), *aligned = aligned_alloc(64, some(64));
    char *copy = strdup("text");
    memory = try_realloc(memory, some(100));
    assert_non_null(memory);
    assert_int_equal(beyond(aligned, 64), 0);
    assert_string_equal(copy, "text");
    free(memory);
    free(aligned);
    free(copy);
    free(seen(malloc(some(1))));
    assert_int_equal(held, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_memory_comes_from_the_hooks, use_hooks, use_none),
        cmocka_unit_test_setup_teardown(every_alignment_is_kept, use_hooks, use_none),
        cmocka_unit_test_setup_teardown(content_is_that_of_the_c_library, use_hooks, use_none),
        cmocka_unit_test_setup_teardown(missing_memory_is_reported, use_hooks, use_none),
        cmocka_unit_test_setup_teardown(sizes_that_overflow_are_refused, use_hooks, use_none),
        cmocka_unit_test(without_hooks_the_c_library_is_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
