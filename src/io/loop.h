/*
 * The loop of one thread. It waits for handles, messages and timers, and works in turns:
 *
 *     wait ─► ready handles ─► messages ─► due timers ─► after_input ─► deferred ─► end_of_turn ─┐
 *       └────────────────────────────────────────────────────────────────────────────────────────┘
 *
 * The clock is read once when the wait ends; everything in a turn sees that time. A turn takes
 * about a millisecond at most: ready handles and messages beyond that are left for the next one,
 * in order. Handles are level-triggered: who does not read everything is called again.
 *
 * Everything but loop_stop and posting to a mailbox is for the loop's own thread. Watches, timers
 * and deferred calls are embedded in their owners, who withdraw them before they go.
 */
#ifndef VIGIL_IO_LOOP_H
#define VIGIL_IO_LOOP_H

#include "base/container/list.h"
#include "base/turn.h"
#include "io/mailbox.h"
#include "io/poller.h"
#include "io/timer.h"

#include <stdbool.h>

struct loop;

enum io_events {
    IO_READ = 1,   /* bytes, an end, a connection to accept, or an error that read will tell */
    IO_WRITE = 2,  /* room, or an error that write will tell */
    IO_BROKEN = 4, /* never asked for: comes along with the others after an error or hang-up */
};

/* Zeroed but for handle and fn, it is not watched. */
struct io_watch {
    int handle; /* a file descriptor, or a simulated socket's number */
    void (*fn)(struct io_watch *watch, unsigned ready);
    unsigned events;   /* asked for; 0: not watched */
    unsigned ready_at; /* the loop's: its place among this turn's ready handles, plus one */
};

/* A call at the end of this turn. Zeroed but for fn, it is not pending; list_init on first use. */
struct deferred {
    void (*fn)(struct deferred *deferred);
    struct list in_loop; /* links loop.deferred; its links are NULL until first used */
};

struct loop_hooks {
    void (*after_input)(void *ctx); /* handles, messages and timers were served; may be NULL */
    /* The last thing before waiting again; true: do not wait, there is more. May be NULL. */
    bool (*end_of_turn)(void *ctx);
    void *ctx;
};

/* Over epoll. The clock is borrowed. */
MUST_CHECK
enum status loop_new(struct clock *clock, struct loop **ret_loop);
/* Over a poller of the caller's, which the loop then owns, also when this fails. */
MUST_CHECK
enum status loop_new_over(struct poller *poller, struct clock *clock, struct loop **ret_loop);
void loop_free(struct loop *loop); /* nothing may be watched, set or pending any more */
DEFINE_CLEANUP(struct loop *, loop_free)

void loop_set_hooks(struct loop *loop, struct loop_hooks hooks);
/* Where its turns are measured; borrowed, may be NULL. */
void loop_set_turn(struct loop *loop, struct turn *turn);

/* Turns until loop_stop. */
void loop_run(struct loop *loop);
/* Any thread. The turn under way is finished. */
void loop_stop(struct loop *loop);
/* One turn, waiting at most wait_max_ns for something to do. */
void loop_turn(struct loop *loop, int64_t wait_max_ns);

/* The time of this turn, monotonic. */
int64_t loop_now_ns(const struct loop *loop);
/* Whatever was ready at this moment has been served: a peer that sent something before has been
 * listened to. It may be long ago on a thread that sleeps; two turns later it is not. */
int64_t loop_heard_ns(const struct loop *loop);
struct clock *loop_clock(struct loop *loop);

/* Asks for these events from now on. events is not 0. */
MUST_CHECK
enum status loop_watch(struct loop *loop, struct io_watch *watch, unsigned events);
/* Harmless when not watched. Its fn is not called again, also not in this turn. */
void loop_unwatch(struct loop *loop, struct io_watch *watch);

void loop_timer_set(struct loop *loop, struct timer *timer, int64_t at_ns);
void loop_timer_cancel(struct loop *loop, struct timer *timer);

/* Once per turn however often it is asked for. Deferred by a deferred call: runs next turn. */
void loop_defer(struct loop *loop, struct deferred *deferred);
void loop_defer_cancel(struct deferred *deferred);

/* When the loop next has something to do by itself: now, a timer, or CLOCK_NEVER. */
int64_t loop_next_ns(const struct loop *loop);

/*
 * The loop delivers the mailbox's messages in its turns, until mailbox_detach. From the loop's
 * thread or before it runs. receive may post, also to this mailbox, and may free the object that
 * contains the node.
 */
void loop_attach(struct loop *loop, struct mailbox *mailbox,
                 void (*receive)(void *owner, struct mailbox_node *node), void *owner);

#endif
