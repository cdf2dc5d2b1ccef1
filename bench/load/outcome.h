/* What a load measured. One per worker, added up at the end. */
#ifndef VIGIL_LOAD_OUTCOME_H
#define VIGIL_LOAD_OUTCOME_H

#include "load/headers.h"
#include "load/histogram.h"
#include "load/usage.h"

struct bench_outcome {
    struct bench_histogram latency; /* ns, of calls that went well */
    uint64_t errors;
    int64_t last_revision; /* revision of the last answer, when the load was a single call */
    uint64_t connections_lost;
    uint64_t bytes_in, bytes_out; /* on the sockets, while measured */
    double seconds;               /* measured */
    uint64_t own_cpu_ns;
    bool has_usage;
    struct bench_usage before, after; /* usage of the server */
    char first_error[256];
};

/* Counts an error of a call or a connection, and keeps the text of the first one. */
void bench_outcome_note(struct bench_outcome *outcome, const struct bench_verdict *verdict);

#endif
