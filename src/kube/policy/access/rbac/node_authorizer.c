#include "kube/policy/access/rbac/node_authorizer.h"

#include "kube/policy/access/node/node_view.h"

#include <stdio.h>

#define USER_PREFIX SLICE_LITERAL("system:node:")
#define NODES_GROUP SLICE_LITERAL("system:nodes")
#define LEASES_NAMESPACE "kube-node-lease"

/* One question. */
struct asked {
    struct kube_node_view *view;
    struct slice node;
    const struct kube_attributes *a;
    char *reason;
    size_t reason_bytes;
};

typedef enum kube_node_decision decide_fn(const struct asked *q);

bool kube_user_is_node(const struct kube_user_info *user, struct slice *ret_node)
{
    struct slice prefix = USER_PREFIX;
    if (!slice_has_prefix(user->name, prefix) || !kube_texts_have(&user->groups, NODES_GROUP))
        return false;
    *ret_node = slice_sub(user->name, prefix.len, user->name.len - prefix.len);
    return true;
}

/* -- Answers -- */

static enum kube_node_decision refuse(const struct asked *q, const char *reason)
{
    snprintf(q->reason, q->reason_bytes, "%s", reason);
    return KUBE_NODE_NO_OPINION;
}

static bool is_one_of(struct slice verb, const char *const *verbs)
{
    for (; *verbs; verbs++)
        if (slice_is(verb, *verbs))
            return true;
    return false;
}
#define IS_ONE_OF(verb, ...) is_one_of(verb, (const char *const[]){__VA_ARGS__, NULL})

static bool selects_node(const struct asked *q, const char *field)
{
    return kube_attributes_select(q->a, slice_from_text(field), q->node);
}

/* -- The graph -- */

/* A question about one object: whether it is related to the node. */
static enum kube_node_decision ask_graph(const struct asked *q, enum node_kind kind)
{
    const struct node_object object = {kind, q->a->namespace, q->a->name};
    if (!kube_node_view_ready(q->view)) {
        (void)refuse(q, "the pods of nodes are being read, please try again");
        return KUBE_NODE_LACKS;
    }
    if (kube_node_view_reaches(q->view, q->node, object))
        return KUBE_NODE_ALLOWED;
    snprintf(q->reason, q->reason_bytes,
             "no relationship found between node '%.*s' and this object", SLICE_ARGS(q->node));
    return KUBE_NODE_NO_OPINION;
}

static enum kube_node_decision is_related(const struct asked *q, enum node_kind kind)
{
    return q->a->name.len ? ask_graph(q, kind) : refuse(q, "No Object name found");
}

static enum kube_node_decision may_get(const struct asked *q, enum node_kind kind)
{
    if (!slice_is(q->a->verb, "get"))
        return refuse(q, "can only get individual resources of this type");
    if (q->a->subresource.len)
        return refuse(q, "cannot get subresource");
    return is_related(q, kind);
}

/* Also lists and watches of one object by its name. */
static enum kube_node_decision may_read(const struct asked *q, enum node_kind kind)
{
    if (!IS_ONE_OF(q->a->verb, "get", "list", "watch"))
        return refuse(q, "can only read resources of this type");
    if (q->a->subresource.len)
        return refuse(q, "cannot read subresource");
    if (!q->a->namespace.len)
        return refuse(q, "can only read namespaced object of this type");
    return is_related(q, kind);
}

/* -- Kinds -- */

static enum kube_node_decision decide_secret(const struct asked *q)
{
    return may_read(q, NODE_SECRET);
}

static enum kube_node_decision decide_config_map(const struct asked *q)
{
    return may_read(q, NODE_CONFIG_MAP);
}

static enum kube_node_decision decide_claim(const struct asked *q)
{
    if (!slice_is(q->a->subresource, "status"))
        return may_get(q, NODE_CLAIM);
    if (!IS_ONE_OF(q->a->verb, "update", "patch"))
        return refuse(q, "can only get/update/patch this type");
    return is_related(q, NODE_CLAIM);
}

static enum kube_node_decision decide_volume(const struct asked *q)
{
    return may_get(q, NODE_VOLUME);
}

static enum kube_node_decision decide_resource_claim(const struct asked *q)
{
    return may_get(q, NODE_RESOURCE_CLAIM);
}

