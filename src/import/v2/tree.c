#include "import/v2/tree.h"

#include "base/xalloc.h"

#include <inttypes.h>

/* An expiry before the year 2000 is ignored: etcd wrote such times for files that do not expire. */
#define EXPIRES_NS_MIN (INT64_C(946684800) * 1000 * 1000 * 1000)

/* -- Nodes -- */

static struct slice name_of(const void *value)
{
    const struct v2_tree_node *node = value;
    return node->name;
}

static struct slice copy_of(struct slice bytes)
{
    if (bytes.len == 0)
        return SLICE_EMPTY;
    uint8_t *copy = xmalloc(bytes.len);
    slice_copy(copy, bytes);
    return slice_of(copy, bytes.len);
}

static void free_bytes(struct slice *bytes)
{
    free((void *)(uintptr_t)bytes->ptr);
    *bytes = SLICE_EMPTY;
}

static void free_alone(struct v2_tree *tree, struct v2_tree_node *node)
{
    if (node->children)
        hash_map_fini(node->children);
    free(node->children);
    heap_remove(&tree->expiry, &node->in_expiry);
    free_bytes(&node->name);
    free_bytes(&node->value);
    free(node);
}

/* With everything below it. It is in no directory any more. Those that are still to be freed are
 * linked by their parents, so that deep directories take no stack. */
static void free_node(struct v2_tree *tree, struct v2_tree_node *node)
{
    struct v2_tree_node *next = node, *child;
    tree->node_count -= node->parent != NULL;
    node->parent = NULL;
    while ((node = next)) {
        next = node->parent;
        if (node->children) {
            MAP_FOREACH (child, node->children) {
                child->parent = next;
                next = child;
            }
            tree->node_count -= node->children->count;
        }
        free_alone(tree, node);
    }
}

static void remove_node(struct v2_tree *tree, struct v2_tree_node *node)
{
    hash_map_remove(node->parent->children, node->name);
    free_node(tree, node);
}

void v2_tree_init(struct v2_tree *tree, uint64_t seed)
{
    *tree = (struct v2_tree){
        .root = xcalloc(1, sizeof(*tree->root)),
        .seed = seed,
        .nodes_max = V2_TREE_NODES_MAX,
    };
    v2_tree_make_dir(tree, tree->root);
}

void v2_tree_fini(struct v2_tree *tree)
{
    if (tree->root)
        free_node(tree, tree->root);
    tree->root = NULL;
    heap_fini(&tree->expiry);
}

struct v2_tree_node *v2_tree_add(struct v2_tree *tree, struct v2_tree_node *dir, struct slice name)
{
    assert(dir->children);
    if (hash_map_get(dir->children, name))
        return NULL;
    struct v2_tree_node *node = xcalloc(1, sizeof(*node));
    void *replaced;
    node->parent = dir;
    node->name = copy_of(name);
    if (hash_map_put(dir->children, node, &replaced) != ST_OK)
        xalloc_check(NULL, sizeof(struct hash_map_slot));
    tree->node_count++;
    return node;
}

void v2_tree_make_dir(struct v2_tree *tree, struct v2_tree_node *node)
{
    assert(!node->children);
    node->children = xcalloc(1, sizeof(*node->children));
    hash_map_init(node->children, name_of, tree->seed);
}

void v2_tree_set_value(struct v2_tree_node *node, struct slice value)
{
    struct slice copy = copy_of(value); /* the value may be the node's own */
    free_bytes(&node->value);
    node->value = copy;
}

void v2_tree_set_expiry(struct v2_tree *tree, struct v2_tree_node *node, int64_t expires_ns)
{
    node->expires_ns = expires_ns;
    if (expires_ns == 0)
        heap_remove(&tree->expiry, &node->in_expiry);
    else if (heap_put(&tree->expiry, &node->in_expiry, expires_ns) != ST_OK)
        xalloc_check(NULL, sizeof(struct heap_entry));
}

/* -- Paths -- */

/* The parts of a path as Go's path.Clean leaves them: without empty ones, "." and "..". */
struct parts {
    struct slice all[V2_TREE_DEPTH_MAX];
    size_t count;
};

