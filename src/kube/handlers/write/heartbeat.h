/*
 * Heartbeats: a PUT that sends the stored object back with another time, as every kubelet does with
 * its Lease each ten seconds. The rest of the object is what it was, so it needs no tree, no
 * defaults and no validation: the stored bytes with the new time are written.
 *
 *     begins as a heartbeat ─► the stored object is read ─► it is one ─► stored, answered
 *                                                            └─► anything else is an ordinary PUT
 *
 * What it answers and stores is what an ordinary PUT would. It is not one if that might be
 * different: with admission policies, webhooks, plugins that concern the kind, except for
 * NodeRestriction, managers of fields, or an object that is being deleted.
 */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_HEARTBEAT_H
#define VIGIL_KUBE_HANDLERS_WRITE_HEARTBEAT_H

#include "kube/handlers/write/change.h"

/* Whether a PUT may be one, judging by its kind and its form. */
bool kube_heartbeat_may_be(struct kube_change *change);

/* The step. Anything else continues as an update, from its beginning. */
enum kube_stepped kube_heartbeat_take(struct kube_change *change);

#endif
