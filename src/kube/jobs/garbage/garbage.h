/*
 * The garbage collector, which in Kubernetes is a part of kube-controller-manager: an object whose
 * owners are all gone is deleted, and the finalizers foregroundDeletion and orphan are carried out.
 * One API of a server has it, as a follower of all objects (kube/jobs/follower/follower.h), which
 * stands back while kube-controller-manager holds its lease.
 *
 * The collector keeps the graph (graph.h); workers (worker.h) are jobs that examine its nodes.
 * Several servers may collect garbage in one cluster: each deletes only what still has the uid and
 * the revision that it has examined.
 */
#ifndef VIGIL_KUBE_JOBS_GARBAGE_GARBAGE_H
#define VIGIL_KUBE_JOBS_GARBAGE_GARBAGE_H

struct http_route;
struct kube_api;

/* Does nothing if the configuration does not want it. The route is that of the API, for requests
 * of the collector. */
void kube_garbage_start(struct kube_api *api, const struct http_route *route);

#endif
