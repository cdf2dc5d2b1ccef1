/*
 * The jobs for namespaces: creating those that Kubernetes always has, and resuming the deletions
 * that were under way when the server stopped.
 */
#ifndef VIGIL_KUBE_JOBS_NAMESPACES_H
#define VIGIL_KUBE_JOBS_NAMESPACES_H

#include "kube/jobs/job.h"

/* One of "default", "kube-node-lease", "kube-public", "kube-system". It counts as existing even if
 * it could not be created. */
bool kube_is_default_namespace(struct slice name);

/*
 * Whether the default namespaces of an API exist, and the other objects that a cluster has from the
 * start (kube/jobs/bootstrap.h). Those that are missing are created by the first request for a
 * resource, which waits for them: a store that is used only through the etcd API gets none. After a
 * failure they are created as soon as the store can be written again, also without a request.
 */
struct kube_namespaces {
    struct list waiting; /* struct kube_namespaces_wait */
    bool making;
    bool made;        /* they exist */
    int64_t retry_ns; /* creating them failed: not tried again before this time */
};

/* Embedded by its caller until go. */
struct kube_namespaces_wait {
    struct list in_namespaces;
    void (*go)(struct kube_namespaces_wait *wait);
};

void kube_namespaces_init(struct kube_namespaces *namespaces);
/* There is nothing to wait for: they exist, or cannot be created now. */
bool kube_namespaces_ready(const struct kube_api *api);
/* Creates what is missing, then calls go; wait may be NULL. */
void kube_namespaces_make(struct kube_api *api, struct kube_namespaces_wait *wait);

/* Starts a purge for every namespace that is marked for deletion. In front of a cluster again every
 * minute, and for definitions, too: another server may have stopped while it was deleting one. */
void kube_namespaces_resume(struct kube_api *api);

#endif
