/*
 * Runs automatic compactions (etcd/auto_compaction.h) on the loop and engine shard of one I/O
 * thread, to which it belongs. It logs the same messages as etcd.
 */
#ifndef VIGIL_ETCD_COMPACTOR_H
#define VIGIL_ETCD_COMPACTOR_H

#include "engine/engine.h"
#include "etcd/auto_compaction.h"

struct etcd_compactor;

struct etcd_compactor_options {
    enum auto_compaction_mode mode;
    int64_t retention; /* not 0 */
    int64_t bytes_max; /* limit of periodic history; 0: none */
    /* Borrowed. Nothing is compacted while it is false; NULL means always true. */
    const _Atomic bool *wanted;
};

/* shard and loop are borrowed. */
struct etcd_compactor *etcd_compactor_new(const struct etcd_compactor_options *options,
                                          struct engine_shard *shard, struct loop *loop);
/* Starts no more compactions. */
void etcd_compactor_stop(struct etcd_compactor *compactor);
/* True while the engine works on a compaction: the loop must keep running. */
bool etcd_compactor_busy(const struct etcd_compactor *compactor);
void etcd_compactor_free(struct etcd_compactor *compactor); /* must not be busy; accepts NULL */

#endif
