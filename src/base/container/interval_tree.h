/*
 * Ranges of byte strings [from, to), and which of them contain a key. One owner, one thread.
 *
 * The links are embedded in the ordered objects, and a callback gives a link's range, which must
 * not change while the link is in the tree. Ranges may be equal. A binary tree ordered by range, in
 * which each link knows which range below it has the largest end: a search skips subtrees that end
 * before the key. It is balanced like a treap, by a hash of each link's address and a secret, which
 * needs no memory in the link and cannot be chosen by a peer.
 */
#ifndef VIGIL_BASE_CONTAINER_INTERVAL_TREE_H
#define VIGIL_BASE_CONTAINER_INTERVAL_TREE_H

#include "base/slice.h"

struct interval {
    struct slice from;
    struct slice to; /* not part of the range */
    bool endless;    /* no upper bound; `to` is ignored */
};

struct interval_link {
    struct interval_link *left, *right;
    struct interval_link *furthest; /* the link with the largest end, of this one and those below */
};

typedef struct interval (*interval_of_fn)(const struct interval_link *link);

struct interval_tree {
    struct interval_link *root;
    size_t count;
    interval_of_fn interval_of;
    uint64_t secret;
};

static inline bool interval_has(const struct interval *interval, struct slice key)
{
    return slice_compare(interval->from, key) <= 0 &&
           (interval->endless || slice_compare(key, interval->to) < 0);
}

/* Owns no memory: nothing needs to be finished. */
void interval_tree_init(struct interval_tree *tree, interval_of_fn interval_of, uint64_t seed);

void interval_tree_insert(struct interval_tree *tree, struct interval_link *link);
/* The link must be in the tree. */
void interval_tree_remove(struct interval_tree *tree, struct interval_link *link);

/* A link with exactly this range, or NULL. */
struct interval_link *interval_tree_find(const struct interval_tree *tree,
                                         const struct interval *interval);

/* Visits every link whose range contains the key, in order. The tree must not change meanwhile. */
typedef void (*interval_visit_fn)(void *ctx, struct interval_link *link);
void interval_tree_stab(const struct interval_tree *tree, struct slice key, interval_visit_fn visit,
                        void *ctx);

/* For tests: order, balance and largest ends. */
void interval_tree_check(const struct interval_tree *tree);

#endif
