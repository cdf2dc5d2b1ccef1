/*
 * The defaults of built-in kinds: whatever Kubernetes decodes it completes, so that controllers
 * find every field that they rely on. An object is brought into the form in which Kubernetes would
 * store it:
 *
 *     {"image":"a","ports":[],"resources":{"limits":{"cpu":"1000m"}}}
 *         ─► {"image":"a","resources":{"limits":{"cpu":"1"}},"imagePullPolicy":"Always",…}
 *
 *   - values that Go's types lose are removed: null, and zero where it is omitted when empty;
 *   - quantities get their canonical form;
 *   - structs and values that Go always writes are added: "resources":{};
 *   - defaults are added: rows of a table that tools/kubegen-defaults.py observes on a real
 *     kube-apiserver (defaults_rows.inc), and functions where a default depends on other fields.
 *
 * It is one walk over the tree by the types of kube/types/schema. Values of unexpected types are
 * left as they are: the decoder has refused them before (kube/types/schema/strict.h).
 */
#ifndef VIGIL_KUBE_TYPES_DEFAULTS_DEFAULTS_H
#define VIGIL_KUBE_TYPES_DEFAULTS_DEFAULTS_H

#include "codec/json/tree.h"
#include "kube/types/kind.h"
#include "kube/types/status.h"

/*
 * Sets the fields that the client omitted and that Kubernetes sets for this type, in the version of
 * the kind. Custom resources and definitions are left as they are: they have rules of their own.
 * False: *status says why (no memory).
 */
MUST_CHECK
bool kube_default(struct arena *arena, const struct kube_kind *kind, struct json_node *object,
                  struct kube_status *status);

/*
 * The same for an object that was made from a stored one: members that have not changed ("spec")
 * are left as they are, because they were completed when they were written.
 */
MUST_CHECK
bool kube_default_changed(struct arena *arena, const struct kube_kind *kind,
                          const struct json_node *stored, struct json_node *object,
                          struct kube_status *status);

/* The same for conversions, which have no status. ST_NOMEM, ST_LIMIT. */
MUST_CHECK
enum status kube_default_tree(struct arena *arena, const struct kube_kind *kind,
                              struct json_node *object);

/* The same for one member of the object, which a subresource writes: "status". The rules of the
 * other members are not applied. */
MUST_CHECK
bool kube_default_member(struct arena *arena, const struct kube_kind *kind,
                         struct json_node *object, struct slice member, struct kube_status *status);

#endif
