#include "store/index/index.h"

#include "base/xalloc.h"
#include "store/index/item_make.h"
#include "store/index/search.h"
#include "store/index/tree.h"

struct index *index_new(struct epoch *epoch)
{
    struct index *index = xcalloc(1, sizeof(*index));
    index->memory = (struct index_memory){.pool = pool_new(),
                                          .epoch = epoch,
                                          .leaf_max = INDEX_LEAF_MAX,
                                          .inner_max = INDEX_INNER_MAX};
    return index;
}

void index_limit_nodes(struct index *index, unsigned leaf_max, unsigned inner_max)
{
    assert(!index->root);
    assert(leaf_max >= 2 && leaf_max <= INDEX_LEAF_MAX);
    assert(inner_max >= 3 && inner_max <= INDEX_INNER_MAX);
    index->memory.leaf_max = leaf_max;
    index->memory.inner_max = inner_max;
}

/* Frees the newest tree. Retired objects belong to the epoch. */
static void node_free_all(struct index_memory *memory, struct index_node *node)
{
    for (unsigned i = 0; i < node->count; i++) {
        if (node->level == 0) {
            item_free_whole(memory, node_leaf(node)->entries[i].item);
        } else {
            node_free_all(memory, node_inner(node)->child[i]);
            pool_free_object(memory->pool, node_inner(node)->separator[i]);
        }
    }
    pool_free_object(memory->pool, node);
}

void index_free(struct index *index)
{
    if (!index)
        return;
    if (index->root)
        node_free_all(&index->memory, index->root);
    pool_free(index->memory.pool);
    free(index);
}

/*
 * Called before each change. A change to a closed state would be visible to readers, and the
 * objects it replaces would be freed while they are read.
 */
static void index_begin_change(struct index *index)
{
    index->memory.stamp = epoch_next(index->memory.epoch);
    assert(index->memory.stamp > index->closed_number);
}

static struct index_sum sum_change(const struct index_item *before, const struct index_item *after)
{
    struct index_sum a = item_sum(before), b = item_sum(after);
    return (struct index_sum){.live_keys = b.live_keys - a.live_keys,
                              .live_bytes = b.live_bytes - a.live_bytes};
}

static void index_put_first(struct index *index, struct index_item *item)
{
    struct index_leaf *leaf = leaf_new(&index->memory, 1);
    leaf_insert(leaf, 0, item);
    index->root = &leaf->head;
    index->live = item_sum(item);
}

static void index_insert(struct index *index, struct index_path *path, unsigned at,
                         struct index_item *item)
{
    struct index_leaf *leaf = path_leaf(path);
    path_add(index, path, item_sum(item));
    if (leaf->head.count == index->memory.leaf_max) {
        tree_split_leaf(index, path, at, item);
        return;
    }
    /* A leaf that readers may see is replaced by a copy with room for the item. */
    struct index_leaf *writable = leaf_writable(&index->memory, leaf, leaf->head.count + 1u);
    if (writable != leaf)
        path_replace(index, path, path->depth, &writable->head);
    leaf_insert(writable, at, item);
}

/* Replaces the item at `at` and retires the old one. */
static void index_replace(struct index *index, struct index_path *path, unsigned at,
                          struct index_item *item)
{
    struct index_leaf *leaf = path_leaf(path);
    struct index_item *old = leaf->entries[at].item;
    path_add(index, path, sum_change(old, item));
    struct index_leaf *writable = leaf_writable(&index->memory, leaf, leaf->head.count);
    if (writable != leaf)
        path_replace(index, path, path->depth, &writable->head);
    writable->entries[at].item = item;
    memory_retire(&index->memory, old);
}

static const struct index_item *path_item(struct index_path *path, struct slice key)
{
    const struct index_leaf *leaf = path_leaf(path);
    path->in_leaf = leaf_locate(leaf, key, &path->found);
    return path->found ? leaf->entries[path->in_leaf].item : NULL;
}

const struct index_item *index_put_begin(struct index *index, struct slice key,
                                         struct index_path *ret_path)
{
    index_begin_change(index);
    ret_path->found = false;
    if (!index->root)
        return NULL;
    path_find(index, key, ret_path);
    return path_item(ret_path, key);
}

