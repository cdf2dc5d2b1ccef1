#include "kube/api/search_budget.h"

#include <limits.h>

/* Those that wait have their shares set apart, so that nobody who comes new takes them. */
static void on_refill(struct deferred *deferred)
{
    struct kube_looks *looks = CONTAINER_OF(deferred, struct kube_looks, refill);
    struct list *link;
    looks->turn += looks->turn == UINT_MAX ? 2 : 1;
    looks->left = KUBE_LOOKS_SHARES * KUBE_LOOKS_PER_TURN;
    while (looks->left && (link = list_pop_front(&looks->waiting)) != NULL) {
        struct kube_looker *looker = LIST_ENTRY(link, struct kube_looker, in_waiting);
        looks->left -= KUBE_LOOKS_PER_TURN;
        looker->granted = looks->turn;
        http_wake(looker->exchange);
    }
    if (looks->left < KUBE_LOOKS_SHARES * KUBE_LOOKS_PER_TURN)
        loop_defer(looks->loop, &looks->refill);
}

void kube_looks_init(struct kube_looks *looks, struct loop *loop)
{
    *looks = (struct kube_looks){.loop = loop, .turn = 1, .refill.fn = on_refill};
    looks->left = KUBE_LOOKS_SHARES * KUBE_LOOKS_PER_TURN;
    list_init(&looks->waiting);
}

void kube_looks_stop(struct kube_looks *looks)
{
    loop_defer_cancel(&looks->refill);
}

void kube_looker_init(struct kube_looker *looker, struct http_exchange *exchange)
{
    *looker = (struct kube_looker){.exchange = exchange};
    list_init(&looker->in_waiting);
}

void kube_looker_fini(struct kube_looker *looker)
{
    list_remove(&looker->in_waiting);
}

unsigned kube_looks_take(struct kube_looks *looks, struct kube_looker *looker, bool follows)
{
    bool granted = looker->granted == looks->turn;
    looker->granted = 0;
    looker->own = follows && !granted;
    if (looker->own)
        return KUBE_LOOKS_OWN;
    if (granted)
        looks->left += KUBE_LOOKS_PER_TURN; /* what was set apart for it */
    if (granted || looks->left >= KUBE_LOOKS_PER_TURN)
        return KUBE_LOOKS_PER_TURN;
    return list_empty(&looks->waiting) ? looks->left : 0;
}

void kube_looks_spend(struct kube_looks *looks, const struct kube_looker *looker, unsigned used)
{
    if (!used || looker->own)
        return;
    assert(looks->left >= used);
    looks->left -= used;
    loop_defer(looks->loop, &looks->refill);
}

void kube_looks_wait(struct kube_looks *looks, struct kube_looker *looker, bool follows)
{
    list_remove(&looker->in_waiting);
    (follows ? list_push_front : list_push_back)(&looks->waiting, &looker->in_waiting);
    loop_defer(looks->loop, &looks->refill);
}
