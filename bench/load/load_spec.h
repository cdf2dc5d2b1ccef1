/* What a load consists of. */
#ifndef VIGIL_LOAD_LOAD_SPEC_H
#define VIGIL_LOAD_LOAD_SPEC_H

#include "load/conn.h"
#include "load/usage.h"

#include <sys/socket.h>

enum bench_verb {
    BENCH_PUT,
    BENCH_GET,
    BENCH_LIST,
    BENCH_POD_CREATE, /* on the Kubernetes API: POST of pods of value_bytes, or of objects, */
    BENCH_POD_LIST,   /* and GET of all of them */
};

enum bench_order {
    BENCH_SEQUENTIAL,
    BENCH_RANDOM,   /* any key, keys may repeat */
    BENCH_SHUFFLED, /* every key once, in random order, before any comes again */
};

enum {
    BENCH_KEY_DIGITS = 10,
    BENCH_PREFIX_MAX = 64,
    BENCH_THREADS_MAX = 64,
    BENCH_CONNECTIONS_MAX = 100000,
    BENCH_PIPELINE_MAX = 10000,
    BENCH_VALUE_BYTES_MAX = 60000, /* a request must fit the protocol's initial window */
    BENCH_KEY_SPACE_MAX = 1000000000,
};

/* Where the number of an object is to be written. */
#define BENCH_ZEROS "0000000000"

struct bench_target {
    struct bench_address address;
    const char *authority;
    const char *token; /* token of the user; empty: anonymous */
    struct bench_processes processes;
};

struct bench_load {
    const struct bench_target *target;
    enum bench_verb verb;
    enum bench_order order;
    const char *prefix; /* a key is the prefix and ten digits; a list asks for the prefix */
    uint64_t key_space;
    size_t value_bytes;
    uint64_t nodes;      /* pods are bound to these nodes, one after the other */
    struct slice object; /* JSON with ten zeros for the number, created instead of pods */
    const char *path;    /* where objects are created */
    uint32_t connections;
    uint32_t pipeline; /* calls in flight on each connection */
    uint32_t threads;
    uint64_t total;       /* calls to make; 0: go by time */
    uint64_t warmup_ns;   /* not measured; only by time */
    uint64_t duration_ns; /* measured */
};

#endif
