/* Routes that lead to no object: the version, metrics and the list of paths. */
#ifndef VIGIL_KUBE_SERVER_META_ROUTES_H
#define VIGIL_KUBE_SERVER_META_ROUTES_H

#include "kube/call/api_state.h"

/* The version of Kubernetes whose API this is. */
#define KUBE_VERSION_MAJOR "1"
#define KUBE_VERSION_MINOR "36"

MUST_CHECK
enum status kube_meta_routes_add(struct kube_api *api);

#endif
