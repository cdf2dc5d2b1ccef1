/*
 * Objects in the versions of their managers, if a webhook converts them: changes of a custom
 * resource are compared in each version in which a manager has written (kube/merge/apply/apply.h).
 * The comparison stops at an object that is not known in its version; it is converted, and the
 * attempt begins again with what is known by then.
 *
 *     … make, own ─► not known ─► kube_convert_versions ─► parse ─► make, own …
 */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_MANAGED_VERSIONS_H
#define VIGIL_KUBE_HANDLERS_WRITE_MANAGED_VERSIONS_H

#include "kube/handlers/write/change.h"
#include "kube/merge/apply/apply_type.h"

/* Conversions for one write. More versions than this are known only to a hostile client. */
enum { KUBE_MANAGED_VERSIONS_MAX = 64 };

struct kube_managed_versions;

/*
 * An object in another version, "example.com/v2", which its definition has, in the arena, and the
 * type of that version. ST_AGAIN: it has to be converted first, and change->versions knows it;
 * ST_INVALID: that has failed; ST_LIMIT; ST_NOMEM.
 */
MUST_CHECK
enum status kube_managed_version(struct kube_change *change, struct arena *arena,
                                 const struct json_node *object, struct slice api_version,
                                 struct apply_type *ret_type, struct json_node **ret_object);

/* Whether a comparison has stopped, so that the step goes back (kube_change_convert). */
bool kube_managed_versions_wanted(const struct kube_change *change);
/* Returns false: a conversion has failed; the call's status says how. */
bool kube_managed_versions_fail(const struct kube_change *change);

/* Converts what is wanted. */
kube_step_fn kube_convert_versions;

#endif
