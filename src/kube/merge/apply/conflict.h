/* The conflicts of an apply as Kubernetes reports them: 409, with a cause for each field. */
#ifndef VIGIL_KUBE_MERGE_APPLY_CONFLICT_H
#define VIGIL_KUBE_MERGE_APPLY_CONFLICT_H

#include "kube/merge/apply/apply.h"
#include "kube/types/status.h"

/* Number of fields that are listed; for more, the message has only the count. */
enum { APPLY_CONFLICTS_LISTED_MAX = 1000 };

/* Removes the fields in `allowed` from the conflicts. ST_NOMEM. */
MUST_CHECK
enum status apply_conflicts_without(struct arena *arena, struct apply_conflicts *conflicts,
                                    const struct field_set *allowed);

/* Returns false. The texts are in the arena, which must outlive the status. */
bool kube_fail_apply_conflict(struct kube_status *status, struct arena *arena,
                              const struct apply_conflicts *conflicts);

#endif
