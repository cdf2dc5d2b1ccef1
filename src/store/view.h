/*
 * One published state of the store: what a reader pins and reads. Immutable; freed by the epoch
 * once a newer one is published and nobody pins this one.
 */
#ifndef VIGIL_STORE_VIEW_H
#define VIGIL_STORE_VIEW_H

#include "store/index/index.h"
#include "store/log/log.h"

struct store_view {
    struct index_root root;
    int64_t revision;
    int64_t compact_revision; /* -1 before the first compaction */
    int64_t trimmed;          /* the index has let go of what was replaced below this revision */
    int64_t trim_target;      /* and of some of what no revision from this one on can show */
    int64_t released;         /* and of what was replaced at this one, too; 0: at none */
    uint64_t log_index;       /* the last one this state includes; it is durable */
    /* Behaves as the size of etcd's file: the most that was ever in use since the last defragment.
     * What compaction frees is used again before it grows. */
    int64_t db_bytes;
    int64_t db_bytes_in_use; /* what compaction has left */
    void *beside;            /* store_set_beside's; NULL: nothing was set */
};

#endif
