/*
 * Passes a request on to the kube-apiserver, in the name of its sender: with the sender's own
 * token, or, for a certificate, impersonated by the tier's own account.
 */
#ifndef VIGIL_TIER_CALL_PASS_H
#define VIGIL_TIER_CALL_PASS_H

#include "tier/call/api.h"
#include "wire/http/exchange.h"

/* Takes over the exchange, with its user pointer, which is a struct kube_life afterwards. */
void tier_pass_on(struct tier_api *api, struct http_exchange *x);
/* The same for a watch of this user, whose right to it was reviewed: it is reviewed again while the
 * watch runs, and the watch is cut off when the right is lost. Texts are copied. */
void tier_pass_watch_on(struct tier_api *api, struct http_exchange *x, struct tier_user *user,
                        const struct tier_access *access);
/* The route's on_body. */
void tier_pass_body(struct http_exchange *x, struct slice bytes);

/* Answers with a status. */
void tier_refuse(struct http_exchange *x, const struct kube_status *status);

#endif
