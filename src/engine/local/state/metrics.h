/*
 * The metrics of the local engine. Each thread (shard, writer, keeper) adds to its own block.
 */
#ifndef VIGIL_ENGINE_LOCAL_STATE_METRICS_H
#define VIGIL_ENGINE_LOCAL_STATE_METRICS_H

#include "base/metric/page.h"
#include "engine/engine.h"

enum local_count {
    LOCAL_RANGES,
    LOCAL_PUTS, /* keys put, also in transactions */
    LOCAL_DELETES,
    LOCAL_TXNS,
    LOCAL_PUT_BYTES,
    LOCAL_WRITES,        /* passed to another thread */
    LOCAL_ANSWERS,       /* answered by another thread */
    LOCAL_WRITES_FAILED, /* as etcd counts failed proposals */
    LOCAL_LOG_BYTES,
    LOCAL_CLEANED_SEGMENTS,
    LOCAL_DEFRAGMENTS_BEGUN,
    LOCAL_DEFRAGMENTS_ENDED, /* or failed */
    LOCAL_LEASES_GRANTED,
    LOCAL_LEASES_REVOKED,
    LOCAL_LEASES_RENEWED,
    LOCAL_LEASES_EXPIRED,
    LOCAL_CHECKED_RECORDS,
    LOCAL_CHECKED_VERSIONS,
    LOCAL_BAD_RECORDS,
    LOCAL_BAD_VERSIONS,
    LOCAL_CHECKS, /* complete passes */
    LOCAL_COUNTERS
};

enum local_histogram {
    LOCAL_LOG_WRITE_SECONDS,
    LOCAL_LOG_SYNC_SECONDS,
    LOCAL_GROUP_REQUESTS,
    LOCAL_GROUP_BYTES,
    LOCAL_APPLY_SECONDS, /* time of a whole group */
    LOCAL_CHECKPOINT_SECONDS,
    LOCAL_CLEAN_SECONDS,
    LOCAL_DEFRAGMENT_SECONDS, /* time of successful ones */
    LOCAL_HASH_SECONDS,
    LOCAL_FAN_OUT_SECONDS,
    LOCAL_HISTOGRAMS
};

struct metric_set *local_metrics_new(void); /* aborts without memory */
struct metric_block *local_metrics_join(struct metric_set *set);

static inline void local_count(struct metric_block *block, enum local_count what, uint64_t n)
{
    metric_add(block, what, n);
}
void local_observe(struct metric_block *block, enum local_histogram what, int64_t value);

/* Writes all of them, under etcd's names where etcd has the same metric. */
void local_metrics_write(const struct metric_set *set, struct metric_page *page);

#endif
