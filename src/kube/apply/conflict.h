/* Conflicts of an apply as Kubernetes tells them: 409, with a cause for each field. */
#ifndef VIGIL_KUBE_APPLY_CONFLICT_H
#define VIGIL_KUBE_APPLY_CONFLICT_H

#include "kube/apply/apply.h"
#include "kube/status/status.h"

/* Fields that are told; of more, only how many there are. */
enum { APPLY_CONFLICTS_TOLD_MAX = 1000 };

/* Without the fields that are in `allowed`. ST_NOMEM. */
MUST_CHECK
enum status apply_conflicts_without(struct arena *arena, struct apply_conflicts *conflicts,
                                    const struct field_set *allowed);

/* Returns false. What is told lies in the arena, which outlives the status. */
bool kube_fail_apply_conflict(struct kube_status *status, struct arena *arena,
                              const struct apply_conflicts *conflicts);

#endif
