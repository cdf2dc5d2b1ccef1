/* Reads a Status of Kubernetes: the body of a failed request, or the object of an ERROR event. */
#ifndef VIGIL_KUBECLIENT_DATA_STATUS_H
#define VIGIL_KUBECLIENT_DATA_STATUS_H

#include "base/slice.h"

#include <vigil/kube/status.h>

enum { KUBE_RETRY_AFTER_MAX_S = 300 }; /* whatever a server demands, it is tried again then */

/* Reads JSON or an envelope of protobuf (protobuf.h). False: it is not a Status. */
MUST_CHECK
bool kube_status_read(struct slice sent, struct vigil_kube_status *ret_status);

/* For an answer without a Status: a reason that client-go would give for the code, and the body as
 * the message if it is text. */
void kube_status_from_http(int code, struct slice body, struct vigil_kube_status *ret_status);

/* The revision or continue token is too old: the program must list again. */
bool kube_status_is_expired(const struct vigil_kube_status *status);
/* The server does not know the revision yet. */
bool kube_status_is_too_large_version(const struct vigil_kube_status *status);

#endif
