/*
 * How a thread that sleeps is woken. The sleeper announces itself, looks once more for work, and
 * only then sleeps; whoever brings work wakes it only if it is announced. So a busy thread costs
 * its producers no system call, and one that sleeps costs exactly one.
 *
 *     awake ──announce──► announced ──wake (system call)──► notified ──announce, retract──► awake
 *       └───────────────────wake──────────────────────────────▲
 *
 * A wake-up is never lost: one that comes while the thread is awake is kept, and its next announce
 * fails once. The thread then looks at everything it could have been woken for.
 */
#ifndef VIGIL_IO_WAKER_H
#define VIGIL_IO_WAKER_H

#include "base/clock.h"
#include "base/status.h"

#include <stdatomic.h>
#include <stdbool.h>

enum waker_state { WAKER_AWAKE, WAKER_ANNOUNCED, WAKER_NOTIFIED };

struct waker {
    _Alignas(64) _Atomic uint32_t state; /* written by both sides: a line of its own */
    int event_fd;                        /* -1: the sleeper waits on state itself (a futex) */
    /* Only the sleeper touches what follows. */
    uint32_t look_pause;  /* waits to go without looking, after looking was in vain */
    uint32_t look_misses; /* times in a row it was in vain */
};

/* For a thread that sleeps in waker_sleep. */
void waker_init_thread(struct waker *waker);
/* For a thread that sleeps in epoll: event_fd becomes readable. */
MUST_CHECK
enum status waker_init_event(struct waker *waker);
void waker_fini(struct waker *waker);

/* Any thread, after the work is published, in whatever way. */
void waker_wake(struct waker *waker);

/* The same, when the work was published by a sequentially consistent operation and the sleeper
 * looks at it by one after announcing: cheaper, as it does not write when a wake-up is already
 * kept. */
static inline void waker_wake_seq_cst(struct waker *waker)
{
    if (atomic_load_explicit(&waker->state, memory_order_seq_cst) != WAKER_NOTIFIED)
        waker_wake(waker);
}

/* False: a wake-up was kept, and is now used up. Do not sleep, look. */
bool waker_announce(struct waker *waker);

/* After sleeping, or instead. True: a wake-up has come, and is now used up. */
static inline bool waker_retract(struct waker *waker)
{
    return atomic_exchange_explicit(&waker->state, WAKER_AWAKE, memory_order_seq_cst) ==
           WAKER_NOTIFIED;
}

static inline bool waker_notified(const struct waker *waker)
{
    return atomic_load_explicit(&waker->state, memory_order_seq_cst) == WAKER_NOTIFIED;
}

/* The sleeper, awake. True: a wake-up was kept, and is now used up. Whatever was published before
 * a wake-up that is not kept now is seen after this call. */
static inline bool waker_take(struct waker *waker)
{
    return waker_notified(waker) && waker_retract(waker);
}

/* Of a thread's own waker, announced: returns when woken, at the latest after timeout_ns, possibly
 * earlier. CLOCK_NEVER waits for ever. */
void waker_sleep(struct waker *waker, int64_t timeout_ns);

/*
 * Looks for work by itself for a few microseconds before sleeping, when that has paid off lately:
 * an answer often comes back sooner than a sleep and a wake-up take. `ready` is asked again and
 * again; true when it said so. Bounded to a few microseconds, and the longer it was in vain the
 * rarer it is tried, so an idle thread does not burn its core.
 */
bool waker_look(struct waker *waker, bool (*ready)(void *ctx), void *ctx);

#endif
