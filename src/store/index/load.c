/* Building the index from sorted keys: full leaves from left to right, sums at the end. */
#include "store/index/item_make.h"
#include "store/index/search.h"
#include "store/index/tree.h"

void index_load_begin(struct index *index)
{
    assert(!index->root);
    assert(!index->loading);
    index->memory.stamp = epoch_next(index->memory.epoch);
    index->loading = true;
    index->load = NULL;
}

/* The leaf is full: its prefixes are due, and a new one follows it. */
static void load_next_leaf(struct index *index, struct slice key)
{
    struct index_leaf *full = index->load;
    struct index_leaf *leaf = leaf_new(&index->memory, index->memory.leaf_max);
    index->load = leaf;
    if (!full) {
        index->root = &leaf->head;
        return;
    }
    leaf_refresh(full);
    struct index_path path;
    path_find_last(index, &path);
    assert(path_leaf(&path) == full);
    struct slice last = index_item_key(full->entries[full->head.count - 1].item);
    tree_insert_right(index, &path, path.depth, &leaf->head, (struct index_sum){0},
                      separator_new(&index->memory, last, key));
}

void index_load_add(struct index *index, const struct index_load *load)
{
    assert(index->loading);
    struct index_leaf *leaf = index->load;
    if (!leaf || leaf->head.count == index->memory.leaf_max) {
        load_next_leaf(index, load->key);
        leaf = index->load;
    } else {
        struct slice last = index_item_key(leaf->entries[leaf->head.count - 1].item);
        assert(slice_compare(last, load->key) < 0);
    }
    leaf->entries[leaf->head.count++].item =
        item_new(&index->memory, load->key, &load->newest, load->older, load->older_count);
}

static struct index_sum load_sums(struct index_node *node)
{
    if (node->level > 0) {
        struct index_inner *inner = node_inner(node);
        for (unsigned i = 0; i < node->count; i++) {
            struct index_sum sum = load_sums(inner->child[i]);
            inner->live_keys[i] = sum.live_keys;
            inner->live_bytes[i] = sum.live_bytes;
        }
    }
    return node_sum(node);
}

void index_load_end(struct index *index)
{
    assert(index->loading);
    index->loading = false;
    if (!index->root)
        return;
    leaf_refresh(TAKE(index->load));
    index->live = load_sums(index->root);
}
