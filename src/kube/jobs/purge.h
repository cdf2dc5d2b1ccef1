/*
 * The job that empties a namespace that is marked for deletion: its objects are deleted one by one,
 * and the namespace is removed when nothing is left. The same for a definition and the objects of
 * its kind.
 *
 *     each kind, pods first ─► each page ─► each object: delete, or mark if it has finalizers ─┐
 *        ▲                                                                                     │
 *        │                 while pods are left the other kinds are kept, as in Kubernetes ◄────┤
 *        └─ something is left: set the namespace's conditions, again after 1 s up to 30 s ◄────┤
 *                                                nothing is left: remove the finalizer ◄───────┘
 *
 * While a kube-controller-manager holds its lease, it empties namespaces, and a round only finds
 * out whether the namespace still exists. With --kube-namespace-controller=false namespaces are
 * left to others altogether. Definitions are always emptied here, as in a kube-apiserver.
 *
 * One operation at a time: emptying a large namespace does not delay requests.
 */
#ifndef VIGIL_KUBE_JOBS_PURGE_H
#define VIGIL_KUBE_JOBS_PURGE_H

#include "base/slice.h"

struct kube_api;

enum kube_purge_target { KUBE_PURGE_NAMESPACE, KUBE_PURGE_DEFINITION };

/* Starts a purge, or lets one that waits continue at once. Does nothing when the API has stopped.
 * on_end may be NULL; it is called when the purge has finished, not when the API stops. */
void kube_purge_start(struct kube_api *api, enum kube_purge_target target, struct slice name,
                      void (*on_end)(struct kube_api *api));

#endif
