/*
 * How much the lists and watches of a face look at in one turn that may not be wanted: each has its
 * share, and all together no more than a few shares, so that a thousand who search do not keep
 * others waiting. Who wants more waits, and goes on in a later turn, in the order that they came.
 *
 *     take ─► look, look … ─► spend          nothing left: wait ─► http_wake, with a share of its
 * own
 *
 * One per face, on its thread.
 */
#ifndef VIGIL_KUBE_READ_SEARCH_BUDGET_H
#define VIGIL_KUBE_READ_SEARCH_BUDGET_H

#include "base/container/list.h"
#include "io/loop.h"
#include "wire/http/exchange.h"

enum {
    KUBE_SEARCH_PER_TURN = 500, /* of one list or watch: so many objects, or fewer large ones */
    KUBE_SEARCH_OWN = 64,       /* of a watch that follows what happens */
    KUBE_SEARCH_BYTES = 2048,
    KUBE_SEARCH_SHARES = 4, /* of all of a face: a few milliseconds */
};

struct kube_search_budget {
    struct loop *loop;
    unsigned left;          /* for those that come in this turn */
    unsigned turn;          /* grows with each refill; never 0 */
    struct list waiting;    /* struct kube_searcher */
    struct deferred refill; /* of the next turn, if anything was taken in this one */
};

/* Who looks; embedded. */
struct kube_searcher {
    struct http_exchange *exchange;
    struct list in_waiting; /* links kube_search_budget.waiting */
    unsigned granted;       /* the turn in which its share is set apart, since it waited */
    bool own;               /* what it has taken is of nobody else */
};

void kube_search_init(struct kube_search_budget *budget, struct loop *loop);
void kube_search_stop(struct kube_search_budget *budget);

void kube_searcher_init(struct kube_searcher *searcher, struct http_exchange *exchange);
void kube_searcher_fini(struct kube_searcher *searcher); /* waits no more */

/* What it may look at in this turn; 0: nothing, it is to wait. */
unsigned kube_search_take(struct kube_search_budget *budget, struct kube_searcher *searcher,
                          bool follows);
/* What it has used of that. */
void kube_search_spend(struct kube_search_budget *budget, const struct kube_searcher *searcher,
                       unsigned used);
/* Its exchange is woken when it may go on. */
void kube_search_wait(struct kube_search_budget *budget, struct kube_searcher *searcher,
                      bool follows);

static inline unsigned kube_search_cost(size_t bytes, unsigned left)
{
    return (unsigned)size_min(left, 1 + bytes / KUBE_SEARCH_BYTES);
}

#endif
