/*
 * Logs slow calls with etcd's two messages: "apply request took too long" for calls that read or
 * change the store, and "request stats" for every unary call. Unlike in etcd, the time in the first
 * message begins with the arrival of the request and includes the wait for the disk.
 *
 * There is one per shard. Fast calls cost nothing here. At most SLOW_LOG_BURST calls are logged at
 * once, then SLOW_LOG_PER_S each second; the next line has the number of calls that were not
 * logged.
 */
#ifndef VIGIL_ETCD_SHARED_SLOW_LOG_H
#define VIGIL_ETCD_SHARED_SLOW_LOG_H

#include "base/rate_limit.h"
#include "wire/grpc/call.h"
#include "wire/grpc/service.h"

enum { SLOW_LOG_BURST = 20, SLOW_LOG_PER_S = 10 };

struct slow_log {
    struct grpc_timing timing;
    int64_t apply_ns, unary_ns;
    struct rate_limit lines;
    uint64_t suppressed; /* since the last line */
    /* Counts slow applies in apply_slot; NULL: they are not counted. Set by the owner. */
    struct metric_block *counts;
    unsigned apply_slot;
};

/* Observes the calls of services from now on; services and now_ctx must outlive it. A threshold of
 * 0 logs every call. */
void slow_log_init(struct slow_log *log, struct grpc_services *services, int64_t apply_ns,
                   int64_t unary_ns, int64_t (*now_ns)(void *ctx), void *now_ctx);

#endif
