/*
 * The emptying of namespaces that are marked for deletion: their objects are deleted one by one,
 * and the namespace is removed when nothing is left. The same for definitions and the objects of
 * their kind.
 *
 *     each kind, pods first ─► each page ─► each object: delete, or mark if it has finalizers ─┐
 *        ▲                                                                                     │
 *        │                        while pods are left the other kinds stay, as in Kubernetes ◄─┤
 *        └─ something is left: say so in the namespace's conditions, later 1 s up to 30 s ◄────┤
 *                                       nothing is left: take the finalizer away ◄─────────────┘
 *
 * On the thread of its face. One operation at a time, each begun from the loop: emptying a large
 * namespace delays nobody.
 */
#ifndef VIGIL_KUBE_API_PURGE_H
#define VIGIL_KUBE_API_PURGE_H

#include "base/slice.h"

struct kube_face;

/* Begins, or goes on at once if it has begun. Does nothing while the face stops. */
void kube_purge_start(struct kube_face *face, struct slice namespace);
/* The same for a CustomResourceDefinition: "widgets.example.com". */
void kube_purge_definition(struct kube_face *face, struct slice name);

/* Gives up what waits; what is under way ends by itself. Nothing is begun afterwards. */
void kube_purges_stop(struct kube_face *face);

#endif
