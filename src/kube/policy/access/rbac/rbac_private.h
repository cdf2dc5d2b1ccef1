/* The inside of kube_rbac, for rbac.c and rbac_fetch.c. */
#ifndef VIGIL_KUBE_POLICY_ACCESS_RBAC_RBAC_PRIVATE_H
#define VIGIL_KUBE_POLICY_ACCESS_RBAC_RBAC_PRIVATE_H

#include "kube/policy/access/node/node_view.h"
#include "kube/policy/access/rbac/binding.h"
#include "kube/policy/access/rbac/rbac.h"
#include "kube/policy/access/rbac/role.h"
#include "kube/policy/lookup/read.h"

/* In the order in which a fetch reads them: roles are those of the bindings. */
enum kube_rbac_kind {
    KUBE_RBAC_CLUSTER_ROLE_BINDINGS,
    KUBE_RBAC_ROLE_BINDINGS,
    KUBE_RBAC_ROLES,
    KUBE_RBAC_CLUSTER_ROLES,
    KUBE_RBAC_KINDS,
};

/* What the last decisions would have needed and is not held. All borrowed from their arguments. */
struct kube_rbac_lack {
    bool nodes;                        /* the graph of nodes was not read so far; nothing else */
    const struct kube_user_info *user; /* NULL: nothing */
    struct slice namespace;
    struct slice role; /* a role that must be known, besides those of the user; empty: none */
};

struct kube_rbac {
    struct kube_lookup *lookups[KUBE_RBAC_KINDS];
    enum kube_authorization authorization;
    struct kube_node_view *nodes; /* NULL: there is no node authorizer */
    struct engine_shard *shard;
    struct loop *loop;
    struct list behind;  /* waits until the lookups are as new as the store was */
    struct timer again;  /* set while there are some */
    struct list fetched; /* fetches that have ended well; owned by their callers */
    struct kube_rbac_lack lack;
    const void *owner; /* whose fetches are used; only compared */
};

struct kube_rbac_fetch {
    struct kube_rbac *rbac;
    struct list in_rbac; /* links kube_rbac.fetched, or itself */
    void (*go)(void *ctx);
    void *ctx;
    struct deferred start;
    bool started, ended;
    bool abandoned; /* freed by its caller while it was reading */
    bool of_nodes;  /* it waits for the graph of nodes, and reads nothing itself */
    struct kube_node_wait node_wait;
    enum status status;
    struct account *account; /* a reference; may be NULL */
    struct http_exchange *const *client;
    struct arena arena;
    struct kube_user_info user, sorted; /* the same, the second with sorted groups */
    struct slice namespace, role;
    enum kube_rbac_kind at;                         /* which is read, or comes next */
    struct kube_lookup_read reads[KUBE_RBAC_KINDS]; /* without a shelf: it is held */
    struct kube_text_list names;                    /* names of roles that are needed; sorted */
    /* The read before it of the same kind, while it is read again. */
    struct kube_lookup_read previous;
    const struct kube_role **aggregated; /* those of the cluster roles that were read */
    size_t aggregated_count;
};

#endif
