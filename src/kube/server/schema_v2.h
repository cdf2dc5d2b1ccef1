/*
 * The schema of a custom resource in the form of OpenAPI version 2, which knows neither null nor
 * alternatives. What version 2 cannot express is left out by the same rules as in Kubernetes, so
 * that old versions of kubectl accept the same objects:
 *
 *     oneOf, anyOf, allOf, not, default       left out
 *     nullable                                the value may have any type, and is not required
 *     x-kubernetes-preserve-unknown-fields    without properties, items, and the type object
 *
 * A pure function of the text. The work grows with the length of the text alone.
 */
#ifndef VIGIL_KUBE_SERVER_SCHEMA_V2_H
#define VIGIL_KUBE_SERVER_SCHEMA_V2_H

#include "base/buf.h"

/*
 * Appends the object. `schema` was written by json_tree_write, so that a key has one spelling and
 * occurs once. `fields` are members that the properties of the outermost schema have instead of
 * apiVersion, kind and metadata, and `last` is appended as its last members; neither is empty.
 * ST_MALFORMED: not a schema, or nested too deeply; ST_NOMEM.
 */
MUST_CHECK
enum status schema_v2_append(struct slice schema, const char *fields, const char *last,
                             struct buf *to);

#endif
