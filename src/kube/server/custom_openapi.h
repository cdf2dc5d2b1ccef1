/*
 * OpenAPI of custom resources: the schemas of their definitions, with kind, apiVersion and
 * metadata added. Made while it is sent, one kind after another, because the document of a group
 * may be long.
 */
#ifndef VIGIL_KUBE_SERVER_CUSTOM_OPENAPI_H
#define VIGIL_KUBE_SERVER_CUSTOM_OPENAPI_H

#include "codec/json/writer.h"
#include "kube/custom/kinds.h"

/* Writes members of the index: "apis/example.com/v1"; without those of built-in kinds. */
void kube_custom_openapi_index(struct kube_kinds *kinds, struct json_writer *w);

/* A document that is being read. One owner, on the thread of its kinds, to which it has a
 * reference. */
struct kube_custom_openapi;

/* "example.com/v1". ST_NOT_FOUND, ST_NOMEM. */
MUST_CHECK
enum status kube_custom_openapi_open(struct kube_kinds *kinds, struct slice api_version,
                                     struct kube_custom_openapi **ret_document);
/* All kinds in the form of version 2, only for kube_custom_openapi_write. */
struct kube_custom_openapi *kube_custom_openapi_open_v2(struct kube_kinds *kinds);
void kube_custom_openapi_close(struct kube_custom_openapi *document); /* accepts NULL */

/* Writes the next bytes, at most room; *ret_len < room: these were the last. ST_LIMIT,
 * ST_NOMEM. */
MUST_CHECK
enum status kube_custom_openapi_read(struct kube_custom_openapi *document, uint8_t *dst,
                                     size_t room, size_t *ret_len);

/* Instead of kube_custom_openapi_read: adds the kinds to the document of the built-in kinds of the
 * same group and version (kube/types/schema/openapi.h). ctx: the document. */
MUST_CHECK
enum status kube_custom_openapi_write(void *ctx, bool schemas, struct json_writer *w,
                                      bool *ret_more);

/* A hash of the document, with or without built-in kinds; with an empty version, of the index.
 * Returns text. */
enum { KUBE_CUSTOM_HASH_BYTES = 32 };
const char *kube_custom_openapi_hash(struct kube_kinds *kinds, struct slice api_version,
                                     char text[KUBE_CUSTOM_HASH_BYTES]);

#endif