static enum kube_node_decision decide_attachment(const struct asked *q)
{
    return may_get(q, NODE_ATTACHMENT);
}

static enum kube_node_decision decide_account(const struct asked *q)
{
    if (slice_is(q->a->verb, "get") && !q->a->subresource.len)
        return may_read(q, NODE_ACCOUNT);
    if (!slice_is(q->a->verb, "create") || !q->a->name.len)
        return refuse(q, "can only create tokens for individual service accounts");
    if (!slice_is(q->a->subresource, "token"))
        return refuse(q, "can only create token subresource of serviceaccount");
    return ask_graph(q, NODE_ACCOUNT);
}

/* The name of what is created is not known here. */
static bool is_own(const struct asked *q)
{
    return slice_is(q->a->verb, "create") || slice_equal(q->a->name, q->node);
}

static enum kube_node_decision decide_lease(const struct asked *q)
{
    if (!IS_ONE_OF(q->a->verb, "get", "create", "update", "patch", "delete"))
        return refuse(q, "can only get, create, update, patch, or delete a node lease");
    if (!slice_is(q->a->namespace, LEASES_NAMESPACE))
        return refuse(q, "can only access leases in the \"" LEASES_NAMESPACE "\" system namespace");
    return is_own(q) ? KUBE_NODE_ALLOWED
                     : refuse(q, "can only access node lease with the same name as the requesting "
                                 "node");
}

static enum kube_node_decision decide_csi_node(const struct asked *q)
{
    if (!IS_ONE_OF(q->a->verb, "get", "create", "update", "patch", "delete"))
        return refuse(q, "can only get, create, update, patch, or delete a CSINode");
    if (q->a->subresource.len)
        return refuse(q, "cannot authorize CSINode subresources");
    return is_own(q)
               ? KUBE_NODE_ALLOWED
               : refuse(q, "can only access CSINode with the same name as the requesting node");
}

static enum kube_node_decision decide_slice(const struct asked *q)
{
    if (q->a->subresource.len)
        return refuse(q, "cannot authorize ResourceSlice subresources");
    if (slice_is(q->a->verb, "create"))
        return KUBE_NODE_ALLOWED;
    if (IS_ONE_OF(q->a->verb, "get", "update", "patch", "delete"))
        return is_related(q, NODE_SLICE);
    if (!IS_ONE_OF(q->a->verb, "watch", "list", "deletecollection"))
        return refuse(q, "only the following verbs are allowed for a ResourceSlice: get, watch, "
                         "list, create, update, patch, delete, deletecollection");
    return selects_node(q, "spec.nodeName")
               ? KUBE_NODE_ALLOWED
               : refuse(q, "can only list/watch/deletecollection resourceslices with nodeName "
                           "field selector");
}

/* Its name is compared, so that a kubelet can look for its node before that exists. */
static enum kube_node_decision read_node(const struct asked *q)
{
    if (slice_equal(q->a->name, q->node))
        return KUBE_NODE_ALLOWED;
    if (q->a->name.len)
        snprintf(q->reason, q->reason_bytes,
                 "node '%.*s' cannot read '%.*s', only its own Node object", SLICE_ARGS(q->node),
                 SLICE_ARGS(q->a->name));
    else
        snprintf(q->reason, q->reason_bytes,
                 "node '%.*s' cannot read all nodes, only its own Node object",
                 SLICE_ARGS(q->node));
    return KUBE_NODE_NO_OPINION;
}

static enum kube_node_decision decide_node(const struct asked *q)
{
    if (!q->a->subresource.len && IS_ONE_OF(q->a->verb, "get", "list", "watch"))
        return read_node(q);
    bool writes = IS_ONE_OF(q->a->verb, "update", "patch") ||
                  (!q->a->subresource.len && slice_is(q->a->verb, "create"));
    bool known = !q->a->subresource.len || slice_is(q->a->subresource, "status");
    return writes && known ? KUBE_NODE_ALLOWED : refuse(q, "");
}

static enum kube_node_decision list_pods(const struct asked *q)
{
    if (selects_node(q, "spec.nodeName"))
        return KUBE_NODE_ALLOWED;
    if (q->a->name.len)
        return ask_graph(q, NODE_POD);
    return refuse(q, "can only list/watch pods with spec.nodeName field selector");
}

