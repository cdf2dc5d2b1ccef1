/*
 * How many objects the lists and watches of an API may examine in one turn: each has a share, and
 * all together a few shares, so that a thousand of them do not delay other requests. One that needs
 * more waits and continues in a later turn, in the order of arrival.
 *
 *     take ─► examine … ─► spend          nothing left: wait ─► http_wake, with a reserved share
 *
 * One per API, on its thread.
 */
#ifndef VIGIL_KUBE_HANDLERS_READ_SEARCH_BUDGET_H
#define VIGIL_KUBE_HANDLERS_READ_SEARCH_BUDGET_H

#include "base/container/list.h"
#include "io/loop.h"
#include "wire/http/exchange.h"

enum {
    KUBE_SEARCH_PER_TURN = 500, /* objects of one list or watch; fewer large ones */
    KUBE_SEARCH_OWN = 64, /* objects of a watch that is close to the current revision; not shared */
    KUBE_SEARCH_BYTES = 2048,
    KUBE_SEARCH_SHARES = 4, /* shares of all searchers of an API: a few milliseconds */
};

struct kube_search_budget {
    struct loop *loop;
    unsigned left;       /* for searchers that arrive in this turn */
    unsigned turn;       /* grows with each refill; never 0 */
    size_t looked;       /* bytes that the step of a watch that is being made has examined */
    struct list waiting; /* struct kube_searcher */
    /* Refills the budget in the next turn, if anything was taken in this one. */
    struct deferred refill;
};

/* A list or watch that examines objects; embedded in it. */
struct kube_searcher {
    unsigned granted; /* the turn for which its share is reserved, after it has waited */
    bool own;         /* what it has taken is not part of the shared budget */
    struct http_exchange *exchange;
    struct list in_waiting; /* links kube_search_budget.waiting */
};

void kube_search_init(struct kube_search_budget *budget, struct loop *loop);
void kube_search_stop(struct kube_search_budget *budget);

static inline void kube_searcher_init(struct kube_searcher *searcher,
                                      struct http_exchange *exchange)
{
    *searcher = (struct kube_searcher){.exchange = exchange};
    list_init(&searcher->in_waiting);
}

static inline void kube_searcher_fini(struct kube_searcher *searcher)
{
    list_remove(&searcher->in_waiting); /* does nothing unless it waits */
}

/* How many objects it may examine in this turn; 0: it must wait. */
unsigned kube_search_take(struct kube_search_budget *budget, struct kube_searcher *searcher,
                          bool follows);
/* How many of them it has examined. */
void kube_search_spend(struct kube_search_budget *budget, const struct kube_searcher *searcher,
                       unsigned used);
/* Its exchange is woken when it may continue. */
void kube_search_wait(struct kube_search_budget *budget, struct kube_searcher *searcher,
                      bool follows);

static inline unsigned kube_search_cost(size_t bytes, unsigned left)
{
    return (unsigned)size_min(left, 1 + bytes / KUBE_SEARCH_BYTES);
}

#endif
