/*
 * Objects that a kube-apiserver acts upon and this server does not. What it would only store is
 * refused if requests were to be answered by another server (an APIService with a service), and
 * causes a Warning otherwise, where the user who creates or changes it sees it. Every such kind has
 * a row here; kinds that other programs act upon have none.
 *
 * An object of a kind from which this server decides, such as a role, is refused if it exceeds what
 * a lookup can hold (kube/policy/lookup/shelf.h).
 */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_WITHOUT_EFFECT_H
#define VIGIL_KUBE_HANDLERS_WRITE_WITHOUT_EFFECT_H

#include "kube/handlers/write/change.h"

/* A step of a write that is valid. */
kube_step_fn kube_without_effect;

#endif
