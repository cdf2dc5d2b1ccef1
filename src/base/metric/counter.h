/*
 * Counters of one object, for example of a watch: one thread changes them, and any thread reads
 * them. All accesses are relaxed, because no thread concludes from a counter that something else
 * has been written.
 */
#ifndef VIGIL_BASE_METRIC_COUNTER_H
#define VIGIL_BASE_METRIC_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

static inline uint64_t counter_get(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static inline void counter_set(_Atomic uint64_t *counter, uint64_t value)
{
    atomic_store_explicit(counter, value, memory_order_relaxed);
}

/* Several threads may add to one counter. */
static inline void counter_add(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* The same where only one thread adds, without a locked instruction. */
static inline void counter_add_alone(_Atomic uint64_t *counter, uint64_t n)
{
    counter_set(counter, counter_get(counter) + n);
}

/* For a maximum: sets the value if it is the largest so far. */
static inline void counter_raise(_Atomic uint64_t *counter, uint64_t value)
{
    if (value > counter_get(counter))
        counter_set(counter, value);
}

#endif
