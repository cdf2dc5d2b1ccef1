/*
 * NodeRestriction, as in Kubernetes: what the user of a node may write. The authorizer decides
 * which resources a node may write (kube/policy/access/rbac/node_authorizer.h); this plugin looks
 * at what is in them.
 *
 *     nodes, leases, CSINodes, slices   its own; no labels, taints and owners that steer pods to it
 *     pods                              its own mirror pods, which use no other object
 *     …/status, …/eviction              of pods that are bound to it
 *     tokens of service accounts        bound to a pod of it, for an audience that the pod names
 *     claims, certificates              the size of a volume; its own name
 *
 * The decision is pure. What it needs of other objects is read for it, one object after another,
 * by the handler (kube/handlers/write/node_facts.c), which asks again until nothing is missing:
 *
 *     decide ─► lacks an object? ─► read it ─┐        ─► refused or not
 *        ▲                                   │
 *        └───────────────────────────────────┘
 */
#ifndef VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_NODES_NODE_RESTRICTION_H
#define VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_NODES_NODE_RESTRICTION_H

#include "kube/policy/admission/plugins/plugin.h"

/* Objects that are read for one write: a pod, and what its volumes lead to. */
enum { KUBE_NODE_FACTS_MAX = 200 };

struct kube_node_fact {
    struct slice key;
    const struct json_node *object; /* NULL: there is none */
};

/* What is known for one write, and what the last decision lacked. In the arena of the write. */
struct kube_node_facts {
    struct kube_node_fact items[KUBE_NODE_FACTS_MAX];
    size_t count;
    struct slice wanted; /* the key of an object; empty: it lacks none */
    bool asks;           /* it lacks whether the node may do this: */
    struct kube_attributes question;
    bool answered, allowed;
};

extern const struct kube_admission_plugin kube_node_restriction;

/* The decision about a create or an update, or about what was posted to a subresource. False: the
 * status says why, unless write->nodes lacks something. */
MUST_CHECK
bool kube_node_restrict(struct kube_admission_write *write);

/* An object, or NULL if it does not exist. False: it is not known yet, or there are too many. */
MUST_CHECK
bool kube_node_fact(struct kube_admission_write *write, const char *prefix, struct slice namespace,
                    struct slice name, const struct json_node **ret_object);
/* Returns false: there is no such object, in the words of an informer. */
bool kube_node_fail_missing(struct kube_admission_write *write, const char *what,
                            struct slice name);
/* The text at a path, or an empty one. */
struct slice kube_node_text(const struct kube_admission_write *write, const struct json_node *from,
                            const char *path);

/* Part of kube_node_restrict: a TokenRequest. */
MUST_CHECK
bool kube_node_restrict_token(struct kube_admission_write *write, struct slice node);

#endif
