#include "engine/local/state/metrics.h"

#include "base/clock.h"
#include "base/xalloc.h"

static const int64_t count_bounds[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096};
static const struct metric_buckets counts = {count_bounds, COUNT_OF(count_bounds), 1};

static const int64_t byte_bounds[] = {
    1 << 8, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24,
};
static const struct metric_buckets bytes = {byte_bounds, COUNT_OF(byte_bounds), 1};

/* From 0.1 ms: applying a group is faster than a sync. */
static const int64_t short_bounds[] = {
    100 * NS_PER_US,   200 * NS_PER_US,   400 * NS_PER_US,    800 * NS_PER_US,
    1600 * NS_PER_US,  3200 * NS_PER_US,  6400 * NS_PER_US,   12800 * NS_PER_US,
    25600 * NS_PER_US, 51200 * NS_PER_US, 102400 * NS_PER_US, 204800 * NS_PER_US,
};
static const struct metric_buckets short_seconds = {short_bounds, COUNT_OF(short_bounds), NS_PER_S};

static const int64_t long_bounds[] = {
    10 * NS_PER_MS,    20 * NS_PER_MS,    40 * NS_PER_MS,    80 * NS_PER_MS,    160 * NS_PER_MS,
    320 * NS_PER_MS,   640 * NS_PER_MS,   1280 * NS_PER_MS,  2560 * NS_PER_MS,  5120 * NS_PER_MS,
    10240 * NS_PER_MS, 20480 * NS_PER_MS, 40960 * NS_PER_MS, 81920 * NS_PER_MS, 163840 * NS_PER_MS,
};
static const struct metric_buckets long_seconds = {long_bounds, COUNT_OF(long_bounds), NS_PER_S};

/* As in etcd: 0.1 s to 7 min. */
static const int64_t defragment_bounds[] = {
    100 * NS_PER_MS,    200 * NS_PER_MS,   400 * NS_PER_MS,    800 * NS_PER_MS,
    1600 * NS_PER_MS,   3200 * NS_PER_MS,  6400 * NS_PER_MS,   12800 * NS_PER_MS,
    25600 * NS_PER_MS,  51200 * NS_PER_MS, 102400 * NS_PER_MS, 204800 * NS_PER_MS,
    409600 * NS_PER_MS,
};
static const struct metric_buckets defragment_seconds = {defragment_bounds,
                                                         COUNT_OF(defragment_bounds), NS_PER_S};

struct name {
    const char *name, *help;
    bool gauge; /* a gauge in etcd, although it only grows */
};

static const struct name counters[LOCAL_COUNTERS] = {
    [LOCAL_RANGES] = {.name = "etcd_mvcc_range_total", .help = "Ranges read."},
    [LOCAL_PUTS] = {.name = "etcd_mvcc_put_total", .help = "Keys put, by transactions too."},
    [LOCAL_DELETES] = {.name = "etcd_mvcc_delete_total",
                       .help = "Keys deleted, by transactions too."},
    [LOCAL_TXNS] = {.name = "etcd_mvcc_txn_total", .help = "Transactions run."},
    [LOCAL_PUT_BYTES] = {.name = "etcd_debugging_mvcc_total_put_size_in_bytes",
                         .help = "Bytes of keys and values put.",
                         .gauge = true},
    [LOCAL_WRITES] = {.name = "vigil_writer_requests_total",
                      .help = "Requests handed to the writer."},
    [LOCAL_ANSWERS] = {.name = "vigil_writer_answers_total",
                       .help = "Requests the writer has answered."},
    [LOCAL_WRITES_FAILED] = {.name = "etcd_server_proposals_failed_total",
                             .help = "Requests that could not be done or decided."},
    [LOCAL_LOG_BYTES] = {.name = "etcd_disk_wal_write_bytes_total",
                         .help = "Bytes written to the log.",
                         .gauge = true},
    [LOCAL_CLEANED_SEGMENTS] = {.name = "vigil_cleaner_segments_total",
                                .help = "Segments of the log that were cleaned."},
    [LOCAL_DEFRAGMENTS_BEGUN] = {.name = "vigil_defragments_begun_total",
                                 .help = "Times the store began to be defragmented."},
    [LOCAL_DEFRAGMENTS_ENDED] = {.name = "vigil_defragments_ended_total",
                                 .help = "Times that ended, well or not."},
    [LOCAL_LEASES_GRANTED] = {.name = "etcd_debugging_lease_granted_total",
                              .help = "Leases granted."},
    [LOCAL_LEASES_REVOKED] = {.name = "etcd_debugging_lease_revoked_total",
                              .help = "Leases revoked, expired ones too."},
    [LOCAL_LEASES_RENEWED] = {.name = "etcd_debugging_lease_renewed_total",
                              .help = "Leases kept alive."},
    [LOCAL_LEASES_EXPIRED] = {.name = "etcd_debugging_server_lease_expired_total",
                              .help = "Leases that expired."},
    [LOCAL_CHECKED_RECORDS] = {.name = "vigil_store_check_records_total",
                               .help = "Records of the log that the check of the store has read."},
    [LOCAL_CHECKED_VERSIONS] = {.name = "vigil_store_check_versions_total",
                                .help = "Versions of keys that it has compared with the log."},
    [LOCAL_BAD_RECORDS] = {.name = "vigil_store_check_bad_records_total",
                           .help = "Records whose checksum was wrong."},
    [LOCAL_BAD_VERSIONS] = {.name = "vigil_store_check_bad_versions_total",
                            .help = "Versions of keys that could not be read, or that the index "
                                    "and the log do not agree on."},
    [LOCAL_CHECKS] = {.name = "vigil_store_checks_total",
                      .help = "Times that all that is stored was checked."},
};

