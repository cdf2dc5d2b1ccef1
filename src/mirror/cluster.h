/*
 * The engine in front of a real etcd cluster: it keeps no data of its own that could be lost. The
 * parts and the reasons are in docs/decisions/0021-cluster.md.
 */
#ifndef VIGIL_MIRROR_CLUSTER_H
#define VIGIL_MIRROR_CLUSTER_H

#include "base/error.h"
#include "engine/engine.h"
#include "mirror/link/options.h"

/*
 * Opens the mirror and starts to follow the cluster, which need not be reachable: what the engine
 * can do meanwhile is drawn in link/phase.h.
 */
MUST_CHECK
enum status engine_cluster_open(const struct mirror_options *options, struct engine **ret_engine,
                                struct error *error);
/* The shards must have been freed. Accepts NULL. */
void engine_cluster_close(struct engine *engine);
/*
 * After on_reset: all watches end as compacted, in the next turns of their shards. Returns the
 * newest revision of which clients may have learnt.
 */
int64_t engine_cluster_end_watches(struct engine *engine);
/* After that, when the engine is closed: throws the mirror away. Revisions up to void_until, which
 * was returned above, become void. */
MUST_CHECK
enum status engine_cluster_discard(const struct mirror_options *options, int64_t void_until,
                                   struct error *error);

#endif
