#include "tier/mirror/request_queue.h"

/* Those that enter within ready are at the end. */
static void on_ready(struct tier_lane *lane)
{
    struct request_queue *queue = CONTAINER_OF(lane, struct request_queue, lane);
    while (!list_empty(&queue->waiters) && tier_lane_take(lane)) {
        struct list *link = list_pop_front(&queue->waiters);
        struct request_waiter *waiter = LIST_ENTRY(link, struct request_waiter, in_queue);
        waiter->ready(waiter);
    }
}

void request_queue_init(struct request_queue *queue, struct tier_rate *rate, struct loop *loop)
{
    tier_lane_init(&queue->lane, rate, loop, on_ready);
    list_init(&queue->waiters);
}

void request_queue_fini(struct request_queue *queue)
{
    assert(!queue->lane.loop || list_empty(&queue->waiters));
    tier_lane_fini(&queue->lane);
}

bool request_queue_enter(struct request_queue *queue, struct request_waiter *waiter)
{
    assert(!waiter->in_queue.next || list_empty(&waiter->in_queue));
    if (list_empty(&queue->waiters) && tier_lane_take(&queue->lane))
        return true;
    list_push_back(&queue->waiters, &waiter->in_queue);
    return false;
}

void request_waiter_cancel(struct request_waiter *waiter)
{
    if (waiter->in_queue.next)
        list_remove(&waiter->in_queue);
}
