/* The eviction of a pod (eviction.c), as its disruption budget allows it. */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_EVICTION_H
#define VIGIL_KUBE_HANDLERS_WRITE_EVICTION_H

#include "kube/handlers/write/delete.h"

/* Budgets of one namespace, which are all compared with the pod. */
enum { KUBE_EVICTION_BUDGETS_MAX = 250 };

/* Answers the call. The name is borrowed. */
void kube_evict(struct kube_call *call, struct slice name,
                const struct kube_delete_options *options);

#endif
