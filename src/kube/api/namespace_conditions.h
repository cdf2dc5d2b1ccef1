/*
 * What a namespace still holds while it is being deleted, and the conditions in its status that say
 * so: types, reasons and messages are those of Kubernetes' namespace controller.
 */
#ifndef VIGIL_KUBE_API_NAMESPACE_CONDITIONS_H
#define VIGIL_KUBE_API_NAMESPACE_CONDITIONS_H

#include "base/buf.h"
#include "kube/object/meta.h"

/* Names are counted up to this many of them and bytes each; what is beyond is not told. */
enum { KUBE_REMAINS_NAMES_MAX = 64, KUBE_REMAINS_NAME_BYTES_MAX = 512 };

struct kube_tally {
    struct buf names; /* one after the other */
    struct {
        size_t at, len;
        int64_t count;
    } entries[KUBE_REMAINS_NAMES_MAX];
    size_t count;
};

struct kube_remains {
    struct kube_tally kinds;      /* "pods.": resource, dot, group */
    struct kube_tally finalizers; /* of the objects that remain */
    struct kube_tally failures;   /* "/v1, Resource=pods": has objects that should be gone */
    bool undiscovered;            /* not all kinds are known */
};

void kube_remains_reset(struct kube_remains *remains);
void kube_remains_fini(struct kube_remains *remains);

/* An object remains: for its finalizers or because it was given time, or else by a failure. */
void kube_remains_add(struct kube_remains *remains, const struct kube_kind *kind, bool failed);
void kube_remains_add_finalizer(struct kube_remains *remains, struct slice name);

/* Sets the five conditions of a namespace. False: no memory, and meta->status says so. */
MUST_CHECK
bool kube_remains_tell(const struct kube_remains *remains, const struct kube_meta *meta,
                       struct json_node *object, struct slice name);

#endif
