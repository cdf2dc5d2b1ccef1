/*
 * For tests: any allocation may fail. The linker redirects the allocations of the test program to
 * these functions (src/client/layer.cmake). One file of a program includes this.
 */
#ifndef VIGIL_CLIENT_FAILING_MEMORY_TEST_H
#define VIGIL_CLIENT_FAILING_MEMORY_TEST_H

#include <stdbool.h>
#include <stddef.h>

/* Of each thread: */
static _Thread_local size_t memory_fail_at;     /* 0: never; 1: the next allocation fails */
static _Thread_local bool memory_fail_on;       /* and all that follow */
static _Thread_local size_t memory_allocations; /* so far */

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

#endif
