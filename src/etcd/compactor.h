/*
 * Compacts without being asked (etcd/auto_compaction.h), on the loop and the engine shard of one
 * I/O thread, whose it is. Logs what etcd logs.
 */
#ifndef VIGIL_ETCD_COMPACTOR_H
#define VIGIL_ETCD_COMPACTOR_H

#include "engine/engine.h"
#include "etcd/auto_compaction.h"

struct etcd_compactor;

struct etcd_compactor_options {
    enum auto_compaction_mode mode;
    int64_t retention; /* not 0 */
    int64_t bytes_max; /* of periodic history; 0: any */
    /* Borrowed; NULL: always. Nothing is compacted while it is false. */
    const _Atomic bool *wanted;
};

/* shard and loop are borrowed. */
struct etcd_compactor *etcd_compactor_new(const struct etcd_compactor_options *options,
                                          struct engine_shard *shard, struct loop *loop);
/* Begins nothing any more. */
void etcd_compactor_stop(struct etcd_compactor *compactor);
/* The engine still works on a compaction: the loop must go on turning. */
bool etcd_compactor_busy(const struct etcd_compactor *compactor);
void etcd_compactor_free(struct etcd_compactor *compactor); /* not busy; accepts NULL */

#endif
