/* Finds the kind that an apiVersion and a kind name, as a reference to an owner has them. */
#ifndef VIGIL_KUBE_JOBS_GARBAGE_KINDS_H
#define VIGIL_KUBE_JOBS_GARBAGE_KINDS_H

#include "kube/custom/kinds.h"

/* NULL: no such kind is served in this version, or its objects are not stored. */
const struct kube_kind *garbage_kind(const struct kube_kinds *kinds, struct slice api_version,
                                     struct slice kind);
/* The same in any version that is served, in this one if possible. */
const struct kube_kind *garbage_kind_any(const struct kube_kinds *kinds, struct slice api_version,
                                         struct slice kind);

#endif
