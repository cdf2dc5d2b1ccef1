/*
 * One thread of a load: its connections, its share of the keys, its epoll loop, its counts.
 * Opened by the thread that starts the load, then run on its own thread; nothing of it but
 * bench_worker_left is shared until that thread has ended.
 */
#ifndef VIGIL_LOAD_WORKER_H
#define VIGIL_LOAD_WORKER_H

#include "load/load_spec.h"
#include "load/outcome.h"
#include "load/request.h"

/* What all workers of a load read and none changes while they run. */
struct bench_shared {
    const struct bench_load *load;
    struct bench_request first, next; /* requests of a connection */
    size_t key_at;                    /* offset of the digits of the key in `first` */
    size_t key_at_next;
    size_t node_at;            /* offset of the digits of a pod's node; 0: none */
    size_t response_bytes_min; /* a good response is no shorter */
    const uint32_t *shuffled;  /* the order of keys, or NULL */
    uint64_t record_from_ns, record_until_ns;
};

struct bench_worker;

/* Opens `connections` connections for the keys [key_from, key_until). total: calls to make. */
MUST_CHECK
enum status bench_worker_new(const struct bench_shared *shared, uint32_t connections,
                             uint64_t key_from, uint64_t key_until, uint64_t total,
                             struct bench_worker **ret_worker, struct error *error);
void bench_worker_free(struct bench_worker *worker);

/* Runs to the end of the load; a thread's start function over a struct bench_worker. */
void *bench_worker_run(void *argument);

/* How many calls of its total it has not begun; 0 when it has ended. Any thread. */
uint64_t bench_worker_left(const struct bench_worker *worker);

/* Adds this worker's counts; ret_end_ns: when its last call ended. */
void bench_worker_collect(const struct bench_worker *worker, struct bench_outcome *into,
                          uint64_t *ret_end_ns);

DEFINE_CLEANUP(struct bench_worker *, bench_worker_free)

#endif
