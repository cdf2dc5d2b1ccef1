/*
 * The job that writes the objects a cluster has from the start (kube/jobs/start.h) and that are
 * missing. It looks for each of them, then creates some in one transaction, on the condition that
 * none exists: another thread or server may do the same.
 *
 *     LOOKING ──► WRITING ──► LOOKING (after the last written one) ──► … ──► done
 *        ▲           │
 *        └───────────┘ one of them exists now: looks again, in the newest state
 *
 * On the thread of its API. It is part of the first request for a resource, which waits for it.
 */
#ifndef VIGIL_KUBE_JOBS_BOOTSTRAP_H
#define VIGIL_KUBE_JOBS_BOOTSTRAP_H

#include "kube/jobs/job.h"

/* Calls done when everything exists, or with failed when it could not be written. */
void kube_bootstrap_start(struct kube_api *api, void (*done)(struct kube_api *api, bool failed));

#endif
