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
 * Hash of all revisions up to `revision`, of which those at or below compact_revision count only
 * where they are the newest of their key and no tombstone. ST_DAMAGED if the log cannot be read.
 */
MUST_CHECK
enum status store_hash(const struct store_view *view, const struct log *log,
                       int64_t compact_revision, int64_t revision, uint32_t *ret_hash);

#endif
