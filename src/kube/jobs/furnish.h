/*
 * The job that gives each new namespace what kube-controller-manager would give it: the service
 * account default, and the config map kube-root-ca.crt with the certificate of this server. While a
 * kube-controller-manager holds its lease, this is left to it.
 *
 *     next namespace ─► lease ─► the namespace exists ─► each object: missing? ─► write it ─┐
 *        ▲                │ held, or the namespace is being deleted                         │
 *        └────────────────┴─────────────────────────────────────────────────────────────────┘
 *
 * One job for all namespaces of an API, on its thread; one operation at a time. An object is
 * written on the condition that the namespace has not changed, so that nothing appears in one that
 * is being emptied.
 */
#ifndef VIGIL_KUBE_JOBS_FURNISH_H
#define VIGIL_KUBE_JOBS_FURNISH_H

#include "base/slice.h"

struct kube_api;

/* Does nothing with --kube-namespace-objects=false or --kube-bootstrap=false, in front of a
 * cluster, and after the API has stopped. */
void kube_furnish_start(struct kube_api *api, struct slice namespace);

#endif
