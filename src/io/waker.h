/*
 * Wakes a sleeping thread. The sleeper announces that it will sleep, checks once more for work, and
 * only then sleeps; a producer wakes it only if it has announced. So a busy thread costs its
 * producers no system call, and a sleeping one costs exactly one.
 *
 *     awake ──announce──► announced ──wake (system call)──► notified ──announce, retract──► awake
 *       └───────────────────wake──────────────────────────────▲
 *
 * A wake-up is never lost: one that comes while the thread is awake stays pending, and the next
 * announce fails once. The thread then checks everything that it could have been woken for.
 */
#ifndef VIGIL_IO_WAKER_H
#define VIGIL_IO_WAKER_H

#include "base/clock.h"
#include "base/status.h"

#include <stdatomic.h>
#include <stdbool.h>

enum waker_state { WAKER_AWAKE, WAKER_ANNOUNCED, WAKER_NOTIFIED };

struct waker {
    _Alignas(64) _Atomic uint32_t state; /* written by both sides, so it has its own cache line */
    int event_fd;                        /* -1: the sleeper waits on state itself (a futex) */
    /* Used only by the sleeper. */
    uint32_t look_pause;  /* waits that do not poll, because polling found nothing */
    uint32_t look_misses; /* consecutive polls that found nothing */
};

/* For a thread that sleeps in waker_sleep. */
void waker_init_thread(struct waker *waker);
/* For a thread that sleeps in epoll: event_fd becomes readable. */
MUST_CHECK
enum status waker_init_event(struct waker *waker);
void waker_fini(struct waker *waker);

/* Any thread, after the work is published in any way. */
void waker_wake(struct waker *waker);

/* The same if the work was published by a sequentially consistent operation and the sleeper checks
 * it with one after announcing. Cheaper, because it does not write if a wake-up is already pending.
 */
static inline void waker_wake_seq_cst(struct waker *waker)
{
    if (atomic_load_explicit(&waker->state, memory_order_seq_cst) != WAKER_NOTIFIED)
        waker_wake(waker);
}

/* False: a wake-up was pending and is now consumed. Do not sleep but check for work. */
bool waker_announce(struct waker *waker);

/* After sleeping, or instead of it. True: a wake-up came and is now consumed. */
static inline bool waker_retract(struct waker *waker)
{
    return atomic_exchange_explicit(&waker->state, WAKER_AWAKE, memory_order_seq_cst) ==
           WAKER_NOTIFIED;
}

static inline bool waker_notified(const struct waker *waker)
{
    return atomic_load_explicit(&waker->state, memory_order_seq_cst) == WAKER_NOTIFIED;
}

/* For the sleeper while awake. True: a wake-up was pending and is now consumed. Whatever was
 * published before a wake-up that is not pending now is visible after this call. */
static inline bool waker_take(struct waker *waker)
{
    return waker_notified(waker) && waker_retract(waker);
}

/* For a thread's own waker, after announcing: returns when woken, at the latest after timeout_ns,
 * possibly earlier. CLOCK_NEVER: without timeout. */
void waker_sleep(struct waker *waker, int64_t timeout_ns);

/*
 * Polls for work for a few microseconds before sleeping, if that was successful lately: an answer
 * often arrives sooner than a sleep and a wake-up take. Calls `ready` repeatedly; true: it returned
 * true. The longer polling finds nothing, the rarer it is done, so an idle thread does not use its
 * core.
 */
bool waker_look(struct waker *waker, bool (*ready)(void *ctx), void *ctx);

#endif
