/*
 * The objects that remain in a namespace while it is being deleted, and the conditions in its
 * status that report them: types, reasons and messages are those of Kubernetes' namespace
 * controller.
 */
#ifndef VIGIL_KUBE_JOBS_NAMESPACE_CONDITIONS_H
#define VIGIL_KUBE_JOBS_NAMESPACE_CONDITIONS_H

#include "base/buf.h"
#include "kube/types/object/meta.h"

/* Limits of the number and length of names; others are not reported. */
enum { KUBE_REMAINING_NAMES_MAX = 64, KUBE_REMAINING_NAME_BYTES_MAX = 512 };

struct kube_tally {
    struct buf names; /* one after another */
    struct {
        size_t at, len;
        int64_t count;
    } entries[KUBE_REMAINING_NAMES_MAX];
    size_t count;
};

struct kube_remaining {
    struct kube_tally kinds;      /* "pods.": resource, dot, group */
    struct kube_tally finalizers; /* finalizers of the objects that remain */
    struct kube_tally failures;   /* "/v1, Resource=pods": has objects that should be gone */
    bool undiscovered;            /* not all kinds are known */
};

void kube_remaining_reset(struct kube_remaining *remaining);
void kube_remaining_fini(struct kube_remaining *remaining);

/* An object remains: because of finalizers or its grace period, or because of a failure. */
void kube_remaining_add(struct kube_remaining *remaining, const struct kube_kind *kind,
                        bool failed);
void kube_remaining_add_finalizer(struct kube_remaining *remaining, struct slice name);

/* Sets the five conditions of a namespace. False: no memory, and meta->status says so. */
MUST_CHECK
bool kube_remaining_set_conditions(const struct kube_remaining *remaining,
                                   const struct kube_meta *meta, struct json_node *object,
                                   struct slice name);

#endif
