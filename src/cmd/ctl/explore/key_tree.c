#include "cmd/ctl/explore/key_tree.h"

#include "base/xalloc.h"

void key_tree_init(struct key_tree *tree, struct slice prefix, struct slice separator,
                   unsigned depth)
{
    assert(separator.len > 0);
    *tree = (struct key_tree){.root = {.name = prefix}, .separator = separator};
    tree->depth = depth > 0 && depth < KEY_TREE_DEPTH_MAX ? depth : KEY_TREE_DEPTH_MAX;
    tree->open = &tree->root;
}

/* -- Removing -- */

static void free_children(struct key_tree *tree, struct key_tree_node *node)
{
    struct key_tree_node *child = node->first;
    node->first = node->last = NULL;
    while (child) {
        struct key_tree_node *next = child->next;
        free_children(tree, child); /* at most KEY_TREE_DEPTH_MAX deep */
        tree->nodes--;
        tree->name_bytes -= child->name.len;
        free((void *)child->name.ptr);
        free(child);
        child = next;
    }
}

void key_tree_fini(struct key_tree *tree)
{
    free_children(tree, &tree->root);
    tree->open = NULL;
}

static void cut_below(struct key_tree *tree, struct key_tree_node *node)
{
    if (node->depth == tree->depth)
        free_children(tree, node);
    for (struct key_tree_node *child = node->first; child; child = child->next)
        cut_below(tree, child);
}

static bool is_full(const struct key_tree *tree)
{
    return tree->nodes >= KEY_TREE_NODES_MAX || tree->name_bytes >= KEY_TREE_NAME_BYTES_MAX;
}

/* -- Adding -- */

static struct key_tree_node *add_child(struct key_tree *tree, struct key_tree_node *parent,
                                       struct slice name)
{
    struct key_tree_node *child = xcalloc(1, sizeof(*child));
    uint8_t *copy = xmalloc(name.len + 1);
    slice_copy(copy, name);
    *child = (struct key_tree_node){
        .parent = parent, .name = slice_of(copy, name.len), .depth = parent->depth + 1};
    if (parent->last)
        parent->last->next = child;
    else
        parent->first = child;
    parent->last = child;
    tree->nodes++;
    tree->name_bytes += name.len;
    return child;
}

/* Goes from the open node to its child of that name. False: it is only counted in the open one,
 * which making room may have replaced by one above it. */
static bool enter(struct key_tree *tree, struct slice name)
{
    struct key_tree_node *last = tree->open->last;
    if (last && slice_equal(last->name, name)) {
        tree->open = last;
        return true;
    }
    if (is_full(tree)) {
        /* Levels are given up until there is room again, down to the first one. */
        while (tree->depth > 1 && is_full(tree)) {
            tree->depth--;
            while (tree->open->depth > tree->depth)
                tree->open = tree->open->parent;
            cut_below(tree, &tree->root);
        }
        tree->is_cut = true;
    }
    if (is_full(tree) || tree->open->depth >= tree->depth)
        return false;
    tree->open = add_child(tree, tree->open, name);
    return true;
}

void key_tree_add(struct key_tree *tree, struct slice key, uint64_t bytes)
{
    assert(slice_has_prefix(key, tree->root.name));
    struct slice path = slice_sub(key, tree->root.name.len, key.len - tree->root.name.len);
    tree->open = &tree->root;
    while (path.len && tree->open->depth < tree->depth) {
        const uint8_t *at = memmem(path.ptr, path.len, tree->separator.ptr, tree->separator.len);
        struct slice name =
            at ? slice_sub(path, 0, (size_t)(at - path.ptr) + tree->separator.len) : path;
        if (!enter(tree, name))
            break;
        path = slice_sub(path, name.len, path.len - name.len);
    }
    for (struct key_tree_node *node = tree->open; node; node = node->parent) {
        node->keys++;
        node->bytes += bytes;
    }
}

/* -- Order -- */

static uint64_t rank_of(const struct key_tree_node *node, enum key_tree_order order)
{
    return order == KEY_TREE_BY_KEYS ? node->keys : node->bytes;
}

/* Merges two lists in order; among equal nodes those of the first list come first. */
static struct key_tree_node *merge(struct key_tree_node *a, struct key_tree_node *b,
                                   enum key_tree_order order)
{
    struct key_tree_node *first = NULL, **to = &first;
    while (a && b) {
        struct key_tree_node **from = rank_of(b, order) > rank_of(a, order) ? &b : &a;
        *to = *from;
        *from = (*from)->next;
        to = &(*to)->next;
    }
    *to = a ? a : b;
    return first;
}

static struct key_tree_node *sort_list(struct key_tree_node *list, uint64_t count,
                                       enum key_tree_order order)
{
    struct key_tree_node *half = list;
    if (count < 2)
        return list;
    for (uint64_t i = 1; i < count / 2; i++)
        half = half->next;
    struct key_tree_node *rest = half->next;
    half->next = NULL;
    list = sort_list(list, count / 2, order);
    return merge(list, sort_list(rest, count - count / 2, order), order);
}

static void sort_below(struct key_tree_node *node, enum key_tree_order order)
{
    uint64_t count = 0;
    for (struct key_tree_node *child = node->first; child; child = child->next) {
        sort_below(child, order);
        count++;
    }
    node->first = sort_list(node->first, count, order);
    for (struct key_tree_node *child = node->first; child; child = child->next)
        node->last = child;
}

void key_tree_sort(struct key_tree *tree, enum key_tree_order order)
{
    if (order != KEY_TREE_BY_NAME)
        sort_below(&tree->root, order);
}

/* -- Checks -- */

static void check_node(const struct key_tree *tree, const struct key_tree_node *node,
                       uint64_t *nodes, uint64_t *name_bytes)
{
    uint64_t keys = 0, bytes = 0;
    assert(node->depth <= tree->depth);
    for (const struct key_tree_node *child = node->first; child; child = child->next) {
        assert(child->parent == node && child->depth == node->depth + 1);
        assert(child->next || node->last == child);
        keys += child->keys;
        bytes += child->bytes;
        (*nodes)++;
        *name_bytes += child->name.len;
        check_node(tree, child, nodes, name_bytes);
    }
    assert(keys <= node->keys && bytes <= node->bytes);
}

void key_tree_check(const struct key_tree *tree)
{
    uint64_t nodes = 0, name_bytes = 0;
    check_node(tree, &tree->root, &nodes, &name_bytes);
    assert(nodes == tree->nodes && nodes <= KEY_TREE_NODES_MAX);
    assert(name_bytes == tree->name_bytes);
}
