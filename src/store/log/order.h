/*
 * Segments in order of first index. Guarded by the log's lock. Owns nothing by itself: who holds
 * it says.
 */
#ifndef VIGIL_STORE_LOG_ORDER_H
#define VIGIL_STORE_LOG_ORDER_H

#include "store/log/segment.h"

struct segment_order {
    struct segment **items; /* ours; the segments are our holder's */
    size_t count, capacity;
};

/* Frees the array only. */
void segment_order_fini(struct segment_order *order);

/* Room for one more, so that the next add can not fail. */
MUST_CHECK
enum status segment_order_reserve(struct segment_order *order);
/* Needs the room. Equal first indexes keep the order of adding. */
void segment_order_add(struct segment_order *order, struct segment *segment);

/* Position of the segment with that id; count when there is none. */
size_t segment_order_find(const struct segment_order *order, uint64_t id);
struct segment *segment_order_remove(struct segment_order *order, size_t at);

/* Position of the last segment with first_index <= index; count when there is none. */
size_t segment_order_at_index(const struct segment_order *order, uint64_t index);

#endif
