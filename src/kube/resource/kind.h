/*
 * One kind of resource as clients see it and as it is stored: a row of the built-in table, or made
 * from a CustomResourceDefinition. Read-only once it is made.
 */
#ifndef VIGIL_KUBE_RESOURCE_KIND_H
#define VIGIL_KUBE_RESOURCE_KIND_H

#include "base/slice.h"
#include "kube/selector/field.h"

enum kube_kind_flag {
    KUBE_NAMESPACED = 1 << 0,
    KUBE_HAS_STATUS = 1 << 1, /* a status subresource */
    KUBE_HAS_SCALE = 1 << 2,
    KUBE_HAS_GENERATION = 1 << 3, /* metadata.generation counts changes of what is not status */
    KUBE_CUSTOM = 1 << 4,
    KUBE_CREATE_ONLY = 1 << 5, /* nothing is stored: access reviews */
};

/* A column of `kubectl get`, after NAME and before AGE unless it says otherwise. */
struct kube_column {
    const char *name; /* "Ready" */
    const char *type; /* "string", "integer", "date" … */
    const char *format;
    const char *path; /* JSON path: ".status.phase" */
    int priority;     /* more than 0: with -o wide only */
};

struct kube_kind {
    const char *group; /* "": core */
    const char *version;
    const char *kind, *list_kind;
    const char *plural, *singular;
    const char *const *short_names;
    size_t short_name_count;
    const char *const *categories;
    size_t category_count;
    const char *storage_prefix; /* "/registry/pods/" */
    unsigned flags;             /* enum kube_kind_flag */
    struct field_rules fields;
    const char *indexed_field; /* NULL: none; watches that require a value of it are found by it */
    const struct kube_column *columns;
    size_t column_count;
};

/* The built-in ones, ordered by group, version, plural. */
const struct kube_kind *kube_builtin_kinds(size_t *ret_count);

/* NULL when there is none. */
const struct kube_kind *kube_builtin_find(struct slice group, struct slice version,
                                          struct slice plural);

#endif
