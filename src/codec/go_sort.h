/*
 * Sorts as Go's sort.Slice does. That sort is not stable, but always takes the same decisions, so
 * that the order of equal items is a part of what Kubernetes answers: it is a pattern-defeating
 * quicksort (https://arxiv.org/abs/2106.05123) with insertion sort for up to 12 items.
 */
#ifndef VIGIL_CODEC_GO_SORT_H
#define VIGIL_CODEC_GO_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether a is before b. It may be wrong about items without an order, such as NaN. */
typedef bool go_sort_less_fn(void *context, uint32_t a, uint32_t b);

/* Calls less() O(n log n) times; the stack is O(log n). */
void go_sort(uint32_t *items, size_t count, go_sort_less_fn *less, void *context);

#endif
