/*
 * Where time comes from. Only this file reads the system's clock; every other file is given a
 * clock, so that a simulated run controls its time and can be repeated from a seed.
 *
 * The monotonic clock never goes back and starts at an arbitrary value; deadlines use it. The real
 * clock is for people: log lines and the like. A system clock may be read from any thread; a
 * simulated one belongs to the thread that steps the simulation.
 */
#ifndef VIGIL_BASE_CLOCK_H
#define VIGIL_BASE_CLOCK_H

#include "base/macros.h"

#include <stdint.h>

#define NS_PER_US INT64_C(1000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

/* A time that is never reached; later than every deadline. */
#define CLOCK_NEVER INT64_MAX

struct clock;

struct clock_ops {
    int64_t (*mono_ns)(struct clock *clock);
    int64_t (*real_ns)(struct clock *clock); /* since 1970, UTC */
    /* mono_ns at most some milliseconds ago; much cheaper to read. */
    int64_t (*coarse_ns)(struct clock *clock);
};

struct clock {
    const struct clock_ops *ops;
};

static inline int64_t clock_mono_ns(struct clock *clock)
{
    return clock->ops->mono_ns(clock);
}

static inline int64_t clock_real_ns(struct clock *clock)
{
    return clock->ops->real_ns(clock);
}

static inline int64_t clock_coarse_ns(struct clock *clock)
{
    return clock->ops->coarse_ns(clock);
}

/* The clock of the machine. One for the process, never freed. */
struct clock *clock_system(void);

/* A clock that only advances when the test says so. Embedded by its simulation. */
struct clock_sim {
    struct clock clock;
    int64_t mono_ns;
    int64_t real_offset_ns; /* real minus monotonic; a test may step it either way */
};

void clock_sim_init(struct clock_sim *sim, int64_t real_ns);
void clock_sim_advance(struct clock_sim *sim, int64_t by_ns);
/* Advances to a time of the monotonic clock; a past time has no effect. */
void clock_sim_advance_to(struct clock_sim *sim, int64_t mono_ns);

/* now + by without overflow: CLOCK_NEVER when either is too large. */
static inline int64_t clock_add(int64_t now_ns, int64_t by_ns)
{
    int64_t sum;
    if (by_ns == CLOCK_NEVER || __builtin_add_overflow(now_ns, by_ns, &sum))
        return CLOCK_NEVER;
    return sum;
}

#endif
