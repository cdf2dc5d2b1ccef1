/* Why a webhook could not be called, in the words of Go and client-go. */
#ifndef VIGIL_KUBE_WEBHOOK_FAILURE_H
#define VIGIL_KUBE_WEBHOOK_FAILURE_H

#include "base/buf.h"
#include "kube/webhook/target.h"

/* A call: its target, and "10s", the time it has. */
struct kube_webhook_place {
    const struct kube_webhook_target *target;
    struct slice timeout;
};

/* How far the call has got. */
enum kube_webhook_stage {
    KUBE_WEBHOOK_ASKING,  /* there is no answer */
    KUBE_WEBHOOK_READING, /* there is a head, and its body is arriving */
};

/* Appends `Post "https://host/path?timeout=10s": reason`, or what client-go writes about a body.
 * Without memory the text is shorter. */
void kube_webhook_failure(struct buf *to, const struct kube_webhook_place *place,
                          enum kube_webhook_stage stage, struct slice reason);

/* The same with the reason of a connection (client/http/pool_request.h), in Go's words. */
void kube_webhook_failure_of_connection(struct buf *to, const struct kube_webhook_place *place,
                                        enum kube_webhook_stage stage, enum status status,
                                        const char *reason);

/* "10s", "1m5s": whole seconds as Go writes a duration. */
enum { KUBE_WEBHOOK_SECONDS_BYTES = 32 };
struct slice kube_webhook_seconds(int64_t seconds, char text[KUBE_WEBHOOK_SECONDS_BYTES]);

#endif
