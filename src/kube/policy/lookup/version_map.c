#include "kube/policy/lookup/version_map.h"

#include "base/xalloc.h"

/* The weights that keep a tree balanced with one rotation for each node on the path (Hirai and
 * Yamamoto, "Balancing weight-balanced trees", 2011). */
enum { DELTA = 3, RATIO = 2 };

struct version_node {
    _Atomic size_t refs;
    size_t count; /* items of this tree */
    struct version_node *left, *right;
    struct version_item *item;
};
_Static_assert(sizeof(struct version_node) <= VERSION_NODE_BYTES, "what users count for it");

void version_item_ref(struct version_item *item)
{
    atomic_fetch_add_explicit(&item->refs, 1, memory_order_relaxed);
}

/* Whether it was the last reference. What other threads have read is read before it is freed. */
static bool was_last(_Atomic size_t *refs)
{
    return atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel) == 1;
}

void version_item_unref(struct version_item *item)
{
    if (item && was_last(&item->refs))
        item->free(item);
}

/* -- Nodes. Functions that make one take over the references of their arguments. -- */

static struct version_node *ref(struct version_node *node)
{
    if (node)
        atomic_fetch_add_explicit(&node->refs, 1, memory_order_relaxed);
    return node;
}

static void unref(struct version_node *node)
{
    while (node && was_last(&node->refs)) {
        struct version_node *right = node->right;
        unref(node->left);
        version_item_unref(node->item);
        free(node);
        node = right;
    }
}

static struct version_item *item_of(const struct version_node *node)
{
    version_item_ref(node->item);
    return node->item;
}

static size_t count_of(const struct version_node *node)
{
    return node ? node->count : 0;
}

static struct version_node *make(struct version_node *left, struct version_item *item,
                                 struct version_node *right)
{
    struct version_node *node = xmalloc(sizeof(*node));
    *node = (struct version_node){
        .refs = 1,
        .count = count_of(left) + 1 + count_of(right),
        .left = left,
        .right = right,
        .item = item,
    };
    return node;
}

static struct version_node *rotate_left(struct version_node *left, struct version_item *item,
                                        struct version_node *right)
{
    struct version_node *inner = right->left, *result;
    if (count_of(inner) < RATIO * count_of(right->right))
        result = make(make(left, item, ref(inner)), item_of(right), ref(right->right));
    else
        result = make(make(left, item, ref(inner->left)), item_of(inner),
                      make(ref(inner->right), item_of(right), ref(right->right)));
    unref(right);
    return result;
}

static struct version_node *rotate_right(struct version_node *left, struct version_item *item,
                                         struct version_node *right)
{
    struct version_node *inner = left->right, *result;
    if (count_of(inner) < RATIO * count_of(left->left))
        result = make(ref(left->left), item_of(left), make(ref(inner), item, right));
    else
        result = make(make(ref(left->left), item_of(left), ref(inner->left)), item_of(inner),
                      make(ref(inner->right), item, right));
    unref(left);
    return result;
}

/* One side has at most one item more or less than it had when the two were balanced. */
static struct version_node *balance(struct version_node *left, struct version_item *item,
                                    struct version_node *right)
{
    size_t l = count_of(left), r = count_of(right);
    if (l + r > 1 && r > DELTA * l)
        return rotate_left(left, item, right);
    if (l + r > 1 && l > DELTA * r)
        return rotate_right(left, item, right);
    return make(left, item, right);
}

static struct version_node *put(struct version_node *node, struct version_item *item)
{
    if (!node)
        return make(NULL, item, NULL);
    int order = slice_compare(item->key, node->item->key);
    if (order < 0)
        return balance(put(node->left, item), item_of(node), ref(node->right));
    if (order > 0)
        return balance(ref(node->left), item_of(node), put(node->right, item));
    return make(ref(node->left), item, ref(node->right));
}

static struct version_node *without_first(struct version_node *node,
                                          struct version_item **ret_first)
{
    if (node->left)
        return balance(without_first(node->left, ret_first), item_of(node), ref(node->right));
    *ret_first = item_of(node);
    return ref(node->right);
}

