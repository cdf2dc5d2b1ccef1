/*
 * What Go's encoder writes for the zero value of a type: which fields it omits, and the values of
 * those that it writes always, such as "status":{} and "containers":null.
 */
#ifndef VIGIL_KUBE_TYPES_SCHEMA_ZERO_H
#define VIGIL_KUBE_TYPES_SCHEMA_ZERO_H

#include "codec/json/tree.h"
#include "kube/types/schema/schema.h"

/* Whether the field is omitted if it is zero: omitempty omits no struct, omitzero does. */
bool kube_zero_omits(const struct kube_field *field);
/* NULL: no memory. */
struct json_node *kube_zero_value(struct arena *arena, const struct kube_field *field);

/* The object of a type: all fields that are not omitted. ST_NOMEM. */
MUST_CHECK
enum status kube_zero_object(struct arena *arena, const struct kube_type *type,
                             struct json_node **ret_object);
/* One member of that object; NULL: it is omitted. ST_NOMEM. */
MUST_CHECK
enum status kube_zero_member(struct arena *arena, const struct kube_type *type, struct slice name,
                             struct json_node **ret_value);

/* Whether a value is the zero value of its type, which Go omits from a field with omitempty. */
bool kube_is_zero(const struct json_node *node);

#endif
