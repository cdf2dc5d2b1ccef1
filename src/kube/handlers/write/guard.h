/*
 * The step in which the user of a write must have permissions that follow from the object
 * (kube/policy/access/guard.h). It waits until roles and bindings are as new as the store, and
 * reads what is not held; then it is run again.
 */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_GUARD_H
#define VIGIL_KUBE_HANDLERS_WRITE_GUARD_H

#include "kube/handlers/write/change.h"

kube_step_fn kube_change_guard;

#endif
