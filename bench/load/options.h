/* The flags of vigil-bench: one table, for reading them, for the help, the manual page and the
 * completion. */
#ifndef VIGIL_LOAD_OPTIONS_H
#define VIGIL_LOAD_OPTIONS_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct bench_options {
    const char *endpoint;
    const char *cacert, *cert, *key; /* files of TLS */
    const char *token;
    const char *prefix;
    uint64_t keys; /* enum bench_order */
    uint64_t connections;
    uint64_t pipeline;
    uint64_t threads;
    uint64_t total;
    uint64_t key_space;
    uint64_t value_bytes;
    uint64_t server_pid, store_pid;
    uint64_t streams;
    uint64_t watchers;
    uint64_t nodes;      /* nodes to which pods are bound */
    uint64_t users;      /* whose tokens are presented in turn; 0: one */
    uint64_t stopped;    /* connections that do not read */
    uint64_t watch_keys; /* enum bench_watch_keys */
    const char *behind;  /* a prefix */
    const char *object;  /* a file; empty: pods are created */
    const char *path;
    uint64_t from;
    uint64_t rate;
    uint64_t fail_every;
    /* kube-scale */
    uint64_t pod_count; /* 0: as many as nodes */
    uint64_t churn;     /* writes about pods per second for 100,000 nodes */
    uint64_t services, service_interval_ns;
    uint64_t start_rate; /* nodes per second */
    uint64_t nodes_per_connection;
    uint64_t restart, restart_at_ns; /* so many nodes, so long after the measured time began */
    const char *series;              /* a file */
    uint64_t duration_ns;
    uint64_t warmup_ns;
    bool insecure;
    bool prepare;
    bool again;
    bool spread;
    bool configs;
    bool pods;
    bool await_events;
    bool json;
    bool help;
};

/* Sets what the flags say and leaves the rest. Both --flag value and --flag=value; times end in
 * ns, us, ms, s or m. The texts stay in argv. */
MUST_CHECK
enum status bench_options_read(int argc, char **argv, struct bench_options *options,
                               struct error *error);

/* Prints one line for each flag, with the value it has now. */
void bench_options_print(const struct bench_options *options);

/* Writes a text of a manual page, in which a plain "-" would be a hyphen. */
void bench_write_roff(const char *text, FILE *to);

/* Writes the flags as a section of a manual page (roff). */
void bench_options_write_man(FILE *to);

/* What the word `current` can become after `previous`: flags, or values of the flag `previous`. One
 * candidate per line; then ":", or ":f" if the value is the name of a file. */
void bench_options_complete(const char *previous, const char *current, FILE *to);

#endif
