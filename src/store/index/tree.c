#include "store/index/tree.h"

#include "store/index/search.h"

/* -- The path -- */

static void path_down(struct index *index, struct index_path *path, unsigned depth, unsigned at)
{
    struct index_inner *inner = node_inner(path->node[depth]);
    child_prefetch(inner, inner->child[at]);
    struct index_inner *writable = inner_writable(&index->memory, inner);
    if (writable != inner)
        path_replace(index, path, depth, &writable->head);
    path->at[depth] = at;
    path->node[depth + 1] = writable->child[at];
}

void path_find(struct index *index, struct slice key, struct index_path *ret_path)
{
    assert(index->root);
    unsigned depth = 0;
    ret_path->node[0] = index->root;
    for (; ret_path->node[depth]->level > 0; depth++)
        path_down(index, ret_path, depth, inner_locate(node_inner(ret_path->node[depth]), key));
    ret_path->depth = depth;
}

struct index_leaf *path_leaf(const struct index_path *path)
{
    return node_leaf(path->node[path->depth]);
}

static bool path_is_rightmost(const struct index_path *path)
{
    for (unsigned i = 0; i < path->depth; i++) {
        if (path->at[i] + 1 < path->node[i]->count)
            return false;
    }
    return true;
}

bool path_leads_to(const struct index_path *path, struct slice key)
{
    const struct index_leaf *leaf = path_leaf(path);
    struct slice last = index_item_key(leaf->entries[leaf->head.count - 1].item);
    if (slice_compare(key, last) > 0)
        return path_is_rightmost(path);
    return slice_compare(key, index_item_key(leaf->entries[0].item)) >= 0;
}

void path_replace(struct index *index, struct index_path *path, unsigned depth,
                  struct index_node *node)
{
    path->node[depth] = node;
    if (depth == 0)
        index->root = node;
    else
        node_inner(path->node[depth - 1])->child[path->at[depth - 1]] = node;
}

void path_add(struct index *index, const struct index_path *path, struct index_sum change)
{
    index->live.live_keys += change.live_keys;
    index->live.live_bytes += change.live_bytes;
    for (unsigned i = 0; i < path->depth; i++) {
        struct index_inner *inner = node_inner(path->node[i]);
        inner->live_keys[path->at[i]] += change.live_keys;
        inner->live_bytes[path->at[i]] += change.live_bytes;
    }
}

/* -- Growing -- */

/* Makes a new root above the old one and its new right neighbour. */
static void tree_grow(struct index *index, struct index_node *right, struct index_sum sum,
                      struct index_separator *separator)
{
    struct index_inner *root = inner_new(&index->memory, index->root->level + 1u);
    struct index_sum left = {.live_keys = index->live.live_keys - sum.live_keys,
                             .live_bytes = index->live.live_bytes - sum.live_bytes};
    inner_insert(root, 0, index->root, left, NULL);
    inner_insert(root, 1, right, sum, separator);
    index->root = &root->head;
}

struct inner_entry {
    struct index_node *child;
    struct index_sum sum;
    struct index_separator *separator;
};

/* Appends entries to a node. If the node is empty, the first entry's separator is not stored. */
static void inner_append(struct index_inner *inner, const struct inner_entry *entries,
                         unsigned count)
{
    unsigned end = inner->head.count;
    assert(end + count <= INDEX_INNER_MAX);
    for (unsigned i = 0; i < count; i++, end++) {
        inner->child[end] = entries[i].child;
        inner->live_keys[end] = entries[i].sum.live_keys;
        inner->live_bytes[end] = entries[i].sum.live_bytes;
        inner->separator[end] = end == 0 ? NULL : entries[i].separator;
        inner->prefix[end] = 0;
    }
    inner->head.count = (uint16_t)end;
    inner_refresh(inner);
}

/* Copies the entries `from` to `to` - 1 of a node. */
static void inner_entries(const struct index_inner *inner, unsigned from, unsigned to,
                          struct inner_entry *ret_entries)
{
    for (unsigned i = from; i < to; i++)
        ret_entries[i - from] = (struct inner_entry){
            .child = inner->child[i],
            .sum = {.live_keys = inner->live_keys[i], .live_bytes = inner->live_bytes[i]},
            .separator = inner->separator[i],
        };
}

