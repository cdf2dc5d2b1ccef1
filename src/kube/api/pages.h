/*
 * Paths that lead to no object: the version, health, metrics, the list of paths, and the gate that
 * every request passes first.
 */
#ifndef VIGIL_KUBE_API_PAGES_H
#define VIGIL_KUBE_API_PAGES_H

#include "kube/api/call.h"

/* The version of Kubernetes whose API this is. */
#define KUBE_VERSION_MAJOR "1"
#define KUBE_VERSION_MINOR "36"

MUST_CHECK
enum status kube_pages_add(struct kube_face *face);

/*
 * Without TLS nobody is asked who he is, so a page in a browser must not reach us under a name of
 * its own choosing, nor send what its user does not know of. What is done here is done in the name
 * of the server, so while access to the store is controlled nobody in particular is let in.
 */
bool kube_gate(struct http_exchange *x, void *ctx, const struct http_request *request);
/* Whether who asked is nobody in particular: without a token and a certificate. */
bool kube_is_nobody(const struct kube_face *face, const struct http_request *request);
/* Whether nobody in particular is let in now. */
bool kube_lets_nobody_in(const struct kube_face *face);

#endif