static enum status parts_split(struct slice path, struct parts *ret_parts)
{
    ret_parts->count = 0;
    while (path.len) {
        struct slice part = slice_cut(&path, '/');
        if (part.len == 0 || slice_is(part, "."))
            continue;
        if (slice_is(part, "..")) {
            ret_parts->count -= ret_parts->count > 0;
            continue;
        }
        if (ret_parts->count == V2_TREE_DEPTH_MAX)
            return ST_LIMIT;
        ret_parts->all[ret_parts->count++] = part;
    }
    return ST_OK;
}

static struct v2_tree_node *find_parts(const struct v2_tree *tree, const struct parts *parts)
{
    struct v2_tree_node *node = tree->root;
    for (size_t i = 0; i < parts->count && node; i++)
        node = node->children ? hash_map_get(node->children, parts->all[i]) : NULL;
    return node;
}

/* What a path names, if it is not the root, which cannot be changed. */
static enum status find_changeable(const struct v2_tree *tree, struct slice path,
                                   struct v2_tree_node **ret_node)
{
    struct parts parts;
    TRY(parts_split(path, &parts));
    *ret_node = parts.count ? find_parts(tree, &parts) : NULL;
    return ST_OK;
}

/* The directory of the last part. Missing ones are created; NULL: one of them is a file. */
static struct v2_tree_node *make_dirs(struct v2_tree *tree, const struct parts *parts)
{
    struct v2_tree_node *dir = tree->root;
    for (size_t i = 0; i + 1 < parts->count; i++) {
        struct v2_tree_node *child = hash_map_get(dir->children, parts->all[i]);
        if (child && !child->children)
            return NULL;
        if (!child) {
            child = v2_tree_add(tree, dir, parts->all[i]);
            child->created = child->modified = tree->index + 1;
            v2_tree_make_dir(tree, child);
        }
        dir = child;
    }
    return dir;
}

/* -- Requests -- */

static void create_at(struct v2_tree *tree, const struct parts *parts,
                      const struct v2_tree_change *change, struct slice value, bool replaces)
{
    struct v2_tree_node *dir = make_dirs(tree, parts);
    if (!dir)
        return;
    struct slice name = parts->all[parts->count - 1];
    struct v2_tree_node *old = hash_map_get(dir->children, name);
    /* A directory is never replaced, and a file only by a set. */
    if (old && (!replaces || old->children))
        return;
    struct slice copy = copy_of(value); /* it may be that of the old node */
    if (old)
        remove_node(tree, old);
    struct v2_tree_node *node = v2_tree_add(tree, dir, name);
    node->created = node->modified = ++tree->index;
    if (change->is_dir) {
        v2_tree_make_dir(tree, node);
        free_bytes(&copy);
    }
    node->value = copy;
    v2_tree_set_expiry(tree, node, change->expires_ns < EXPIRES_NS_MIN ? 0 : change->expires_ns);
}

/* A path may add as many nodes as it has parts. */
static enum status check_room(const struct v2_tree *tree, const struct parts *parts)
{
    return parts->count > tree->nodes_max - size_min(tree->node_count, tree->nodes_max) ? ST_LIMIT
                                                                                        : ST_OK;
}

enum status v2_tree_set(struct v2_tree *tree, const struct v2_tree_change *change)
{
    struct parts parts;
    TRY(parts_split(change->path, &parts));
    if (parts.count == 0)
        return ST_OK;
    const struct v2_tree_node *old = find_parts(tree, &parts);
    if (change->is_refresh && !old)
        return ST_OK;
    if (!old)
        TRY(check_room(tree, &parts));
    create_at(tree, &parts, change, change->is_refresh ? old->value : change->value, true);
    return ST_OK;
}

enum status v2_tree_create(struct v2_tree *tree, const struct v2_tree_change *change,
                           bool is_unique)
{
    struct parts parts;
    char unique[24];
    TRY(parts_split(change->path, &parts));
    if (is_unique) {
        if (parts.count == V2_TREE_DEPTH_MAX)
            return ST_LIMIT;
        /* etcd names a file that is created in order by the index that it will get. */
        snprintf(unique, sizeof(unique), "%020" PRIu64, tree->index + 1);
        parts.all[parts.count++] = slice_from_text(unique);
    }
    TRY(check_room(tree, &parts));
    if (parts.count)
        create_at(tree, &parts, change, change->value, false);
    return ST_OK;
}

