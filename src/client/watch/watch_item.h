/*
 * What a watch has delivered and the program has not taken from its queue: copies of its batches,
 * in order, and then its end.
 *
 * The watch delivers as if this were a callback (client/watch/watch.c): when the copies reach half
 * of the watch's buffer, it is paused, so that the other half fills with what the server still
 * sends, and then it is cancelled at the server. It is resumed when the program has released half
 * of the copies. Owned by its watch; the loop's thread adds, and any thread takes.
 */
#ifndef VIGIL_CLIENT_WATCH_WATCH_ITEM_H
#define VIGIL_CLIENT_WATCH_WATCH_ITEM_H

#include "client/call/queue.h"

struct watch_item;

/* What the owner does for its item. Any thread, except for ref without the lock. */
struct watch_item_hooks {
    void (*ref)(struct vigil_watch *watch);
    void (*unref)(struct vigil_watch *watch);
    void (*resume)(struct vigil_watch *watch);
    /* A batch could not be copied: the watch ends for the program, so it is of no use any more. */
    void (*end)(struct vigil_watch *watch);
};

struct watch_item_options {
    struct vigil_queue *queue;
    struct vigil_watch *watch;
    const struct watch_item_hooks *hooks; /* borrowed */
    void *user;
    int64_t revision; /* after which the program would resume */
    size_t bytes_max; /* limit on the size of copies, before the watch is paused */
};

/* NULL: no memory. */
struct watch_item *watch_item_new(const struct watch_item_options *options);
/* Accepts NULL. */
void watch_item_free(struct watch_item *item);

/* The loop's thread. Copies a batch, after which the program would resume at this revision. True:
 * the watch is paused until the resume hook. */
MUST_CHECK
bool watch_item_add(struct watch_item *item, const vigil_watch_batch *batch, int64_t revision);
/* The user has freed the watch. */
void watch_item_drop(struct watch_item *item);

/* Any thread: after what the program has taken, it would resume at this revision. */
int64_t watch_item_revision(const struct watch_item *item);
/* Any thread: the bytes of all copies. */
size_t watch_item_bytes(const struct watch_item *item);

#endif
