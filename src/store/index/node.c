#include "store/index/node.h"

#include "store/index/key.h"

static size_t leaf_bytes(unsigned capacity)
{
    return sizeof(struct index_leaf) + capacity * sizeof(struct index_leaf_entry);
}

struct index_leaf *leaf_new(struct index_memory *memory, unsigned capacity)
{
    assert(capacity <= INDEX_LEAF_MAX);
    /* Uses all of the memory that the pool provides: its sizes are a few entries apart. */
    size_t usable = pool_usable_bytes(leaf_bytes(capacity)) - sizeof(struct index_leaf);
    unsigned rounded = (unsigned)size_min(usable / sizeof(struct index_leaf_entry), INDEX_LEAF_MAX);
    struct index_leaf *leaf = pool_alloc(memory->pool, leaf_bytes(rounded));
    leaf->head = (struct index_node){.stamp = memory->stamp, .capacity = (uint8_t)rounded};
    return leaf;
}

struct index_inner *inner_new(struct index_memory *memory, unsigned level)
{
    assert(level > 0);
    assert(level < INDEX_DEPTH_MAX);
    struct index_inner *inner = pool_alloc(memory->pool, sizeof(*inner));
    inner->head = (struct index_node){
        .stamp = memory->stamp, .capacity = INDEX_INNER_MAX, .level = (uint8_t)level};
    return inner;
}

void node_dispose(struct index_memory *memory, struct index_node *node)
{
    if (node->stamp == memory->stamp)
        pool_free_object(memory->pool, node);
    else
        memory_retire(memory, node);
}

struct index_leaf *leaf_writable(struct index_memory *memory, struct index_leaf *leaf,
                                 unsigned capacity_min)
{
    if (leaf->head.stamp == memory->stamp && leaf->head.capacity >= capacity_min)
        return leaf;
    struct index_leaf *copy = leaf_new(memory, capacity_min);
    copy->head.count = leaf->head.count;
    copy->head.skip = leaf->head.skip;
    memcpy(copy->entries, leaf->entries, leaf->head.count * sizeof(leaf->entries[0]));
    node_dispose(memory, &leaf->head);
    return copy;
}

/* Moves the entries [from, from + n) of one node to `to` in another or the same node. */
static void inner_move(struct index_inner *dst, unsigned to, const struct index_inner *src,
                       unsigned from, unsigned n)
{
    memmove(dst->prefix + to, src->prefix + from, n * sizeof(dst->prefix[0]));
    memmove(dst->child + to, src->child + from, n * sizeof(dst->child[0]));
    memmove(dst->live_keys + to, src->live_keys + from, n * sizeof(dst->live_keys[0]));
    memmove(dst->live_bytes + to, src->live_bytes + from, n * sizeof(dst->live_bytes[0]));
    memmove(dst->separator + to, src->separator + from, n * sizeof(dst->separator[0]));
}

struct index_inner *inner_writable(struct index_memory *memory, struct index_inner *inner)
{
    if (inner->head.stamp == memory->stamp)
        return inner;
    struct index_inner *copy = inner_new(memory, inner->head.level);
    copy->head.count = inner->head.count;
    copy->head.skip = inner->head.skip;
    memcpy(copy->shared, inner->shared, sizeof(copy->shared));
    inner_move(copy, 0, inner, 0, inner->head.count);
    node_dispose(memory, &inner->head);
    return copy;
}

struct index_separator *separator_new(struct index_memory *memory, struct slice left,
                                      struct slice right)
{
    assert(slice_compare(left, right) < 0);
    size_t len = common_prefix(left, right, SIZE_MAX) + 1;
    assert(len <= right.len);
    struct index_separator *separator = pool_alloc(memory->pool, sizeof(*separator) + len);
    separator->len = (uint32_t)len;
    memcpy(separator->bytes, right.ptr, len);
    return separator;
}

struct index_sum item_sum(const struct index_item *item)
{
    if (!item || !index_item_live(item))
        return (struct index_sum){0};
    return (struct index_sum){.live_keys = 1, .live_bytes = item->newest.field_bytes};
}

