/*
 * The steps of writes of CustomResourceDefinitions: kube/custom/definition_rules.h and the
 * validation of the definition.
 */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_DEFINITION_H
#define VIGIL_KUBE_HANDLERS_WRITE_DEFINITION_H

#include "kube/handlers/write/change.h"

/* Sets the defaults, validates the specification and sets the status that follows from it. */
kube_step_fn kube_definition_create;
/* Before the update is compared with the stored object: defaults are not changes. */
kube_step_fn kube_definition_default;
/* Validation and status, after kube_definition_default. */
kube_step_fn kube_definition_update;

#endif
