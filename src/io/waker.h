/*
 * How a thread that sleeps is woken. The sleeper announces itself, looks once more for work, and
 * only then sleeps; whoever brings work wakes it only if it is announced. So a busy thread costs
 * its producers no system call, and one that sleeps costs exactly one.
 *
 *     sleeper                              producer
 *     waker_announce                       publish the work
 *     look for work; if any: waker_retract waker_wake (a load; a system call only when announced)
 *     sleep ... waker_retract
 *
 * Both sides use sequentially consistent operations: either the sleeper sees the work, or the
 * producer sees the sleeper.
 */
#ifndef VIGIL_IO_WAKER_H
#define VIGIL_IO_WAKER_H

#include "base/clock.h"
#include "base/status.h"

#include <stdatomic.h>
#include <stdbool.h>

enum waker_state { WAKER_AWAKE = 0, WAKER_ANNOUNCED = 1 };

struct waker {
    _Alignas(64) _Atomic uint32_t state; /* written by both sides: a line of its own */
    int event_fd;                        /* -1: the sleeper waits on state itself (a futex) */
    /* Only the sleeper touches what follows. */
    uint32_t spin_rounds; /* how long it is worth looking before sleeping; 0: not at all */
    uint32_t spin_pause;  /* waits to go without looking after looking was in vain */
    uint32_t spin_misses; /* times in a row it was in vain */
};

/* For a thread that sleeps in waker_sleep. */
void waker_init_thread(struct waker *waker);
/* For a thread that sleeps in epoll: event_fd becomes readable. */
MUST_CHECK
enum status waker_init_event(struct waker *waker);
void waker_fini(struct waker *waker);

/* Any thread, after the work is published. */
void waker_wake(struct waker *waker);

static inline void waker_announce(struct waker *waker)
{
    atomic_store_explicit(&waker->state, WAKER_ANNOUNCED, memory_order_seq_cst);
}

static inline void waker_retract(struct waker *waker)
{
    atomic_store_explicit(&waker->state, WAKER_AWAKE, memory_order_seq_cst);
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
