/*
 * /healthz, /livez and /readyz of the Kubernetes API, and each check alone: /livez/etcd. The checks
 * have the names of kube-apiserver's, of which only those are listed whose subject this server has.
 * Answered on the thread of the request, and without asking the store anything that could wait.
 */
#ifndef VIGIL_KUBE_SERVER_HEALTH_H
#define VIGIL_KUBE_SERVER_HEALTH_H

#include "kube/call/api_state.h"

MUST_CHECK
enum status kube_health_add(struct kube_api *api);

#endif
