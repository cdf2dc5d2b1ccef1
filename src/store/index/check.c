/* The consistency check of the newest tree, for tests. */
#include "store/index/index.h"
#include "store/index/item_make.h"
#include "store/index/search.h"
#include "store/index/tree.h"

struct index_checker {
    size_t objects;    /* objects of the pool that were found in the tree */
    struct slice last; /* the previous key */
    bool any;
    uint64_t stamp_limit; /* the stamp of the state being built: no node is newer */
};

static void check_leaf(struct index_checker *checker, const struct index_leaf *leaf,
                       struct slice low, const struct slice *high)
{
    for (unsigned i = 0; i < leaf->head.count; i++) {
        const struct index_item *item = leaf->entries[i].item;
        struct slice key = index_item_key(item);
        assert(!checker->any || slice_compare(checker->last, key) < 0);
        assert(slice_compare(low, key) <= 0);
        assert(!high || slice_compare(key, *high) < 0);
        assert(key.len >= leaf->head.skip);
        assert(common_prefix(key, index_item_key(leaf->entries[0].item), leaf->head.skip) ==
               leaf->head.skip);
        assert(leaf->entries[i].prefix == key_prefix(key, leaf->head.skip));
        item_check(item);
        checker->objects += item_objects(item);
        checker->last = key;
        checker->any = true;
    }
}

static void check_separator(const struct index_inner *inner, unsigned at)
{
    struct slice key = separator_slice(inner->separator[at]);
    struct slice first = separator_slice(inner->separator[1]);
    assert(common_prefix(key, first, inner->head.skip) == inner->head.skip);
    assert(compare_skipped(key, inner_sample(inner), inner->head.skip) == 0);
    assert(inner->prefix[at] == key_prefix(key, inner->head.skip));
}

/* Keys are in [low, high); high NULL means no upper end. */
static struct index_sum check_node(struct index_checker *checker, const struct index_node *node,
                                   struct slice low, const struct slice *high)
{
    checker->objects++;
    assert(node->stamp <= checker->stamp_limit);
    assert(node->count > 0);
    assert(node->count <= node->capacity);
    if (node->level == 0) {
        assert(node->capacity <= INDEX_LEAF_MAX);
        check_leaf(checker, node_leaf(node), low, high);
        return node_sum(node);
    }
    const struct index_inner *inner = node_inner(node);
    for (unsigned i = 0; i < node->count; i++) {
        struct slice child_low = low, child_high;
        const struct slice *child_end = high;
        assert(inner->child[i]->level == node->level - 1);
        if (i > 0) {
            checker->objects++;
            check_separator(inner, i);
            child_low = separator_slice(inner->separator[i]);
        } else {
            assert(!inner->separator[0]);
        }
        if (i + 1u < node->count) {
            child_high = separator_slice(inner->separator[i + 1]);
            child_end = &child_high;
        }
        struct index_sum sum = check_node(checker, inner->child[i], child_low, child_end);
        assert(sum.live_keys == inner->live_keys[i]);
        assert(sum.live_bytes == inner->live_bytes[i]);
    }
    return node_sum(node);
}

void index_check(const struct index *index)
{
    struct index_checker checker = {.stamp_limit = epoch_next(index->memory.epoch)};
    struct index_sum sum = {0};
    assert(!index->memory.unread);
    if (index->root) {
        assert(index->root->level == 0 || index->root->count > 1);
        sum = check_node(&checker, index->root, SLICE_EMPTY, NULL);
    }
    assert(sum.live_keys == index->live.live_keys);
    assert(sum.live_bytes == index->live.live_bytes);
    /* The pool contains the objects of the tree and those that the epoch has not freed yet. */
    assert(checker.objects <= pool_objects(index->memory.pool));
    if (epoch_reclaim(index->memory.epoch, 0) == 0)
        assert(checker.objects == pool_objects(index->memory.pool));
}
