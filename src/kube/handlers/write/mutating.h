/*
 * The frame of mutating admission (kube/handlers/write/write.c has the steps in it): plugins, then
 * policies, then webhooks, and all of it once more if a policy or webhook has changed the object,
 * but then only those policies and webhooks that say so, as in Kubernetes.
 *
 *     begin ─► plugins ─► policies ─► webhooks ─► again ─┬─► the next step
 *                ▲                                       │
 *                └───────────────────────────────────────┘ once
 */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_MUTATING_H
#define VIGIL_KUBE_HANDLERS_WRITE_MUTATING_H

#include "kube/handlers/write/change.h"

kube_step_fn kube_mutating_begin, kube_mutating_again;

#endif
