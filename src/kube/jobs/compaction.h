/*
 * Compacts the history of a cluster as a kube-apiserver does, with the same key, so that any number
 * of Vigils and kube-apiservers in front of one cluster agree who does it: in each interval the one
 * that increases the version of compact_rev_key first.
 *
 *     wait ─► version unchanged: put the noted revision ─► compact to it ─► note the newest ─► wait
 *                └► changed: another one has compacted; note its version and the newest revision
 *
 * So history is kept for one to two intervals. The local engine has its own compactor
 * (etcd/compactor.h).
 */
#ifndef VIGIL_KUBE_JOBS_COMPACTION_H
#define VIGIL_KUBE_JOBS_COMPACTION_H

#include "kube/call/api_state.h"

/* Starts the job if the engine is in front of a cluster and config.compaction_s is not 0. Nothing
 * is compacted before an object was written (config.written). */
void kube_compaction_start(struct kube_api *api);

#endif
