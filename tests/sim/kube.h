/*
 * The Kubernetes API: actors that create, change and delete ConfigMaps with libvigil-kube, and an
 * informer of all of them, which has to converge on what the history says.
 */
#ifndef VIGIL_TESTS_SIM_KUBE_H
#define VIGIL_TESTS_SIM_KUBE_H

#include "plan.h"

/* Inside an actor, as the others. */
void kube_start(const struct plan *plan);
/* Waits until the actors have made all their requests. */
void kube_join(void);
/* Nothing is wrong any more: waits until the informer has the objects of the newest revision. */
void kube_settle(void);
void kube_end(void);

#endif
