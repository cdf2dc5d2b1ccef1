/*
 * The garbage collector, which in Kubernetes is a part of kube-controller-manager: an object whose
 * owners are all gone is deleted, and the finalizers foregroundDeletion and orphan are carried out.
 * One API of a server has it.
 *
 *     UNUSED ─────────► STANDING_BACK ─────────► LOADING ──────► FOLLOWING
 *     there is no       kube-controller-manager  reads all       takes events into the
 *     default           holds its lease          objects         graph; workers examine
 *     namespace            ▲                       ▲  │            │
 *                          └── the lease is held ──┼──┴────────────┤
 *                                                  └── events are lost to compaction
 *
 * A store that is used only through the etcd API has no default namespace, and only that key is
 * watched. While kube-controller-manager is at work only its lease is watched.
 *
 * The collector is a job (kube/jobs/job.h) that keeps the graph (graph.h); workers (worker.h) are
 * jobs that examine its nodes. Several servers may collect garbage in one cluster: each deletes
 * only what still has the uid and the revision that it has examined.
 */
#ifndef VIGIL_KUBE_GARBAGE_GARBAGE_H
#define VIGIL_KUBE_GARBAGE_GARBAGE_H

struct http_route;
struct kube_api;

/* Does nothing if the configuration does not want it. The route is that of the API, for requests
 * of the collector. */
void kube_garbage_start(struct kube_api *api, const struct http_route *route);

#endif
