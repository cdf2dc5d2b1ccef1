/*
 * The types of a custom resource's values in rules: what `self` is, and what can be reached from
 * it. They are made from the compiled schema when an expression uses them, in an arena.
 *
 *     object with properties       an object; other fields are not visible
 *     object with values           map(string, …), and an array is list(…)
 *     string                       string; bytes, duration or timestamp if the format says so
 *     x-kubernetes-int-or-string   dyn
 *     no type                      not visible
 *
 * Fields have the names that are written in expressions: "a-b" is a__dash__b. Types have the sizes
 * from which Kubernetes estimates the cost of a rule.
 */
#ifndef VIGIL_KUBE_CUSTOM_RULES_TYPES_H
#define VIGIL_KUBE_CUSTOM_RULES_TYPES_H

#include "cel/check/type.h"
#include "kube/custom/schema/structural.h"

/* Kubernetes' limit on the size of a request, from which the sizes without limits follow. */
enum { RULE_REQUEST_BYTES = 3 << 20 };

/*
 * The type of a schema's values. `resource`: the value is the root of an object, and has kind,
 * apiVersion and metadata; embedded resources have them anyway. *ret_type is NULL if the schema has
 * no type. ST_NOMEM. The type is in the arena, and borrows from the schema.
 */
MUST_CHECK
enum status rule_type_new(struct arena *arena, const struct schema *schema, bool resource,
                          const struct cel_type **ret_type);

/*
 * The type of a resource in a policy whose types are checked, for which its schema is read as it is
 * published (OpenAPI): its metadata has all members. The same otherwise.
 */
MUST_CHECK
enum status rule_type_published(struct arena *arena, const struct schema *schema, const char *name,
                                const struct cel_type **ret_type);

/* The property that an expression calls `field`; NULL: there is none, or it has no type. */
const struct schema_property *rule_property(const struct schema *schema, struct slice field);

/* Appends the name with which expressions call a property. False: it has none, or no memory. */
MUST_CHECK
bool rule_escape(struct slice property, struct buf *to);

/* How often a value with at least this many bytes of JSON may occur in an object. */
static inline uint64_t rule_occurrences_max(uint32_t least_bytes)
{
    return RULE_REQUEST_BYTES / ((uint64_t)least_bytes + 1);
}

#endif