struct index_sum node_sum(const struct index_node *node)
{
    struct index_sum sum = {0};
    for (unsigned i = 0; i < node->count; i++) {
        if (node->level == 0) {
            struct index_sum one = item_sum(node_leaf(node)->entries[i].item);
            sum.live_keys += one.live_keys;
            sum.live_bytes += one.live_bytes;
        } else {
            sum.live_keys += node_inner(node)->live_keys[i];
            sum.live_bytes += node_inner(node)->live_bytes[i];
        }
    }
    return sum;
}

/* -- Leaves -- */

void leaf_refresh(struct index_leaf *leaf)
{
    unsigned count = leaf->head.count;
    if (count == 0)
        return;
    struct slice first = index_item_key(leaf->entries[0].item);
    struct slice last = index_item_key(leaf->entries[count - 1].item);
    leaf->head.skip = (uint32_t)common_prefix(first, last, SIZE_MAX);
    for (unsigned i = 0; i < count; i++) {
        struct index_leaf_entry *entry = &leaf->entries[i];
        entry->prefix = key_prefix(index_item_key(entry->item), leaf->head.skip);
    }
}

void leaf_insert(struct index_leaf *leaf, unsigned at, struct index_item *item)
{
    unsigned count = leaf->head.count;
    assert(count < leaf->head.capacity);
    assert(at <= count);
    struct slice key = index_item_key(item);
    size_t shared = key.len;
    if (count > 0) {
        struct slice neighbour = index_item_key(leaf->entries[at < count ? at : at - 1].item);
        shared = common_prefix(key, neighbour, leaf->head.skip);
    }
    memmove(leaf->entries + at + 1, leaf->entries + at, (count - at) * sizeof(leaf->entries[0]));
    leaf->entries[at].item = item;
    leaf->head.count++;
    if (UNLIKELY(count == 0 || shared < leaf->head.skip))
        leaf_refresh(leaf);
    else
        leaf->entries[at].prefix = key_prefix(key, leaf->head.skip);
}

void leaf_remove(struct index_leaf *leaf, unsigned at)
{
    assert(at < leaf->head.count);
    leaf->head.count--;
    memmove(leaf->entries + at, leaf->entries + at + 1,
            (leaf->head.count - at) * sizeof(leaf->entries[0]));
}

/* -- Inner nodes -- */

void inner_refresh(struct index_inner *inner)
{
    unsigned count = inner->head.count;
    inner->head.skip = 0;
    if (count < 2)
        return;
    struct slice first = separator_slice(inner->separator[1]);
    struct slice last = separator_slice(inner->separator[count - 1]);
    inner->head.skip = (uint32_t)common_prefix(first, last, SIZE_MAX);
    memcpy(inner->shared, first.ptr, size_min(inner->head.skip, sizeof(inner->shared)));
    for (unsigned i = 1; i < count; i++)
        inner->prefix[i] = key_prefix(separator_slice(inner->separator[i]), inner->head.skip);
}

void inner_insert(struct index_inner *inner, unsigned at, struct index_node *child,
                  struct index_sum sum, struct index_separator *separator)
{
    unsigned count = inner->head.count;
    assert(count < INDEX_INNER_MAX);
    assert(at <= count);
    assert((at == 0) == (separator == NULL));
    inner_move(inner, at + 1, inner, at, count - at);
    inner->child[at] = child;
    inner->live_keys[at] = sum.live_keys;
    inner->live_bytes[at] = sum.live_bytes;
    inner->separator[at] = separator;
    inner->prefix[at] = 0;
    inner->head.count++;
    if (at == 0)
        return;
    struct slice key = separator_slice(separator);
    unsigned other = at > 1 ? at - 1 : at + 1;
    if (count < 2 || common_prefix(key, separator_slice(inner->separator[other]),
                                   inner->head.skip) < inner->head.skip)
        inner_refresh(inner);
    else
        inner->prefix[at] = key_prefix(key, inner->head.skip);
}

struct index_separator *inner_remove(struct index_inner *inner, unsigned at)
{
    unsigned count = inner->head.count;
    assert(at < count);
    /* When the first child is removed, the second becomes the first and needs no separator. */
    unsigned without = at > 0 ? at : 1;
    struct index_separator *left_over = without < count ? inner->separator[without] : NULL;
    inner_move(inner, at, inner, at + 1, count - at - 1);
    inner->separator[0] = NULL;
    inner->prefix[0] = 0;
    inner->head.count--;
    return left_over;
}
