/*
 * The key index: every key that is visible at any readable revision, in byte order, with the
 * location of each of its versions. A copy-on-write B+tree that knows the number of live keys and
 * their bytes for each subtree.
 *
 * One thread writes; each published state is a root with a number. Readers pin a number and walk
 * that root without a lock. Objects that a newer state has replaced are freed when no reader pins
 * an older one (base/memory/epoch.h). Items are immutable once published.
 *
 *   inner   child | live keys | live bytes | separator …      up to INDEX_INNER_MAX
 *   leaf    first bytes | item …                              up to INDEX_LEAF_MAX
 *   item    newest version, key, older versions (8 bytes each, oldest first)
 *
 * It mirrors etcd's treeIndex and keyIndex: a deleted key stays as a tombstone until it is
 * compacted away. Budget: 90 bytes plus the key, and 8 bytes for each older version.
 */
#ifndef VIGIL_STORE_INDEX_INDEX_H
#define VIGIL_STORE_INDEX_INDEX_H

#include "base/memory/epoch.h"
#include "store/index/item.h"
#include "store/index/path.h"

struct index;
struct index_node;

/* A readable state. It is valid while the epoch in which it was loaded is pinned. */
struct index_root {
    const struct index_node *node; /* NULL when empty */
    uint64_t number;               /* the number to pin */
    uint64_t live_keys;
    uint64_t live_bytes; /* sum of field_bytes of the live keys */
};

struct index *index_new(struct epoch *epoch); /* aborts when memory is exhausted */
void index_free(struct index *index);
DEFINE_CLEANUP(struct index *, index_free)

/* -- The writer's side -- */

/* NULL when the key has no item. Sees all changes, published or not. */
const struct index_item *index_find(const struct index *index, struct slice key);

/*
 * Adds the key's next version, which is newer than all others (create_revision 0: a tombstone). An
 * item that was found before does not change and stays readable until the epoch has passed.
 */
void index_put(struct index *index, struct slice key, const struct index_version *version);

/*
 * The same in two steps, for a version that depends on the one before, so that the tree is searched
 * once: index_put_begin is index_find, and index_put_end must be the next change, or left out.
 */
const struct index_item *index_put_begin(struct index *index, struct slice key,
                                         struct index_path *ret_path);
void index_put_end(struct index *index, struct slice key, const struct index_version *version,
                   struct index_path *path);

/*
 * Drops the key's `drop` oldest versions, which are among its older ones. With `whole`, removes the
 * item (a compacted tombstone).
 */
void index_trim(struct index *index, struct slice key, uint32_t drop, bool whole);

/*
 * A version was moved: replaces its location in the key's item. False if the item does not have it.
 */
bool index_relocate(struct index *index, struct slice key, uint64_t from, uint64_t to);

/*
 * The state with all changes so far, for the writer itself. It is not pinned and valid until the
 * next change.
 */
struct index_root index_working_root(const struct index *index);

/*
 * Closes the state and returns its root, whose number is epoch_next(). Then the caller makes the
 * root reachable for readers and calls epoch_publish, in that order. If readers must wait for a
 * sync, it calls epoch_seal now and epoch_publish_number later. Either call must precede the next
 * change.
 */
struct index_root index_publish(struct index *index);

/*
 * Between these two calls there are no readers: what index_put replaces is freed at once instead of
 * being retired, and nothing is published.
 */
void index_load_begin(struct index *index); /* the index must be empty */
void index_load_end(struct index *index);
/*
 * index_put between them. `last` is zero at first and then belongs to the calls: the way to a leaf
 * is not searched again for the keys that follow in it.
 */
void index_load_put(struct index *index, struct slice key, const struct index_version *version,
                    struct index_path *last);

/* -- Reading a root -- */

const struct index_item *index_root_find(const struct index_root *root, struct slice key);

/* Starts fetching what a search or a put reads for these keys, side by side. */
enum { INDEX_PREFETCH_MAX = 8 };
void index_root_prefetch(const struct index_root *root, const struct slice *keys, size_t count);

/* Live keys of [from, to), from the sums of subtrees. There is no upper end if `to` is empty. */
struct index_sum index_root_sum(const struct index_root *root, struct slice from, struct slice to,
                                bool to_end);

/*
 * Walks the items from a key on in key order, tombstones included. The cursor stays in one leaf at
 * a time, so that each key of a long list costs one pointer step, and prefetches what follows.
 */
struct index_cursor {
    const struct index_node *path[INDEX_DEPTH_MAX];
    uint16_t at[INDEX_DEPTH_MAX];
    int depth;                      /* depth of the leaf; -1 at the end */
    const struct index_node *after; /* the next leaf, which is prefetched; or NULL */
};
void index_cursor_init(struct index_cursor *cursor, const struct index_root *root,
                       struct slice from);
/* The next item, or NULL at the end of the index. The caller checks its own upper bound. */
const struct index_item *index_cursor_next(struct index_cursor *cursor);
/*
 * The item that index_cursor_next will return after `ahead` other calls, if it is in this leaf or
 * the next, otherwise NULL. Up to INDEX_PEEK_MAX ahead the item is already being fetched, so that
 * the caller can prefetch what newest.loc refers to.
 */
enum { INDEX_PEEK_MAX = 8 };
const struct index_item *index_cursor_peek(const struct index_cursor *cursor, unsigned ahead);

/* For tests: memory of the index in bytes, retired objects included. */
size_t index_bytes_held(const struct index *index);
/* Bytes of objects that were replaced and wait for readers of older states. */
size_t index_bytes_retired(const struct index *index);

/* For tests: asserts order, sums, fill and the memory of every object. */
void index_check(const struct index *index);
/* For tests: smaller nodes, so that few keys make a deep tree. The index must be empty. */
void index_limit_nodes(struct index *index, unsigned leaf_max, unsigned inner_max);

#endif
