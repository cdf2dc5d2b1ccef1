/*
 * A library is linked with --wrap for malloc and the like, so that all of its code calls these
 * functions. Memory from a replaced function has a head in front of it, which remembers where it
 * begins, because those functions know nothing of alignment.
 */
#include "memory/hooks.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD_BYTES = 16 };

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void __real_free(void *memory);

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
char *__wrap_strdup(const char *text);
void __wrap_free(void *memory);

/* The word before the memory is where the hook's memory begins. */
static void **head_of(void *memory)
{
    return (void **)memory - 1;
}

static void *allocate_aligned(const struct memory_hooks *hooks, size_t alignment, size_t bytes)
{
    size_t more = HEAD_BYTES + (alignment > HEAD_BYTES ? alignment : 0);
    if (bytes > SIZE_MAX - more)
        return NULL;
    uint8_t *begin = hooks->allocate(bytes + more);
    if (!begin)
        return NULL;
    uintptr_t at = (uintptr_t)begin + HEAD_BYTES;
    if (alignment > HEAD_BYTES)
        at = (at + alignment - 1) & ~(uintptr_t)(alignment - 1);
    void *memory = begin + (at - (uintptr_t)begin);
    *head_of(memory) = begin;
    return memory;
}

void *__wrap_malloc(size_t bytes)
{
    const struct memory_hooks *hooks = vigil_private_hooks();
    return hooks->allocate ? allocate_aligned(hooks, HEAD_BYTES, bytes) : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    const struct memory_hooks *hooks = vigil_private_hooks();
    size_t total;
    if (!hooks->allocate)
        return __real_calloc(count, bytes);
    if (__builtin_mul_overflow(count, bytes, &total))
        return NULL;
    void *memory = allocate_aligned(hooks, HEAD_BYTES, total);
    if (memory)
        memset(memory, 0, total);
    return memory;
}

/* Only memory of the usual alignment is resized. */
void *__wrap_realloc(void *memory, size_t bytes)
{
    const struct memory_hooks *hooks = vigil_private_hooks();
    if (!hooks->allocate)
        return __real_realloc(memory, bytes);
    if (!memory)
        return allocate_aligned(hooks, HEAD_BYTES, bytes);
    if (bytes > SIZE_MAX - HEAD_BYTES)
        return NULL;
    uint8_t *begin = hooks->resize(*head_of(memory), bytes + HEAD_BYTES);
    if (!begin)
        return NULL;
    memory = begin + HEAD_BYTES;
    *head_of(memory) = begin;
    return memory;
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    const struct memory_hooks *hooks = vigil_private_hooks();
    return hooks->allocate ? allocate_aligned(hooks, alignment, bytes)
                           : __real_aligned_alloc(alignment, bytes);
}

char *__wrap_strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = __wrap_malloc(bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

void __wrap_free(void *memory)
{
    const struct memory_hooks *hooks = vigil_private_hooks();
    if (!hooks->release)
        __real_free(memory);
    else if (memory)
        hooks->release(*head_of(memory));
}
