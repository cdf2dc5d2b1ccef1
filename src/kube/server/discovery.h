/* Discovery: the groups, versions and resources of this server. */
#ifndef VIGIL_KUBE_SERVER_DISCOVERY_H
#define VIGIL_KUBE_SERVER_DISCOVERY_H

#include "kube/call/call.h"

/* Whether it is the path of a document: /api, /apis, /api/v1, /apis/GROUP, /apis/GROUP/VERSION. The
 * path of a resource has more steps. */
bool kube_is_discovery(struct slice path);
/* Answers from the kinds of the registry, which has read all definitions; a long document is made
 * while it is sent. */
void kube_discovery(struct kube_call *call);

#endif
