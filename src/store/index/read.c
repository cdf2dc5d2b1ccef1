/* Reading a root, on any thread that pins it. */
#include "store/index/index.h"
#include "store/index/search.h"

enum { ITEMS_AHEAD = 2 * INDEX_PEEK_MAX };

static void prefetch_item(const struct index_item *item)
{
    __builtin_prefetch(item);
    __builtin_prefetch((const char *)item + 64);
}

static const struct index_node *prefetched_child(const struct index_inner *inner, unsigned at)
{
    const struct index_node *child = inner->child[at];
    child_prefetch(inner, child);
    return child;
}

/* The leaf for the key, below a root that is not a leaf. It is being fetched, and was not read. */
static const struct index_node *leaf_below(const struct index_inner *inner, struct slice key)
{
    const struct index_node *child = prefetched_child(inner, inner_locate(inner, key));
    while (inner->head.level > 1) {
        inner = node_inner(child);
        child = prefetched_child(inner, inner_locate(inner, key));
    }
    return child;
}

const struct index_item *index_root_find(const struct index_root *root, struct slice key)
{
    const struct index_node *node = root->node;
    if (!node)
        return NULL;
    if (node->level > 0)
        node = leaf_below(node_inner(node), key);
    return leaf_find(node_leaf(node), key);
}

/* Level by level, then the items, and then what these point to, so that the cache misses of the
 * keys overlap. */
void index_root_prefetch(const struct index_root *root, const struct slice *keys, size_t count)
{
    const struct index_node *nodes[INDEX_PREFETCH_MAX];
    const struct index_item *items[INDEX_PREFETCH_MAX];
    size_t found = 0;
    assert(count <= INDEX_PREFETCH_MAX);
    if (!root->node || root->node->level == 0)
        return; /* a single leaf is in the cache */
    for (size_t i = 0; i < count; i++)
        nodes[i] = root->node;
    for (unsigned level = root->node->level; level > 0; level--) {
        for (size_t i = 0; i < count; i++) {
            const struct index_inner *inner = node_inner(nodes[i]);
            nodes[i] = prefetched_child(inner, inner_locate(inner, keys[i]));
        }
    }
    for (size_t i = 0; i < count; i++) {
        const struct index_leaf *leaf = node_leaf(nodes[i]);
        unsigned at = leaf_prefixes_below(leaf, key_prefix(keys[i], leaf->head.skip));
        if (at < leaf->head.count)
            prefetch_item(items[found++] = leaf->entries[at].item);
    }
    /* The array of older locations, if there is one: its head, and where the next one is added. */
    for (size_t i = 0; i < found; i++) {
        const uint64_t *older = index_item_older(items[i]);
        __builtin_prefetch(older - 1, 1);
        __builtin_prefetch(older + items[i]->older_count, 1);
    }
}

/* -- Sums -- */

static struct index_sum leaf_sum_before(const struct index_leaf *leaf, unsigned at)
{
    struct index_sum sum = {0};
    for (unsigned i = 0; i < at; i++)
        __builtin_prefetch(leaf->entries[i].item);
    for (unsigned i = 0; i < at; i++) {
        struct index_sum one = item_sum(leaf->entries[i].item);
        sum.live_keys += one.live_keys;
        sum.live_bytes += one.live_bytes;
    }
    return sum;
}

/* The sum over all keys less than this one. */
static struct index_sum root_sum_before(const struct index_root *root, struct slice key)
{
    struct index_sum sum = {0};
    const struct index_node *node = root->node;
    if (!node)
        return sum;
    while (node->level > 0) {
        const struct index_inner *inner = node_inner(node);
        unsigned at = inner_locate(inner, key);
        node = prefetched_child(inner, at);
        for (unsigned i = 0; i < at; i++) {
            sum.live_keys += inner->live_keys[i];
            sum.live_bytes += inner->live_bytes[i];
        }
    }
    bool equal;
    struct index_sum rest =
        leaf_sum_before(node_leaf(node), leaf_locate(node_leaf(node), key, &equal));
    return (struct index_sum){.live_keys = sum.live_keys + rest.live_keys,
                              .live_bytes = sum.live_bytes + rest.live_bytes};
}

