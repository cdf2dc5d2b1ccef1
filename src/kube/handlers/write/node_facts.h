/*
 * What the plugin NodeRestriction has to know of other objects when a node writes
 * (kube/policy/admission/plugins/nodes/node_restriction.h): they are read from the store, one after
 * the other. Only writes of nodes read something; on the thread of the API.
 */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_NODE_FACTS_H
#define VIGIL_KUBE_HANDLERS_WRITE_NODE_FACTS_H

#include "kube/handlers/write/change.h"
#include "kube/policy/admission/admission.h"

/* Whether a node could write this, and the plugin would need something. */
static inline bool kube_node_may_write(const struct kube_call *call)
{
    return (kube_kind_is(call->kind, "", "pods") ||
            (kube_kind_is(call->kind, "", "serviceaccounts") && call->path.subresource.len)) &&
           kube_admission_restricts_nodes(call->api->admission);
}

/* Reads what the plugin will need for a new object: change->node_facts. */
kube_step_fn kube_node_gather;
/* The same for what is posted to an object, and lets the plugin decide. */
kube_step_fn kube_node_check_posted;

#endif
