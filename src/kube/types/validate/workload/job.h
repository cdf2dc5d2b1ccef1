/* Parts of jobs: job_policy.c and schedule.c, used by batch.c. */
#ifndef VIGIL_KUBE_TYPES_VALIDATE_WORKLOAD_JOB_H
#define VIGIL_KUBE_TYPES_VALIDATE_WORKLOAD_JOB_H

#include "kube/types/validate/check.h"

/* The paths are those of the policies, the specs those of the job. */
void rule_failure_policy(struct check *c, const struct at *at, const struct json_node *spec);
void rule_success_policy(struct check *c, const struct at *at, const struct json_node *spec);

/* Five fields or "@hourly"; `was` is the schedule before an update. */
void rule_schedule(struct check *c, const struct at *at, const struct json_node *spec,
                   const struct json_node *old);
void rule_time_zone(struct check *c, const struct at *at, const struct json_node *zone);

#endif
