/*
 * A closed-loop load of unary KV calls: so many connections, so many calls in flight on each, for a
 * time or a number of calls. A load runs on worker threads of its own; the caller's thread only
 * waits, and reads the server's usage when the measured time begins and ends.
 */
#ifndef VIGIL_LOAD_LOAD_H
#define VIGIL_LOAD_LOAD_H

#include "load/load_spec.h"
#include "load/outcome.h"

/* Fills the outcome even when calls fail; the status is for a load that cannot run at all. */
MUST_CHECK
enum status bench_load_run(const struct bench_load *load, struct bench_outcome *ret_outcome,
                           struct error *error);

#endif
