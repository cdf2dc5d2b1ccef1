/*
 * Objects whose kind is a custom resource: what is done with them besides what is done with all.
 * For every other kind each of these does nothing and returns true, but that converted kinds
 * (kube/object/conversion.h) are stored and shown here, too. False: call->status says why.
 */
#ifndef VIGIL_KUBE_API_CUSTOM_H
#define VIGIL_KUBE_API_CUSTOM_H

#include "kube/api/call.h"
#include "kube/object/meta.h"

/* -- Writing -- */

/* What came in: what its schema has not goes and is told (kube/api/body.h). */
MUST_CHECK
bool kube_custom_prune(struct kube_call *call, struct json_node *object, struct buf *told);
/* What is missing and has a default. */
MUST_CHECK
bool kube_custom_default(struct kube_call *call, struct arena *arena, struct json_node *object);
/* It is as its schema says. old NULL: it is new. What was wrong before and has not changed may stay
 * so, as in Kubernetes. */
MUST_CHECK
bool kube_custom_validate(struct kube_call *call, struct arena *arena,
                          const struct json_node *object, const struct json_node *old,
                          struct slice name);
/* In the version that is stored. */
MUST_CHECK
bool kube_custom_store(struct kube_call *call, struct arena *arena, struct json_node *object);
/* A write holds only while the definition is the one it was checked by. */
MUST_CHECK
bool kube_custom_guard(struct kube_call *call);
/* The definition has changed since: answers so. */
void kube_custom_fail_changed(struct kube_call *call);

/* -- Reading -- */

/* A stored object as this version shows it: in a tree, changed in place. */
MUST_CHECK
bool kube_custom_show(struct kube_call *call, struct arena *arena, struct json_node *object,
                      int64_t revision);
/* The same with its bytes, in the call's arena. */
MUST_CHECK
bool kube_custom_see(struct kube_call *call, struct slice json, int64_t revision,
                     struct slice *ret_json);
/* It is shown as it is stored. */
bool kube_custom_is_plain(const struct kube_kind *kind, int64_t revision);
/*
 * The same for who looks at many: *ret_json may lie in `to`, which is used again. ST_MALFORMED: it
 * is no object; ST_LIMIT: too large to be changed; ST_NOMEM.
 */
MUST_CHECK
enum status kube_custom_convert(const struct kube_kind *kind, struct slice json, int64_t revision,
                                struct buf *to, struct slice *ret_json);

#endif
