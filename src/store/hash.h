/*
 * The hash of the keys' history, bit for bit as etcd computes it (its HashKV): crc32c over the
 * name of its bucket and every stored revision up to one, in order, as etcd stores them. Equal
 * stores give equal hashes, whoever keeps them.
 *
 * Reads the whole log under a pinned view: a job for the keeper's thread.
 */
#ifndef VIGIL_STORE_HASH_H
#define VIGIL_STORE_HASH_H

#include "store/view.h"

/*
 * What HashKV answers: all revisions up to `revision`, of which those at or below the view's
 * compact revision count only where they are the newest of their key and no tombstone. If no key
 * exists at `revision`, etcd has nothing to tell by and counts all that compaction has left.
 * A negative revision hashes nothing, as there. ST_DAMAGED if the log cannot be read.
 */
MUST_CHECK
enum status store_hash_at(const struct store_view *view, const struct log *log, int64_t revision,
                          uint32_t *ret_hash);

/*
 * What etcd notes of a compaction to `revision` after one to `before`: everything since, and of the
 * rest what stays. The view must not be trimmed further than to `revision`: ST_COMPACTED.
 */
MUST_CHECK
enum status store_hash_compaction(const struct store_view *view, const struct log *log,
                                  int64_t before, int64_t revision, uint32_t *ret_hash);

#endif