/*
 * Splits a full node around a new child at `at` and returns the right part; *ret_up is the
 * separator between the two. If the child is appended at the end, the left part stays full, so that
 * keys that arrive in order fill every node.
 */
static struct index_inner *inner_split(struct index *index, struct index_inner *inner, unsigned at,
                                       const struct inner_entry *entry,
                                       struct index_separator **ret_up)
{
    struct index_inner *right = inner_new(&index->memory, inner->head.level);
    struct inner_entry entries[INDEX_INNER_MAX + 1];
    unsigned count = inner->head.count;
    assert(at > 0 && at <= count);
    inner_entries(inner, 0, at, entries);
    entries[at] = *entry;
    inner_entries(inner, at, count, entries + at + 1);
    unsigned cut = at == count ? count : (count + 1) / 2;
    *ret_up = entries[cut].separator;
    inner_append(right, entries + cut, count + 1 - cut);
    if (cut < count) {
        inner->head.count = 0;
        inner_append(inner, entries, cut);
    }
    return right;
}

/* Inserts a new right neighbour of path->node[depth], whose sums still include the neighbour's. */
static void tree_insert_right(struct index *index, struct index_path *path, unsigned depth,
                              struct index_node *right, struct index_sum sum,
                              struct index_separator *separator)
{
    for (; depth > 0; depth--) {
        struct index_inner *parent = node_inner(path->node[depth - 1]);
        unsigned at = path->at[depth - 1];
        parent->live_keys[at] -= sum.live_keys;
        parent->live_bytes[at] -= sum.live_bytes;
        if (parent->head.count < index->memory.inner_max) {
            inner_insert(parent, at + 1, right, sum, separator);
            return;
        }
        struct inner_entry entry = {.child = right, .sum = sum, .separator = separator};
        right = &inner_split(index, parent, at + 1, &entry, &separator)->head;
        sum = node_sum(right);
    }
    tree_grow(index, right, sum, separator);
}

static struct index_leaf *leaf_part(struct index *index, const struct index_leaf *leaf,
                                    unsigned from, unsigned count)
{
    struct index_leaf *part = leaf_new(&index->memory, count + 1);
    memcpy(part->entries, leaf->entries + from, count * sizeof(part->entries[0]));
    part->head.count = (uint16_t)count;
    leaf_refresh(part);
    return part;
}

static struct index_separator *leaf_separator(struct index *index, const struct index_leaf *left,
                                              const struct index_leaf *right)
{
    return separator_new(&index->memory, index_item_key(left->entries[left->head.count - 1].item),
                         index_item_key(right->entries[0].item));
}

void tree_split_leaf(struct index *index, struct index_path *path, unsigned at,
                     struct index_item *item)
{
    struct index_leaf *left = path_leaf(path);
    struct index_leaf *right;
    unsigned count = left->head.count;
    assert(count == index->memory.leaf_max);
    if (at == count) { /* keys arrive in order: the left leaf stays full and in place */
        right = leaf_new(&index->memory, 1);
        leaf_insert(right, 0, item);
    } else {
        struct index_leaf *whole = left;
        unsigned cut = count / 2;
        left = leaf_part(index, whole, 0, cut);
        right = leaf_part(index, whole, cut, count - cut);
        if (at < cut)
            leaf_insert(left, at, item);
        else
            leaf_insert(right, at - cut, item);
        node_dispose(&index->memory, &whole->head);
        path_replace(index, path, path->depth, &left->head);
    }
    tree_insert_right(index, path, path->depth, &right->head, node_sum(&right->head),
                      leaf_separator(index, left, right));
}

/* -- Shrinking -- */

/* Joined nodes keep some free entries, so that the next insertion does not split them again. */
static bool fits_in_one(unsigned total, unsigned max)
{
    return total <= max * 7 / 8;
}

static void leaves_fill(struct index_leaf *leaf, const struct index_leaf_entry *entries,
                        unsigned count)
{
    memcpy(leaf->entries, entries, count * sizeof(entries[0]));
    leaf->head.count = (uint16_t)count;
    leaf_refresh(leaf);
}

