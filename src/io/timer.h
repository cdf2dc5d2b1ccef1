/*
 * Timers in a pairing heap whose links are embedded in the timers: setting one needs no memory and
 * cannot fail. Owned by one thread, normally in its loop.
 */
#ifndef VIGIL_IO_TIMER_H
#define VIGIL_IO_TIMER_H

#include "base/clock.h"

#include <stdbool.h>

/* Embedded by its owner. Zeroed except for fn, it is not set. */
struct timer {
    void (*fn)(struct timer *timer);
    int64_t at_ns; /* valid while set */
    bool set;
    struct timer *child;    /* the first of the timers that are not earlier than this one */
    struct timer *next;     /* sibling */
    struct timer *previous; /* sibling, or the parent of a first child; NULL at the root */
};

struct timers {
    struct timer *root; /* the earliest; NULL: none is set */
};

/* Sets the timer, or moves it if it is set. */
void timers_set(struct timers *timers, struct timer *timer, int64_t at_ns);
/* No effect if it is not set. */
void timers_cancel(struct timers *timers, struct timer *timer);

/* The earliest time; CLOCK_NEVER if no timer is set. */
static inline int64_t timers_next_ns(const struct timers *timers)
{
    return timers->root ? timers->root->at_ns : CLOCK_NEVER;
}

/* Removes and returns the earliest timer if it is due, otherwise NULL. The caller calls its fn. */
struct timer *timers_pop_due(struct timers *timers, int64_t now_ns);

/* Walks the heap and asserts its order and links. */
void timers_check(const struct timers *timers);

#endif
