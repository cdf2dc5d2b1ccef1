/*
 * Arrays of slices in the order of their bytes.
 */
#ifndef VIGIL_BASE_SLICES_H
#define VIGIL_BASE_SLICES_H

#include "base/slice.h"

#include <stdlib.h>

/* For qsort and bsearch. */
static inline int slice_order(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

/* slices may be NULL if there are none. */
static inline void slices_sort(struct slice *slices, size_t count)
{
    if (count)
        qsort(slices, count, sizeof(*slices), slice_order);
}

/* They must be sorted. */
static inline bool slices_have(const struct slice *sorted, size_t count, struct slice one)
{
    return count && bsearch(&one, sorted, count, sizeof(one), slice_order);
}

#endif
