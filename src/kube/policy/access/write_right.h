/*
 * The permission that a request needs besides that of its verb. It follows from what the request
 * does, and this is the only place where it is derived:
 *
 *     GET of pods/x/exec, attach or portforward          create   the same, as for a POST
 *     creates an object by PUT or PATCH                  create   the resource
 *     certificatesigningrequests/x/approval              approve  the signer that the request names
 *     certificatesigningrequests/x/status                sign     the same, if it changes what a
 *                                                                 signer sets
 *
 * Roles and bindings are compared with all that their writer may do (kube/policy/access/guard.h).
 *
 * It is found and decided on the thread of the API before an attempt (kube/handlers/write/admit.h),
 * and used where Kubernetes uses it: before the admission plugins check the object, or by one of
 * them.
 */
#ifndef VIGIL_KUBE_POLICY_ACCESS_WRITE_RIGHT_H
#define VIGIL_KUBE_POLICY_ACCESS_WRITE_RIGHT_H

#include "kube/policy/access/rbac/rbac.h"
#include "kube/request/request.h"
#include "kube/types/kind.h"

/* Whether a request whose verb is allowed needs the right to another one. A WebSocket begins with a
 * GET, and does what a POST does. */
bool kube_request_right_of(const struct kube_attributes *request,
                           struct kube_attributes *ret_attributes);

/* Embedded by its caller until go. */
struct kube_write_right {
    /* The question: */
    struct kube_attributes any[2]; /* one of these is enough */
    size_t count;                  /* 0: nothing is needed */
    /* Set by the caller of kube_identity_ask. */
    struct http_exchange *const *client; /* as in kube/policy/lookup/read.h */
    void (*go)(struct kube_write_right *right);
    /* The answer, in go: */
    enum status status; /* not ST_OK: it could not be decided */
    bool allowed;
    char reason[KUBE_RBAC_REASON_BYTES];
};

/* One attempt of a write; all borrowed. */
struct kube_write_act {
    const struct kube_kind *kind;
    const struct kube_path *path;
    bool posts;          /* its request was authorized as a create */
    bool creates;        /* the object does not exist */
    struct slice stored; /* its bytes; empty: it does not exist */
};

/* A count of 0 means that the write needs no other permission than that of its request. The texts
 * are borrowed from the act, or in the arena. ST_NOMEM. */
MUST_CHECK
enum status kube_write_right_of(struct arena *arena, const struct kube_write_act *act,
                                struct kube_write_right *ret_right);

#endif
