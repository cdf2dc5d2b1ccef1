/* The Status of failures that are found here and not by the server. */
#ifndef VIGIL_KUBECLIENT_WATCH_WATCH_STATUS_H
#define VIGIL_KUBECLIENT_WATCH_WATCH_STATUS_H

#include <vigil/kube/status.h>

void watch_status_set(struct vigil_kube_status *status, int code, const char *reason,
                      const char *message);
/* As client-go reports what it cannot decode: InternalError with the cause ClientWatchDecoding. */
void watch_status_undecodable(struct vigil_kube_status *status, const char *fault);

#endif
