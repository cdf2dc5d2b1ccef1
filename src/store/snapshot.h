/*
 * The store as a bbolt file, as an etcd with the same history would have it (bolt/schema.h): what
 * compaction has left of the keys, in the order of their revisions, which is the log's own; and in
 * the other buckets what the caller brings.
 *
 *   measured, in steps under a view ──► its length is known ──► filled, under nothing but its hold
 *
 * The first pass looks in the index for what compaction would have left, and keeps one bit for each
 * compacted version; the second goes through the log alone. So the reader may take its time: the
 * store writes, compacts and cleans meanwhile, and only cleaned segments stay on the disk.
 *
 * One owner, one thread at a time. Aborts without memory.
 */
#ifndef VIGIL_STORE_SNAPSHOT_H
#define VIGIL_STORE_SNAPSHOT_H

#include "bolt/schema.h"
#include "store/log/hold.h"
#include "store/view.h"

struct store_snapshot;

struct snapshot_entry {
    struct slice key, value;
};

/* What stands in the buckets other than `key`; the same whenever it is asked. */
struct snapshot_source {
    /*
     * The i-th of the bucket, in the order of keys, of a store that is compacted to a revision (-1:
     * it never was). False: there are no more. Valid until the next call.
     */
    bool (*entry)(struct snapshot_source *source, enum bolt_etcd_bucket bucket, size_t i,
                  int64_t compact_revision, struct snapshot_entry *ret_entry);
};

/* Of the log up to the hold's last index, where the store was at that revision. Owns the hold, and
 * borrows the source. */
struct store_snapshot *store_snapshot_new(struct log_hold *hold, int64_t revision,
                                          struct snapshot_source *source);
void store_snapshot_free(struct store_snapshot *snapshot); /* accepts NULL */
DEFINE_CLEANUP(struct store_snapshot *, store_snapshot_free)

/*
 * Goes on by about so many changes. The view is not older than the hold; it may be another one each
 * time, but when it is compacted further than the last, all begins anew. ST_AGAIN: there is more.
 * ST_COMPACTED: beyond the revision itself, so this can not be one any more. ST_DAMAGED.
 */
MUST_CHECK
enum status store_snapshot_measure(struct store_snapshot *snapshot, const struct store_view *view,
                                   const struct log *log, unsigned changes_max);
/* How often it has begun anew. */
unsigned store_snapshot_restarts(const struct store_snapshot *snapshot);

/* Once measured. */
uint64_t store_snapshot_bytes(const struct store_snapshot *snapshot);
/* The next bytes; *ret_len is less than room only at the end. ST_DAMAGED. */
MUST_CHECK
enum status store_snapshot_fill(struct store_snapshot *snapshot, uint8_t *dst, size_t room,
                                size_t *ret_len);

#endif
