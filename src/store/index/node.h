/*
 * The nodes of the index, and the memory of nodes and items. Used within store/index only.
 *
 *   inner   child[0] │ sep[1] child[1] │ sep[2] child[2] │ …
 *              │             │
 *              ▼             ▼
 *   leaf    item item …   item item …      keys of child[i - 1] < sep[i] <= keys of child[i]
 *
 * All keys of a leaf, and all separators of an inner node, begin with the same `skip` bytes. The 8
 * bytes that follow are stored next to each as a number in byte order. A search compares these
 * numbers and usually only one key. A node whose stamp is the state being built is visible to the
 * writer alone and is changed in place; any other node is copied first.
 */
#ifndef VIGIL_STORE_INDEX_NODE_H
#define VIGIL_STORE_INDEX_NODE_H

#include "base/memory/epoch.h"
#include "base/memory/pool.h"
#include "store/index/item.h"

enum {
    /* Chosen by measurement, and just below a size class of the pool (1024 and 1280 bytes). With
     * many keys, each put copies a leaf and an inner node of its own. */
    INDEX_LEAF_MAX = 63,
    INDEX_INNER_MAX = 31,
};

struct index_node {
    uint64_t stamp; /* the state it was made in */
    uint32_t skip;  /* bytes that its keys or separators have in common; maybe not the most */
    uint16_t count;
    uint8_t capacity; /* in entries; INDEX_INNER_MAX in an inner node */
    uint8_t level;    /* 0 is a leaf */
};

struct index_leaf_entry {
    uint64_t prefix; /* key_prefix(key, skip) */
    struct index_item *item;
};

struct index_leaf {
    struct index_node head;
    struct index_leaf_entry entries[];
};

/* The shortest bytes that separate two neighbours. Each belongs to one node of the newest tree. */
struct index_separator {
    uint32_t len;
    uint8_t bytes[];
};

/* So many of the skipped bytes are in the node, so that most searches read no separator. */
enum { INDEX_SHARED_BYTES = 16 };

struct index_inner {
    struct index_node head;
    uint8_t shared[INDEX_SHARED_BYTES]; /* the first `skip` bytes of the separators, if they fit */
    uint64_t prefix[INDEX_INNER_MAX];   /* first bytes of the separators; prefix[0] and separator[0]
                                           are unused */
    struct index_node *child[INDEX_INNER_MAX];
    uint64_t live_keys[INDEX_INNER_MAX];
    uint64_t live_bytes[INDEX_INNER_MAX];
    struct index_separator *separator[INDEX_INNER_MAX];
};

/* Allocates and frees the writer's objects. */
struct index_memory {
    struct pool *pool;
    struct epoch *epoch;
    uint64_t stamp; /* the state being built */
    bool unread; /* loading: no state was published yet, so nothing needs to wait for the epoch */
    /*
     * A node with this many entries splits. After a removal, a node with less than a quarter is
     * joined with a neighbour or takes entries from it. Tests use small limits, for deep trees of
     * few keys.
     */
    unsigned leaf_max, inner_max;
};

/* Frees an object that may be visible in a published state, when the epoch has passed. */
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
/* Frees it now, or by the epoch if it was published. */
void node_dispose(struct index_memory *memory, struct index_node *node);

/*
 * Returns the node itself if it may be changed, otherwise a copy; then the original is disposed of.
 */
struct index_leaf *leaf_writable(struct index_memory *memory, struct index_leaf *leaf,
                                 unsigned capacity_min);
struct index_inner *inner_writable(struct index_memory *memory, struct index_inner *inner);

struct index_separator *separator_new(struct index_memory *memory, struct slice left,
                                      struct slice right);

/* Live keys and bytes of the node, summed over its entries. */
struct index_sum node_sum(const struct index_node *node);
struct index_sum item_sum(const struct index_item *item);

void leaf_insert(struct index_leaf *leaf, unsigned at, struct index_item *item);
void leaf_remove(struct index_leaf *leaf, unsigned at);
/* Computes skip and prefixes again after entries were moved. */
void leaf_refresh(struct index_leaf *leaf);

/* Inserts the child and the separator to its left (NULL at 0 of an empty node). */
void inner_insert(struct index_inner *inner, unsigned at, struct index_node *child,
                  struct index_sum sum, struct index_separator *separator);
/*
 * Removes the child and returns the separator that is no longer needed; NULL if it was the only
 * child.
 */
struct index_separator *inner_remove(struct index_inner *inner, unsigned at);
void inner_refresh(struct index_inner *inner);

#endif
