/*
 * Parts of an OpenAPI v2 document as protobuf, in the form of gnostic's openapi.v2.Document, which
 * kubectl reads. A part is a document of its own: concatenated, they are merged by every decoder.
 */
#ifndef VIGIL_KUBE_TYPES_SCHEMA_GNOSTIC_H
#define VIGIL_KUBE_TYPES_SCHEMA_GNOSTIC_H

#include "base/buf.h"
#include "codec/json/tree.h"

/* Members of "paths" or of "definitions", as one JSON object. Members that gnostic does not know
 * are left out. ST_NOMEM. */
MUST_CHECK
enum status gnostic_write_paths(const struct json_node *paths, struct buf *to);
MUST_CHECK
enum status gnostic_write_definitions(const struct json_node *definitions, struct buf *to);
/* The version of the format, and of the server. ST_NOMEM. */
MUST_CHECK
enum status gnostic_write_head(const char *title, const char *version, struct buf *to);

#endif
