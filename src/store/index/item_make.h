/*
 * Making items: each change of a key makes a new item from the one before it. Used by the writer,
 * within store/index only.
 *
 *   item with few versions    newest | key | older older …
 *   item with many            newest | key | first, array ──► stamp … | older older … unused
 *
 * More than INDEX_OLDER_INLINE older locations are in an array that successive items share: a newer
 * item appends after the count of the earlier ones, and a trimmed item begins further on. The array
 * is copied only when it is full or mostly trimmed, so n changes cost O(n).
 */
#ifndef VIGIL_STORE_INDEX_ITEM_MAKE_H
#define VIGIL_STORE_INDEX_ITEM_MAKE_H

#include "store/index/node.h"

/* Copies the older_count older locations. */
struct index_item *item_new(struct index_memory *memory, struct slice key,
                            const struct index_version *newest, const uint64_t *older,
                            uint32_t older_count);

/*
 * These make the successor of an item and leave the old one unchanged; the caller replaces and
 * retires it. An array that no newer item uses is retired here.
 */
struct index_item *item_with_version(struct index_memory *memory, const struct index_item *old,
                                     const struct index_version *version);
struct index_item *item_trimmed(struct index_memory *memory, const struct index_item *old,
                                uint32_t drop);
/*
 * NULL if the item does not have the location. May return the item itself, changed in its own
 * array.
 */
struct index_item *item_relocated(struct index_memory *memory, struct index_item *old,
                                  uint64_t from, uint64_t to);

/* For an item without successor: also retires its array. */
void item_retire_whole(struct index_memory *memory, struct index_item *item);
/* The same immediately, when there are no readers left. */
void item_free_whole(struct index_memory *memory, struct index_item *item);

/* The number of pool objects that belong to the item. */
size_t item_objects(const struct index_item *item);
void item_check(const struct index_item *item);

#endif
