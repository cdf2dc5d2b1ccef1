/*
 * A stable merge sort that can be interrupted and continued, for callers that may only work for a
 * short time at once. It sorts pointers; the items themselves do not move.
 *
 * A zeroed struct may be finished. One owner.
 */
#ifndef VIGIL_BASE_CONTAINER_RESUMABLE_SORT_H
#define VIGIL_BASE_CONTAINER_RESUMABLE_SORT_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef int (*resumable_sort_compare_fn)(const void *a, const void *b, void *ctx);

struct resumable_sort {
    const void **items; /* owned: the order so far, finally the sorted order */
    const void **spare; /* owned */
    size_t count;
    size_t width;             /* length of the sorted runs; >= count: everything is sorted */
    size_t left, right, done; /* positions in the two runs being merged; items merged */
};

/* Sorts an array of `count` items of `size` bytes. */
MUST_CHECK
enum status resumable_sort_init(struct resumable_sort *sort, const void *items, size_t count,
                                size_t size);
void resumable_sort_fini(struct resumable_sort *sort);

/* Moves about `moves` items; each merge round moves every item once. True: everything is sorted. */
bool resumable_sort_step(struct resumable_sort *sort, size_t moves,
                         resumable_sort_compare_fn compare, void *ctx);

#endif
