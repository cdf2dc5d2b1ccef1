/*
 * Objects that the expressions of Kubernetes' mutating policies create, and operations of JSON
 * Patch:
 *
 *     Object{spec: Object.spec{replicas: 3}}
 *     [JSONPatch{op: "remove", path: "/spec/" + jsonpatch.escapeKey(name)}]
 *
 * Every name that begins with "Object." is a type, whose fields have any name and any value: the
 * expression is not compared with the schema of what it describes.
 */
#ifndef VIGIL_CEL_LIBRARY_OBJECTS_H
#define VIGIL_CEL_LIBRARY_OBJECTS_H

#include "cel/check/checker.h"
#include "cel/library/library.h"

extern const struct cel_objects cel_mutation_objects;
extern const struct cel_type cel_type_mutation_object, cel_type_mutation_patch;

extern const struct cel_library cel_patches;

/* The fields of such a value, in the order in which they were written. */
struct cel_fields {
    const struct cel_type *type; /* its name is "Object", "Object.spec" or "JSONPatch" */
    const struct slice *names;
    const struct cel_value *values;
    uint32_t count;
};

/* False: it is another value. */
bool cel_is_object(struct cel_value value, struct cel_fields *ret_fields);
bool cel_is_patch(struct cel_value value, struct cel_fields *ret_fields);

#endif
