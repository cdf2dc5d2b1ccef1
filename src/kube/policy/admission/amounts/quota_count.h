/*
 * The status of a quota, counted again from the objects of its namespace, as
 * kube-controller-manager does: status.hard is spec.hard, and status.used has the usage of each of
 * these resources that objects of some kind can use. A resource that no kind knows keeps the usage
 * that it had.
 *
 *     init ─► for each kind: kind ─► object or number, … ─► status
 *
 * Pure functions over trees; memory is in the caller's arenas.
 */
#ifndef VIGIL_KUBE_POLICY_ADMISSION_AMOUNTS_QUOTA_COUNT_H
#define VIGIL_KUBE_POLICY_ADMISSION_AMOUNTS_QUOTA_COUNT_H

#include "kube/policy/admission/amounts/quota_usage.h"

struct kube_quota_count {
    const struct json_node *quota; /* borrowed */
    struct kube_amounts used;      /* a place for each resource; known: a kind has it */
    struct kube_amounts of_kind;   /* those that objects of the present kind can use */
};

/* What has to be read to count the objects of a kind. */
enum kube_quota_need {
    KUBE_QUOTA_NOTHING,
    KUBE_QUOTA_NUMBER, /* number of the objects */
    KUBE_QUOTA_OBJECTS,
};

/* The numbers of resources and scopes are within the limits (kube_quota_is_sound). ST_NOMEM. */
MUST_CHECK
enum status kube_quota_count_init(struct kube_quota_count *count, struct arena *arena,
                                  const struct json_node *quota);
/* Whether objects of the kind can use something that the quota limits. */
bool kube_quota_count_concerns(const struct kube_quota_count *count, const struct kube_kind *kind);
/* The objects that follow are of this kind. ST_NOMEM. */
MUST_CHECK
enum status kube_quota_count_kind(struct kube_quota_count *count, struct arena *arena,
                                  const struct kube_kind *kind, enum kube_quota_need *ret_need);
/* Adds one object; `scratch` is used only within the call. ST_NOMEM. */
MUST_CHECK
enum status kube_quota_count_object(struct kube_quota_count *count, struct arena *scratch,
                                    const struct kube_quota_object *object);
/* Adds so many objects, if the kind needs no more. */
void kube_quota_count_number(struct kube_quota_count *count, uint64_t number);

/* The new status, {"hard":…,"used":…}; NULL: the quota has it. ST_NOMEM. */
MUST_CHECK
enum status kube_quota_count_status(const struct kube_quota_count *count, struct arena *arena,
                                    struct json_node **ret_status);

#endif
