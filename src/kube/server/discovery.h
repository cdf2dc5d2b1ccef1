/* Discovery: the groups, versions and resources of this server. */
#ifndef VIGIL_KUBE_SERVER_DISCOVERY_H
#define VIGIL_KUBE_SERVER_DISCOVERY_H

#include "kube/call/call.h"

/* /api, /apis, /api/v1, /apis/GROUP, /apis/GROUP/VERSION */
bool kube_is_discovery(const struct http_request *request);
/* Answers from the kinds of the registry, which has read all definitions; a long document is made
 * while it is sent. False: not a discovery path. */
MUST_CHECK
bool kube_discovery(struct kube_call *call);

#endif
