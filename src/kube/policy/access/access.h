/*
 * Who may use an API, if roles and bindings or the node authorizer decide it: what the requests of
 * one I/O thread share for that. One per API, on its thread.
 *
 *     head of a request ─► identity.c: sign in ─► impersonate ─► authorize ─► the body is read
 */
#ifndef VIGIL_KUBE_POLICY_ACCESS_ACCESS_H
#define VIGIL_KUBE_POLICY_ACCESS_ACCESS_H

#include "kube/policy/access/account_token.h"
#include "kube/policy/access/rbac/rbac.h"
#include "kube/request/tokens.h"

struct clock;

/* All borrowed. */
struct kube_access_options {
    struct engine_shard *shard;
    struct loop *loop;
    struct clock *clock;
    size_t *under_way;                        /* counter of the API */
    const struct kube_tokens *tokens;         /* NULL: none */
    const struct kube_account_keys *accounts; /* NULL: no tokens of service accounts */
    struct kube_lookup_pool *pool;            /* kube/policy/lookup/stock.h */
    enum kube_authorization authorization;    /* not ALWAYS_ALLOW */
    struct kube_nodes *nodes;                 /* if nodes are authorized */
};

struct kube_access {
    struct kube_access_options options;
    struct kube_rbac *rbac; /* owned */
};

struct kube_access *kube_access_new(const struct kube_access_options *options);
void kube_access_stop(struct kube_access *access); /* accepts NULL */
void kube_access_free(struct kube_access *access); /* must be stopped; accepts NULL */

#endif
