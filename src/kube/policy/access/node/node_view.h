/*
 * The graph of nodes (node_graph.h), which is held once for all I/O threads of a server and follows
 * the store. A view is the part of it that belongs to one API and thread: its places in the history
 * of the four kinds.
 *
 * Nothing is read before the first question of a node. Then every thread that decides follows the
 * same events in the order of their revisions, and the first one to bring an event puts it into the
 * graph; the others skip it. So a thread's answers are never older than what it has read itself,
 * which is what was written before this turn of its loop.
 *
 *            ┌─ no thread has read the objects ─► it reads them ─► it takes what was written since ─┐
 *     unready┤                                                                                      ├─► ready
 *       ▲    └─ another thread reads them: wait; or has read them ─────────────────────────────────┘     │
 *       └──────────────────── events that no thread has taken were compacted ────────────────────────────┘
 *
 * The memory of the graph is charged to the budget, and limited: NODE_GRAPH_BYTES_MAX, and a part
 * of the budget.
 */
#ifndef VIGIL_KUBE_POLICY_ACCESS_NODE_NODE_VIEW_H
#define VIGIL_KUBE_POLICY_ACCESS_NODE_NODE_VIEW_H

#include "base/container/list.h"
#include "base/metric/page.h"
#include "kube/policy/access/node/node_graph.h"

struct budget;
struct engine_shard;
struct kube_node_view;
struct kube_nodes;
struct loop;

enum {
    NODE_GRAPH_BYTES_MAX = 1 << 30, /* about three million pods */
    NODE_GRAPH_BUDGET_PART = 8,     /* at most one part of so many of the budget */
};

/* -- The graph. Any thread. -- */

/* budget NULL: nothing is charged. bytes_max 0: the default. */
struct kube_nodes *kube_nodes_new(struct budget *budget, size_t bytes_max);
/* There must be no views. Accepts NULL. */
void kube_nodes_free(struct kube_nodes *nodes);
void kube_nodes_write_metrics(struct kube_nodes *nodes, struct metric_page *page);

/* -- Views. On the thread of their API. -- */

struct kube_node_view_options {
    struct engine_shard *shard;
    struct loop *loop;
    size_t *under_way; /* counter of the API: incremented while objects are read */
    struct kube_nodes *nodes;
};

struct kube_node_view *kube_node_view_new(const struct kube_node_view_options *options);
/* Ends waits and readings with ST_STOPPED when what is under way ends. Accepts NULL. */
void kube_node_view_stop(struct kube_node_view *view);
/* Must be stopped, and its last reading must have ended. Accepts NULL. */
void kube_node_view_free(struct kube_node_view *view);

bool kube_node_view_ready(struct kube_node_view *view);

/* Embedded by its caller until go. */
struct kube_node_wait {
    struct list in_view;
    void (*go)(struct kube_node_wait *wait);
    enum status status; /* in go; not ST_OK: the objects could not be read */
};
/* Calls go when the view is ready or has failed, perhaps at once. */
void kube_node_view_wait(struct kube_node_view *view, struct kube_node_wait *wait);
/* go is not called any more. */
void kube_node_view_forget(struct kube_node_wait *wait);

/* Every change up to this revision is known, and perhaps some later ones. INT64_MAX while no node
 * has asked for anything: nothing waits for it. */
int64_t kube_node_view_revision(const struct kube_node_view *view);

/* Whether the node may use the object. Must be ready. */
MUST_CHECK
bool kube_node_view_reaches(struct kube_node_view *view, struct slice node,
                            struct node_object object);

#endif
