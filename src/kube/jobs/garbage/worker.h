/*
 * Workers examine the nodes of the graph, as Kubernetes does: the object and its owners are read,
 * and then the object is deleted, or its references or finalizers are changed, or nothing is done.
 * What is written goes through the API like the request of a client (wire/http/local.h), on the
 * condition that the object still has its uid and resourceVersion.
 *
 *     TAKE ─► read the object ─┬─► OWNERS: read each owner ─► DECIDE ─┬─► DELETE or PATCH ─► TAKE
 *                              └─► it waits for its dependents ───────┘
 *
 * Each is a job that ends when the queue is empty. On the thread of the API.
 */
#ifndef VIGIL_KUBE_JOBS_GARBAGE_WORKER_H
#define VIGIL_KUBE_JOBS_GARBAGE_WORKER_H

#include "kube/jobs/garbage/graph.h"
#include "kube/jobs/job.h"

struct http_route;

enum { GARBAGE_WORKERS_MAX = 8 };

/* Shared by the collector and its workers; freed with the last reference, some nodes per turn. */
struct garbage {
    unsigned refs;
    struct kube_api *api;
    const struct http_route *route;
    struct garbage_graph graph;
    struct kube_job *collector; /* NULL: it has ended */
    unsigned workers;
    int64_t kinds_ns; /* definitions are not read for unknown kinds before this time */
    bool abandoned;   /* the collector has ended or begun again: workers end */
};

struct garbage *garbage_new(struct kube_api *api, const struct http_route *route);
void garbage_unref(struct garbage *garbage); /* accepts NULL */

/* Starts a worker for each node in the queue, up to GARBAGE_WORKERS_MAX. */
void garbage_work(struct garbage *garbage);

#endif
