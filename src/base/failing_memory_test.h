/*
 * For tests: any allocation may fail. The linker redirects the allocations of the test program to
 * these functions (vigil_failing_memory in cmake/layers.cmake). One file of a program includes
 * this.
 */
#ifndef VIGIL_BASE_FAILING_MEMORY_TEST_H
#define VIGIL_BASE_FAILING_MEMORY_TEST_H

#include <stdbool.h>
#include <stddef.h>

/* Each thread has its own. */
static _Thread_local size_t memory_fail_at;     /* 0: never; 1: the next allocation fails */
static _Thread_local bool memory_fail_on;       /* and all that follow */
static _Thread_local size_t memory_allocations; /* so far */
static _Thread_local bool memory_exempt; /* allocations of the test itself neither fail nor count */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *ptr, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *ptr, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
char *__wrap_strdup(const char *text);

static bool memory_fails(void)
{
    if (memory_exempt)
        return false;
    memory_allocations++;
    if (memory_fail_at == 1 && memory_fail_on)
        return true;
    return memory_fail_at && --memory_fail_at == 0;
}

void *__wrap_malloc(size_t size)
{
    return memory_fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return memory_fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *ptr, size_t size)
{
    return memory_fails() ? NULL : __real_realloc(ptr, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return memory_fails() ? NULL : __real_aligned_alloc(alignment, size);
}

char *__wrap_strdup(const char *text)
{
    return memory_fails() ? NULL : __real_strdup(text);
}

/* Runs it with each of its allocations failing in turn: alone, and with all that follow. Returns
 * the number of allocations. */
static inline size_t each_allocation_fails(void (*run)(void *ctx), void *ctx)
{
    size_t total = 0;
    for (int on = 0; on < 2; on++) {
        memory_fail_on = on;
        memory_fail_at = 0;
        memory_allocations = 0;
        run(ctx);
        total = memory_allocations;
        for (size_t n = 1; n <= total; n++) {
            memory_fail_at = n;
            run(ctx);
        }
        memory_fail_at = 0;
    }
    return total;
}

#endif
