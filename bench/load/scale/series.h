/*
 * The course of a run: a sample of all threads every second, their sum over the measured time, a
 * line of progress on stderr, and a file with one line of JSON for each second.
 */
#ifndef VIGIL_LOAD_SCALE_SERIES_H
#define VIGIL_LOAD_SCALE_SERIES_H

#include "load/scale/measures.h"
#include "load/scale/world.h"
#include "load/usage.h"

#include <stdio.h>

struct scale_series {
    const struct scale_world *world;
    struct bench_processes server; /* 0: unknown */
    FILE *file;                    /* NULL: none is written */
    bool is_terminal;              /* stderr: the line is written over the one before */
    uint64_t begun_ns, last_ns, told_ns;
    bool has_server; /* its usage is known */
    struct bench_usage own, usage;
    double own_cores, server_cores; /* in the last second */
    struct scale_sample *second;    /* owned: the last one */
    struct scale_sample *total;     /* owned: since scale_series_measure */
    struct scale_sample *run;       /* owned: of the whole run */
};

/* path: "" for none. ST_INVALID: the file cannot be written. */
MUST_CHECK
enum status scale_series_init(struct scale_series *series, const struct scale_world *world,
                              const struct bench_processes *server, const char *path,
                              struct error *error);
void scale_series_fini(struct scale_series *series);

/* Begins a sample, to which the caller adds what the threads have measured; then it is complete. */
struct scale_sample *scale_series_begin(struct scale_series *series);
void scale_series_complete(struct scale_series *series);

/* The measured time begins: the total is emptied. */
void scale_series_measure(struct scale_series *series);

#endif
