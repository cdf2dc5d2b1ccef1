/*
 * Passes a request on to the kube-apiserver, and its answer back.
 *
 *     (the body) ──► sent ──► head ──► body … ──► end
 *
 * Fields that belong to a connection are left out, and so are those with which a proxy that is
 * trusted names a user (X-Remote-…). The body of the answer is passed on as it arrives; a client
 * that does not read it makes the kube-apiserver stop.
 *
 * The exchange belongs to the forward afterwards: its user pointer is a struct kube_life.
 */
#ifndef VIGIL_TIER_FORWARD_FORWARD_H
#define VIGIL_TIER_FORWARD_FORWARD_H

#include "client/http/http_pool.h"
#include "wire/http/exchange.h"

enum { TIER_FORWARD_BODY_BYTES_MAX = 8 << 20 }; /* a longer one gets 413 */

struct tier_forward_options {
    struct http_pool *pool;
    struct slice path_prefix;     /* before the path of the request */
    const struct http_field *add; /* fields that are added; copied */
    size_t add_count;
    /* The request's own credentials are left out: Authorization and Impersonate-… */
    bool drop_credentials;
};

void tier_forward(struct http_exchange *x, const struct tier_forward_options *options);
/* Bytes of the body, which follow if request->has_body; none at its end. */
void tier_forward_body(struct http_exchange *x, struct slice bytes);

#endif
