/*
 * The inside of a vigil_queue. A call, watch or lease that was begun for a queue has an item, which
 * is in the queue while there is something to take of its object:
 *
 *     idle ──► queued ──► taken
 *      ▲        │  ▲        │
 *      ├─ freed ┘  └─ more ─┤
 *      └──────── released ──┘
 *
 * The queue only links items, so taking needs no memory. Everything here is protected by the
 * client's lock, except for what a taken item shows, which belongs to the thread that has taken it.
 * An item that is queued or taken has a reference to its object.
 */
#ifndef VIGIL_CLIENT_CALL_QUEUE_H
#define VIGIL_CLIENT_CALL_QUEUE_H

#include "client/call/client.h"

#include <vigil/queue.h>

enum queue_item_state { QUEUE_ITEM_IDLE, QUEUE_ITEM_QUEUED, QUEUE_ITEM_TAKEN };

struct queue_item;

struct queue_item_next {
    bool more; /* to take */
    bool wake; /* the object */
};

struct queue_item_ops {
    void (*ref)(struct queue_item *item);
    void (*unref)(struct queue_item *item);

    /* The others are for objects of which the program takes more than once; otherwise NULL. */

    /* With the lock held: the item is taken now, and shows the next thing. */
    void (*fill)(struct queue_item *item);
    /* Without the lock: the program has released the item, so what it shows may be freed. */
    void (*clear)(struct queue_item *item);
    /* After that, with the lock held. Returns what follows. */
    struct queue_item_next (*settle)(struct queue_item *item);
    /* Without the lock, if settle has asked for it; the item may be queued or taken again. */
    void (*wake)(struct queue_item *item);
};

struct queue_item {
    vigil_item shown;          /* to the program */
    struct vigil_queue *queue; /* a reference; NULL: the object was not begun for a queue */
    const struct queue_item_ops *ops;
    struct list in_queue; /* links vigil_queue.items while queued */
    enum queue_item_state state;
    bool dropped; /* the user has freed the object: it is not queued any more */
};

/* The shown item is filled in by the caller. Takes a reference to the queue. */
void queue_item_init(struct queue_item *item, struct vigil_queue *queue,
                     const struct queue_item_ops *ops);
/* Accepts a zeroed item. It must be idle, or the queue has never been used. */
void queue_item_fini(struct queue_item *item);

/* With the lock held: there is something to take of the object. No effect if the item is queued or
 * taken already, or if the user has freed the object or the queue. */
void queue_item_push(struct queue_item *item);
/* The user has freed the object. Accepts a zeroed item. */
void queue_item_drop(struct queue_item *item);

/* Asserts every invariant; for tests. */
void queue_check(struct vigil_queue *queue);

struct vigil_client *queue_client(const struct vigil_queue *queue);

#endif
