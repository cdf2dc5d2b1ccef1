/*
 * Conversion between Kubernetes' protobuf and JSON, for the kinds of the schema table:
 *
 *     "k8s\0" Unknown{ TypeMeta{apiVersion, kind}, raw: the message }
 *         ◄─►  {"kind":…,"apiVersion":…,…}
 *
 * Decoding gives the same JSON as Go's types: fields without omitempty are present even if they
 * were not sent ("status":{}), in Go's order. Unknown fields are skipped; of a repeated field the
 * last one counts, and a repeated message is merged. Encoding omits members that are absent, null
 * or not in the type.
 *
 * Limits: KUBE_PROTOBUF_DEPTH_MAX nested messages, and the memory of the arena: an empty item of
 * two bytes can become a kilobyte of members that are not omitted. Trees are those of
 * codec/json/tree.h. There is no shared state: any thread may call these functions.
 */
#ifndef VIGIL_KUBE_TYPES_SCHEMA_PROTOBUF_H
#define VIGIL_KUBE_TYPES_SCHEMA_PROTOBUF_H

#include "codec/json/tree.h"
#include "kube/types/schema/schema.h"

enum { KUBE_PROTOBUF_DEPTH_MAX = 64 };

/* Whether the bytes begin like such an object. */
bool kube_protobuf_is(struct slice bytes);

/*
 * Texts of the tree point into the bytes. ST_MALFORMED, ST_NOT_FOUND for a kind that is not in the
 * table, ST_LIMIT, ST_NOMEM, each with *error set.
 */
MUST_CHECK
enum status kube_protobuf_decode(struct arena *arena, struct slice bytes,
                                 struct json_node **ret_object, struct error *error);

/*
 * Appends the object, which has apiVersion and kind. ST_NOT_FOUND: they are not in the table.
 * ST_INVALID: a member has a wrong type. ST_LIMIT, ST_NOMEM. The arena is for temporary memory.
 */
MUST_CHECK
enum status kube_protobuf_encode(struct arena *arena, const struct json_node *object,
                                 struct buf *out, struct error *error);
/* Appends a frame of a watch: four bytes of length, then a WatchEvent with the object. */
MUST_CHECK
enum status kube_protobuf_encode_event(struct arena *arena, const char *type,
                                       const struct json_node *object, struct buf *out,
                                       struct error *error);
/* Appends one item of a list field, or a message: a part of a larger message. */
MUST_CHECK
enum status kube_protobuf_encode_field(struct arena *arena, const struct kube_field *field,
                                       const struct json_node *value, struct buf *out,
                                       struct error *error);
/* What precedes a message of that length, and what follows it. ST_NOMEM. */
MUST_CHECK
enum status kube_protobuf_encode_head(struct slice api_version, struct slice kind,
                                      size_t message_bytes, struct buf *out);
struct slice kube_protobuf_tail(void);

#endif
