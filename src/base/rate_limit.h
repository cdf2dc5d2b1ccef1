/* A rate limit: a burst that refills at so many a second. A zeroed bucket is full. */
#ifndef VIGIL_BASE_RATE_LIMIT_H
#define VIGIL_BASE_RATE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct bucket {
    uint32_t taken;
    int64_t refilled_ns;
};

/* False when it was empty. */
static inline bool bucket_take(struct bucket *bucket, uint32_t burst, uint32_t per_s,
                               int64_t now_ns)
{
    int64_t passed_ms = (now_ns - bucket->refilled_ns) / 1000000;
    int64_t refill = passed_ms * per_s / 1000;
    if (refill > 0 || bucket->taken == 0) {
        bucket->taken -= refill < bucket->taken ? (uint32_t)refill : bucket->taken;
        bucket->refilled_ns = now_ns;
    }
    if (bucket->taken >= burst)
        return false;
    bucket->taken++;
    return true;
}

#endif
