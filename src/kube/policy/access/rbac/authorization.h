/* Which authorizers of Kubernetes decide, in their order. */
#ifndef VIGIL_KUBE_POLICY_ACCESS_RBAC_AUTHORIZATION_H
#define VIGIL_KUBE_POLICY_ACCESS_RBAC_AUTHORIZATION_H

/* In the order of the values of --kube-authorization-mode; nodes are authorized from NODE on. */
enum kube_authorization {
    KUBE_AUTHORIZATION_ALWAYS_ALLOW,
    KUBE_AUTHORIZATION_RBAC,
    KUBE_AUTHORIZATION_NODE,
    KUBE_AUTHORIZATION_NODE_RBAC,
    KUBE_AUTHORIZATION_RBAC_NODE,
};

#endif
