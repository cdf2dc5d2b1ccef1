#include "kubeclient/call/rate_limiter.h"

#include "io/loop.h"

#include <stdlib.h>

struct rate_limiter {
    struct loop *loop; /* borrowed */
    int64_t token_ns;  /* in which one token is added */
    int64_t burst_ns;  /* in which an empty bucket becomes full */
    int64_t full_ns;   /* when the bucket is full */
    struct list waiters;
    struct timer timer; /* set while calls wait: when there is a token */
};

/* When there is a token. */
static int64_t next_token_ns(const struct rate_limiter *limiter)
{
    return limiter->full_ns - limiter->burst_ns + limiter->token_ns;
}

static bool take(struct rate_limiter *limiter, int64_t now_ns)
{
    if (next_token_ns(limiter) > now_ns)
        return false;
    limiter->full_ns = (limiter->full_ns > now_ns ? limiter->full_ns : now_ns) + limiter->token_ns;
    return true;
}

/* Those that begin to wait within ready are served by the next timer. */
static void on_timer(struct timer *timer)
{
    struct rate_limiter *limiter = CONTAINER_OF(timer, struct rate_limiter, timer);
    int64_t now = loop_now_ns(limiter->loop);
    while (!list_empty(&limiter->waiters) && take(limiter, now)) {
        struct list *link = list_pop_front(&limiter->waiters);
        struct rate_waiter *waiter = LIST_ENTRY(link, struct rate_waiter, in_limiter);
        waiter->ready(waiter);
    }
    if (!list_empty(&limiter->waiters))
        loop_timer_set(limiter->loop, &limiter->timer, next_token_ns(limiter));
}

enum status rate_limiter_new(struct loop *loop, uint32_t per_second, uint32_t burst,
                             struct rate_limiter **ret_limiter)
{
    struct rate_limiter *limiter = calloc(1, sizeof(*limiter));
    assert(per_second > 0);
    if (!limiter)
        return ST_NOMEM;
    limiter->loop = loop;
    limiter->token_ns = NS_PER_S / per_second > 0 ? NS_PER_S / per_second : 1;
    limiter->burst_ns = limiter->token_ns * (burst ? burst : 1);
    limiter->timer.fn = on_timer;
    list_init(&limiter->waiters);
    *ret_limiter = limiter;
    return ST_OK;
}

void rate_limiter_free(struct rate_limiter *limiter)
{
    if (!limiter)
        return;
    assert(list_empty(&limiter->waiters));
    loop_timer_cancel(limiter->loop, &limiter->timer);
    free(limiter);
}

bool rate_limiter_take(struct rate_limiter *limiter, struct rate_waiter *waiter)
{
    if (list_empty(&limiter->waiters) && take(limiter, loop_now_ns(limiter->loop)))
        return true;
    list_push_back(&limiter->waiters, &waiter->in_limiter);
    loop_timer_set(limiter->loop, &limiter->timer, next_token_ns(limiter));
    return false;
}

void rate_waiter_cancel(struct rate_waiter *waiter)
{
    if (waiter->in_limiter.next)
        list_remove(&waiter->in_limiter);
}

void rate_limiter_check(const struct rate_limiter *limiter)
{
    assert(limiter->token_ns > 0 && limiter->burst_ns >= limiter->token_ns);
    assert(list_empty(&limiter->waiters) || limiter->timer.set);
    assert(limiter->full_ns <=
           clock_add(loop_now_ns(limiter->loop), limiter->burst_ns + limiter->token_ns));
}
