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

void mailbox_post_chain(struct mailbox *mailbox, const struct mailbox_chain *chain)
{
    /* The queue is linked from new to old, so the chain is reversed first. */
    chain->last->next = NULL;
    struct mailbox_node *newest = NULL;
    struct mailbox_node *oldest = chain->first;
    for (struct mailbox_node *node = chain->first; node;) {
        struct mailbox_node *next = node->next;
        node->next = newest;
        newest = node;
        node = next;
    }
    struct mailbox_node *was = atomic_load_explicit(&mailbox->newest, memory_order_relaxed);
    do
        oldest->next = was;
    while (!atomic_compare_exchange_weak_explicit(&mailbox->newest, &was, newest,
                                                  memory_order_seq_cst, memory_order_relaxed));
    /* Even if the queue was not empty: the thread that posted first may be preempted before it
     * wakes the receiver. */
    if (mailbox->waker)
        waker_wake_seq_cst(mailbox->waker);
}

void mailbox_post(struct mailbox *mailbox, struct mailbox_node *node)
{
    mailbox_post_chain(mailbox, &(struct mailbox_chain){node, node});
}

struct mailbox_node *mailbox_take(struct mailbox *mailbox)
{
    struct mailbox_node *oldest = NULL;
    if (atomic_load_explicit(&mailbox->newest, memory_order_relaxed)) {
        struct mailbox_node *node =
            atomic_exchange_explicit(&mailbox->newest, NULL, memory_order_acquire);
        while (node) {
            struct mailbox_node *older = node->next;
            node->next = oldest;
            oldest = node;
            node = older;
        }
    }
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
        mailbox->receive(mailbox->owner, node);
        if (!mailbox->receive)
            return false; /* detached by the receive function */
    }
    return !mailbox_empty(mailbox);
}
