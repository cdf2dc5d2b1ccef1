/* Allocation for the layers that only a server has: without memory the process logs it and stops.
 * Layers that the client library uses return ST_NOMEM instead. */
#ifndef VIGIL_BASE_XALLOC_H
#define VIGIL_BASE_XALLOC_H

#include "base/macros.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void *xalloc_check(void *memory, size_t bytes)
{
    if (UNLIKELY(!memory && bytes)) {
        fprintf(stderr, "vigil: out of memory: %zu bytes were refused\n", bytes);
        abort();
    }
    return memory;
}

static inline void *xmalloc(size_t bytes)
{
    return xalloc_check(malloc(bytes), bytes);
}

static inline void *xcalloc(size_t count, size_t bytes_each)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, bytes_each, &bytes))
        bytes = SIZE_MAX;
    return xalloc_check(calloc(count, bytes_each), bytes);
}

/* Zeroed. For objects whose type needs more than the usual alignment. */
static inline void *xcalloc_aligned(size_t alignment, size_t bytes)
{
    size_t whole = (bytes + alignment - 1) / alignment * alignment;
    return memset(xalloc_check(aligned_alloc(alignment, whole), whole), 0, whole);
}

static inline void *xrealloc(void *memory, size_t bytes)
{
    return xalloc_check(realloc(memory, bytes), bytes);
}

#endif
