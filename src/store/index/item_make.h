/*
 * Making items: each change of a key makes a new item from the one before it. The writer's; inside
 * store/index only.
 *
 *   item with few versions    newest | key | older older …
 *   item with many            newest | key | first, array ──► stamp … | older older … room
 *
 * Older locations beyond INDEX_OLDER_INLINE lie in an array that successive items share: a newer
 * item appends behind what the earlier ones count, and one that was trimmed begins further on.
 * Only when it is full or mostly trimmed is the array copied, so n changes cost O(n).
 */
#ifndef VIGIL_STORE_INDEX_ITEM_MAKE_H
#define VIGIL_STORE_INDEX_ITEM_MAKE_H

#include "store/index/node.h"

/* With older_count older locations, copied. */
struct index_item *item_new(struct index_memory *memory, struct slice key,
                            const struct index_version *newest, const uint64_t *older,
                            uint32_t older_count);

/*
 * The successor of an item. The old one is left alone; the caller puts the new one in its place
 * and retires it. An array that no newer item uses is retired here.
 */
struct index_item *item_with_version(struct index_memory *memory, const struct index_item *old,
                                     const struct index_version *version);
struct index_item *item_trimmed(struct index_memory *memory, const struct index_item *old,
                                uint32_t drop);
/* NULL when the location is not there. May return the item itself, changed in its own array. */
struct index_item *item_relocated(struct index_memory *memory, struct index_item *old,
                                  uint64_t from, uint64_t to);

/* For an item that has no successor: its array goes too. */
void item_retire_whole(struct index_memory *memory, struct index_item *item);
/* The same at once, when nobody reads any more. */
void item_free_whole(struct index_memory *memory, struct index_item *item);

/* Objects of the pool that belong to the item. */
size_t item_objects(const struct index_item *item);
void item_check(const struct index_item *item);

#endif
