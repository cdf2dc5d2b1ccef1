/* The run of one plan, from an empty disk to the last check. */
#ifndef VIGIL_TESTS_SIM_RUN_H
#define VIGIL_TESTS_SIM_RUN_H

#include "coverage.h"
#include "plan.h"

struct run_result {
    uint64_t hash, steps, operations, revisions;
    double seconds; /* simulated */
    struct coverage_counts coverage;
};

/* Does not return if something is wrong. */
struct run_result run_plan(const struct plan *plan, bool prints);
/* In a line. */
void run_print(const struct plan *plan, const struct run_result *result);

#endif
