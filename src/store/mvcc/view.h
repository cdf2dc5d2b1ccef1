/*
 * One published state of the store, which readers pin and read. Immutable; freed by the epoch once
 * a newer one is published and no reader pins this one.
 */
#ifndef VIGIL_STORE_MVCC_VIEW_H
#define VIGIL_STORE_MVCC_VIEW_H

#include "store/index/index.h"
#include "store/log/log.h"

struct store_view {
    struct index_root root;
    int64_t revision;
    int64_t compact_revision; /* -1 before the first compaction */
    /* the index has dropped versions that were replaced before this revision, */
    int64_t trimmed;
    int64_t trim_target; /* some of those that are not visible from this revision on, */
    int64_t released;    /* and those that were replaced at this one; 0: at none */
    uint64_t log_index;  /* the last one that this state includes; it is durable */
    /*
     * Behaves like the size of etcd's file: the most that was in use since the last
     * defragmentation. Freed space is used again before it grows.
     */
    int64_t db_bytes;
    int64_t db_bytes_in_use; /* what compaction has left */
    void *attachment;        /* from store_set_attachment, or NULL */
};

#endif
