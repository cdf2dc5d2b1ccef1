/*
 * For tests in which any allocation may fail: the linker redirects our allocations to these
 * functions (layer.cmake). Included by one file of a program.
 */
#ifndef VIGIL_WIRE_ALLOCATIONS_TEST_H
#define VIGIL_WIRE_ALLOCATIONS_TEST_H

#include <stdbool.h>
#include <stddef.h>

static size_t fail_at; /* 0: never; 1: the next one, and with fail_on all that follow */
static bool fail_on;
static size_t allocations;
static bool allocations_exempt; /* those of the test itself, which neither fail nor count */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *ptr, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *ptr, size_t size);

static inline bool allocation_fails(void)
{
    if (allocations_exempt)
        return false;
    allocations++;
    if (fail_at == 0)
        return false;
    if (fail_at == 1) {
        if (!fail_on)
            fail_at = 0;
        return true;
    }
    fail_at--;
    return false;
}

void *__wrap_malloc(size_t size)
{
    return allocation_fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return allocation_fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *ptr, size_t size)
{
    return allocation_fails() ? NULL : __real_realloc(ptr, size);
}

/* Runs it with each of its allocations failing in turn: alone, and with all that follow. */
static inline size_t each_allocation_fails(void (*run)(void *ctx), void *ctx)
{
    size_t total = 0;
    for (int on = 0; on < 2; on++) {
        fail_on = on;
        fail_at = 0;
        allocations = 0;
        run(ctx);
        total = allocations;
        for (size_t n = 1; n <= total; n++) {
            fail_at = n;
            run(ctx);
        }
        fail_at = 0;
    }
    return total;
}

#endif
