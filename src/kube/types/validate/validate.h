/*
 * Kubernetes' validation of built-in objects: the rules that the types alone do not express, with
 * Kubernetes' reasons, fields and texts, in its order. The objects are in the version of the
 * request and have their defaults; where a default is missing the rules assume it.
 *
 *     kube_validate ─► rows[] (validate.c) ─► the function of the kind, in the file of its group
 *
 * A rule only reads the tree and adds errors, at most KUBE_FIELD_ERRORS_MAX of them. Its time is
 * n log n in the size of the object, whatever the object contains. For any thread.
 *
 * What the stored object has already was valid when it was written, so most updates need only be
 * compared with it: an object that differs only in its metadata, a template, and each container of
 * a pod whose other members are unchanged. Rules that compare the old with the new, or parts of an
 * object with each other, are applied whenever one of these has changed.
 */
#ifndef VIGIL_KUBE_TYPES_VALIDATE_VALIDATE_H
#define VIGIL_KUBE_TYPES_VALIDATE_VALIDATE_H

#include "codec/json/tree.h"
#include "kube/types/field_errors.h"
#include "kube/types/kind.h"

/* What a write may change. */
enum kube_validated {
    KUBE_VALIDATE_OBJECT,   /* everything but status */
    KUBE_VALIDATE_STATUS,   /* a write to /status */
    KUBE_VALIDATE_APPROVAL, /* a write to /approval: a status with its conditions */
};

/*
 * old NULL: the object is new. Values that `old` has already remain valid where Kubernetes allows
 * it. unprivileged: the policy of the cluster refuses privileged containers. False: errors have
 * been added.
 */
bool kube_validate(struct arena *arena, const struct kube_kind *kind,
                   const struct json_node *object, const struct json_node *old,
                   enum kube_validated part, bool unprivileged, struct kube_field_errors *errors);

/* For tests: the same, and also applies the rules to what `old` has already. */
bool kube_validate_all(struct arena *arena, const struct kube_kind *kind,
                       const struct json_node *object, const struct json_node *old,
                       enum kube_validated part, struct kube_field_errors *errors);
/* For tests: asserts that the table of kinds is in the order in which it is searched. */
void kube_validate_check(void);

#endif
