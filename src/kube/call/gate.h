/*
 * Who may use the API. Without TLS clients are not authenticated, so a browser page must not reach
 * this server under a host name of its choice, nor send requests that its user does not know of.
 * Everything is done in the name of the server: while authentication is enabled in the store, a
 * request needs a token of the server's own, or the certificate of a user who may do all of that.
 */
#ifndef VIGIL_KUBE_CALL_GATE_H
#define VIGIL_KUBE_CALL_GATE_H

#include "kube/call/api_state.h"
#include "kube/types/status.h"
#include "wire/http/exchange.h"

/* The gate of the HTTP routes (wire/http/routes.h), which every request passes first; ctx is the
 * API. False: it has answered. */
bool kube_gate(struct http_exchange *x, void *ctx, const struct http_request *request);
/* The on_end of routes (wire/http/route.h) whose exchanges belong to a kube_life or to nothing. */
void kube_life_end(struct http_exchange *x, void *service);
/* Decides whether the sender of a request has access. It may be used longer than the request, as
 * long as the connection. */
struct kube_sender {
    const char *peer_name; /* name in the certificate; NULL: none */
    bool trusted;          /* it has a token of the server's own, or is the server itself */
};
struct kube_sender kube_sender_of(const struct kube_api *api, const struct http_request *request);
/* Whether the sender has access now. */
bool kube_lets_in(const struct kube_api *api, struct kube_sender sender);
/* Whether a sender who had access has lost it. */
bool kube_shuts_out(const struct kube_api *api, struct kube_sender sender);
/* The principal of a request that has passed the gate: the server for an authenticated sender. An
 * anonymous one has no name, and the engine refuses it once authentication is enabled. */
struct auth_principal kube_principal(const struct kube_api *api,
                                     const struct http_request *request);
/* The answer to a sender without access. */
void kube_unauthorized(const struct kube_api *api, struct kube_status *status);

#endif
