#include "kubeclient/watch/watch_status.h"

#include <stdio.h>

void watch_status_set(struct vigil_kube_status *status, int code, const char *reason,
                      const char *message)
{
    *status = (struct vigil_kube_status){.code = code, .retry_after_s = -1};
    snprintf(status->reason, sizeof(status->reason), "%s", reason);
    snprintf(status->message, sizeof(status->message), "%s", message);
}

static void add_cause(struct vigil_kube_status *status, const char *reason, const char *message)
{
    struct vigil_kube_cause *cause = &status->causes[status->cause_count++];
    snprintf(cause->reason, sizeof(cause->reason), "%s", reason);
    snprintf(cause->message, sizeof(cause->message), "%s", message);
}

void watch_status_undecodable(struct vigil_kube_status *status, const char *fault)
{
    char text[sizeof(status->causes[0].message)], message[VIGIL_KUBE_MESSAGE_BYTES];
    snprintf(text, sizeof(text), "unable to decode an event from the watch stream: %s", fault);
    snprintf(message, sizeof(message),
             "an error on the server (\"%s\") has prevented the request from succeeding", text);
    watch_status_set(status, 500, "InternalError", message);
    add_cause(status, "UnexpectedServerResponse", text);
    add_cause(status, "ClientWatchDecoding", text);
}
