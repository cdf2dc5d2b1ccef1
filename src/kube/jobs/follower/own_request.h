/*
 * A request of a job to its own API (wire/http/local.h): the job does what a client could do, with
 * every rule that applies to clients, and runs (kube_job_run) until it is answered. Embedded in the
 * job; on the thread of the API.
 */
#ifndef VIGIL_KUBE_JOBS_FOLLOWER_OWN_REQUEST_H
#define VIGIL_KUBE_JOBS_FOLLOWER_OWN_REQUEST_H

#include "kube/jobs/job.h"
#include "wire/http/local.h"

#define KUBE_OWN_MANAGER SLICE_LITERAL("fieldManager=kube-controller-manager")

struct kube_own_request {
    /* Set by the caller before the first request. */
    struct kube_job *job;
    const struct http_route *route; /* route of the API */
    /* The service account with which Kubernetes' controller does the same: the user that admission
     * policies see. In kube-system. */
    const char *account;
    /* It was answered; the answer is valid until done returns, which calls kube_job_next. */
    void (*done)(struct kube_own_request *request, const struct http_local *answer);

    struct http_local *local; /* private, as what follows; NULL: none is under way */
    struct deferred answered;
};

/* The job is READY, and RUNNING afterwards. ST_NOMEM: done is not called. */
MUST_CHECK
enum status kube_own_request_send(struct kube_own_request *request,
                                  const struct http_local_request *what);

#endif
