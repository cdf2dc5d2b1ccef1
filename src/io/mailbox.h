/*
 * A queue of messages from many threads to one. A message is an object with an embedded node:
 * posting allocates nothing and takes no lock, and a chain of messages costs as much as one.
 * Messages of one thread arrive in order.
 *
 * There are two kinds of receiver. A loop gets the messages in its turns, through `receive`. A
 * plain thread (the writer, the keeper) takes all messages at once, and waits when there are none.
 * A posted object belongs to the receiver.
 */
#ifndef VIGIL_IO_MAILBOX_H
#define VIGIL_IO_MAILBOX_H

#include "base/container/list.h"
#include "io/waker.h"

struct mailbox_node {
    struct mailbox_node *next;
};

/* The node of a message that may be posted in a chain. */
struct mailbox_link {
    struct mailbox_node node;
    struct mailbox_node *last; /* the last message of the chain that begins with this one */
};

/* Messages in order, oldest first. */
struct mailbox_chain {
    struct mailbox_node *first, *last;
};

static inline void mailbox_chain_add(struct mailbox_chain *chain, struct mailbox_node *node)
{
    node->next = NULL;
    if (chain->last)
        chain->last->next = node;
    else
        chain->first = node;
    chain->last = node;
}

/* The oldest; NULL: the chain is empty. */
static inline struct mailbox_node *mailbox_chain_take(struct mailbox_chain *chain)
{
    struct mailbox_node *node = chain->first;
    if (!node)
        return NULL;
    chain->first = node->next;
    if (!chain->first)
        chain->last = NULL;
    return node;
}

struct mailbox {
    /*
     * What was posted last: a message, or the first of a chain, which has its lowest bit set. A
     * chain stays as it is, so that no thread touches the nodes in its middle; its last node points
     * to what was posted before:
     *
     *   newest ──► 4 ─► 5 ─► 6 ──► 3 ──► 1 ─► 2        4 and 1 know the last of their chains
     */
    _Alignas(64) _Atomic(uintptr_t) newest;
    struct waker *waker; /* waker of the receiver; NULL in a simulation */
    /* Used only by the receiver: */
    void (*receive)(void *owner, struct mailbox_node *node);
    void *owner;
    struct mailbox_node *taken; /* oldest first: taken by the loop, not yet delivered */
    struct list in_loop;        /* links loop.mailboxes */
};

/* For a plain thread. Several mailboxes may share the thread's waker. */
void mailbox_init(struct mailbox *mailbox, struct waker *waker);

/* For loop_attach: the loop's waker, which may be NULL, and its list of mailboxes. */
void mailbox_attach(struct mailbox *mailbox, struct waker *waker, struct list *mailboxes,
                    void (*receive)(void *owner, struct mailbox_node *node), void *owner);
/* Messages that were not delivered stay in the mailbox; take them to free them. */
void mailbox_detach(struct mailbox *mailbox);

/* Any thread. */
void mailbox_post(struct mailbox *mailbox, struct mailbox_node *node);
/* A chain that is not empty, which is used up; its nodes are in mailbox_links. Wakes the receiver
 * once. */
void mailbox_post_chain(struct mailbox *mailbox, const struct mailbox_chain *chain);

/* For the receiver: everything posted so far, oldest first, linked by next; NULL: nothing. */
struct mailbox_node *mailbox_take(struct mailbox *mailbox);
static inline bool mailbox_empty(const struct mailbox *mailbox)
{
    return !mailbox->taken && !atomic_load_explicit(&mailbox->newest, memory_order_seq_cst);
}

/*
 * For a receiver that is a plain thread: returns when there is something to take, when its waker
 * was woken for another reason since the last wait (another mailbox that shares it, a flag), or
 * after timeout_ns; sometimes without reason. The caller checks everything that it waits for.
 */
void mailbox_wait(struct mailbox *mailbox, int64_t timeout_ns);

/* For a receiver that is a loop: delivers at most max messages. True: some are left. */
bool mailbox_deliver(struct mailbox *mailbox, unsigned max);

#endif
