/* Discovery: the groups, versions and resources of this server. */
#ifndef VIGIL_KUBE_SERVER_DISCOVERY_H
#define VIGIL_KUBE_SERVER_DISCOVERY_H

#include "kube/call/call.h"

/* /api, /apis, /api/v1, /apis/GROUP, /apis/GROUP/VERSION */
bool kube_is_discovery(const struct http_request *request);
/* Answers from these kinds; false: not a discovery path. */
MUST_CHECK
bool kube_discovery(struct http_exchange *x, const struct http_request *request,
                    const struct kube_kinds *kinds);

#endif
