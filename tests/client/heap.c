#include "heap.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <vigil/client.h>

static _Atomic long held, most_held;

static void count_heap(long bytes)
{
    long now = atomic_fetch_add(&held, bytes) + bytes, most = atomic_load(&most_held);
    while (now > most && !atomic_compare_exchange_weak(&most_held, &most, now))
        continue;
}

static void *counted_malloc(size_t bytes)
{
    void *memory = malloc(bytes);
    if (memory)
        count_heap((long)malloc_usable_size(memory));
    return memory;
}

static void *counted_realloc(void *memory, size_t bytes)
{
    long before = memory ? (long)malloc_usable_size(memory) : 0;
    void *resized = realloc(memory, bytes);
    if (resized)
        count_heap((long)malloc_usable_size(resized) - before);
    return resized;
}

static void counted_free(void *memory)
{
    count_heap(-(long)malloc_usable_size(memory));
    free(memory);
}

void heap_count(void)
{
    vigil_set_allocator(counted_malloc, counted_realloc, counted_free);
}

long heap_bytes(void)
{
    return atomic_load(&held);
}

long heap_bytes_max(void)
{
    return atomic_load(&most_held);
}

void heap_mark(void)
{
    atomic_store(&most_held, atomic_load(&held));
}
