/* Many seeds, one after the other, and their results: on the terminal and as JSON. */
#ifndef VIGIL_TESTS_SIM_REPORT_H
#define VIGIL_TESTS_SIM_REPORT_H

#include "plants.h"
#include "run.h"

struct report_options {
    uint64_t first, seeds;
    bool plants;        /* first: how many seeds find each planted bug */
    enum plant only;    /* only this one of them, unless it is PLANT_NONE */
    bool reduces;       /* failures */
    unsigned jobs;      /* processes that share the work */
    double seconds_max; /* then no further seed begins; 0: no limit */
    struct plan_limits limits;
    bool with[SWITCHES]; /* seeds without one of these are left out */
};

enum { REPORT_COMMIT_BYTES = 64 };

struct report {
    struct report_options options;
    char commit[REPORT_COMMIT_BYTES]; /* what was compiled; "": unknown */
    uint64_t runs, failures;
    uint64_t repeated; /* runs that were made twice, with the same result */
    uint64_t steps, operations, revisions;
    uint64_t switched[SWITCHES]; /* seeds with this switch */
    double simulated_seconds, seconds, cpu_seconds;
    struct coverage_counts coverage;
    uint64_t found_after[PLANTS]; /* seeds; 0: not found */
};

void report_begin(struct report *report, const struct report_options *options);
void report_run(struct report *report);
bool report_failed(const struct report *report);
/* False: the file cannot be written. */
bool report_write(const struct report *report, const char *path);

#endif
