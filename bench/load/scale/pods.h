/*
 * The pods of one thread, which are bound to its nodes, from their creation to their end. Each has
 * a slot; when a pod is gone, another one with the next generation takes its place.
 *
 *     free ──create──► creating ──► binding ──► bound ──(event at the node)──► starting ──► ready
 *      ▲                                                                                      │
 *      └──(answer)── ending ◄──(event: it has a deletionTimestamp)── deleting ◄──delete───────┘
 *
 * What a scheduler and controllers do is done with a client of its own: create, bind, delete. What
 * kubelets do is done with that of the node: a pod that was bound to it gets the status pending and
 * then ready; one that is to be deleted gets the status succeeded and is deleted with a grace
 * period of 0. As a kubelet does, a node reads a pod before each change of its status. Together
 * these are seven writes and three reads.
 */
#ifndef VIGIL_LOAD_SCALE_PODS_H
#define VIGIL_LOAD_SCALE_PODS_H

#include "load/scale/node.h"

enum { SCALE_POD_WRITES = 7 };

struct scale_pods;

/* The nodes, which are borrowed, are those of the thread. */
struct scale_pods *scale_pods_new(struct scale_thread *thread, struct scale_node *nodes,
                                  uint32_t node_count, uint32_t pod_count);
void scale_pods_free(struct scale_pods *pods);

/* The client for what is not done by kubelets; borrowed. */
void scale_pods_start(struct scale_pods *pods, vigil_kube *kube);
/* From now on calls have no effect. */
void scale_pods_stop(struct scale_pods *pods);

/* Creates and deletes what is due, in the phases that do so. */
void scale_pods_tick(struct scale_pods *pods, int64_t now_ns);

/* A pod that a node has received: by an event about a change, or in a list. */
void scale_pods_see(struct scale_pods *pods, struct scale_node *node, const vigil_kube_object *pod,
                    bool is_change);

#endif
