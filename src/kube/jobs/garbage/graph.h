/*
 * The graph of owners and dependents. A node is an object that has owners or dependents, or whose
 * deletion waits for its dependents; an object of another kind has none and costs nothing. An edge
 * is an entry of metadata.ownerReferences. Nodes are found by a hash of the uid: what the graph
 * says is only a reason to examine an object, and is compared with the store before anything is
 * deleted.
 *
 *                   the object is read                    deletionTimestamp and
 *        ┌─────► NAMED ───────────► PRESENT ─────────┬──► finalizer ──► FOREGROUND ─┐
 *        │         ▲  └─────────────────┬────────────┘      └─────────► ORPHANING ──┤
 *   named by a     │                    ▼                                           │
 *   reference      └──── the object is deleted ◄────────────────────────────────────┘
 *                        (also back to PRESENT when another client removes the finalizer)
 *
 * A node is freed when it has no references, no dependents and nothing to wait for.
 *
 * Examined are: one dependent of a node that is not known to exist, for each place that they name;
 * all dependents of a node that does not exist, is deleted, or begins to wait for them, some in
 * each turn; and a node that waits, when there may be nothing left to wait for. A node is in the
 * queue at most once.
 *
 * Memory: GARBAGE_NODE_BYTES for each node and GARBAGE_REF_BYTES for each reference, and the key.
 * One owner, one thread. Aborts without memory.
 */
#ifndef VIGIL_KUBE_JOBS_GARBAGE_GRAPH_H
#define VIGIL_KUBE_JOBS_GARBAGE_GRAPH_H

#include "base/container/chain_table.h"
#include "base/container/hash_map.h"
#include "base/container/list.h"
#include "kube/jobs/garbage/facts.h"

enum garbage_state {
    GARBAGE_NAMED,      /* it is not known to exist */
    GARBAGE_PRESENT,    /* it exists, as far as is known */
    GARBAGE_FOREGROUND, /* it is deleted when no dependent blocks it */
    GARBAGE_ORPHANING,  /* it is deleted when no dependent refers to it */
};

struct garbage_node;

struct garbage_ref {
    struct garbage_node *owner, *dependent;
    struct list in_owner;
    uint32_t place; /* a hash of apiVersion, kind, name and the dependent's namespace */
    bool blocks;
};

struct garbage_node {
    struct chain_link in_graph;
    uint64_t uid; /* a hash */
    enum garbage_state state;
    bool missing;    /* NAMED: it does not exist */
    bool examined;   /* by a worker, at this moment */
    bool again;      /* it is to be examined again after that */
    uint32_t place;  /* where the object was found when a reference was followed; 0: not yet */
    uint32_t probed; /* the place that the dependent names which is examined to find it, or was */
    int64_t revision;
    struct slice key; /* key of the object; empty: only references name it */
    struct garbage_ref *refs;
    uint32_t ref_count;
    uint32_t blocking;   /* references to it that block its deletion */
    uint32_t waiting;    /* references to it of nodes that are FOREGROUND */
    uint32_t unexpanded; /* references whose dependents are to be queued in the next turns */
    uint32_t dependent_count;
    struct list dependents; /* struct garbage_ref */
    struct list in_queue, in_expanding;
    int64_t retry_ns; /* while it is parked */
};

enum {
    GARBAGE_KEY_BYTES_MAX = 1024, /* objects under longer keys are ignored: none has such a name */
    GARBAGE_NODE_BYTES = 256,     /* with the overhead of the allocator and of the table */
    GARBAGE_REF_BYTES = 64,
};

struct garbage_graph {
    struct hash_map hashes; /* without values: the secret of the hashes */
    struct chain_table nodes;
    struct list queue;     /* nodes to be examined */
    struct list parked;    /* nodes that could not be examined, ordered by retry_ns */
    struct list expanding; /* nodes with unexpanded dependents */
    uint32_t drained;      /* buckets that garbage_graph_drain has emptied */
    size_t ref_count;
};

void garbage_graph_init(struct garbage_graph *graph, uint64_t seed);
/* Frees up to `budget` nodes; true: all are freed. No node may be under examination. */
MUST_CHECK
bool garbage_graph_drain(struct garbage_graph *graph, size_t budget);
/* Asserts that every count and list is right; for tests. */
void garbage_graph_check(const struct garbage_graph *graph);

/* An object was written, or read at this revision of its key. What is older than what is known is
 * ignored. */
void garbage_graph_put(struct garbage_graph *graph, struct slice key, int64_t revision,
                       const struct garbage_facts *facts);
/* It was deleted. */
void garbage_graph_delete(struct garbage_graph *graph, struct slice uid, int64_t revision);

/* NULL: the object has no node. */
struct garbage_node *garbage_graph_find(const struct garbage_graph *graph, struct slice uid);
uint32_t garbage_place(const struct garbage_graph *graph, const struct garbage_owner *owner,
                       struct slice namespace);

/* Queues some of the dependents that are to be examined; true: there are more. */
MUST_CHECK
bool garbage_graph_expand(struct garbage_graph *graph, size_t budget);

/* -- Examining -- */

/* The next node to examine; it stays until garbage_graph_done. NULL: there is none now. */
struct garbage_node *garbage_graph_take(struct garbage_graph *graph);
/* The object with this uid, last written at this revision, is at the place that a reference names.
 * Dependents that name another place are examined. */
void garbage_graph_found(struct garbage_graph *graph, struct slice uid, uint32_t place,
                         int64_t revision);
/* There is none there: if it is not known elsewhere, all its dependents are examined. */
void garbage_graph_missing(struct garbage_graph *graph, struct slice uid);

enum garbage_result {
    GARBAGE_EXAMINED,
    GARBAGE_AGAIN,  /* it has changed meanwhile: back into the queue */
    GARBAGE_FAILED, /* it is parked for GARBAGE_RETRY_S */
};
enum { GARBAGE_RETRY_S = 30 };
void garbage_graph_done(struct garbage_graph *graph, struct garbage_node *node,
                        enum garbage_result result, int64_t now_ns);
/* Queues the parked nodes whose time has come; returns the next such time or CLOCK_NEVER. */
int64_t garbage_graph_unpark(struct garbage_graph *graph, int64_t now_ns);

#endif
