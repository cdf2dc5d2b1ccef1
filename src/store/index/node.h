/*
 * The nodes of the index, and the memory they and the items come from. Inside store/index only.
 *
 *   inner                       sep[1]        sep[2]           sep[i]: greater than every key left
 * of child[0]  |  child[1]  |  child[2] …         it, at most the first key right of it leaf item
 * item …
 *
 * All keys of a leaf, and all separators of an inner node, begin with the same `skip` bytes; beside
 * each stand the 8 bytes that follow, as a number in byte order. A search runs over these
 * numbers and looks at one key, seldom more. A node whose stamp is the state being built is seen by
 * the writer alone and changed in place; any other is copied first.
 */
#ifndef VIGIL_STORE_INDEX_NODE_H
#define VIGIL_STORE_INDEX_NODE_H

#include "base/memory/epoch.h"
#include "base/memory/pool.h"
#include "store/index/item.h"

enum {
    /* Chosen by measurement, and just below what fills a size of the pool (1024, 5120 bytes). */
    INDEX_LEAF_MAX = 63,
    INDEX_INNER_MAX = 127,
};

struct index_node {
    uint64_t stamp; /* the state it was made in */
    uint32_t skip;  /* bytes all its keys or separators share; not necessarily all they share */
    uint16_t count;
    uint8_t capacity; /* of entries; INDEX_INNER_MAX in an inner node */
    uint8_t level;    /* 0: leaf */
};

struct index_leaf_entry {
    uint64_t prefix; /* key_prefix(key, skip) */
    struct index_item *item;
};

struct index_leaf {
    struct index_node head;
    struct index_leaf_entry entries[];
};

/* The shortest bytes that tell two neighbours apart. Belongs to one place in the newest tree. */
struct index_separator {
    uint32_t len;
    uint8_t bytes[];
};

struct index_inner {
    struct index_node head;
    uint64_t prefix[INDEX_INNER_MAX]; /* of the separators; [0] is unused, as is separator[0] */
    struct index_node *child[INDEX_INNER_MAX];
    uint64_t live_keys[INDEX_INNER_MAX];
    uint64_t live_bytes[INDEX_INNER_MAX];
    struct index_separator *separator[INDEX_INNER_MAX];
};

/* Where the writer's objects come from and go to. */
struct index_memory {
    struct pool *pool;
    struct epoch *epoch;
    uint64_t stamp; /* the state being built */
    bool unread;    /* loading: no state was published yet, and nothing waits for the epoch */
    /* Entries at which a node splits; a node with less than a quarter after a removal is joined
     * with a neighbour, or takes from it. Tests make them small, for deep trees of few keys. */
    unsigned leaf_max, inner_max;
};

/* The object may still be seen in a published state, if there is one. */
static inline void memory_retire(struct index_memory *memory, void *object)
{
    if (UNLIKELY(memory->unread)) {
        pool_free_object(memory->pool, object);
        return;
    }
    pool_note_retired(memory->pool, object);
    epoch_retire(memory->epoch, object, pool_free_retired, memory->pool);
}

static inline struct index_leaf *node_leaf(const struct index_node *node)
{
    assert(node->level == 0);
    return CONTAINER_OF(node, struct index_leaf, head);
}

static inline struct index_inner *node_inner(const struct index_node *node)
{
    assert(node->level > 0);
    return CONTAINER_OF(node, struct index_inner, head);
}

static inline struct slice separator_slice(const struct index_separator *separator)
{
    return slice_of(separator->bytes, separator->len);
}

struct index_leaf *leaf_new(struct index_memory *memory, unsigned capacity);
struct index_inner *inner_new(struct index_memory *memory, unsigned level);
/* Frees it, now or, if it was published, by the epoch. */
void node_dispose(struct index_memory *memory, struct index_node *node);

/* The node itself if it may be changed, else a copy; the original is disposed of. */
struct index_leaf *leaf_writable(struct index_memory *memory, struct index_leaf *leaf,
                                 unsigned capacity_min);
struct index_inner *inner_writable(struct index_memory *memory, struct index_inner *inner);

struct index_separator *separator_new(struct index_memory *memory, struct slice left,
                                      struct slice right);

/* Live keys and bytes below the node, counted. */
struct index_sum node_sum(const struct index_node *node);
struct index_sum item_sum(const struct index_item *item);

void leaf_insert(struct index_leaf *leaf, unsigned at, struct index_item *item);
void leaf_remove(struct index_leaf *leaf, unsigned at);
/* Finds skip and prefixes anew, after entries were moved about. */
void leaf_refresh(struct index_leaf *leaf);

/* The child, and the separator to its left (none at 0 of an empty node). */
void inner_insert(struct index_inner *inner, unsigned at, struct index_node *child,
                  struct index_sum sum, struct index_separator *separator);
/* Takes the child out, and returns the separator that is left over: NULL if it was alone. */
struct index_separator *inner_remove(struct index_inner *inner, unsigned at);
void inner_refresh(struct index_inner *inner);

#endif
