/*
 * Tells of calls that took long, in etcd's two lines: "apply request took too long" for what reads
 * or changes the store, "request stats" for any call with one answer. Unlike etcd's, the first
 * counts all the time from the request's arrival, the wait for the disk with it.
 *
 * One per shard; nothing is done for a call that is fast. At most SLOW_LOG_BURST calls are told of
 * at once and SLOW_LOG_PER_S each second after; the next line says how many were not.
 */
#ifndef VIGIL_ETCD_SLOW_LOG_H
#define VIGIL_ETCD_SLOW_LOG_H

#include "base/rate_limit.h"
#include "wire/grpc/service.h"

enum { SLOW_LOG_BURST = 20, SLOW_LOG_PER_S = 10 };

struct slow_log {
    struct grpc_timing timing;
    int64_t (*now_ns)(void *ctx);
    void *now_ctx;
    int64_t apply_ns, unary_ns;
    struct bucket lines;
    uint64_t suppressed; /* since the last line */
    /* Where slow applies are counted; NULL: nowhere. Set by the owner. */
    struct metric_block *counts;
    unsigned apply_slot;
};

/* Takes calls of services from now on; both outlive it. A threshold of 0 tells of every call. */
void slow_log_init(struct slow_log *log, struct grpc_services *services, int64_t apply_ns,
                   int64_t unary_ns, int64_t (*now_ns)(void *ctx), void *now_ctx);

#endif