static const struct {
    struct name name;
    const struct metric_buckets *buckets;
} histograms[LOCAL_HISTOGRAMS] = {
    [LOCAL_LOG_WRITE_SECONDS] = {{.name = "etcd_disk_wal_write_duration_seconds",
                                  .help = "Time to write a group of requests to the log."},
                                 &metric_disk_seconds},
    [LOCAL_LOG_SYNC_SECONDS] = {{.name = "etcd_disk_wal_fsync_duration_seconds",
                                 .help = "Time to sync the log to the disk."},
                                &metric_disk_seconds},
    [LOCAL_GROUP_REQUESTS] = {{.name = "vigil_writer_group_requests",
                               .help = "Requests that were made durable together."},
                              &counts},
    [LOCAL_GROUP_BYTES] = {{.name = "vigil_writer_group_bytes",
                            .help = "Bytes that were synced together."},
                           &bytes},
    [LOCAL_APPLY_SECONDS] = {{.name = "vigil_writer_apply_duration_seconds",
                              .help = "Time to apply a group of requests, before it is written."},
                             &short_seconds},
    [LOCAL_CHECKPOINT_SECONDS] = {{.name = "etcd_disk_backend_commit_duration_seconds",
                                   .help =
                                       "Time to write a checkpoint; requests do not wait for it."},
                                  &metric_disk_seconds},
    [LOCAL_CLEAN_SECONDS] = {{.name = "vigil_cleaner_copy_duration_seconds",
                              .help = "Time to copy what is alive of a segment of the log."},
                             &metric_disk_seconds},
    [LOCAL_DEFRAGMENT_SECONDS] = {{.name = "etcd_disk_backend_defrag_duration_seconds",
                                   .help = "Time to defragment; requests do not wait for it."},
                                  &defragment_seconds},
    [LOCAL_HASH_SECONDS] = {{.name = "etcd_mvcc_hash_rev_duration_seconds",
                             .help = "Time to hash all keys at a revision."},
                            &long_seconds},
    [LOCAL_FAN_OUT_SECONDS] =
        {{.name = "vigil_watch_fan_out_duration_seconds",
          .help = "Time from a revision being visible to its events being sent to "
                  "all who have room."},
         &short_seconds},
};

static unsigned first_slot(enum local_histogram what)
{
    return LOCAL_COUNTERS + (unsigned)what * METRIC_SLOTS;
}

struct metric_set *local_metrics_new(void)
{
    struct metric_set *set = NULL;
    enum status status = metric_set_new(first_slot(LOCAL_HISTOGRAMS), &set);
    xalloc_check(status == ST_OK ? set : NULL, LOCAL_COUNTERS);
    return set;
}

struct metric_block *local_metrics_join(struct metric_set *set)
{
    struct metric_block *block = NULL;
    enum status status = metric_set_join(set, &block);
    xalloc_check(status == ST_OK ? block : NULL, LOCAL_COUNTERS);
    return block;
}

void local_observe(struct metric_block *block, enum local_histogram what, int64_t value)
{
    metric_observe(block, first_slot(what), histograms[what].buckets, value);
}

/* Number of those that have begun and not ended. */
static uint64_t under_way(const struct metric_set *set, enum local_count begun,
                          enum local_count ended)
{
    uint64_t over = metric_sum(set, ended); /* read first, so that the difference is not negative */
    return metric_sum(set, begun) - over;
}

void local_metrics_write(const struct metric_set *set, struct metric_page *page)
{
    for (unsigned i = 0; i < LOCAL_COUNTERS; i++) {
        const struct name *name = &counters[i];
        metric_page_head(page, name->name, name->gauge ? METRIC_GAUGE : METRIC_COUNTER, name->help);
        metric_page_row(page, name->name, "", metric_sum(set, i));
    }
    for (unsigned i = 0; i < LOCAL_HISTOGRAMS; i++) {
        uint64_t slots[METRIC_SLOTS];
        const struct name *name = &histograms[i].name;
        metric_sum_histogram(set, first_slot(i), slots);
        metric_page_head(page, name->name, METRIC_HISTOGRAM, name->help);
        metric_page_row_histogram(page, name->name, "", histograms[i].buckets, slots);
    }
    metric_page_gauge(page, "etcd_server_proposals_pending",
                      "Requests on their way through the writer.",
                      under_way(set, LOCAL_WRITES, LOCAL_ANSWERS));
    metric_page_gauge(page, "etcd_disk_defrag_inflight", "1: the store is being defragmented.",
                      under_way(set, LOCAL_DEFRAGMENTS_BEGUN, LOCAL_DEFRAGMENTS_ENDED));
}
