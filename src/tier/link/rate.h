/*
 * The limit of the calls that the tier makes on its own account (--upstream-qps): the lists,
 * watches and fences of the mirror, and, of all I/O threads, the reviews and the questions whether
 * the server is ready. Calls of clients that are passed on do not count.
 *
 * A bucket of tokens, which refills evenly and is full at the beginning; each call takes one. Each
 * thread has a lane, and an I/O thread another one for those questions. A lane reserves a token
 * when it has a call to make and none is there, and has at most one reservation. So lanes take
 * turns: many reviews delay a list by one token for each thread, and many lists do the same to a
 * review. In a lane the owner decides which call is next.
 *
 * The rate is shared by all threads; a lane belongs to one.
 */
#ifndef VIGIL_TIER_LINK_RATE_H
#define VIGIL_TIER_LINK_RATE_H

#include "base/macros.h"
#include "io/loop.h"

struct metric_page;
struct tier_rate;

/* With twice as many tokens as are added per second; 0 per second: no limit, calls are only
 * counted. Aborts without memory. */
struct tier_rate *tier_rate_new(uint32_t per_second);
void tier_rate_free(struct tier_rate *rate); /* no lane uses it; accepts NULL */
void tier_rate_write_metrics(const struct tier_rate *rate, struct metric_page *page);

struct tier_lane {
    struct tier_rate *rate; /* borrowed; NULL: no limit */
    struct loop *loop;
    /* There is a token: take it. Called once after a refusal. */
    void (*ready)(struct tier_lane *lane);
    struct timer timer; /* set: a token is reserved, and there when it is due */
    bool reserved;
    int64_t at_ns, since_ns; /* valid if it is reserved: when the token is there; since when */
};

void tier_lane_init(struct tier_lane *lane, struct tier_rate *rate, struct loop *loop,
                    void (*ready)(struct tier_lane *lane));
void tier_lane_fini(struct tier_lane *lane); /* a zeroed lane may be finished */
/* True: a call is made now. False: ready is called when it may be made. */
MUST_CHECK
bool tier_lane_take(struct tier_lane *lane);
/* The last call was refused, and no other was made since. */
static inline bool tier_lane_waits(const struct tier_lane *lane)
{
    return lane->reserved;
}

#endif
