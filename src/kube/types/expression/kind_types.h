/*
 * The types of built-in kinds in expressions whose types are checked against the kinds that a
 * policy concerns. Mirrors what Kubernetes makes of the schemas of its own kinds:
 *
 *     struct                object with the fields of the struct
 *     time                  timestamp
 *     int-or-string         dyn
 *     any JSON              object without fields; a JSON of a schema is not visible
 *     quantity              not visible, as are lists and maps of quantities
 *     a struct in itself    object without fields
 *
 * Fields have the names that are written in expressions: "namespace" is also __namespace__. Types
 * are made when an expression uses them, in an arena.
 */
#ifndef VIGIL_KUBE_TYPES_EXPRESSION_KIND_TYPES_H
#define VIGIL_KUBE_TYPES_EXPRESSION_KIND_TYPES_H

#include "cel/check/type.h"
#include "kube/types/schema/schema.h"

/* The name is that of the type, of which the names of the types within it are made. ST_NOMEM. */
MUST_CHECK
enum status kube_kind_type_new(struct arena *arena, const struct kube_type *of, const char *name,
                               const struct cel_type **ret_type);

/* "name.step", the name of the type of a field. NULL without memory. */
const char *kube_kind_type_name(struct arena *arena, const char *name, struct slice step);

#endif
