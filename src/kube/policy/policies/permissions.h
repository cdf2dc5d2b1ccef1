/*
 * What the expressions of one write ask about permissions, and the answers. An evaluation, which
 * may be on the worker, only looks here: a question without an answer is noted, and fails its
 * expression. The thread of the API answers it by roles and bindings that are as new as the store
 * was when the write began, and the write is decided again (kube/handlers/write/policy_ask.c).
 *
 *     evaluation ─► known? ─► the answer
 *         ▲            └─► noted ─► back to the thread of the API ─► answered ─┐
 *         └────────────────────────────────────────────────────────────────────┘
 *
 * So each question is answered once for a write, as in Kubernetes. In the arena of the write, and
 * owned with it by the thread that has the write.
 */
#ifndef VIGIL_KUBE_POLICY_POLICIES_PERMISSIONS_H
#define VIGIL_KUBE_POLICY_POLICIES_PERMISSIONS_H

#include "cel/library/authorizer.h"
#include "kube/policy/access/rbac/attributes.h"
#include "kube/policy/policies/match.h"

/* Different questions of one write; another one is answered with an error. */
enum { KUBE_PERMISSIONS_MAX = 500 };

struct kube_permission {
    struct kube_permission *next;
    bool of_account; /* about this service account, and not the user of the request */
    struct slice account_namespace, account;
    struct kube_attributes attributes;
    bool is_known;
    struct cel_answer answer;
};

struct kube_permissions {
    struct cel_access access;
    struct arena *arena; /* NULL: there are no roles, and everyone may do everything */
    struct kube_permission *first, **end;
    size_t count, unknown;
};

void kube_permissions_init(struct kube_permissions *permissions, struct arena *arena);

/* The values of `authorizer` and `authorizer.requestResource`, in the arena of the evaluation. */
struct cel_value kube_permissions_authorizer(const struct kube_permissions *permissions,
                                             struct arena *arena);
struct cel_value kube_permissions_resource(const struct kube_permissions *permissions,
                                           const struct kube_match_request *request,
                                           struct arena *arena);

/* A question that has no answer; NULL: there is none. */
struct kube_permission *kube_permissions_next(const struct kube_permissions *permissions);
/* The reason is copied. */
void kube_permission_answer(struct kube_permissions *permissions,
                            struct kube_permission *permission, bool allowed, const char *reason);

#endif