static enum kube_node_decision decide_pod(const struct asked *q)
{
    struct slice verb = q->a->verb, sub = q->a->subresource;
    if (!sub.len && slice_is(verb, "get"))
        return may_get(q, NODE_POD);
    if (!sub.len && IS_ONE_OF(verb, "list", "watch"))
        return list_pods(q);
    bool allowed = (!sub.len && IS_ONE_OF(verb, "create", "delete")) ||
                   (slice_is(sub, "status") && IS_ONE_OF(verb, "update", "patch")) ||
                   (slice_is(sub, "eviction") && slice_is(verb, "create"));
    return allowed ? KUBE_NODE_ALLOWED : refuse(q, "");
}

/* The feature is off by default in Kubernetes, and does not exist here. */
static enum kube_node_decision decide_pod_certificate(const struct asked *q)
{
    return refuse(q, "");
}

static const struct {
    const char *group, *resource;
    decide_fn *decide;
} kinds[] = {
    {"", "secrets", decide_secret},
    {"", "configmaps", decide_config_map},
    {"", "persistentvolumeclaims", decide_claim},
    {"", "persistentvolumes", decide_volume},
    {"resource.k8s.io", "resourceclaims", decide_resource_claim},
    {"storage.k8s.io", "volumeattachments", decide_attachment},
    {"", "serviceaccounts", decide_account},
    {"coordination.k8s.io", "leases", decide_lease},
    {"storage.k8s.io", "csinodes", decide_csi_node},
    {"resource.k8s.io", "resourceslices", decide_slice},
    {"", "nodes", decide_node},
    {"", "pods", decide_pod},
    {"certificates.k8s.io", "podcertificaterequests", decide_pod_certificate},
};

/* -- Everything else -- */

/* What all nodes may do, besides those kinds. */
static const struct {
    const char *group, *resource;
    const char *verbs[5];
} rules[] = {
    {"authentication.k8s.io", "tokenreviews", {"create"}},
    {"authorization.k8s.io", "subjectaccessreviews", {"create"}},
    {"authorization.k8s.io", "localsubjectaccessreviews", {"create"}},
    {"", "services", {"get", "list", "watch"}},
    {"", "events", {"create", "update", "patch"}},
    {"events.k8s.io", "events", {"create", "update", "patch"}},
    {"", "endpoints", {"get"}},
    {"certificates.k8s.io", "certificatesigningrequests", {"create", "get", "list", "watch"}},
    {"storage.k8s.io", "csidrivers", {"get", "watch", "list"}},
    {"node.k8s.io", "runtimeclasses", {"get", "list", "watch"}},
};

static enum kube_node_decision decide_by_rules(const struct asked *q)
{
    const struct kube_attributes *a = q->a;
    for (size_t i = 0; i < COUNT_OF(rules) && a->of_resource && !a->subresource.len; i++)
        if (slice_is(a->group, rules[i].group) && slice_is(a->resource, rules[i].resource) &&
            is_one_of(a->verb, rules[i].verbs))
            return KUBE_NODE_ALLOWED;
    return KUBE_NODE_NO_OPINION;
}

enum kube_node_decision kube_node_decide(struct kube_node_view *view,
                                         const struct kube_user_info *user,
                                         const struct kube_attributes *attributes, char *ret_reason,
                                         size_t reason_bytes)
{
    struct asked q = {
        .view = view, .a = attributes, .reason = ret_reason, .reason_bytes = reason_bytes};
    *ret_reason = 0;
    if (!kube_user_is_node(user, &q.node))
        return KUBE_NODE_NO_OPINION;
    if (!q.node.len) {
        snprintf(ret_reason, reason_bytes, "unknown node for user \"%.*s\"",
                 SLICE_ARGS(user->name));
        return KUBE_NODE_NO_OPINION;
    }
    for (size_t i = 0; i < COUNT_OF(kinds) && attributes->of_resource; i++)
        if (slice_is(attributes->group, kinds[i].group) &&
            slice_is(attributes->resource, kinds[i].resource))
            return kinds[i].decide(&q);
    return decide_by_rules(&q);
}
