/*
 * A merge sort that can be left in the middle and gone on with, for who must not take long at a
 * time. Sorts pointers; what they point to stays where it is. Stable.
 *
 * A zeroed struct may be finished. One owner.
 */
#ifndef VIGIL_BASE_CONTAINER_RESUMABLE_SORT_H
#define VIGIL_BASE_CONTAINER_RESUMABLE_SORT_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef int (*step_sort_compare_fn)(const void *a, const void *b, void *ctx);

struct step_sort {
    const void **items; /* owned: the order so far, and at the end */
    const void **spare; /* owned */
    size_t count;
    size_t width;             /* runs of so many are in order; count and more: all is */
    size_t left, right, done; /* of the two runs being merged, and how many of the items are */
};

/* Sorts `count` items of `size` bytes that stand in a row. */
MUST_CHECK
enum status step_sort_init(struct step_sort *sort, const void *items, size_t count, size_t size);
void step_sort_fini(struct step_sort *sort);

/* Moves about so many items; each round over all moves every one. True: it is done. */
bool step_sort_step(struct step_sort *sort, size_t moves, step_sort_compare_fn compare, void *ctx);

#endif