enum status v2_tree_update(struct v2_tree *tree, const struct v2_tree_change *change)
{
    struct v2_tree_node *node;
    TRY(find_changeable(tree, change->path, &node));
    if (!node || (node->children && change->value.len))
        return ST_OK;
    tree->index++;
    if (!node->children) { /* only the expiry of a directory changes */
        if (!change->is_refresh)
            v2_tree_set_value(node, change->value);
        node->modified = tree->index;
    }
    v2_tree_set_expiry(tree, node, change->expires_ns);
    return ST_OK;
}

static bool is_as_expected(const struct v2_tree_node *node, const struct v2_tree_change *change)
{
    return (change->prev_index == 0 || node->modified == change->prev_index) &&
           (change->prev_value.len == 0 || slice_equal(node->value, change->prev_value));
}

enum status v2_tree_compare_and_swap(struct v2_tree *tree, const struct v2_tree_change *change)
{
    struct v2_tree_node *node;
    TRY(find_changeable(tree, change->path, &node));
    if (!node || node->children || !is_as_expected(node, change))
        return ST_OK;
    if (!change->is_refresh)
        v2_tree_set_value(node, change->value);
    node->modified = ++tree->index;
    v2_tree_set_expiry(tree, node, change->expires_ns);
    return ST_OK;
}

enum status v2_tree_compare_and_delete(struct v2_tree *tree, const struct v2_tree_change *change)
{
    struct v2_tree_node *node;
    TRY(find_changeable(tree, change->path, &node));
    if (!node || node->children || !is_as_expected(node, change))
        return ST_OK;
    tree->index++;
    remove_node(tree, node);
    return ST_OK;
}

enum status v2_tree_delete(struct v2_tree *tree, struct slice path, bool is_dir, bool is_recursive)
{
    struct v2_tree_node *node;
    TRY(find_changeable(tree, path, &node));
    if (!node)
        return ST_OK;
    if (node->children && !is_recursive && (!is_dir || node->children->count))
        return ST_OK;
    tree->index++;
    remove_node(tree, node);
    return ST_OK;
}

void v2_tree_expire(struct v2_tree *tree, int64_t until_ns)
{
    struct heap_link *link;
    while ((link = heap_pop(&tree->expiry, until_ns))) {
        struct v2_tree_node *node = CONTAINER_OF(link, struct v2_tree_node, in_expiry);
        tree->index++;
        if (node->parent)
            remove_node(tree, node);
        else
            node->expires_ns = 0; /* the root stays */
    }
}

/* -- Reading -- */

const struct v2_tree_node *v2_tree_find(const struct v2_tree *tree, const char *path)
{
    struct parts parts;
    if (parts_split(slice_from_text(path), &parts) != ST_OK)
        return NULL;
    return find_parts(tree, &parts);
}

static int compare_names(const void *left, const void *right)
{
    const struct v2_tree_node *const *a = left, *const *b = right;
    return slice_compare((*a)->name, (*b)->name);
}

const struct v2_tree_node **v2_tree_children(const struct v2_tree_node *dir, size_t *ret_count)
{
    const struct v2_tree_node **all =
        xcalloc(dir->children->count + 1, sizeof(const struct v2_tree_node *));
    const struct v2_tree_node *child;
    size_t count = 0;
    MAP_FOREACH (child, dir->children) {
        if (child->name.len == 0 || child->name.ptr[0] != '_')
            all[count++] = child;
    }
    qsort(all, count, sizeof(*all), compare_names);
    *ret_count = count;
    return all;
}

/* Puts the children of a node behind those that are still to be checked. */
static size_t check_node(const struct v2_tree_node *node, const struct v2_tree_node **more)
{
    const struct v2_tree_node *child;
    size_t count = 0;
    assert(heap_has(&node->in_expiry) == (node->expires_ns != 0));
    if (!node->children)
        return 0;
    hash_map_check(node->children);
    MAP_FOREACH (child, node->children) {
        assert(child->parent == node);
        more[count++] = child;
    }
    return count;
}

void v2_tree_check(const struct v2_tree *tree)
{
    const struct v2_tree_node **all = xcalloc(tree->node_count + 1, sizeof(*all));
    size_t count = 1, expiring = 0;
    heap_check(&tree->expiry);
    assert(!tree->root->parent);
    all[0] = tree->root;
    for (size_t i = 0; i < count; i++) {
        expiring += all[i]->expires_ns != 0;
        count += check_node(all[i], all + count);
    }
    assert(count == tree->node_count + 1 && expiring == tree->expiry.count);
    free(all);
}
