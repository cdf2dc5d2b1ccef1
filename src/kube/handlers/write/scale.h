/* The Scale of a workload, for autoscalers and kubectl scale. */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_SCALE_H
#define VIGIL_KUBE_HANDLERS_WRITE_SCALE_H

#include "codec/json/tree.h"
#include "kube/call/call.h"

/* GET …/scale */
void kube_scale_get(struct kube_call *call);

/*
 * The Scale of an object, which has the current and the wanted number of replicas, in the arena. It
 * has a resourceVersion, so that it can be patched and sent back.
 */
MUST_CHECK
bool kube_scale_make(struct arena *arena, const struct kube_kind *kind,
                     const struct json_node *object, int64_t revision, struct json_node **ret_scale,
                     struct kube_status *status);

#endif
