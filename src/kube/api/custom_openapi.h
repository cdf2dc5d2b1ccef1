/*
 * OpenAPI v3 of custom resources: their schemas as their definitions have them, with kind,
 * apiVersion and metadata put in. Made when asked for.
 */
#ifndef VIGIL_KUBE_API_CUSTOM_OPENAPI_H
#define VIGIL_KUBE_API_CUSTOM_OPENAPI_H

#include "codec/json/writer.h"
#include "kube/custom/kinds.h"

/* What one document may take. */
enum { KUBE_CUSTOM_OPENAPI_BYTES_MAX = 64 << 20 };

/* Members of the index: "apis/example.com/v1". */
void kube_custom_openapi_index(const struct kube_kinds *kinds, struct json_writer *w);

/* "example.com/v1". ST_NOT_FOUND, ST_LIMIT, ST_NOMEM. */
MUST_CHECK
enum status kube_custom_openapi(const struct kube_kinds *kinds, struct slice api_version,
                                struct buf *to);

/* Another one for another document; of the empty version: for another index. Returns text. */
enum { KUBE_CUSTOM_HASH_BYTES = 32 };
const char *kube_custom_openapi_hash(const struct kube_kinds *kinds, struct slice api_version,
                                     char text[KUBE_CUSTOM_HASH_BYTES]);

#endif
