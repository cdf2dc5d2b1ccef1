#include "kube/handlers/read/search_budget.h"

#include <limits.h>

/* Searchers that wait get their shares first, so that new ones do not take them. */
static void on_refill(struct deferred *deferred)
{
    struct kube_search_budget *budget = CONTAINER_OF(deferred, struct kube_search_budget, refill);
    struct list *link;
    budget->turn += budget->turn == UINT_MAX ? 2 : 1;
    budget->left = KUBE_SEARCH_SHARES * KUBE_SEARCH_PER_TURN;
    while (budget->left && (link = list_pop_front(&budget->waiting)) != NULL) {
        struct kube_searcher *searcher = LIST_ENTRY(link, struct kube_searcher, in_waiting);
        budget->left -= KUBE_SEARCH_PER_TURN;
        searcher->granted = budget->turn;
        http_wake(searcher->exchange);
    }
    if (budget->left < KUBE_SEARCH_SHARES * KUBE_SEARCH_PER_TURN)
        loop_defer(budget->loop, &budget->refill);
}

void kube_search_init(struct kube_search_budget *budget, struct loop *loop)
{
    *budget = (struct kube_search_budget){.loop = loop, .turn = 1, .refill.fn = on_refill};
    budget->left = KUBE_SEARCH_SHARES * KUBE_SEARCH_PER_TURN;
    list_init(&budget->waiting);
}

void kube_search_stop(struct kube_search_budget *budget)
{
    loop_defer_cancel(&budget->refill);
}

unsigned kube_search_take(struct kube_search_budget *budget, struct kube_searcher *searcher,
                          bool follows)
{
    bool granted = searcher->granted == budget->turn;
    searcher->granted = 0;
    searcher->own = follows && !granted;
    if (searcher->own)
        return KUBE_SEARCH_OWN;
    if (granted)
        budget->left += KUBE_SEARCH_PER_TURN; /* the share that was reserved for it */
    if (granted || budget->left >= KUBE_SEARCH_PER_TURN)
        return KUBE_SEARCH_PER_TURN;
    return list_empty(&budget->waiting) ? budget->left : 0;
}

void kube_search_spend(struct kube_search_budget *budget, const struct kube_searcher *searcher,
                       unsigned used)
{
    if (!used || searcher->own)
        return;
    assert(budget->left >= used);
    budget->left -= used;
    loop_defer(budget->loop, &budget->refill);
}

void kube_search_wait(struct kube_search_budget *budget, struct kube_searcher *searcher,
                      bool follows)
{
    list_remove(&searcher->in_waiting);
    (follows ? list_push_front : list_push_back)(&budget->waiting, &searcher->in_waiting);
    loop_defer(budget->loop, &budget->refill);
}
