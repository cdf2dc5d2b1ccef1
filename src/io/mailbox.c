#include "io/mailbox.h"

void mailbox_init(struct mailbox *mailbox, struct waker *waker)
{
    *mailbox = (struct mailbox){.waker = waker};
    list_init(&mailbox->in_loop);
}

void mailbox_attach(struct mailbox *mailbox, struct waker *waker, struct list *mailboxes,
                    void (*receive)(void *owner, struct mailbox_node *node), void *owner)
{
    assert(receive);
    mailbox_init(mailbox, waker);
    mailbox->receive = receive;
    mailbox->owner = owner;
    list_push_back(mailboxes, &mailbox->in_loop);
}

void mailbox_detach(struct mailbox *mailbox)
{
    if (mailbox->receive)
        list_remove(&mailbox->in_loop);
    mailbox->receive = NULL;
}

/* The lowest bit of what `newest` and the nodes point to: it is the first of a chain. */
#define IS_CHAIN ((uintptr_t)1)

static struct mailbox_node *node_of(uintptr_t posted)
{
    return (struct mailbox_node *)(posted & ~IS_CHAIN);
}

static struct mailbox_node *last_of(uintptr_t posted)
{
    struct mailbox_node *node = node_of(posted);
    return posted & IS_CHAIN ? CONTAINER_OF(node, struct mailbox_link, node)->last : node;
}

static void post(struct mailbox *mailbox, uintptr_t posted, struct mailbox_node *last)
{
    uintptr_t was = atomic_load_explicit(&mailbox->newest, memory_order_relaxed);
    do
        last->next = (struct mailbox_node *)was;
    while (!atomic_compare_exchange_weak_explicit(&mailbox->newest, &was, posted,
                                                  memory_order_seq_cst, memory_order_relaxed));
    /* Even if the queue was not empty: the thread that posted first may be preempted before it
     * wakes the receiver. */
    if (mailbox->waker)
        waker_wake_seq_cst(mailbox->waker);
}

void mailbox_post_chain(struct mailbox *mailbox, const struct mailbox_chain *chain)
{
    CONTAINER_OF(chain->first, struct mailbox_link, node)->last = chain->last;
    post(mailbox, (uintptr_t)chain->first | IS_CHAIN, chain->last);
}

void mailbox_post(struct mailbox *mailbox, struct mailbox_node *node)
{
    post(mailbox, (uintptr_t)node, node);
}

struct mailbox_node *mailbox_take(struct mailbox *mailbox)
{
    struct mailbox_node *oldest = NULL;
    uintptr_t posted = 0;
    if (atomic_load_explicit(&mailbox->newest, memory_order_relaxed))
        posted = atomic_exchange_explicit(&mailbox->newest, 0, memory_order_acquire);
    /* The newest is first, and the receiver needs the order in which messages were posted. Chains
     * keep theirs. */
    while (posted) {
        struct mailbox_node *last = last_of(posted), *first = node_of(posted);
        posted = (uintptr_t)last->next;
        last->next = oldest;
        oldest = first;
    }
    /* Messages that were taken but not delivered are older. */
    if (!mailbox->taken)
        return oldest;
    struct mailbox_node *first = mailbox->taken;
    struct mailbox_node *last = first;
    while (last->next)
        last = last->next;
    last->next = oldest;
    mailbox->taken = NULL;
    return first;
}

static bool has_news(void *ctx)
{
    struct mailbox *mailbox = ctx;
    return !mailbox_empty(mailbox) || waker_notified(mailbox->waker);
}

void mailbox_wait(struct mailbox *mailbox, int64_t timeout_ns)
{
    struct waker *waker = mailbox->waker;
    if (timeout_ns > 0)
        waker_look(waker, has_news, mailbox);
    if (!mailbox_empty(mailbox) || !waker_announce(waker))
        return;
    /* A message that was posted before the announcement has not woken this thread, so the queue is
     * examined once more. */
    if (mailbox_empty(mailbox))
        waker_sleep(waker, timeout_ns);
    waker_retract(waker);
}

bool mailbox_deliver(struct mailbox *mailbox, unsigned max)
{
    if (!mailbox->taken)
        mailbox->taken = mailbox_take(mailbox);
    while (mailbox->taken && max-- > 0) {
        struct mailbox_node *node = mailbox->taken;
        mailbox->taken = node->next;
        __builtin_prefetch(node->next); /* another thread was the last to write it */
        mailbox->receive(mailbox->owner, node);
        if (!mailbox->receive)
            return false; /* detached by the receive function */
    }
    return !mailbox_empty(mailbox);
}
