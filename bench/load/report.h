/* What a benchmark found, for people or as one JSON object. Keeps the order of what was added. */
#ifndef VIGIL_LOAD_REPORT_H
#define VIGIL_LOAD_REPORT_H

#include "base/buf.h"
#include "load/histogram.h"
#include "load/load.h"

/* A zeroed report is empty. Running out of memory shows when it is printed. */
struct bench_report {
    struct buf json;
    struct buf text;
    bool failed;
};

void bench_report_fini(struct bench_report *report);

void bench_report_text(struct bench_report *report, const char *name, const char *value);
void bench_report_count(struct bench_report *report, const char *name, uint64_t value);
/* NaN and infinity are left out. */
void bench_report_number(struct bench_report *report, const char *name, double value);
/* Adds mean and quantiles in microseconds, each named `name_...`. */
void bench_report_latency(struct bench_report *report, const char *name,
                          const struct bench_histogram *histogram);
/* The server's CPU between the two readings, in all and for each operation, and its memory.
 * operations_per_second of 0: there were none. */
void bench_report_usage(struct bench_report *report, const struct bench_usage *before,
                        const struct bench_usage *after, double operations_per_second);
/* All of a load's outcome. */
void bench_report_outcome(struct bench_report *report, const struct bench_outcome *outcome);

MUST_CHECK
enum status bench_report_print(struct bench_report *report, bool json);

#endif
