/* /openapi/v3 and the documents below it, and a v2 document for old clients. */
#ifndef VIGIL_KUBE_SERVER_OPENAPI_H
#define VIGIL_KUBE_SERVER_OPENAPI_H

#include "kube/call/api_state.h"

MUST_CHECK
enum status kube_openapi_add(struct kube_api *api);

#endif
