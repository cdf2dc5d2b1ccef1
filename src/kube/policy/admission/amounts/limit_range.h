/*
 * LimitRanger: the limit ranges of a namespace give containers the requests and limits that they do
 * not have, and bound those of containers, pods and persistent volume claims. The annotation
 * kubernetes.io/limit-ranger of a pod says what was set.
 *
 * Pure functions of one limit range and one object, in the arena of the attempt. The texts are
 * Kubernetes', which orders resources at random; here they are in the order of the limit range.
 */
#ifndef VIGIL_KUBE_POLICY_ADMISSION_AMOUNTS_LIMIT_RANGE_H
#define VIGIL_KUBE_POLICY_ADMISSION_AMOUNTS_LIMIT_RANGE_H

#include "kube/policy/admission/plugins/plugin.h"

enum {
    KUBE_LIMIT_RANGES_MAX = 32,        /* in a namespace */
    KUBE_LIMIT_RANGE_ITEMS_MAX = 32,   /* in spec.limits */
    KUBE_LIMIT_RANGE_AMOUNTS_MAX = 64, /* resources in min, max, … of an item */
    KUBE_LIMIT_RANGE_ERRORS_MAX = 64,  /* shown */
};

/* Whether its numbers of items and resources are within the limits. */
bool kube_limit_range_is_sound(const struct json_node *range);

/* Gives the containers of a pod what they do not have. ST_NOMEM, ST_LIMIT. */
MUST_CHECK
enum status kube_limit_range_default(struct arena *arena, const struct json_node *range,
                                     struct json_node *pod);

/* *ret_why: what is wrong with the object; empty: nothing. ST_NOMEM. */
MUST_CHECK
enum status kube_limit_range_check_pod(struct arena *arena, const struct json_node *range,
                                       const struct json_node *pod, struct slice *ret_why);
MUST_CHECK
enum status kube_limit_range_check_claim(struct arena *arena, const struct json_node *range,
                                         const struct json_node *claim, struct slice *ret_why);

extern const struct kube_admission_plugin kube_limit_ranger;
extern const struct kube_fact_row kube_limit_ranges;

#endif
