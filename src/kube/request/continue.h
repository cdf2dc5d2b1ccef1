/*
 * Where a list in pieces goes on: what Kubernetes calls a continue token, base64 of JSON with the
 * revision of the whole list and the key behind the last one. Opaque to clients, and the same as
 * kube-apiserver's.
 */
#ifndef VIGIL_KUBE_REQUEST_CONTINUE_H
#define VIGIL_KUBE_REQUEST_CONTINUE_H

#include "base/memory/arena.h"
#include "kube/status/status.h"

enum { KUBE_TOKEN_BYTES_MAX = 8192, KUBE_AT_NEWEST = -1 };

struct kube_continue {
    int64_t revision;    /* KUBE_AT_NEWEST: of whatever is newest, after a token has expired */
    struct slice suffix; /* of the key to go on at: what follows the prefix of the list */
};

/* The token behind a key whose prefix was left out. ST_NOMEM. */
MUST_CHECK
enum status kube_continue_write(struct arena *arena, int64_t revision, struct slice suffix,
                                struct slice *ret_token);
/* False: *status says what is wrong with it, in Kubernetes' words. */
MUST_CHECK
bool kube_continue_read(struct arena *arena, struct slice token, struct kube_continue *ret_continue,
                        struct kube_status *status);

#endif
