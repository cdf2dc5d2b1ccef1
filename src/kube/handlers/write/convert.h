/*
 * The steps of a write whose object a webhook converts (kube/call/call_conversion.h), because it is
 * not stored in the version of the request. Everything between the first two sees the version of
 * the request, and the answer has what was stored, as in Kubernetes.
 *
 *     stored ──► kube_convert_stored ──► … decided, admitted … ──► kube_convert_to_store ──► put
 *                                                  answer ◄── kube_convert_answer ◄──────────┘
 */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_CONVERT_H
#define VIGIL_KUBE_HANDLERS_WRITE_CONVERT_H

#include "kube/handlers/write/change.h"

kube_step_fn kube_convert_stored, kube_convert_to_store, kube_convert_answer;

/* Whether the stored object has another version than the one in which it would be stored now. */
bool kube_convert_is_outdated(const struct kube_change *change);

#endif
