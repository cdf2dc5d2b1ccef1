#include "io/timer.h"

/* Both are roots. Returns the earlier one, with the other as its first child. */
static struct timer *meld(struct timer *a, struct timer *b)
{
    if (!a)
        return b;
    if (!b)
        return a;
    if (b->at_ns < a->at_ns) {
        struct timer *earlier = b;
        b = a;
        a = earlier;
    }
    /* A first child points back to its parent, every other one to its left sibling. */
    b->next = a->child;
    b->previous = a;
    if (b->next)
        b->next->previous = b;
    a->child = b;
    return a;
}

/* Melds siblings in pairs from the left, then the pairs from the right. This order makes removal
 * cheap on average. */
static struct timer *meld_siblings(struct timer *first)
{
    struct timer *pairs = NULL; /* linked by next, the last pair first */
    while (first) {
        struct timer *a = first;
        struct timer *b = a->next;
        first = b ? b->next : NULL;
        a->next = a->previous = NULL;
        if (b)
            b->next = b->previous = NULL;
        a = meld(a, b);
        a->next = pairs;
        pairs = a;
    }
    struct timer *root = NULL;
    while (pairs) {
        struct timer *rest = pairs->next;
        pairs->next = NULL;
        root = meld(root, pairs);
        pairs = rest;
    }
    return root;
}

static void unlink_from_siblings(struct timer *timer)
{
    assert(timer->previous);
    if (timer->previous->child == timer)
        timer->previous->child = timer->next;
    else
        timer->previous->next = timer->next;
    if (timer->next)
        timer->next->previous = timer->previous;
}

void timers_cancel(struct timers *timers, struct timer *timer)
{
    if (!timer->set)
        return;
    struct timer *orphans = meld_siblings(timer->child);
    if (timer == timers->root) {
        timers->root = orphans;
    } else {
        unlink_from_siblings(timer);
        timers->root = meld(timers->root, orphans);
    }
    timer->child = timer->next = timer->previous = NULL;
    timer->set = false;
}

void timers_set(struct timers *timers, struct timer *timer, int64_t at_ns)
{
    assert(timer->fn);
    /* Setting a timer again moves it. */
    timers_cancel(timers, timer);
    timer->at_ns = at_ns;
    timer->set = true;
    timers->root = meld(timers->root, timer);
}

struct timer *timers_pop_due(struct timers *timers, int64_t now_ns)
{
    struct timer *first = timers->root;
    if (!first || first->at_ns > now_ns)
        return NULL;
    timers_cancel(timers, first);
    return first;
}

/* Depth first without recursion, because the heap may be as deep as it has timers. */
void timers_check(const struct timers *timers)
{
    const struct timer *at = timers->root;
    assert(!at || (!at->previous && !at->next));
    while (at) {
        assert(at->set);
        assert(!at->child || at->child->previous == at);
        assert(!at->next || at->next->previous == at);
        for (const struct timer *c = at->child; c; c = c->next)
            assert(c->at_ns >= at->at_ns);
        if (at->child) {
            at = at->child;
            continue;
        }
        while (at && !at->next) {
            while (at->previous && at->previous->child != at)
                at = at->previous;
            at = at->previous;
        }
        at = at ? at->next : NULL;
    }
}