struct index_sum index_root_sum(const struct index_root *root, struct slice from, struct slice to,
                                bool to_end)
{
    struct index_sum end = {.live_keys = root->live_keys, .live_bytes = root->live_bytes};
    to_end = to_end || to.len == 0;
    if (!to_end && slice_compare(from, to) >= 0)
        return (struct index_sum){0};
    if (!to_end)
        end = root_sum_before(root, to);
    if (from.len == 0)
        return end;
    struct index_sum begin = root_sum_before(root, from);
    return (struct index_sum){.live_keys = end.live_keys - begin.live_keys,
                              .live_bytes = end.live_bytes - begin.live_bytes};
}

/* -- The cursor -- */

/* The depth of the last inner node on the path that has a child further right, or -1. */
static int cursor_turn(const struct index_cursor *cursor)
{
    int depth = cursor->depth - 1;
    while (depth >= 0 && cursor->at[depth] + 1u >= cursor->path[depth]->count)
        depth--;
    return depth;
}

/* Finds the leaf after this one and starts fetching it and the items of this leaf. */
static void cursor_enter_leaf(struct index_cursor *cursor)
{
    const struct index_leaf *leaf = node_leaf(cursor->path[cursor->depth]);
    int turn = cursor_turn(cursor);
    cursor->after = NULL;
    if (turn >= 0) {
        const struct index_inner *inner = node_inner(cursor->path[turn]);
        const struct index_node *node = inner->child[cursor->at[turn] + 1];
        while (node->level > 0) {
            inner = node_inner(node);
            node = inner->child[0];
        }
        child_prefetch(inner, node);
        cursor->after = node;
    }
    unsigned at = cursor->at[cursor->depth];
    for (unsigned i = at; i < leaf->head.count && i < at + ITEMS_AHEAD; i++)
        prefetch_item(leaf->entries[i].item);
}

void index_cursor_init(struct index_cursor *cursor, const struct index_root *root,
                       struct slice from)
{
    const struct index_node *node = root->node;
    cursor->depth = -1;
    cursor->after = NULL;
    if (!node)
        return;
    int depth = 0;
    for (; node->level > 0; depth++) {
        const struct index_inner *inner = node_inner(node);
        cursor->path[depth] = node;
        cursor->at[depth] = (uint16_t)inner_locate(inner, from);
        node = prefetched_child(inner, cursor->at[depth]);
    }
    bool equal;
    cursor->path[depth] = node;
    cursor->at[depth] = (uint16_t)leaf_locate(node_leaf(node), from, &equal);
    cursor->depth = depth;
    cursor_enter_leaf(cursor);
}

static bool cursor_next_leaf(struct index_cursor *cursor)
{
    int turn = cursor_turn(cursor);
    if (turn < 0) {
        cursor->depth = -1;
        return false;
    }
    cursor->at[turn]++;
    for (int depth = turn; depth < cursor->depth; depth++) {
        cursor->path[depth + 1] = node_inner(cursor->path[depth])->child[cursor->at[depth]];
        cursor->at[depth + 1] = 0;
    }
    cursor_enter_leaf(cursor);
    return true;
}

const struct index_item *index_cursor_peek(const struct index_cursor *cursor, unsigned ahead)
{
    if (cursor->depth < 0)
        return NULL;
    const struct index_leaf *leaf = node_leaf(cursor->path[cursor->depth]);
    unsigned at = cursor->at[cursor->depth] + ahead;
    if (at < leaf->head.count)
        return leaf->entries[at].item;
    if (!cursor->after)
        return NULL;
    at -= leaf->head.count;
    const struct index_leaf *after = node_leaf(cursor->after);
    return at < after->head.count ? after->entries[at].item : NULL;
}

const struct index_item *index_cursor_next(struct index_cursor *cursor)
{
    if (cursor->depth < 0)
        return NULL;
    const struct index_leaf *leaf = node_leaf(cursor->path[cursor->depth]);
    while (UNLIKELY(cursor->at[cursor->depth] == leaf->head.count)) {
        if (!cursor_next_leaf(cursor))
            return NULL;
        leaf = node_leaf(cursor->path[cursor->depth]);
    }
    const struct index_item *later = index_cursor_peek(cursor, ITEMS_AHEAD);
    if (later)
        prefetch_item(later);
    return leaf->entries[cursor->at[cursor->depth]++].item;
}
