/*
 * The hash of the keys' history, bit for bit as etcd computes it (its HashKV): crc32c over the
 * name of its bucket and every stored revision up to one, in order, as etcd stores them. Equal
 * stores give equal hashes, whoever keeps them.
 *
 * The whole log is read, in steps: each under the view that is the newest then, so that nothing is
 * pinned for long. Between two steps the caller must not let the cleaner begin, which would drop
 * what a compaction since the beginning has replaced.
 */
#ifndef VIGIL_STORE_UPKEEP_HASH_H
#define VIGIL_STORE_UPKEEP_HASH_H

#include "store/log/reader.h"
#include "store/view.h"

/* A hash under way. The caller's memory; nothing is to be freed. */
struct store_hash {
    const struct log *log;
    int64_t compact_revision;
    int64_t keep_revision; /* what is compacted counts if its key has it at this revision */
    int64_t revision;      /* the last one hashed */
    uint64_t log_index;    /* of the view it began with: later records are not looked at */
    bool any;              /* some key exists at keep_revision, as far as is known */
    struct log_reader reader;
    uint32_t crc;
};

/*
 * What HashKV answers: all revisions up to `revision`, of which those at or below the view's
 * compact revision count only where they are the newest of their key and no tombstone. If no key
 * exists at `revision`, etcd has nothing to tell by and counts all that compaction has left.
 * A negative revision hashes nothing, as there.
 */
void store_hash_begin(struct store_hash *hash, const struct store_view *view, const struct log *log,
                      int64_t revision);

/*
 * What etcd notes of a compaction to `revision` after one to `before`: everything since, and of the
 * rest what stays.
 */
void store_hash_begin_compaction(struct store_hash *hash, const struct store_view *view,
                                 const struct log *log, int64_t before, int64_t revision);

/*
 * Goes on by about so many bytes; a change counts for 128 besides its own. ST_AGAIN: there is more.
 * ST_COMPACTED: the view is trimmed too far to tell. ST_DAMAGED if the log cannot be read.
 */
MUST_CHECK
enum status store_hash_step(struct store_hash *hash, const struct store_view *view, size_t bytes,
                            uint32_t *ret_hash);

#endif
