#include "load/histogram.h"

#include "base/macros.h"

enum { SUB_COUNT = 1 << BENCH_HISTOGRAM_SUB_BITS };

static unsigned bucket_of(uint64_t value)
{
    if (value < SUB_COUNT)
        return (unsigned)value;
    unsigned exponent = 63u - (unsigned)__builtin_clzll(value);
    unsigned shift = exponent - BENCH_HISTOGRAM_SUB_BITS;
    return ((shift + 1) << BENCH_HISTOGRAM_SUB_BITS) + (unsigned)((value >> shift) - SUB_COUNT);
}

/* The largest value that falls into the bucket. */
static uint64_t bucket_bound(unsigned bucket)
{
    if (bucket < SUB_COUNT)
        return bucket;
    unsigned shift = (bucket >> BENCH_HISTOGRAM_SUB_BITS) - 1;
    uint64_t low = (uint64_t)SUB_COUNT + (bucket & (SUB_COUNT - 1));
    return (low << shift) + ((UINT64_C(1) << shift) - 1);
}

void bench_histogram_add(struct bench_histogram *histogram, uint64_t value)
{
    if (histogram->count == 0 || value < histogram->min)
        histogram->min = value;
    if (histogram->count == 0 || value > histogram->max)
        histogram->max = value;
    histogram->count++;
    histogram->sum += value;
    histogram->buckets[bucket_of(value)]++;
}

void bench_histogram_merge(struct bench_histogram *into, const struct bench_histogram *from)
{
    if (from->count == 0)
        return;
    if (into->count == 0 || from->min < into->min)
        into->min = from->min;
    if (into->count == 0 || from->max > into->max)
        into->max = from->max;
    into->count += from->count;
    into->sum += from->sum;
    for (unsigned i = 0; i < BENCH_HISTOGRAM_BUCKETS; i++)
        into->buckets[i] += from->buckets[i];
}

uint64_t bench_histogram_quantile(const struct bench_histogram *histogram, double fraction)
{
    assert(fraction >= 0 && fraction <= 1);
    double wanted = fraction * (double)histogram->count;
    uint64_t seen = 0;
    for (unsigned i = 0; i < BENCH_HISTOGRAM_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen > 0 && (double)seen >= wanted) {
            uint64_t bound = bucket_bound(i);
            return bound < histogram->max ? bound : histogram->max;
        }
    }
    return 0;
}

double bench_histogram_mean(const struct bench_histogram *histogram)
{
    return histogram->count ? (double)histogram->sum / (double)histogram->count : 0;
}
