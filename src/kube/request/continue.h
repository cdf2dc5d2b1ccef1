/*
 * Continue tokens of lists with a limit: base64 of JSON with the revision of the whole list and the
 * key after the last item. Opaque to clients; the same as those of kube-apiserver.
 */
#ifndef VIGIL_KUBE_REQUEST_CONTINUE_H
#define VIGIL_KUBE_REQUEST_CONTINUE_H

#include "base/memory/arena.h"
#include "kube/types/status.h"

enum { KUBE_TOKEN_BYTES_MAX = 8192, KUBE_AT_NEWEST = -1 };

struct kube_continue {
    int64_t revision;    /* KUBE_AT_NEWEST: the newest, after a token has expired */
    struct slice suffix; /* suffix of the key to continue at: what follows the prefix of the list */
};

/* The token for a key without the prefix of the list. ST_NOMEM. */
MUST_CHECK
enum status kube_continue_write(struct arena *arena, int64_t revision, struct slice suffix,
                                struct slice *ret_token);
/* False: *status has the error of Kubernetes. */
MUST_CHECK
bool kube_continue_read(struct arena *arena, struct slice token, struct kube_continue *ret_continue,
                        struct kube_status *status);

#endif
