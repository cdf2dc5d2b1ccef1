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
#ifndef VIGIL_KUBE_API_SEARCH_BUDGET_H
#define VIGIL_KUBE_API_SEARCH_BUDGET_H

#include "base/container/list.h"
#include "io/loop.h"
#include "wire/http/exchange.h"

enum {
    KUBE_LOOKS_PER_TURN = 500, /* of one list or watch: so many objects, or fewer large ones */
    KUBE_LOOKS_OWN = 64,       /* of a watch that follows what happens */
    KUBE_LOOK_BYTES = 2048,
    KUBE_LOOKS_SHARES = 4, /* of all of a face: a few milliseconds */
};

struct kube_looks {
    struct loop *loop;
    unsigned left;          /* for those that come in this turn */
    unsigned turn;          /* grows with each refill; never 0 */
    struct list waiting;    /* struct kube_looker */
    struct deferred refill; /* of the next turn, if anything was taken in this one */
};

/* Who looks; embedded. */
struct kube_looker {
    struct http_exchange *exchange;
    struct list in_waiting; /* links kube_looks.waiting */
    unsigned granted;       /* the turn in which its share is set apart, since it waited */
    bool own;               /* what it has taken is of nobody else */
};

void kube_looks_init(struct kube_looks *looks, struct loop *loop);
void kube_looks_stop(struct kube_looks *looks);

void kube_looker_init(struct kube_looker *looker, struct http_exchange *exchange);
void kube_looker_fini(struct kube_looker *looker); /* waits no more */

/* What it may look at in this turn; 0: nothing, it is to wait. */
unsigned kube_looks_take(struct kube_looks *looks, struct kube_looker *looker, bool follows);
/* What it has used of that. */
void kube_looks_spend(struct kube_looks *looks, const struct kube_looker *looker, unsigned used);
/* Its exchange is woken when it may go on. */
void kube_looks_wait(struct kube_looks *looks, struct kube_looker *looker, bool follows);

static inline unsigned kube_look_cost(size_t bytes, unsigned left)
{
    return (unsigned)size_min(left, 1 + bytes / KUBE_LOOK_BYTES);
}

#endif
