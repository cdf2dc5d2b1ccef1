/*
 * The key index: every key that any readable revision can show, in byte order, with the place of
 * each of its versions. A copy-on-write B+tree with live counts and bytes per subtree.
 *
 * One thread writes; each published state is a root with a number. Readers pin a number and walk
 * that root without a lock; what a newer state has replaced is freed once nobody pins an older
 * one (base/memory/epoch.h). Items are immutable once published.
 *
 *   inner   child | live keys | live bytes | separator …      up to INDEX_INNER_MAX
 *   leaf    first bytes | item …                              up to INDEX_LEAF_MAX
 *   item    newest version, key, older versions (8 bytes each, oldest first)
 *
 * It mirrors etcd's treeIndex and keyIndex: a deleted key stays, as a tombstone, until it is
 * compacted away. Budget: 90 bytes and the key, 8 for each further version.
 */
#ifndef VIGIL_STORE_INDEX_INDEX_H
#define VIGIL_STORE_INDEX_INDEX_H

#include "base/memory/epoch.h"
#include "store/index/item.h"

struct index;
struct index_node;

/* A readable state. Valid while the epoch in which it was read is pinned. */
struct index_root {
    const struct index_node *node; /* NULL when empty */
    uint64_t number;               /* of the state: what to pin */
    uint64_t live_keys;
    uint64_t live_bytes; /* sum of field_bytes of the live keys */
};

struct index *index_new(struct epoch *epoch); /* memory: aborts when there is none */
void index_free(struct index *index);
DEFINE_CLEANUP(struct index *, index_free)

/* -- The writer's side -- */

/* NULL when the key has no item. Sees all changes, published or not. */
const struct index_item *index_find(const struct index *index, struct slice key);

/*
 * Adds the key's next version, newer than all before (create_revision 0 makes it a tombstone).
 * An item found before stays as it was, and readable until the epoch passes.
 */
void index_put(struct index *index, struct slice key, const struct index_version *version);

/*
 * Drops the oldest versions of the key: the first `drop` of its older ones. With `whole` the item
 * goes altogether (a compacted tombstone).
 */
void index_trim(struct index *index, struct slice key, uint32_t drop, bool whole);

/* A version moved: replaces location from by to, wherever the key's item has it. False if nowhere.
 */
bool index_relocate(struct index *index, struct slice key, uint64_t from, uint64_t to);

/* The state with all changes so far, for the writer's own reading; not pinned, dies at the next
 * change. */
struct index_root index_working_root(const struct index *index);

/*
 * Closes the state: all changes so far are in the returned root, whose number is epoch_next().
 * Then the caller makes the root reachable for readers and calls epoch_publish, in that order; if
 * readers must wait (for a sync), it calls epoch_seal at once and epoch_publish_number later.
 * Either must come before the next change.
 */
struct index_root index_publish(struct index *index);

/*
 * Between the two nobody reads yet: what index_put replaces is freed at once, not retired, and
 * nothing is published.
 */
void index_load_begin(struct index *index); /* empty so far */
void index_load_end(struct index *index);

/* -- Reading a root -- */

const struct index_item *index_root_find(const struct index_root *root, struct slice key);

/* Live keys of [from, to), from the sums of subtrees. There is no upper end if `to` is empty. */
struct index_sum index_root_sum(const struct index_root *root, struct slice from, struct slice to,
                                bool to_end);

/*
 * Walks the items of [from, to) in key order, tombstones included. Stands in one leaf at a time,
 * so that a long list is a pointer step per key; prefetches ahead.
 */
struct index_cursor {
    const struct index_node *path[INDEX_DEPTH_MAX];
    uint16_t at[INDEX_DEPTH_MAX];
    int depth;                      /* of the leaf; -1: at the end */
    const struct index_node *after; /* the next leaf, or NULL: looked into ahead of time */
};
void index_cursor_init(struct index_cursor *cursor, const struct index_root *root,
                       struct slice from);
/* The next item, or NULL at the end of the index. The caller checks its own upper bound. */
const struct index_item *index_cursor_next(struct index_cursor *cursor);
/*
 * The item that the call of index_cursor_next after `ahead` others will return, if it is near
 * (this leaf or the next), else NULL. Up to INDEX_PEEK_MAX ahead its memory is already on its way:
 * for prefetching what newest.loc names.
 */
enum { INDEX_PEEK_MAX = 8 };
const struct index_item *index_cursor_peek(const struct index_cursor *cursor, unsigned ahead);

/* Bytes of memory the index holds, retired objects included. */
size_t index_bytes_held(const struct index *index);
/* Bytes of what was replaced and waits for readers of older states. */
size_t index_bytes_retired(const struct index *index);

/* For tests: order, sums, fill, the memory of every object. */
void index_check(const struct index *index);
/* For tests: smaller nodes, so that few keys make a deep tree. The index is empty. */
void index_limit_nodes(struct index *index, unsigned leaf_max, unsigned inner_max);

#endif
