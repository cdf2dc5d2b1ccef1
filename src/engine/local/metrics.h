/*
 * What the local engine counts, for the page that operators look at. Each thread (shard, writer,
 * keeper) adds to a block of its own.
 */
#ifndef VIGIL_ENGINE_LOCAL_METRICS_H
#define VIGIL_ENGINE_LOCAL_METRICS_H

#include "base/metric/page.h"
#include "engine/engine.h"

enum local_count {
    LOCAL_RANGES,
    LOCAL_PUTS, /* keys put, those of transactions too */
    LOCAL_DELETES,
    LOCAL_TXNS,
    LOCAL_PUT_BYTES,
    LOCAL_WRITES,        /* handed to the writer */
    LOCAL_ANSWERS,       /* and answered by it */
    LOCAL_WRITES_FAILED, /* could not be done */
    LOCAL_LOG_BYTES,
    LOCAL_CLEANED_SEGMENTS,
    LOCAL_DEFRAGMENTS_BEGUN,
    LOCAL_DEFRAGMENTS_ENDED, /* well or not */
    LOCAL_LEASES_GRANTED,
    LOCAL_LEASES_REVOKED,
    LOCAL_LEASES_RENEWED,
    LOCAL_LEASES_EXPIRED,
    LOCAL_CHECKED_RECORDS,
    LOCAL_CHECKED_VERSIONS,
    LOCAL_BAD_RECORDS,
    LOCAL_BAD_VERSIONS,
    LOCAL_CHECKS, /* complete ones */
    LOCAL_COUNTERS
};

enum local_histogram {
    LOCAL_LOG_WRITE_SECONDS,
    LOCAL_LOG_SYNC_SECONDS,
    LOCAL_GROUP_REQUESTS,
    LOCAL_GROUP_BYTES,
    LOCAL_APPLY_SECONDS, /* of a whole group */
    LOCAL_CHECKPOINT_SECONDS,
    LOCAL_CLEAN_SECONDS,
    LOCAL_DEFRAGMENT_SECONDS, /* of those that ended well */
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

/* All of it, with the names etcd's dashboards use where they have one. */
void local_metrics_write(const struct metric_set *set, struct metric_page *page);

#endif
