/*
 * Kubernetes' node authorizer: what the kubelet of a node may do. A node is the user
 * system:node:NAME in the group system:nodes.
 *
 *     a request of a node ─┬─► objects that its pods use, and those assigned to it: the graph
 *                          ├─► its own node, lease and CSINode, by their name
 *                          ├─► lists and watches: a field selector that names the node
 *                          └─► everything else: a fixed list of rules
 *
 * It only allows; what it does not allow may be allowed by roles. What a write contains is checked
 * by the admission plugin NodeRestriction.
 */
#ifndef VIGIL_KUBE_POLICY_ACCESS_RBAC_NODE_AUTHORIZER_H
#define VIGIL_KUBE_POLICY_ACCESS_RBAC_NODE_AUTHORIZER_H

#include "kube/policy/access/rbac/attributes.h"
#include "kube/policy/access/rbac/user.h"

struct kube_node_view;

/* Whether the user is a node, and which: it may be empty. */
bool kube_user_is_node(const struct kube_user_info *user, struct slice *ret_node);

enum kube_node_decision {
    KUBE_NODE_NO_OPINION, /* with a reason, which may be "" */
    KUBE_NODE_ALLOWED,
    KUBE_NODE_LACKS, /* the view is not ready, and the answer depends on it */
};

/* On the thread of the view. */
enum kube_node_decision kube_node_decide(struct kube_node_view *view,
                                         const struct kube_user_info *user,
                                         const struct kube_attributes *attributes, char *ret_reason,
                                         size_t reason_bytes);

#endif
