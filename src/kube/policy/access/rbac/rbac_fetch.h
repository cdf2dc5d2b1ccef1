/*
 * Reads from the store what a decision of kube_rbac has lacked, because it is not held: the
 * bindings of one user in one namespace and the roles that these refer to; or waits until the graph
 * of nodes was read. As long as a fetch
 * exists, decisions of its owner about the same user and namespace use what it has read.
 *
 *     cluster role bindings ─► role bindings ─► roles ─► cluster roles ─► those that they select
 *     each only if it is not held
 *
 * The cost is that of the request for which it is made: the memory is charged to its account, and
 * the objects are read a few in each turn (kube/policy/lookup/read.h). On the thread of the API.
 */
#ifndef VIGIL_KUBE_POLICY_ACCESS_RBAC_RBAC_FETCH_H
#define VIGIL_KUBE_POLICY_ACCESS_RBAC_RBAC_FETCH_H

#include "kube/policy/access/rbac/rbac.h"

struct account;
struct http_exchange;
struct kube_rbac_fetch;

/* kube_rbac_lacks must be true; what was lacking is copied. Calls go later, never at once. account
 * and client may be NULL, as in kube/policy/lookup/read.h; ctx is the owner (kube_rbac_begin). */
struct kube_rbac_fetch *kube_rbac_fetch_new(struct kube_rbac *rbac, struct account *account,
                                            struct http_exchange *const *client,
                                            void (*go)(void *ctx), void *ctx);
/* After go: ST_OK, or why it could not be read. */
enum status kube_rbac_fetch_status(const struct kube_rbac_fetch *fetch);
/* At any time; go is not called any more. Accepts NULL. */
void kube_rbac_fetch_free(struct kube_rbac_fetch *fetch);

#endif
