#include "kube/call/write_queue.h"

/* Changes started in one turn of the loop; each may read and decide at once. */
enum { BEGUN_PER_TURN = 16 };

static struct slice key_of(const void *value)
{
    return ((const struct kube_write_ticket *)value)->key;
}

static struct kube_write_ticket *ticket_of(struct list *link)
{
    return CONTAINER_OF(link, struct kube_write_ticket, link);
}

static void on_next(struct deferred *deferred)
{
    struct kube_write_queue *queue = CONTAINER_OF(deferred, struct kube_write_queue, next);
    for (size_t i = 0; i < BEGUN_PER_TURN; i++) {
        struct list *link = list_pop_front(&queue->ready);
        if (!link)
            return;
        ticket_of(link)->begin(ticket_of(link));
    }
    if (!list_empty(&queue->ready))
        loop_defer(queue->loop, &queue->next);
}

void kube_write_queue_init(struct kube_write_queue *queue, struct loop *loop, uint64_t seed)
{
    *queue = (struct kube_write_queue){.loop = loop, .next = {.fn = on_next}};
    hash_map_init(&queue->heads, key_of, seed);
    list_init(&queue->ready);
}

void kube_write_queue_fini(struct kube_write_queue *queue)
{
    assert(queue->heads.count == 0);
    loop_defer_cancel(&queue->next);
    hash_map_fini(&queue->heads);
}

/* Replaces the head that has left, if any; the tickets behind it keep their order. */
static enum status become_head(struct kube_write_queue *queue, struct kube_write_ticket *ticket,
                               struct list *behind, size_t waiting)
{
    void *replaced;
    TRY(hash_map_put(&queue->heads, ticket, &replaced));
    ticket->queue = queue;
    ticket->heads = true;
    ticket->waiting = waiting;
    list_init(&ticket->link);
    list_init(&ticket->behind);
    list_append(&ticket->behind, behind);
    return ST_OK;
}

enum kube_write_place kube_write_queue_enter(struct kube_write_queue *queue,
                                             struct kube_write_ticket *ticket)
{
    struct kube_write_ticket *head = hash_map_get(&queue->heads, ticket->key);
    struct list nobody;
    assert(!ticket->queue);
    if (!head) {
        list_init(&nobody);
        /* Without memory it is not queued: the queue is only for speed. */
        (void)!become_head(queue, ticket, &nobody, 0);
        return KUBE_WRITE_QUEUE_FIRST;
    }
    if (head->waiting == KUBE_WRITE_QUEUE_WAITING_MAX)
        return KUBE_WRITE_QUEUE_REFUSED;
    ticket->queue = queue;
    ticket->heads = false;
    head->waiting++;
    list_push_back(&head->behind, &ticket->link);
    return KUBE_WRITE_QUEUE_WAITS;
}

static void leave_as_head(struct kube_write_ticket *ticket)
{
    struct kube_write_queue *queue = ticket->queue;
    struct list *link = list_pop_front(&ticket->behind);
    list_remove(&ticket->link); /* from the ready list, if it is there */
    (void)hash_map_remove(&queue->heads, ticket->key);
    if (!link)
        return;
    /* A removal has just made room for it. */
    enum status status = become_head(queue, ticket_of(link), &ticket->behind, ticket->waiting - 1);
    assert(status == ST_OK);
    (void)status;
    list_push_back(&queue->ready, link);
    loop_defer(queue->loop, &queue->next);
}

void kube_write_queue_leave_now(struct kube_write_ticket *ticket)
{
    if (ticket->heads) {
        leave_as_head(ticket);
    } else {
        /* Its client has disconnected while it waited behind the head. */
        struct kube_write_ticket *head = hash_map_get(&ticket->queue->heads, ticket->key);
        list_remove(&ticket->link);
        head->waiting--;
    }
    ticket->queue = NULL;
}

void kube_write_queue_check(const struct kube_write_queue *queue)
{
    const struct kube_write_ticket *head;
    MAP_FOREACH (head, &queue->heads) {
        size_t waiting = 0;
        const struct kube_write_ticket *ticket;
        assert(head->queue == queue && head->heads);
        LIST_FOREACH (ticket, &head->behind, link) {
            assert(ticket->queue == queue && !ticket->heads && slice_equal(ticket->key, head->key));
            waiting++;
        }
        assert(waiting == head->waiting && waiting <= KUBE_WRITE_QUEUE_WAITING_MAX);
    }
}
