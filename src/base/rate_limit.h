/* A token bucket: a burst that refills at a number of tokens per second. Zeroed, it is full. */
#ifndef VIGIL_BASE_RATE_LIMIT_H
#define VIGIL_BASE_RATE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct rate_limit {
    uint32_t taken;
    int64_t refilled_ns;
};

/* Takes one token. False: none is left. */
static inline bool rate_limit_take(struct rate_limit *limit, uint32_t burst, uint32_t per_s,
                                   int64_t now_ns)
{
    int64_t passed_ms = (now_ns - limit->refilled_ns) / 1000000;
    int64_t refill = passed_ms * per_s / 1000;
    if (refill > 0 || limit->taken == 0) {
        limit->taken -= refill < limit->taken ? (uint32_t)refill : limit->taken;
        limit->refilled_ns = now_ns;
    }
    if (limit->taken >= burst)
        return false;
    limit->taken++;
    return true;
}

#endif