void index_put_end(struct index *index, struct slice key, const struct index_version *version,
                   struct index_path *path)
{
    struct index_memory *memory = &index->memory;
    unsigned at = path->in_leaf;
    if (!index->root)
        index_put_first(index, item_new(memory, key, version, NULL, 0));
    else if (path->found)
        index_replace(index, path, at,
                      item_with_version(memory, path_leaf(path)->entries[at].item, version));
    else
        index_insert(index, path, at, item_new(memory, key, version, NULL, 0));
}

void index_put(struct index *index, struct slice key, const struct index_version *version)
{
    struct index_path path;
    (void)index_put_begin(index, key, &path);
    index_put_end(index, key, version, &path);
}

void index_load_begin(struct index *index)
{
    assert(!index->root);
    assert(!index->memory.unread);
    index->memory.unread = true;
}

void index_load_end(struct index *index)
{
    assert(index->memory.unread);
    index->memory.unread = false;
}

void index_load_put(struct index *index, struct slice key, const struct index_version *version,
                    struct index_path *last)
{
    assert(index->memory.unread);
    /* Loading goes through the keys in order, so most of them belong into the leaf of the one
     * before. */
    if (last->is_kept && path_leads_to(last, key))
        (void)path_item(last, key);
    else
        (void)index_put_begin(index, key, last);
    /* A leaf that splits is another one afterwards. */
    last->is_kept =
        index->root && (last->found || path_leaf(last)->head.count < index->memory.leaf_max);
    index_put_end(index, key, version, last);
}

static void index_remove(struct index *index, struct index_path *path, unsigned at)
{
    struct index_leaf *leaf = path_leaf(path);
    struct index_item *old = leaf->entries[at].item;
    path_add(index, path, sum_change(old, NULL));
    struct index_leaf *writable = leaf_writable(&index->memory, leaf, leaf->head.count);
    if (writable != leaf)
        path_replace(index, path, path->depth, &writable->head);
    leaf_remove(writable, at);
    item_retire_whole(&index->memory, old);
    /* A leaf with few items is merged with a neighbour, or the tree would keep its size after mass
     * deletions. */
    tree_shrink(index, path);
}

void index_trim(struct index *index, struct slice key, uint32_t drop, bool whole)
{
    const struct index_item *item = index_find(index, key);
    assert(item);
    assert(whole || drop <= item->older_count);
    if (!whole && drop == 0)
        return;
    index_begin_change(index);
    struct index_path path;
    bool found;
    path_find(index, key, &path);
    unsigned at = leaf_locate(path_leaf(&path), key, &found);
    assert(found);
    if (whole)
        index_remove(index, &path, at);
    else
        index_replace(index, &path, at, item_trimmed(&index->memory, item, drop));
}

bool index_relocate(struct index *index, struct slice key, uint64_t from, uint64_t to)
{
    /*
     * Checked before the path is copied: most misses are keys that were changed or removed
     * meanwhile.
     */
    struct index_item *item = (struct index_item *)(uintptr_t)index_find(index, key);
    if (!item)
        return false;
    index_begin_change(index);
    struct index_item *moved = item_relocated(&index->memory, item, from, to);
    if (!moved || moved == item)
        return moved != NULL;
    struct index_path path;
    bool found;
    path_find(index, key, &path);
    unsigned at = leaf_locate(path_leaf(&path), key, &found);
    assert(found);
    index_replace(index, &path, at, moved);
    return true;
}

struct index_root index_working_root(const struct index *index)
{
    return (struct index_root){
        .node = index->root,
        .number = epoch_next(index->memory.epoch),
        .live_keys = index->live.live_keys,
        .live_bytes = index->live.live_bytes,
    };
}

const struct index_item *index_find(const struct index *index, struct slice key)
{
    struct index_root root = index_working_root(index);
    return index_root_find(&root, key);
}

struct index_root index_publish(struct index *index)
{
    assert(!index->memory.unread);
    index->closed_number = epoch_next(index->memory.epoch);
    return index_working_root(index);
}

size_t index_bytes_retired(const struct index *index)
{
    return pool_retired_bytes(index->memory.pool);
}

size_t index_bytes_held(const struct index *index)
{
    return sizeof(*index) + pool_bytes_held(index->memory.pool);
}
