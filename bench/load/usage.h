/* What a process has used: CPU time and memory, read from the kernel while it runs. */
#ifndef VIGIL_LOAD_USAGE_H
#define VIGIL_LOAD_USAGE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct bench_usage {
    uint64_t at_ns;        /* monotonic, when it was read */
    uint64_t cpu_ns;       /* CPU time of all threads, ended ones included */
    uint64_t cpu_ticks;    /* the same as /proc tells it, in USER_HZ: a coarse second witness */
    uint64_t anonymous_kb; /* RssAnon: what cannot be dropped and read back from a file */
    uint64_t resident_kb;
    uint64_t threads;
};

/* Which processes serve together. */
struct bench_processes {
    pid_t server; /* 0: unknown, usage is not read */
    pid_t store;  /* the process in which the server keeps its data; 0: none */
};

/* What both use together. ST_NOT_FOUND when one of them does not exist. */
MUST_CHECK
enum status bench_usage_read(const struct bench_processes *processes,
                             struct bench_usage *ret_usage);

/* CPU time of this process. */
uint64_t bench_usage_own_cpu_ns(void);

uint64_t bench_now_ns(void);

#endif