/* Joins the leaves at `at` and at + 1, or distributes their entries evenly. */
static void leaves_balance(struct index *index, struct index_inner *parent, unsigned at)
{
    struct index_memory *memory = &index->memory;
    struct index_leaf *left = node_leaf(parent->child[at]);
    struct index_leaf *right = node_leaf(parent->child[at + 1]);
    struct index_leaf_entry all[2 * INDEX_LEAF_MAX];
    unsigned total = (unsigned)left->head.count + right->head.count;
    memcpy(all, left->entries, left->head.count * sizeof(all[0]));
    memcpy(all + left->head.count, right->entries, right->head.count * sizeof(all[0]));
    node_dispose(memory, &left->head);
    node_dispose(memory, &right->head);

    unsigned cut = fits_in_one(total, memory->leaf_max) ? total : total / 2;
    left = leaf_new(memory, cut);
    leaves_fill(left, all, cut);
    parent->child[at] = &left->head;
    struct index_sum sum = node_sum(&left->head);
    parent->live_keys[at] = sum.live_keys;
    parent->live_bytes[at] = sum.live_bytes;
    memory_retire(memory, inner_remove(parent, at + 1));
    if (cut == total)
        return;
    right = leaf_new(memory, total - cut);
    leaves_fill(right, all + cut, total - cut);
    inner_insert(parent, at + 1, &right->head, node_sum(&right->head),
                 leaf_separator(index, left, right));
}

/* The same for inner nodes: the separator between them moves down, and another one moves up. */
static void inners_balance(struct index *index, struct index_inner *parent, unsigned at)
{
    struct index_inner *left = inner_writable(&index->memory, node_inner(parent->child[at]));
    struct index_inner *right = inner_writable(&index->memory, node_inner(parent->child[at + 1]));
    struct inner_entry all[2 * INDEX_INNER_MAX];
    unsigned total = (unsigned)left->head.count + right->head.count;
    unsigned right_first = left->head.count;
    inner_entries(left, 0, right_first, all);
    inner_entries(right, 0, right->head.count, all + right_first);
    all[right_first].separator = inner_remove(parent, at + 1);

    unsigned cut = fits_in_one(total, index->memory.inner_max) ? total : total / 2;
    left->head.count = right->head.count = 0;
    inner_append(left, all, cut);
    parent->child[at] = &left->head;
    struct index_sum sum = node_sum(&left->head);
    parent->live_keys[at] = sum.live_keys;
    parent->live_bytes[at] = sum.live_bytes;
    if (cut == total) {
        node_dispose(&index->memory, &right->head);
        return;
    }
    inner_append(right, all + cut, total - cut);
    inner_insert(parent, at + 1, &right->head, node_sum(&right->head), all[cut].separator);
}

static bool node_is_low(const struct index_memory *memory, const struct index_node *node)
{
    return node->count < (node->level == 0 ? memory->leaf_max : memory->inner_max) / 4 ||
           node->count == 0;
}

void tree_shrink(struct index *index, struct index_path *path)
{
    struct index_memory *memory = &index->memory;
    for (unsigned depth = path->depth; depth > 0; depth--) {
        struct index_node *node = path->node[depth];
        struct index_inner *parent = node_inner(path->node[depth - 1]);
        unsigned at = path->at[depth - 1];
        if (!node_is_low(memory, node))
            return;
        if (node->count == 0) {
            struct index_separator *left_over = inner_remove(parent, at);
            if (left_over)
                memory_retire(memory, left_over);
            node_dispose(memory, node);
        } else if (parent->head.count > 1) {
            unsigned left = at > 0 ? at - 1 : at;
            if (node->level == 0)
                leaves_balance(index, parent, left);
            else
                inners_balance(index, parent, left);
        }
    }
    while (index->root->level > 0 && index->root->count == 1) {
        struct index_node *old = index->root;
        index->root = node_inner(old)->child[0];
        node_dispose(memory, old);
    }
    if (index->root->count == 0) {
        node_dispose(memory, index->root);
        index->root = NULL;
    }
}
