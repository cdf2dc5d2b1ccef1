/*
 * Conversion between the stored and the served form of objects: custom resources, which are stored
 * in one version of their definition and pruned and defaulted when it has changed since, and kinds
 * that are stored in the form of another kind (kube/types/object/conversion.h). Objects of other
 * kinds stay as they are.
 *
 * Where a webhook converts custom resources, the caller waits for it first, if
 * kube_conversion_awaits says so (kube/call/call_conversion.h, conversion_batch.h). The functions
 * here get what it has answered, with revision 0.
 */
#ifndef VIGIL_KUBE_CALL_CONVERSION_H
#define VIGIL_KUBE_CALL_CONVERSION_H

#include "kube/call/call.h"
#include "kube/types/object/meta.h"

/* Whether objects of the kind may be stored in another form than they are served in. The functions
 * below are called only for these. */
static inline bool kube_conversion_concerns(const struct kube_kind *kind)
{
    return UNLIKELY(kind->flags & (KUBE_CUSTOM | KUBE_STORED_CONVERTED));
}

/* Whether its definition has a webhook, and whether, by what is known of all objects, some may have
 * to be converted by it to be read. */
bool kube_conversion_custom_has_webhook(const struct kube_kind *kind);
bool kube_conversion_custom_by_webhook(const struct kube_kind *kind);
bool kube_conversion_custom_awaits(const struct kube_kind *kind, struct slice json);
static inline bool kube_conversion_has_webhook(const struct kube_kind *kind)
{
    return UNLIKELY(kind->flags & KUBE_CUSTOM) && kube_conversion_custom_has_webhook(kind);
}
static inline bool kube_conversion_by_webhook(const struct kube_kind *kind)
{
    return UNLIKELY(kind->flags & KUBE_CUSTOM) && kube_conversion_custom_by_webhook(kind);
}
/* Whether this one has to be: it is of the kind, and in another version. */
static inline bool kube_conversion_awaits(const struct kube_kind *kind, struct slice json)
{
    return UNLIKELY(kind->flags & KUBE_CUSTOM) && kube_conversion_custom_awaits(kind, json);
}
/* There is such an object although status.storedVersions says otherwise: from now on it is not
 * believed. On the thread of the kind. Returns false: *status says that the client may try again.
 */
bool kube_conversion_distrust(const struct kube_kind *kind, struct kube_status *status);

/* The object names another kind than that of the path: a Scale, or the options of a delete. */
bool kube_conversion_is_foreign(const struct kube_kind *kind, struct json_node *object);

/* Converts an object in place to its stored form. False: call->status says why. */
MUST_CHECK
bool kube_conversion_to_stored(struct kube_call *call, struct arena *arena,
                               struct json_node *object);

/* Converts a stored object in place to the version of the call. False: call->status says why. */
MUST_CHECK
bool kube_conversion_to_served(struct kube_call *call, struct arena *arena,
                               struct json_node *object, int64_t revision);
/* The same for its bytes; the result is in the call's arena. */
MUST_CHECK
bool kube_conversion_bytes(struct kube_call *call, struct slice json, int64_t revision,
                           struct slice *ret_json);
/* Whether an object of this revision is served as it is stored, unless a webhook converts it. */
bool kube_conversion_is_plain_at(const struct kube_kind *kind, int64_t revision);
/* The same for every kind. */
static inline bool kube_conversion_is_plain(const struct kube_kind *kind, int64_t revision)
{
    return !kube_conversion_concerns(kind) || kube_conversion_is_plain_at(kind, revision);
}
/*
 * Without a call, for many objects: *ret_json may be in `to`, which is overwritten. ST_MALFORMED:
 * not an object, or one for which a webhook is needed; ST_LIMIT: too large to be converted;
 * ST_NOMEM.
 */
MUST_CHECK
enum status kube_conversion_json(const struct kube_kind *kind, struct slice json, int64_t revision,
                                 struct buf *to, struct slice *ret_json);

#endif
