/*
 * A kind of resource, as clients see it and as it is stored: a row of the built-in table, or made
 * from a CustomResourceDefinition. Read-only after construction, for any thread.
 */
#ifndef VIGIL_KUBE_TYPES_KIND_H
#define VIGIL_KUBE_TYPES_KIND_H

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum kube_kind_flag {
    KUBE_NAMESPACED = 1 << 0,
    KUBE_HAS_STATUS = 1 << 1, /* it has a status subresource */
    KUBE_HAS_SCALE = 1 << 2,
    KUBE_HAS_GENERATION = 1 << 3, /* metadata.generation counts changes outside status */
    KUBE_CREATE_ONLY = 1 << 4,    /* only answers a request, nothing is stored: access reviews */
    KUBE_CUSTOM = 1 << 5,
    KUBE_STORED_CONVERTED =
        1 << 6, /* stored in the form of another built-in kind (kube/types/object/conversion.h) */
    KUBE_COMPUTED = 1 << 7, /* can only be read, and is made for each request: componentstatuses */
};

struct kube_names {
    const char *const *names;
    size_t count;
};

struct kube_kind {
    const char *group; /* "": core */
    const char *version;
    const char *kind, *list_kind;
    const char *plural, *singular;
    const char *storage_prefix; /* "/registry/pods/" */
    unsigned flags;             /* bits of enum kube_kind_flag */
    struct kube_names short_names, categories;
    struct kube_names fields; /* for field selectors, besides metadata.name and .namespace */
    /* The watch hub indexes watches that require a value of this field. NULL: none. */
    const char *indexed_field;
};

/* "v1", "apps/v1"; a custom group has up to 253 bytes, a version 63. */
enum { KUBE_API_VERSION_BYTES = 320 };
const char *kube_kind_api_version(const struct kube_kind *kind, char text[KUBE_API_VERSION_BYTES]);

/* Whether it is this built-in kind, in whatever version. */
static inline bool kube_kind_is(const struct kube_kind *kind, const char *group, const char *plural)
{
    return strcmp(kind->plural, plural) == 0 && strcmp(kind->group, group) == 0 &&
           !(kind->flags & KUBE_CUSTOM);
}

/* All built-in kinds, ordered by group, version and plural. */
const struct kube_kind *kube_builtin_kinds(size_t *ret_count);

/* NULL if there is no such kind. */
const struct kube_kind *kube_builtin_find(struct slice group, struct slice version,
                                          struct slice plural);

#endif