static struct version_node *without_last(struct version_node *node, struct version_item **ret_last)
{
    if (node->right)
        return balance(ref(node->left), item_of(node), without_last(node->right, ret_last));
    *ret_last = item_of(node);
    return ref(node->left);
}

/* Both sides of a node that is gone; the larger one gives the item in the middle. */
static struct version_node *join(struct version_node *left, struct version_node *right)
{
    struct version_item *middle = NULL;
    if (!left || !right)
        return ref(left ? left : right);
    if (left->count > right->count) {
        struct version_node *rest = without_last(left, &middle);
        return balance(rest, middle, ref(right));
    }
    struct version_node *rest = without_first(right, &middle);
    return balance(ref(left), middle, rest);
}

/* The key is in the tree. */
static struct version_node *without(struct version_node *node, struct slice key)
{
    int order = slice_compare(key, node->item->key);
    if (order < 0)
        return balance(without(node->left, key), item_of(node), ref(node->right));
    if (order > 0)
        return balance(ref(node->left), item_of(node), without(node->right, key));
    return join(node->left, node->right);
}

/* -- Maps -- */

static void replace(struct version_map *map, struct version_node *root)
{
    unref(map->root);
    map->root = root;
}

struct version_map version_map_dup(const struct version_map *map)
{
    return (struct version_map){.root = ref(map->root)};
}

void version_map_fini(struct version_map *map)
{
    replace(map, NULL);
}

size_t version_map_count(const struct version_map *map)
{
    return count_of(map->root);
}

struct version_item *version_map_get(const struct version_map *map, struct slice key)
{
    const struct version_node *node = map->root;
    while (node) {
        int order = slice_compare(key, node->item->key);
        if (order == 0)
            return node->item;
        node = order < 0 ? node->left : node->right;
    }
    return NULL;
}

void version_map_put(struct version_map *map, struct version_item *item)
{
    replace(map, put(map->root, item));
}

bool version_map_remove(struct version_map *map, struct slice key)
{
    if (!version_map_get(map, key))
        return false;
    replace(map, without(map->root, key));
    return true;
}

static bool each(const struct version_node *node, bool (*fn)(void *ctx, struct version_item *item),
                 void *ctx)
{
    for (; node; node = node->right)
        if (!each(node->left, fn, ctx) || !fn(ctx, node->item))
            return false;
    return true;
}

bool version_map_each(const struct version_map *map,
                      bool (*fn)(void *ctx, struct version_item *item), void *ctx)
{
    return each(map->root, fn, ctx);
}

static void push(struct version_cursor *cursor, const struct version_node *node)
{
    assert(cursor->depth < VERSION_DEPTH_MAX);
    cursor->path[cursor->depth++] = node;
}

void version_cursor_seek(struct version_cursor *cursor, const struct version_map *map,
                         struct slice key)
{
    const struct version_node *node = map->root;
    cursor->depth = 0;
    while (node) {
        bool smaller = slice_compare(node->item->key, key) < 0;
        if (!smaller)
            push(cursor, node);
        node = smaller ? node->right : node->left;
    }
}

struct version_item *version_cursor_next(struct version_cursor *cursor)
{
    if (!cursor->depth)
        return NULL;
    const struct version_node *node = cursor->path[--cursor->depth];
    for (const struct version_node *more = node->right; more; more = more->left)
        push(cursor, more);
    return node->item;
}

static const struct version_item *check(const struct version_node *node,
                                        const struct version_item *last)
{
    if (!node)
        return last;
    size_t l = count_of(node->left), r = count_of(node->right);
    assert(node->refs && node->item->refs && node->count == l + r + 1);
    assert(l + r <= 1 || (l <= DELTA * r && r <= DELTA * l));
    last = check(node->left, last);
    assert(!last || slice_compare(last->key, node->item->key) < 0);
    return check(node->right, node->item);
}

void version_map_check(const struct version_map *map)
{
    (void)check(map->root, NULL);
}
