/*
 * Counts of durations in log-linear buckets: exact below 64 ns, then 64 buckets for each power of
 * two, so that a quantile is at most 1/64 above the truth. Adding is a few instructions and no
 * allocation. One owner; histograms of several threads are merged at the end.
 */
#ifndef VIGIL_LOAD_HISTOGRAM_H
#define VIGIL_LOAD_HISTOGRAM_H

#include <stdint.h>

enum {
    BENCH_HISTOGRAM_SUB_BITS = 6,
    BENCH_HISTOGRAM_BUCKETS = (64 - BENCH_HISTOGRAM_SUB_BITS + 1) << BENCH_HISTOGRAM_SUB_BITS,
};

/* A zeroed struct is empty. */
struct bench_histogram {
    uint64_t count;
    uint64_t sum;
    uint64_t min; /* meaningless while count is 0, as is max */
    uint64_t max;
    uint64_t buckets[BENCH_HISTOGRAM_BUCKETS];
};

void bench_histogram_add(struct bench_histogram *histogram, uint64_t value);
void bench_histogram_merge(struct bench_histogram *into, const struct bench_histogram *from);

/* The smallest bound that at least `fraction` of the values do not pass, 0 when empty. */
uint64_t bench_histogram_quantile(const struct bench_histogram *histogram, double fraction);
double bench_histogram_mean(const struct bench_histogram *histogram);

#endif
