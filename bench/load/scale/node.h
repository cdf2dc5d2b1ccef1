/*
 * One simulated node: a kubelet and a kube-proxy with one connection.
 *
 *     stopped ──start──► starting ──(registered, all watches complete)──► running
 *        ▲                  │                                               │
 *        └──────stop────────┴───────────────────────────────────────────────┘
 *
 * It registers itself as a kubelet does: it creates its Node, reads its Lease and creates it if it
 * is missing. At the same time its watches begin. From then on it renews the Lease every 10
 * seconds with the version of the last answer, and patches the status of its Node every 5 minutes.
 * What it does with pods is in pods.h.
 *
 * The thread of its loop. The client is the caller's, who frees it after scale_node_stop.
 */
#ifndef VIGIL_LOAD_SCALE_NODE_H
#define VIGIL_LOAD_SCALE_NODE_H

#include "load/scale/follow.h"

enum scale_node_state { SCALE_NODE_STOPPED, SCALE_NODE_STARTING, SCALE_NODE_RUNNING };

struct scale_node {
    enum scale_node_state state;
    uint32_t number;
    bool known;     /* it has been running before */
    bool renewing;  /* a call about the Lease is under way */
    bool reporting; /* one about its status */
    bool registered;
    unsigned incomplete; /* watches without the initial state */
    uint64_t started_ns;
    struct timer renewal;              /* the next renewal, or attempt to register */
    struct timer report;               /* the next report of the status */
    char version[SCALE_VERSION_BYTES]; /* resourceVersion of the Lease; "": it is read first */
    char uid[40];
    struct scale_follower follower;
    struct scale_follow follows[SCALE_FOLLOWS];
};

/* Zeroed memory becomes a stopped node. */
void scale_node_init(struct scale_node *node, struct scale_thread *thread, uint32_t number);
void scale_node_start(struct scale_node *node, vigil_kube *kube);
/* Watches end, calls do not report to it any more. No effect if it is stopped. */
void scale_node_stop(struct scale_node *node);

#endif
