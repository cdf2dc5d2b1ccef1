/*
 * Authorization by roles and bindings, as Kubernetes' RBAC authorizer decides: rules only allow,
 * and what no rule allows is refused. Members of system:masters may do everything. Before or after
 * the roles the node authorizer may be asked (kube/policy/access/rbac/node_authorizer.h), which
 * only allows, too; the reasons of a refusal are those of both.
 *
 *     user and groups ─► bindings whose subject it is ─► their roles ─► rules ─► allowed or not
 *
 * The four kinds are kept by lookups (kube/policy/lookup/lookup.h), bindings with an index by
 * subject (kube/policy/access/rbac/binding.h). A cluster role with an aggregationRule has the rules
 * of the cluster roles that it selects, which kube-controller-manager would write into it. One per
 * API, on its thread.
 *
 * A namespace with too many roles or bindings is not held. A decision that lacks what is not held
 * may say yes, because rules only allow, but its no is not an answer: the caller has what is
 * lacking read from the store (kube/policy/access/rbac/rbac_fetch.h), and decides again.
 *
 *     kube_rbac_begin ─► decisions ─► yes
 *                ▲           └─► no ─► kube_rbac_lacks? ─► no: refused
 *                └─── kube_rbac_fetch_new ◄───┘ yes
 */
#ifndef VIGIL_KUBE_POLICY_ACCESS_RBAC_RBAC_H
#define VIGIL_KUBE_POLICY_ACCESS_RBAC_RBAC_H

#include "kube/policy/access/rbac/authorization.h"
#include "kube/policy/access/rbac/rule.h"
#include "kube/policy/lookup/lookup.h"

struct engine_shard;
struct kube_nodes;
struct kube_rbac;
struct loop;

enum { KUBE_RBAC_REASON_BYTES = 1024 };

/* How decisions use the objects with this prefix; NULL: they do not. */
const struct kube_lookup_kind *kube_rbac_kind(const char *prefix);

/* All borrowed. */
struct kube_rbac_options {
    struct engine_shard *shard;
    struct loop *loop;
    size_t *under_way; /* counter of the API */
    struct kube_lookup_pool *pool;
    struct kube_nodes *nodes; /* if nodes are authorized */
    enum kube_authorization authorization;
};

struct kube_rbac *kube_rbac_new(const struct kube_rbac_options *options);
void kube_rbac_stop(struct kube_rbac *rbac); /* accepts NULL */
void kube_rbac_free(struct kube_rbac *rbac); /* must be stopped; accepts NULL */

bool kube_rbac_ready(struct kube_rbac *rbac);

/* Embedded by its caller until go. */
struct kube_rbac_wait {
    /* Set by the caller. */
    bool current; /* as new as the store was at the start, or ST_NOT_SYNCED after a while */
    void (*go)(struct kube_rbac_wait *wait);
    enum status status; /* in go */
    /* Private. */
    struct kube_rbac *rbac;
    struct kube_lookup_wait lookup;
    size_t next;
    struct list in_rbac; /* links kube_rbac.behind */
    int64_t revision;
    unsigned tries;
};
/* Calls go when roles and bindings are known, perhaps at once. */
void kube_rbac_wait(struct kube_rbac *rbac, struct kube_rbac_wait *wait);

/* Forgets what earlier decisions have lacked. Those that follow use the fetches of this owner,
 * which was the ctx of kube_rbac_fetch_new, and no others. */
void kube_rbac_begin(struct kube_rbac *rbac, const void *owner);
/* Whether a decision since then that was not a yes has lacked what is not held. */
bool kube_rbac_lacks(const struct kube_rbac *rbac);

/* The decision of all authorizers with Kubernetes' reason: which binding allows it, or which roles
 * are missing, or what the node lacks. Must be ready. */
MUST_CHECK
bool kube_rbac_allows(struct kube_rbac *rbac, const struct kube_user_info *user,
                      const struct kube_attributes *attributes,
                      char ret_reason[KUBE_RBAC_REASON_BYTES]);

/* All rules of a user in a namespace (empty: those of cluster role bindings alone), in the arena;
 * their texts are borrowed until the next turn. False: there are too many; those before them are
 * returned. The reason is that of missing roles, or "". */
MUST_CHECK
bool kube_rbac_rules(struct kube_rbac *rbac, struct arena *arena, const struct kube_user_info *user,
                     struct slice namespace, struct kube_rules *ret_rules,
                     char ret_reason[KUBE_RBAC_REASON_BYTES]);

/* The same as an answer to the user, which depends on the authorizers: nodes may also do what is
 * not in the list, and then the reason says so. */
MUST_CHECK
bool kube_rbac_list_rules(struct kube_rbac *rbac, struct arena *arena,
                          const struct kube_user_info *user, struct slice namespace,
                          struct kube_rules *ret_rules, char ret_reason[KUBE_RBAC_REASON_BYTES]);

/* The rules of the role that a binding in this namespace refers to, which the user writes. False:
 * there is no such role, or it has too many; the reason says so. */
MUST_CHECK
bool kube_rbac_role_rules(struct kube_rbac *rbac, struct arena *arena,
                          const struct kube_user_info *user, struct slice ref_kind,
                          struct slice ref_name, struct slice namespace,
                          struct kube_rules *ret_rules, char ret_reason[KUBE_RBAC_REASON_BYTES]);

#endif
