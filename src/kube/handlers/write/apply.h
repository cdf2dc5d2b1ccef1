/*
 * The ownership of fields in writes (kube/merge/apply/): a PATCH that applies a configuration, and
 * the effect of other writes on the managedFields of objects that have some. Whether objects have
 * some from their create on, or from the first apply on, is a setting; those without cost nothing.
 * Functions return false with call->status set.
 */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_APPLY_H
#define VIGIL_KUBE_HANDLERS_WRITE_APPLY_H

#include "kube/handlers/write/change.h"

/* Merges the configuration into the stored object (with its resourceVersion; NULL: it does not
 * exist) and sets its managedFields. The result is in meta's arena. */
MUST_CHECK
bool kube_apply(const struct kube_meta *meta, struct kube_call *call, struct json_node *stored,
                const struct json_node *config, struct json_node **ret_object);

/*
 * Sets the managedFields of an object that another write changes: those that the client sent or
 * that are stored, with the changed fields owned by the client. `sent` is the object that the
 * client wants, `object` the one that is written.
 */
MUST_CHECK
bool kube_apply_track(const struct kube_meta *meta, struct kube_call *call,
                      const struct json_node *stored, const struct json_node *sent,
                      struct json_node *object);

/* Sets the managedFields of a new object, which the client owns, or removes them: without
 * config->owns_new nothing has an owner before the first apply. */
MUST_CHECK
bool kube_apply_own_new(const struct kube_meta *meta, struct kube_call *call,
                        struct json_node *object);

/* Removes the managedFields. */
void kube_apply_disown(struct json_node *object);

/* After mutating admission: managedFields that are not valid are again those before it, with a
 * warning, and others are as it has left them. */
MUST_CHECK
bool kube_apply_keep_valid(const struct kube_meta *meta, struct kube_call *call,
                           const struct json_node *before, struct json_node *object);

/* If only times in managedFields differ, the stored ones are kept. */
MUST_CHECK
bool kube_apply_keep_times(const struct kube_meta *meta, const struct json_node *stored,
                           struct json_node *object);

#endif
