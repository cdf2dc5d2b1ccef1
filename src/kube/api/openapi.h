/* /openapi/v3 and the documents under it, and a v2 document for clients that know no other. */
#ifndef VIGIL_KUBE_API_OPENAPI_H
#define VIGIL_KUBE_API_OPENAPI_H

#include "kube/api/call.h"

MUST_CHECK
enum status kube_openapi_add(struct kube_face *face);

#endif
