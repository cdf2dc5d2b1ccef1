/*
 * The sender of one request, from the arrival of its head: who it is, in whose name it acts, and
 * whether that user may do what it wants. Nothing of the body is kept before that is decided, and
 * the permissions of a watch are those when it starts, as in Kubernetes.
 *
 *     SIGNING_IN ──► DECIDING ──► ADMITTED ──► taken by the call
 *         │           │  ▲ │
 *         │           └──┘ └──► REFUSED: answered with 400, 401, 403 or 5xx
 *         └──────────────────────▲
 *
 * A refusal is decided again once roles and bindings are as new as the store was then, so that what
 * a client has just been granted is not refused. On the thread of the API; owned by its exchange
 * (as its kube_life) until it is taken.
 */
#ifndef VIGIL_KUBE_POLICY_ACCESS_IDENTITY_H
#define VIGIL_KUBE_POLICY_ACCESS_IDENTITY_H

#include "kube/policy/access/access.h"
#include "kube/policy/access/rbac/attributes.h"
#include "kube/policy/access/write_right.h"
#include "kube/request/life.h"

struct http_exchange;
struct http_request;
struct kube_identity;

/* Begins with the head of a request. Calls http_authorized, or answers, now or later. keep: the
 * identity stays the exchange's until it is taken; otherwise it is freed when it is admitted. */
void kube_identity_begin(struct kube_access *access, struct http_exchange *x,
                         const struct http_request *request, bool keep);
/* The identity of a request that was admitted. The caller owns it. */
struct kube_identity *kube_identity_take(struct http_exchange *x);
void kube_identity_free(struct kube_identity *identity); /* accepts NULL */

/* The user in whose name the request is made. */
const struct kube_user_info *kube_identity_user(const struct kube_identity *identity);

/* Decides what else the user of an admitted request may do, in the same way as the request itself:
 * a refusal waits until roles and bindings are as new as the store was. Calls right->go, perhaps at
 * once. One at a time; the identity must not be freed before. */
void kube_identity_ask(struct kube_identity *identity, struct kube_write_right *right);

/* Health checks are answered to all clients, as in Kubernetes by default. */
bool kube_identity_is_public(struct slice path);

/* Answers with a status as JSON; an exchange without memory for that is aborted. */
void kube_refuse(struct http_exchange *x, const struct kube_status *status);

#endif
