/*
 * Segments in order of their first index. Guarded by the log's lock. Whether the segments are owned
 * is stated where the order is declared.
 */
#ifndef VIGIL_STORE_LOG_ORDER_H
#define VIGIL_STORE_LOG_ORDER_H

#include "store/log/segment.h"

struct segment_order {
    struct segment **items; /* the array is owned */
    size_t count, capacity;
};

/* Frees the array only. */
void segment_order_fini(struct segment_order *order);

/* Makes room for one more, so that the next add cannot fail. */
MUST_CHECK
enum status segment_order_reserve(struct segment_order *order);
/* Needs reserved room. Equal first indexes keep the order in which they were added. */
void segment_order_add(struct segment_order *order, struct segment *segment);

/* Position of the segment with that id, or count. */
size_t segment_order_find(const struct segment_order *order, uint64_t id);
struct segment *segment_order_remove(struct segment_order *order, size_t at);

/* Position of the last segment with first_index <= index, or count. */
size_t segment_order_at_index(const struct segment_order *order, uint64_t index);

#endif
