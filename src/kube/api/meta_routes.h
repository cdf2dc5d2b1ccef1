/*
 * Paths that lead to no object: the version, health, metrics, the list of paths, and the gate that
 * every request passes first.
 */
#ifndef VIGIL_KUBE_API_META_ROUTES_H
#define VIGIL_KUBE_API_META_ROUTES_H

#include "kube/api/call.h"

/* The version of Kubernetes whose API this is. */
#define KUBE_VERSION_MAJOR "1"
#define KUBE_VERSION_MINOR "36"

MUST_CHECK
enum status kube_pages_add(struct kube_face *face);

/*
 * Without TLS nobody is asked who he is, so a page in a browser must not reach us under a name of
 * its own choosing, nor send what its user does not know of. What is done here is done in the name
 * of the server: while access to the store is controlled it takes a token of our own, or the
 * certificate of a user who may do all of that.
 */
bool kube_gate(struct http_exchange *x, void *ctx, const struct http_request *request);
/* Whether its sender is let in, now. */
bool kube_lets_in(const struct kube_face *face, const struct http_request *request);
/* The same for one that was let in before: not any more. */
bool kube_shuts_out(const struct kube_face *face, const struct http_request *request);
/* In whose name it is done: the server's for a sender who was let in by name. An anonymous one is
 * nobody, whom the engine refuses from the moment on that access is controlled. */
struct auth_principal kube_principal(const struct kube_face *face,
                                     const struct http_request *request);
/* What a sender who is not let in is answered. */
void kube_unauthorized(const struct kube_face *face, struct kube_status *status);

#endif
