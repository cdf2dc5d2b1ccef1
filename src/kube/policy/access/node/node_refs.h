/*
 * What an object of the store connects with a node, in the terms of node_graph.h: the node to which
 * it is assigned, and the objects that it names. As in Kubernetes' node authorizer, a mirror pod
 * names nothing.
 */
#ifndef VIGIL_KUBE_POLICY_ACCESS_NODE_NODE_REFS_H
#define VIGIL_KUBE_POLICY_ACCESS_NODE_NODE_REFS_H

#include "codec/json/tree.h"
#include "kube/policy/access/node/node_graph.h"

#define NODE_MIRROR_ANNOTATION "kubernetes.io/config.mirror"

/* Objects that one pod names; more of them, which no kubelet could mount, are ignored. */
enum { NODE_NAMED_MAX = 4096 };

struct node_refs {
    struct slice node;        /* empty: it is assigned to none */
    struct node_object claim; /* that of a volume; an empty name: it has none */
    struct node_object *named;
    size_t count, capacity;
};

/* Reads a pod, an attachment, a slice or a volume from its bytes. Only the part of them is parsed
 * that matters. ST_MALFORMED: it is not such an object; ST_NOMEM, ST_LIMIT. */
MUST_CHECK
enum status node_refs_read(struct arena *arena, struct node_object object, struct slice json,
                           struct node_refs *ret_refs);

/* What a pod names, from its spec and its status, of which either may be missing. ST_NOMEM. */
MUST_CHECK
enum status node_refs_of_pod(struct arena *arena, struct node_object pod,
                             const struct json_node *spec, const struct json_node *status,
                             struct node_refs *ret_refs);

/* The name of the claim of an ephemeral volume. ST_NOMEM. */
MUST_CHECK
enum status node_ephemeral_claim(struct arena *arena, struct slice pod, struct slice volume,
                                 struct slice *ret_name);

#endif
