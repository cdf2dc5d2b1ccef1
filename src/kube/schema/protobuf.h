/*
 * Kubernetes' protobuf and JSON, one from the other, for the kinds of the schema table:
 *
 *     "k8s\0" Unknown{ TypeMeta{apiVersion, kind}, raw: the message }  ◄─►
 * {"kind":…,"apiVersion":…,…}
 *
 * Decoding gives the JSON that Go's types give: what they do not omit is there even when it was not
 * sent ("status":{}), in their order. Unknown fields are passed over, of a field that comes twice
 * the last counts. Encoding leaves out what is absent, null or not in the type.
 *
 * Bounds: messages inside each other at KUBE_PROTOBUF_DEPTH_MAX; memory at the arena's limit: an
 * empty item of two bytes can stand for a kilobyte of members that are not omitted. Trees are those
 * of codec/json/tree.h. Nothing is shared: any thread.
 */
#ifndef VIGIL_KUBE_SCHEMA_PROTOBUF_H
#define VIGIL_KUBE_SCHEMA_PROTOBUF_H

#include "codec/json/tree.h"
#include "kube/schema/schema.h"

enum { KUBE_PROTOBUF_DEPTH_MAX = 64 };

/* True: the bytes begin as such an object does. */
bool kube_protobuf_is(struct slice bytes);

/*
 * Texts of the tree lie in the bytes. ST_MALFORMED, ST_NOT_FOUND for a kind that is not in the
 * table, ST_LIMIT, ST_NOMEM; the error says why.
 */
MUST_CHECK
enum status kube_protobuf_decode(struct arena *arena, struct slice bytes,
                                 struct json_node **ret_object, struct error *error);

/*
 * Appends the object, which has apiVersion and kind. ST_NOT_FOUND: they are not in the table.
 * ST_INVALID: a member is not of its type. ST_LIMIT, ST_NOMEM. The arena is for what is made on the
 * way.
 */
MUST_CHECK
enum status kube_protobuf_encode(struct arena *arena, const struct json_node *object,
                                 struct buf *out, struct error *error);
/* A frame of a watch: four bytes of length, then a WatchEvent around the object. */
MUST_CHECK
enum status kube_protobuf_encode_event(struct arena *arena, const char *type,
                                       const struct json_node *object, struct buf *out,
                                       struct error *error);
/* One item of a list field, or a message: a part of something larger. */
MUST_CHECK
enum status kube_protobuf_encode_field(struct arena *arena, const struct kube_field *field,
                                       const struct json_node *value, struct buf *out,
                                       struct error *error);
/* What stands before a message of that length, and after it. ST_NOMEM. */
MUST_CHECK
enum status kube_protobuf_encode_head(struct slice api_version, struct slice kind,
                                      size_t message_bytes, struct buf *out);
struct slice kube_protobuf_tail(void);

#endif
