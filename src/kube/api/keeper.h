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

/*
 * Looks after the definitions that are not as they should be: those marked for deletion go on being
 * emptied, and those whose names were taken, or that nobody has settled, are settled again. At the
 * start, and when a definition is gone.
 */
void kube_definitions_keep(struct kube_face *face);

#endif
