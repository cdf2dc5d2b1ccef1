/*
 * What fields of built-in kinds mean, in a sentence of our own, for `kubectl explain`: what most
 * kinds have, and the direct members of spec (of config maps and secrets: of the object) of the
 * kinds that are used most.
 */
#ifndef VIGIL_KUBE_TYPES_SCHEMA_DESCRIPTIONS_H
#define VIGIL_KUBE_TYPES_SCHEMA_DESCRIPTIONS_H

#include "kube/types/schema/schema.h"

/* NULL: there is none. */
const char *kube_field_description(const struct kube_type *type, const struct kube_field *field);

#endif
