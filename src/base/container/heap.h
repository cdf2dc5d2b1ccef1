/*
 * A priority queue: links with a number each, of which the smallest is found at once. For
 * deadlines: timers, leases. A 4-ary heap whose numbers are in one array; each link knows its index
 * in it, so that any link can be moved or removed. Links with equal numbers come out in no
 * particular order. One owner, one thread. A zeroed struct is an empty heap.
 */
#ifndef VIGIL_BASE_CONTAINER_HEAP_H
#define VIGIL_BASE_CONTAINER_HEAP_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Embedded in the ordered objects. Zeroed: in no heap. */
struct heap_link {
    size_t place; /* index + 1; 0: in no heap */
};

struct heap_entry {
    int64_t number;
    struct heap_link *link;
};

struct heap {
    struct heap_entry *entries;
    size_t count;
    size_t capacity;
};

/* Does not change the links that are in it. */
void heap_fini(struct heap *heap);

static inline bool heap_has(const struct heap_link *link)
{
    return link->place != 0;
}

/* Adds the link, or moves it if it is in the heap. Fails with ST_NOMEM, and only when adding. */
MUST_CHECK
enum status heap_put(struct heap *heap, struct heap_link *link, int64_t number);
/* No effect when it is not in the heap. Frees memory when few entries are left. */
void heap_remove(struct heap *heap, struct heap_link *link);

/* The link with the smallest number; NULL when empty. */
static inline struct heap_link *heap_first(const struct heap *heap)
{
    return heap->count ? heap->entries[0].link : NULL;
}

/* The smallest number; `otherwise` when empty. */
static inline int64_t heap_first_number(const struct heap *heap, int64_t otherwise)
{
    return heap->count ? heap->entries[0].number : otherwise;
}

/* Removes the first if its number is at most `until`; NULL otherwise. */
struct heap_link *heap_pop(struct heap *heap, int64_t until);

/* For tests: order and places. */
void heap_check(const struct heap *heap);

#endif
