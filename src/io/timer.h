/*
 * Moments at which to be called, kept in a pairing heap whose links lie in the timers themselves:
 * setting one needs no memory and cannot fail. Owned by one thread, normally inside its loop.
 */
#ifndef VIGIL_IO_TIMER_H
#define VIGIL_IO_TIMER_H

#include "base/clock.h"

#include <stdbool.h>

/* Embedded by its owner. Zeroed but for fn, it is not set. */
struct timer {
    void (*fn)(struct timer *timer);
    int64_t at_ns; /* meaningful while set */
    bool set;
    struct timer *child;    /* first of those not earlier than this one */
    struct timer *next;     /* sibling */
    struct timer *previous; /* sibling, or the parent of a first child; NULL at the root */
};

struct timers {
    struct timer *root; /* the earliest; NULL when none is set */
};

/* Sets, or moves one that is set. */
void timers_set(struct timers *timers, struct timer *timer, int64_t at_ns);
/* Harmless when not set. */
void timers_cancel(struct timers *timers, struct timer *timer);

/* The earliest moment; CLOCK_NEVER when none is set. */
static inline int64_t timers_next_ns(const struct timers *timers)
{
    return timers->root ? timers->root->at_ns : CLOCK_NEVER;
}

/* Takes out the earliest if it is due; NULL otherwise. The caller calls its fn. */
struct timer *timers_pop_due(struct timers *timers, int64_t now_ns);

/* Walks the heap and asserts its order and links. */
void timers_check(const struct timers *timers);

#endif
