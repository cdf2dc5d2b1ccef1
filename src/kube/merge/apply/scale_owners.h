/*
 * The managers of an object as those of its Scale, and back. Both have in common who owns the
 * number of replicas: at spec.replicas of the Scale, at a path of its kind in the object. Mirrors
 * ScaleHandler of apimachinery.
 */
#ifndef VIGIL_KUBE_MERGE_APPLY_SCALE_OWNERS_H
#define VIGIL_KUBE_MERGE_APPLY_SCALE_OWNERS_H

#include "kube/merge/apply/managed.h"

#define SCALE_API_VERSION "autoscaling/v1"

/* Where the objects of one version have their replicas. */
struct scale_path {
    struct slice api_version;
    const char *path; /* "spec.replicas"; NULL: this version has no Scale */
};

struct scale_paths {
    const struct scale_path *items;
    size_t count;
};

/* Whether the set has the member at this path: "spec.replicas". */
bool scale_owns(const struct field_set *set, const char *path);

/* Replaces the managers of an object by those of its Scale. ST_NOMEM. */
MUST_CHECK
enum status scale_owners_of(struct managed *managed, const struct scale_paths *paths);

/* The managers of an object after those of its Scale have changed. New ones have this version,
 * which has a path, and no time. ST_LIMIT, ST_NOMEM. */
MUST_CHECK
enum status scale_owners_put(const struct managed *object, const struct scale_paths *paths,
                             struct slice api_version, const struct managed *scale,
                             struct managed *ret_managed);

#endif
