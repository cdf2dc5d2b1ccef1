/*
 * Ranges of byte strings [from, to), and which of them hold a key. One owner, one thread.
 *
 * The links are embedded in what they order, and the tree asks for a link's range; it must not
 * change while the link is in. Ranges may be equal. A binary tree ordered by range, where each link
 * knows which range below it reaches furthest: a search leaves out what ends before the key.
 * Balance comes from a number shuffled out of each link's address and a secret, as in a treap: it
 * needs no room in the link, and no peer can choose it.
 */
#ifndef VIGIL_BASE_CONTAINER_INTERVAL_TREE_H
#define VIGIL_BASE_CONTAINER_INTERVAL_TREE_H

#include "base/slice.h"

struct interval {
    struct slice from;
    struct slice to; /* not part of the range */
    bool endless;    /* everything from `from` on; `to` does not count */
};

struct interval_link {
    struct interval_link *left, *right;
    struct interval_link *furthest; /* whose range reaches furthest, of this link and those below */
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

/* Owns no memory: there is nothing to finish. */
void interval_tree_init(struct interval_tree *tree, interval_of_fn interval_of, uint64_t seed);

void interval_tree_insert(struct interval_tree *tree, struct interval_link *link);
/* The link is in the tree. */
void interval_tree_remove(struct interval_tree *tree, struct interval_link *link);

/* One with exactly this range, or NULL. */
struct interval_link *interval_tree_find(const struct interval_tree *tree,
                                         const struct interval *interval);

/* Visits every link whose range has the key, in order. The tree must not change meanwhile. */
typedef void (*interval_visit_fn)(void *ctx, struct interval_link *link);
void interval_tree_stab(const struct interval_tree *tree, struct slice key, interval_visit_fn visit,
                        void *ctx);

/* For tests: order, balance and reach. */
void interval_tree_check(const struct interval_tree *tree);

#endif
