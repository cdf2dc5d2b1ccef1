/*
 * Answers in other formats, which are made from JSON: protobuf for the kinds of the schema table
 * (kube/types/schema/protobuf.h) and for metadata, YAML for everything.
 */
#ifndef VIGIL_KUBE_CALL_FORMAT_H
#define VIGIL_KUBE_CALL_FORMAT_H

#include "base/buf.h"
#include "kube/request/accept.h"
#include "kube/types/kind.h"

struct kube_shaping;
struct kube_status;

/*
 * Appends an object or list. ST_NOT_FOUND: its kind is not in the table; ST_INVALID: a member is
 * not of its type; ST_MALFORMED, ST_LIMIT, ST_NOMEM.
 */
MUST_CHECK
enum status kube_format_write(enum kube_format format, struct slice json, struct buf *to);

/* Appends a frame of a watch in protobuf; type: "ADDED". The same statuses. */
MUST_CHECK
enum status kube_format_event(const char *type, struct slice object, struct buf *to);

/* The same for the ERROR event that ends a watch, and for a bookmark (kube_shape_bookmark): in
 * protobuf or in JSON. */
MUST_CHECK
enum status kube_format_error(const struct kube_status *status, bool protobuf, struct buf *to);
MUST_CHECK
enum status kube_format_bookmark(const struct kube_shaping *shaping, int64_t revision,
                                 bool initial_end, bool columns, bool protobuf, struct buf *to);

/*
 * A list in protobuf, whose head has the length of the whole list: its fields are made first, then
 * the head and the tail. field: of the list's message, "metadata" or "items".
 */
MUST_CHECK
enum status kube_format_list_field(const struct kube_kind *kind, enum kube_shape shape,
                                   const char *field, struct slice json, struct buf *to);
MUST_CHECK
enum status kube_format_list_head(const struct kube_kind *kind, enum kube_shape shape,
                                  size_t fields_bytes, struct buf *to);
struct slice kube_format_list_tail(void);

#endif
