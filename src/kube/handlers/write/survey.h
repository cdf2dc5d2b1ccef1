/*
 * The survey of the pods that exist in a namespace, when the standard that it enforces becomes
 * stricter (kube/policy/security/standard.h): a step of the write of the namespace. It never
 * refuses the write. The answer has a Warning for each way in which pods violate the standard, with
 * the first of them and their number.
 *
 * At most 3,000 pods are reviewed, for at most a second; another Warning says if there are more. As
 * in Kubernetes, the first ones are those without a controller and one of each controller. A first
 * pass over the pods, in the order of their names, finds these, and a second one reviews the
 * others. A turn of the loop reviews as many as a few milliseconds allow. Namespaces and runtime
 * classes may be exempt.
 */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_SURVEY_H
#define VIGIL_KUBE_HANDLERS_WRITE_SURVEY_H

#include "kube/handlers/write/change.h"

kube_step_fn kube_survey_pods;

#endif
