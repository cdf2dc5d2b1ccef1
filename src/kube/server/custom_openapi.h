/*
 * OpenAPI v3 of custom resources: their schemas as their definitions have them, with kind,
 * apiVersion and metadata put in. Made while it is sent, one kind after the other: what a group
 * defines in all may be long.
 */
#ifndef VIGIL_KUBE_SERVER_CUSTOM_OPENAPI_H
#define VIGIL_KUBE_SERVER_CUSTOM_OPENAPI_H

#include "codec/json/writer.h"
#include "kube/custom/kinds.h"

/* Members of the index: "apis/example.com/v1"; not those that built-in kinds have, too. */
void kube_custom_openapi_index(const struct kube_kinds *kinds, struct json_writer *w);

/* A document that is being read. One owner, on the thread of its kinds, which it counts. */
struct kube_custom_openapi;

/* "example.com/v1". ST_NOT_FOUND, ST_NOMEM. */
MUST_CHECK
enum status kube_custom_openapi_open(struct kube_kinds *kinds, struct slice api_version,
                                     struct kube_custom_openapi **ret_document);
void kube_custom_openapi_close(struct kube_custom_openapi *document); /* accepts NULL */

/* Writes the next bytes, at most room; *ret_len less than that: these were the last. ST_LIMIT,
 * ST_NOMEM. */
MUST_CHECK
enum status kube_custom_openapi_read(struct kube_custom_openapi *document, uint8_t *dst,
                                     size_t room, size_t *ret_len);

/* Instead: for the document of built-in kinds of the same group and version
 * (kube/schema/openapi.h), to which these are added. ctx: the document. */
MUST_CHECK
enum status kube_custom_openapi_write(void *ctx, bool schemas, struct json_writer *w,
                                      bool *ret_more);

/* Another one for another document, whether built-in kinds are in it or not; of the empty version:
 * for another index. Returns text. */
enum { KUBE_CUSTOM_HASH_BYTES = 32 };
const char *kube_custom_openapi_hash(const struct kube_kinds *kinds, struct slice api_version,
                                     char text[KUBE_CUSTOM_HASH_BYTES]);

#endif
