/*
 * The hash of the keys' history, bit for bit as etcd's HashKV computes it: crc32c over the name of
 * its bucket and every stored revision up to one, in order and in etcd's form. Equal stores have
 * equal hashes, in Vigil and in etcd.
 *
 * The whole log is read in steps, each under the newest view, so that nothing is pinned for long.
 * Between two steps the caller must not start the cleaner, which would drop what a compaction since
 * the beginning has replaced.
 */
#ifndef VIGIL_STORE_UPKEEP_HASH_H
#define VIGIL_STORE_UPKEEP_HASH_H

#include "store/log/reader.h"
#include "store/mvcc/view.h"

/* A hash in progress. In the caller's memory; there is nothing to free. */
struct store_hash {
    const struct log *log;
    int64_t compact_revision;
    int64_t keep_revision; /* compacted versions count if they are visible at this revision */
    int64_t revision;      /* the last one hashed */
    uint64_t log_index;    /* index of the view at the beginning: later records are not read */
    bool any;              /* some key is known to exist at keep_revision */
    struct log_reader reader;
    uint32_t crc;
};

/*
 * The answer of HashKV: all revisions up to `revision`; those at or below the view's compact
 * revision count only if they are the newest of their key and not a tombstone. If no key exists at
 * `revision`, everything that compaction has left counts, as in etcd. A negative revision hashes
 * nothing, as in etcd.
 */
void store_hash_begin(struct store_hash *hash, const struct store_view *view, const struct log *log,
                      int64_t revision);

/*
 * The hash that etcd stores for a compaction to `revision` after one to `before`: everything since,
 * and what stays of the rest.
 */
void store_hash_begin_compaction(struct store_hash *hash, const struct store_view *view,
                                 const struct log *log, int64_t before, int64_t revision);

/*
 * Reads about this many bytes; each change costs 128 more. ST_AGAIN: there is more. ST_COMPACTED:
 * the view is trimmed too far. ST_DAMAGED if the log cannot be read.
 */
MUST_CHECK
enum status store_hash_step(struct store_hash *hash, const struct store_view *view, size_t bytes,
                            uint32_t *ret_hash);

#endif
