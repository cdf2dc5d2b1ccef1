/*
 * The store as a bbolt file, as an etcd server with the same history would have it (bolt/schema.h):
 * what compaction has left of the keys, in the order of their revisions, which is the order of the
 * log; and in the other buckets what the caller provides.
 *
 *   measured, in steps under a view ──► its length is known ──► filled, with only its hold
 *
 * The first pass looks up in the index what compaction would have left, and keeps one bit for each
 * compacted version; the second reads only the log. So the reader may be slow: the store writes,
 * compacts and cleans meanwhile, and only cleaned segments stay on the disk.
 *
 * One owner, one thread at a time. Aborts when memory is exhausted.
 */
#ifndef VIGIL_STORE_SNAPSHOT_H
#define VIGIL_STORE_SNAPSHOT_H

#include "bolt/schema.h"
#include "store/log/hold.h"
#include "store/mvcc/view.h"

struct store_snapshot;

struct snapshot_entry {
    struct slice key, value;
};

/* The contents of the buckets other than `key`; the same at every call. */
struct snapshot_source {
    /*
     * The i-th entry of the bucket, in key order, for a store that is compacted to a revision (-1:
     * never). False: there are no more. Valid until the next call.
     */
    bool (*entry)(struct snapshot_source *source, enum bolt_etcd_bucket bucket, size_t i,
                  int64_t compact_revision, struct snapshot_entry *ret_entry);
};

/*
 * Covers the log up to the hold's last index, which has that revision. Owns the hold and borrows
 * the source.
 */
struct store_snapshot *store_snapshot_new(struct log_hold *hold, int64_t revision,
                                          struct snapshot_source *source);
void store_snapshot_free(struct store_snapshot *snapshot); /* accepts NULL */
DEFINE_CLEANUP(struct store_snapshot *, store_snapshot_free)

/*
 * Examines about this many changes. The view is not older than the hold. It may be a different one
 * each time, but if it is compacted further than the last, the pass starts again. ST_AGAIN: there
 * is more. ST_COMPACTED: compacted beyond the revision, so the snapshot is impossible. ST_DAMAGED.
 */
MUST_CHECK
enum status store_snapshot_measure(struct store_snapshot *snapshot, const struct store_view *view,
                                   const struct log *log, unsigned changes_max);
/* How often the pass has started again. */
unsigned store_snapshot_restarts(const struct store_snapshot *snapshot);

/* After measuring. */
uint64_t store_snapshot_bytes(const struct store_snapshot *snapshot);
/* After ST_DAMAGED: the location of the record that cannot be read. */
log_loc store_snapshot_damage(const struct store_snapshot *snapshot);

/* The next bytes; *ret_len is less than room only at the end. ST_DAMAGED. */
MUST_CHECK
enum status store_snapshot_fill(struct store_snapshot *snapshot, uint8_t *dst, size_t room,
                                size_t *ret_len);

#endif
