/*
 * An object as the kube-apiserver has sent it, in JSON or in an envelope of protobuf
 * (kubeclient/data/protobuf.h). It is served as these bytes; this file finds what selectors need,
 * and replaces its resourceVersion for an event that shows an earlier state.
 */
#ifndef VIGIL_TIER_OBJECT_OBJECT_H
#define VIGIL_TIER_OBJECT_OBJECT_H

#include "base/buf.h"
#include "kube/types/kind.h"
#include "kube/types/object/object.h"
#include "tier/mirror/name.h"

/*
 * The object as selectors see it. JSON is parsed where it is. From protobuf a JSON object with the
 * name, the namespace, the labels and the scalar fields up to the second level is made in *scratch,
 * which covers every field that selectors know; the result refers to it. kind: the built-in kind,
 * or NULL, and then only metadata is found. ST_MALFORMED, ST_NOMEM.
 */
MUST_CHECK
enum status tier_object_view(enum tier_encoding encoding, const struct kube_kind *kind,
                             struct slice bytes, struct buf *scratch,
                             struct kube_object *ret_object);

/* The object without its kind and apiVersion: an item of a list in JSON of a built-in kind. What
 * does not begin with them is returned as it is, with an empty head; else the head is "{". */
struct slice tier_object_item(struct slice json, struct slice *ret_head);
/* The message in an envelope: an item of a list in protobuf. Empty: malformed. */
struct slice tier_object_message(struct slice envelope);

/* Appends the object with another resourceVersion, and otherwise the same bytes. ST_MALFORMED: it
 * has none. ST_NOMEM. */
MUST_CHECK
enum status tier_object_append_at(enum tier_encoding encoding, struct slice bytes, uint64_t version,
                                  struct buf *to);

#endif
