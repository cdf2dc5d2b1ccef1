/* The least and the most that a size or a cost can be. Sums and products end at 2^64 - 1. */
#ifndef VIGIL_CEL_ESTIMATE_RANGE_H
#define VIGIL_CEL_ESTIMATE_RANGE_H

#include <math.h>
#include <stdint.h>

struct cel_range {
    uint64_t min, max;
};

/* Nothing is known. */
#define CEL_ANY_SIZE ((struct cel_range){0, UINT64_MAX})
#define CEL_EXACTLY(n) ((struct cel_range){(n), (n)})

static inline uint64_t cel_saturated_sum(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static inline uint64_t cel_saturated_product(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Rounded up. */
static inline uint64_t cel_scaled(uint64_t value, double factor)
{
    double product = ceil((double)value * factor);
    return product >= 0x1p64 ? UINT64_MAX : (uint64_t)product;
}

static inline struct cel_range cel_range_add(struct cel_range a, struct cel_range b)
{
    return (struct cel_range){cel_saturated_sum(a.min, b.min), cel_saturated_sum(a.max, b.max)};
}

static inline struct cel_range cel_range_multiply(struct cel_range a, struct cel_range b)
{
    return (struct cel_range){cel_saturated_product(a.min, b.min),
                              cel_saturated_product(a.max, b.max)};
}

static inline struct cel_range cel_range_scale(struct cel_range a, double factor)
{
    return (struct cel_range){cel_scaled(a.min, factor), cel_scaled(a.max, factor)};
}

/* The range of both. */
static inline struct cel_range cel_range_union(struct cel_range a, struct cel_range b)
{
    return (struct cel_range){a.min < b.min ? a.min : b.min, a.max > b.max ? a.max : b.max};
}

/* What it costs to traverse a text of this size. */
static inline struct cel_range cel_range_traversal(struct cel_range size)
{
    return cel_range_scale(size, 0.1);
}

#endif
