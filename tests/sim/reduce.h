/*
 * Runs of seeds in processes of their own, so that a run that aborts is only one that has failed;
 * and the reduction of a run that fails to a shorter one that fails, too.
 */
#ifndef VIGIL_TESTS_SIM_REDUCE_H
#define VIGIL_TESTS_SIM_REDUCE_H

#include "run.h"

enum { ATTEMPT_TEXT_BYTES = 16384 };

struct attempt {
    bool failed;
    struct run_result result;      /* unless it failed */
    char text[ATTEMPT_TEXT_BYTES]; /* the end of what it printed if it failed */
};

/* In a child process, for at most a minute of processor time. With trace, everything that it prints
 * is passed on. */
void attempt_run(const struct plan *plan, bool trace, struct attempt *ret_attempt);

/* Switches off what the failure does not need, and shortens the rest. *limits and *attempt are
 * those of the shortest run that was found. */
void reduce(uint64_t seed, struct plan_limits *limits, struct attempt *attempt);

/* The command that repeats a run. */
void replay_print(uint64_t seed, const struct plan_limits *limits);

#endif
