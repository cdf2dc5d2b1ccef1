/*
 * Messages from many threads to one. A message is an object with a node in it: posting needs no
 * memory and takes no lock, and a whole chain costs what one message costs. What one thread posts
 * arrives in its order.
 *
 * Two kinds of receiver. One attached to a loop gets its messages in the loop's turns, through
 * `receive`. A plain thread (the writer, the keeper) takes everything there is at once, and waits
 * when there is nothing. The object belongs to the receiver from the moment it is posted.
 */
#ifndef VIGIL_IO_MAILBOX_H
#define VIGIL_IO_MAILBOX_H

#include "base/container/list.h"
#include "io/waker.h"

struct mailbox_node {
    struct mailbox_node *next;
};

struct mailbox {
    _Alignas(64) _Atomic(struct mailbox_node *) newest; /* posted, linked from new to old */
    struct waker *waker;                                /* the receiver's; NULL in a simulation */
    /* The receiver's alone: */
    void (*receive)(void *owner, struct mailbox_node *node);
    void *owner;
    struct mailbox_node *taken; /* oldest first: taken by the loop, not yet received */
    struct list in_loop;        /* links loop.mailboxes */
};

/* A plain thread's. Several mailboxes may share the thread's waker. */
void mailbox_init(struct mailbox *mailbox, struct waker *waker);

/* For loop_attach: the loop's waker, which may be NULL, and its list of mailboxes. */
void mailbox_attach(struct mailbox *mailbox, struct waker *waker, struct list *mailboxes,
                    void (*receive)(void *owner, struct mailbox_node *node), void *owner);
/* What was not received yet is left: take it to free it. */
void mailbox_detach(struct mailbox *mailbox);

/* Any thread. */
void mailbox_post(struct mailbox *mailbox, struct mailbox_node *node);
/* Nodes linked by next from first (to be received first) to last. One wake-up for all. */
void mailbox_post_chain(struct mailbox *mailbox, struct mailbox_node *first,
                        struct mailbox_node *last);

/* Receiver: everything posted so far, oldest first, linked by next; NULL when there is nothing. */
struct mailbox_node *mailbox_take(struct mailbox *mailbox);
static inline bool mailbox_empty(const struct mailbox *mailbox)
{
    return !mailbox->taken && !atomic_load_explicit(&mailbox->newest, memory_order_seq_cst);
}

/*
 * Receiver, a plain thread: returns when there is something to take, when its waker was woken for
 * any other reason since the last wait (another mailbox on it, a flag), or after timeout_ns; now
 * and then for nothing. The caller looks at all it waits for.
 */
void mailbox_wait(struct mailbox *mailbox, int64_t timeout_ns);

/* Receiver, a loop: receives at most max messages. True when some are left. */
bool mailbox_deliver(struct mailbox *mailbox, unsigned max);

#endif
