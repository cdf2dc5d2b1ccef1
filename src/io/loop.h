/*
 * The loop of one thread. It waits for handles, messages and timers, and works in turns:
 *
 *     wait ─► ready handles ─► messages ─► due timers ─► after_input ─► deferred ─► end_of_turn ─┐
 *       └────────────────────────────────────────────────────────────────────────────────────────┘
 *
 * The clock is read once when the wait ends; everything in a turn uses that time. A turn takes
 * about a millisecond at most: ready handles and messages beyond that are left for the next one,
 * in order. Handles are level-triggered: fn is called again until everything is read.
 *
 * Everything except loop_stop and posting to a mailbox is for the loop's own thread. Watches,
 * timers and deferred calls are embedded in their owners, which cancel them before they are freed.
 */
#ifndef VIGIL_IO_LOOP_H
#define VIGIL_IO_LOOP_H

#include "base/container/list.h"
#include "base/metric/turn.h"
#include "io/mailbox.h"
#include "io/poller.h"
#include "io/timer.h"

#include <stdbool.h>

struct loop;

enum io_events {
    IO_READ = 1,   /* bytes, an end, a connection to accept, or an error that read returns */
    IO_WRITE = 2,  /* room, or an error that write returns */
    IO_BROKEN = 4, /* cannot be requested; reported with the others after an error or hang-up */
};

/* Zeroed except for handle and fn, it is not watched. */
struct io_watch {
    int handle; /* a file descriptor, or the number of a simulated socket */
    void (*fn)(struct io_watch *watch, unsigned ready);
    unsigned events;   /* requested; 0: not watched */
    unsigned ready_at; /* for the loop: its index among the ready handles of this turn, plus one */
};

/* A call at the end of this turn. Zeroed except for fn, it is not pending; the list is initialized
 * on first use. */
struct deferred {
    void (*fn)(struct deferred *deferred);
    struct list in_loop; /* links loop.deferred; its links are NULL until first used */
};

struct loop_hooks {
    void (*after_input)(void *ctx); /* handles, messages and timers were served; may be NULL */
    /* Called before waiting again. True: do not wait, there is more to do. May be NULL. */
    bool (*end_of_turn)(void *ctx);
    void *ctx;
};

/* Over epoll. The clock is borrowed. */
MUST_CHECK
enum status loop_new(struct clock *clock, struct loop **ret_loop);
/* Over the given poller, which the loop owns, even if this fails. */
MUST_CHECK
enum status loop_new_over(struct poller *poller, struct clock *clock, struct loop **ret_loop);
void loop_free(struct loop *loop); /* nothing may be watched, set or pending */
/* For a loop that is freed later: no turn is made any more. After loop_rest no thread signals its
 * descriptor, except for threads that are just about to; when these have finished, loop_close
 * closes its descriptors. Messages can still be posted and taken. */
void loop_rest(struct loop *loop);
void loop_close(struct loop *loop);
DEFINE_CLEANUP(struct loop *, loop_free)

void loop_set_hooks(struct loop *loop, struct loop_hooks hooks);
/* Measures the loop's turns; borrowed, may be NULL. */
void loop_set_turn(struct loop *loop, struct turn *turn);

/* Runs turns until loop_stop. */
void loop_run(struct loop *loop);
/* Any thread. The current turn is finished. */
void loop_stop(struct loop *loop);
/* One turn, which waits at most wait_max_ns for work. */
void loop_turn(struct loop *loop, int64_t wait_max_ns);

/*
 * For a loop inside a foreign loop, instead of loop_run: the foreign loop calls loop_turn_nested
 * when the descriptor is readable and when loop_next_ns is reached. Turns are made on one thread at
 * a time. The first one is made before anything is posted.
 */
int loop_fd(const struct loop *loop);
void loop_turn_nested(struct loop *loop);

/* The time of this turn, monotonic. */
int64_t loop_now_ns(const struct loop *loop);
/* Everything that was ready at this time has been served: what a peer sent before has been read.
 * The time may be long ago on a thread that sleeps; it is recent after two turns. */
int64_t loop_served_ns(const struct loop *loop);
struct clock *loop_clock(struct loop *loop);

/* Watches for these events from now on. events is not 0. */
MUST_CHECK
enum status loop_watch(struct loop *loop, struct io_watch *watch, unsigned events);
/* No effect if it is not watched. Its fn is not called again, not even in this turn. */
void loop_unwatch(struct loop *loop, struct io_watch *watch);

void loop_timer_set(struct loop *loop, struct timer *timer, int64_t at_ns);
void loop_timer_cancel(struct loop *loop, struct timer *timer);

/* Called once per turn, however often it is deferred. A call that is deferred by a deferred call
 * runs in the next turn. */
void loop_defer(struct loop *loop, struct deferred *deferred);
void loop_defer_cancel(struct deferred *deferred);

/* When the loop has something to do without new input: now, at a timer, or CLOCK_NEVER. */
int64_t loop_next_ns(const struct loop *loop);

/*
 * The loop delivers the mailbox's messages in its turns until mailbox_detach. To be called on the
 * loop's thread or before it runs. receive may post, also to this mailbox, and may free the object
 * that contains the node.
 */
void loop_attach(struct loop *loop, struct mailbox *mailbox,
                 void (*receive)(void *owner, struct mailbox_node *node), void *owner);

#endif
