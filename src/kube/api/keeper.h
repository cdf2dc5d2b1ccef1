/*
 * What one face of a server does when it starts: the namespaces that Kubernetes always has are made
 * where they are missing, and those that were being emptied when the server stopped go on.
 */
#ifndef VIGIL_KUBE_API_KEEPER_H
#define VIGIL_KUBE_API_KEEPER_H

#include "base/slice.h"

struct kube_face;

/* One of those; it counts as there even in the moment before it is made. */
bool kube_is_default_namespace(struct slice name);

/* Once, on the thread of the face. */
void kube_keeper_start(struct kube_face *face);

#endif
