/*
 * Which objects a node may use, as in Kubernetes' node authorizer: those of the pods that are bound
 * to it, and what is assigned to it by name.
 *
 *     node ◄── pod ◄──┬── secret, config map, service account, resource claim
 *      ▲              └── claim ◄── volume ◄── secret
 *      └── volume attachment, resource slice
 *
 * A node has one `use` for each object that it may use, which counts the ways in which it does, so
 * a question is one search in a table, however many pods there are. A volume and its secrets are
 * used by the nodes that use its claim, in whatever order the two are written:
 *
 *     pod is put    ─► a use of each object that it names; of a claim, also of its volumes
 *     volume is put ─► for each use of its claim, one of the volume and of its secrets
 *
 * Memory: about NODE_GRAPH_POD_BYTES for each pod, without its names, and NODE_GRAPH_USE_BYTES for
 * each object that a node uses. Beyond a limit an object is left out: its node cannot use what only
 * this one connects it with.
 *
 * Pure. One owner; more than one thread only under the owner's lock.
 */
#ifndef VIGIL_KUBE_POLICY_ACCESS_NODE_NODE_GRAPH_H
#define VIGIL_KUBE_POLICY_ACCESS_NODE_NODE_GRAPH_H

#include "base/container/chain_table.h"
#include "base/container/hash_map.h"
#include "base/memory/slab.h"

enum node_kind {
    /* What is assigned to a node. */
    NODE_POD,
    NODE_ATTACHMENT,
    NODE_SLICE,
    /* What pods name, all in their own namespace. */
    NODE_SECRET,
    NODE_CONFIG_MAP,
    NODE_ACCOUNT,
    NODE_RESOURCE_CLAIM,
    NODE_CLAIM,
    NODE_VOLUME, /* which names a claim, and secrets in whatever namespace */
    NODE_NODE,
};

enum {
    /* Objects have no longer names, so a longer one that is only mentioned has no object. */
    NODE_NAME_BYTES_MAX = 253,
    NODE_GRAPH_POD_BYTES = 64,
    NODE_GRAPH_USE_BYTES = 32, /* twice as much for a claim */
    /* Volumes that may name the same claim: it can be bound to one of them only. Others are left
     * out, so that a pod with that claim is as quick as any. */
    NODE_CLAIM_VOLUMES_MAX = 16,
};

struct node_object {
    enum node_kind kind;
    struct slice namespace, name;
};

struct node_graph {
    struct hash_map hashes;    /* without values: the secret of the hashes */
    struct chain_table things; /* objects and nodes */
    struct chain_table uses;   /* by node and object */
    struct slab use_slab, claim_use_slab;
    size_t bytes, bytes_max; /* allocated, and the limit */
    size_t pods;
    size_t left_out; /* objects for which there was no room when they were put */
    uint32_t drained, drained_uses;
};

/* bytes_max: the limit of memory. */
void node_graph_init(struct node_graph *graph, uint64_t seed, size_t bytes_max);
/* Frees up to `budget` objects; true: all are freed, and the graph may be initialized again. It
 * must not be used after the first call. Accepts a zeroed one. */
MUST_CHECK
bool node_graph_drain(struct node_graph *graph, size_t budget);

/* A pod, an attachment or a slice is assigned to a node, and a pod names these objects. What was
 * put before under the same name is replaced. An empty node: it is not assigned. False: there is no
 * room for it, and it is left out. */
bool node_graph_put(struct node_graph *graph, struct node_object object, struct slice node,
                    const struct node_object *named, size_t count);
/* A volume names its claim and secrets. */
bool node_graph_put_volume(struct node_graph *graph, struct slice name, struct node_object claim,
                           const struct node_object *secrets, size_t count);
void node_graph_remove(struct node_graph *graph, struct node_object object);

/* Whether the node may use the object. */
bool node_graph_reaches(const struct node_graph *graph, struct slice node,
                        struct node_object object);

/* Asserts that every use is counted as often as it follows from pods and volumes; for tests. */
void node_graph_check(const struct node_graph *graph);

#endif
