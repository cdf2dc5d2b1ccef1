/*
 * Orders the changes of one object. Every write that succeeds makes the concurrent attempts of the
 * others fail, so changes that arrive while one is under way on this I/O thread wait, first come
 * first served, and cost nothing until they begin. Changes on other I/O threads and by clients of
 * the etcd API still compete, by the condition of their transactions.
 *
 *     enter ─┬─► first of its key: begins at once ──► leave ─► the next one begins, from the loop
 *            └─► waits ─────────────────────────────►─┘
 *
 * A ticket is embedded in the call that owns it, which leaves when it answers and when it is freed,
 * whether it has begun or still waits. One queue per API, on its thread.
 */
#ifndef VIGIL_KUBE_CALL_WRITE_QUEUE_H
#define VIGIL_KUBE_CALL_WRITE_QUEUE_H

#include "base/container/hash_map.h"
#include "io/loop.h"

/* Changes that may wait for one object on one I/O thread. */
enum { KUBE_WRITE_QUEUE_WAITING_MAX = 1024 };

struct kube_write_queue {
    struct loop *loop;
    struct hash_map heads; /* struct kube_write_ticket: the one of each key that has begun or is
                              ready to */
    struct list ready;     /* heads that begin with the next turn of the loop */
    struct deferred next;
};

struct kube_write_ticket {
    struct slice key; /* borrowed; does not change while the ticket is queued */
    void (*begin)(struct kube_write_ticket *ticket);

    /* Private; zeroed: not queued. */
    struct kube_write_queue *queue;
    bool heads;         /* it is the head of its key; else it waits behind the head */
    struct list link;   /* in behind of the head, or in queue->ready */
    struct list behind; /* for a head: the tickets that wait for it, in order */
    size_t waiting;     /* for a head: their number */
};

void kube_write_queue_init(struct kube_write_queue *queue, struct loop *loop, uint64_t seed);
/* Must be empty. */
void kube_write_queue_fini(struct kube_write_queue *queue);

enum kube_write_place {
    KUBE_WRITE_QUEUE_FIRST,  /* the caller begins */
    KUBE_WRITE_QUEUE_WAITS,  /* `begin` is called when it is its turn */
    KUBE_WRITE_QUEUE_REFUSED /* too many wait already */
};

/* Key and begin are set. Without memory the caller begins: the queue is only for speed. */
MUST_CHECK
enum kube_write_place kube_write_queue_enter(struct kube_write_queue *queue,
                                             struct kube_write_ticket *ticket);
/* The ticket is queued. */
void kube_write_queue_leave_now(struct kube_write_ticket *ticket);
static inline void kube_write_queue_leave(struct kube_write_ticket *ticket)
{
    /* A read has not been queued, nor a write that has left already. */
    if (ticket->queue)
        kube_write_queue_leave_now(ticket);
}

/* For tests: every ticket is where its state says. */
void kube_write_queue_check(const struct kube_write_queue *queue);

#endif
