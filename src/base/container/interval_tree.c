#include "base/container/interval_tree.h"

/* Negative when a ends before b. */
static int end_compare(const struct interval *a, const struct interval *b)
{
    if (a->endless || b->endless)
        return a->endless - b->endless;
    return slice_compare(a->to, b->to);
}

static int interval_compare(const struct interval *a, const struct interval *b)
{
    int order = slice_compare(a->from, b->from);
    return order ? order : end_compare(a, b);
}

/* Links of equal ranges are ordered by their addresses. */
static int link_compare(const struct interval_tree *tree, const struct interval_link *a,
                        const struct interval *a_interval, const struct interval_link *b)
{
    struct interval b_interval = tree->interval_of(b);
    int order = interval_compare(a_interval, &b_interval);
    return order ? order : ((uintptr_t)a > (uintptr_t)b) - ((uintptr_t)a < (uintptr_t)b);
}

static uint64_t priority(const struct interval_tree *tree, const struct interval_link *link)
{
    uint64_t number = ((uint64_t)(uintptr_t)link ^ tree->secret) * 0x9e3779b97f4a7c15u;
    number = (number ^ (number >> 32)) * 0xd1b54a32d192ed03u;
    return number ^ (number >> 29);
}

/* Whether a is nearer to the root than b. */
static bool is_above(const struct interval_tree *tree, const struct interval_link *a,
                     const struct interval_link *b)
{
    uint64_t of_a = priority(tree, a), of_b = priority(tree, b);
    return of_a > of_b || (of_a == of_b && (uintptr_t)a > (uintptr_t)b);
}

static void reach_further(const struct interval_tree *tree, struct interval_link *link,
                          const struct interval_link *below)
{
    if (!below)
        return;
    struct interval own = tree->interval_of(link->furthest);
    struct interval other = tree->interval_of(below->furthest);
    if (end_compare(&other, &own) > 0)
        link->furthest = below->furthest;
}

static void update(const struct interval_tree *tree, struct interval_link *link)
{
    link->furthest = link;
    reach_further(tree, link, link->left);
    reach_further(tree, link, link->right);
}

void interval_tree_init(struct interval_tree *tree, interval_of_fn interval_of, uint64_t seed)
{
    *tree = (struct interval_tree){.interval_of = interval_of, .secret = seed};
}

/* Splits a subtree in two: the links before the given one and those after it. */
static void split(const struct interval_tree *tree, struct interval_link *root,
                  const struct interval_link *link, const struct interval *interval,
                  struct interval_link **ret_before, struct interval_link **ret_behind)
{
    if (!root) {
        *ret_before = *ret_behind = NULL;
        return;
    }
    if (link_compare(tree, link, interval, root) < 0) {
        split(tree, root->left, link, interval, ret_before, &root->left);
        *ret_behind = root;
    } else {
        split(tree, root->right, link, interval, &root->right, ret_behind);
        *ret_before = root;
    }
    update(tree, root);
}

/* Joins two subtrees; every link of `before` precedes every link of `behind`. */
static struct interval_link *join(const struct interval_tree *tree, struct interval_link *before,
                                  struct interval_link *behind)
{
    if (!before || !behind)
        return before ? before : behind;
    struct interval_link *root;
    if (is_above(tree, before, behind)) {
        root = before;
        root->right = join(tree, root->right, behind);
    } else {
        root = behind;
        root->left = join(tree, before, root->left);
    }
    update(tree, root);
    return root;
}

static void insert(const struct interval_tree *tree, struct interval_link **root,
                   struct interval_link *link, const struct interval *interval)
{
    if (!*root || is_above(tree, link, *root)) {
        split(tree, *root, link, interval, &link->left, &link->right);
        *root = link;
    } else if (link_compare(tree, link, interval, *root) < 0) {
        insert(tree, &(*root)->left, link, interval);
    } else {
        insert(tree, &(*root)->right, link, interval);
    }
    update(tree, *root);
}

static void take_out(const struct interval_tree *tree, struct interval_link **root,
                     const struct interval_link *link, const struct interval *interval)
{
    assert(*root);
    if (*root == link) {
        *root = join(tree, link->left, link->right);
        return;
    }
    if (link_compare(tree, link, interval, *root) < 0)
        take_out(tree, &(*root)->left, link, interval);
    else
        take_out(tree, &(*root)->right, link, interval);
    update(tree, *root);
}

void interval_tree_insert(struct interval_tree *tree, struct interval_link *link)
{
    struct interval interval = tree->interval_of(link);
    insert(tree, &tree->root, link, &interval);
    tree->count++;
}

void interval_tree_remove(struct interval_tree *tree, struct interval_link *link)
{
    struct interval interval = tree->interval_of(link);
    take_out(tree, &tree->root, link, &interval);
    *link = (struct interval_link){0};
    tree->count--;
}

struct interval_link *interval_tree_find(const struct interval_tree *tree,
                                         const struct interval *interval)
{
    struct interval_link *link = tree->root;
    while (link) {
        struct interval here = tree->interval_of(link);
        int order = interval_compare(interval, &here);
        if (order == 0)
            return link;
        link = order < 0 ? link->left : link->right;
    }
    return NULL;
}

static void stab(const struct interval_tree *tree, struct interval_link *root, struct slice key,
                 interval_visit_fn visit, void *ctx)
{
    while (root) {
        struct interval furthest = tree->interval_of(root->furthest);
        if (!furthest.endless && slice_compare(furthest.to, key) <= 0)
            return;
        stab(tree, root->left, key, visit, ctx);
        struct interval interval = tree->interval_of(root);
        if (slice_compare(interval.from, key) > 0)
            return;
        if (interval_has(&interval, key))
            visit(ctx, root);
        root = root->right;
    }
}

void interval_tree_stab(const struct interval_tree *tree, struct slice key, interval_visit_fn visit,
                        void *ctx)
{
    stab(tree, tree->root, key, visit, ctx);
}

static size_t check(const struct interval_tree *tree, const struct interval_link *root,
                    const struct interval_link **before)
{
    if (!root)
        return 0;
    size_t count = 1 + check(tree, root->left, before);
    struct interval interval = tree->interval_of(root);
    struct interval furthest = tree->interval_of(root->furthest);
    assert(!*before || link_compare(tree, root, &interval, *before) > 0);
    assert(end_compare(&interval, &furthest) <= 0);
    *before = root;
    const struct interval_link *below[] = {root->left, root->right};
    for (size_t i = 0; i < COUNT_OF(below); i++) {
        if (!below[i])
            continue;
        struct interval reach = tree->interval_of(below[i]->furthest);
        assert(is_above(tree, root, below[i]));
        assert(end_compare(&reach, &furthest) <= 0);
    }
    return count + check(tree, root->right, before);
}

void interval_tree_check(const struct interval_tree *tree)
{
    const struct interval_link *before = NULL;
    size_t count = check(tree, tree->root, &before);
    assert(count == tree->count);
}
