/*
 * OpenAPI of the built-in kinds, generated from the schema table while it is sent, so that a
 * document of any size needs a few kilobytes of memory. It contains what kubectl needs: the
 * parameters of a PATCH, the members of each kind with their types, and how lists are merged.
 * Descriptions are short ones of our own.
 *
 *     /openapi/v2                 everything, as JSON or protobuf
 *     /openapi/v3                 the list of documents
 *     /openapi/v3/apis/apps/v1    paths and schemas of one group and version
 */
#ifndef VIGIL_KUBE_TYPES_SCHEMA_OPENAPI_H
#define VIGIL_KUBE_TYPES_SCHEMA_OPENAPI_H

#include "base/buf.h"
#include "base/slice.h"
#include "codec/json/writer.h"
#include "kube/types/kind.h"
#include "kube/types/schema/openapi_form.h"

enum { KUBE_OPENAPI_HASH_BYTES = 32 };

/*
 * Identifies the schema table and the form of the documents. Hexadecimal; constant while the server
 * runs.
 */
const char *kube_openapi_hash(void);

/*
 * Kinds of other sources (custom resources), which may have the same group and version as built-in
 * kinds.
 */
struct kube_openapi_others {
    /* The hash of a document that may have kinds of both; text may be used for the result. */
    const char *(*hash)(void *ctx, struct slice api_version, char text[KUBE_OPENAPI_HASH_BYTES]);
    /* Writes rows of the index for documents without built-in kinds. */
    void (*write_rows)(void *ctx, struct json_writer *w);
    void *ctx;
};

/* {"paths":{"api/v1":{"serverRelativeURL":"/openapi/v3/api/v1?hash=…"},…}}; others may be NULL. */
MUST_CHECK
enum status kube_openapi_index(struct buf *out, const struct kube_openapi_others *others);

/* A document that is being sent. One owner, one thread. */
struct kube_openapi;

/* "v1", "apps/v1". ST_NOT_FOUND, ST_NOMEM. */
MUST_CHECK
enum status kube_openapi_open(struct slice api_version, struct kube_openapi **ret_document);
/* All kinds, in the form of version 2; as protobuf it is one of gnostic's documents. ST_NOMEM. */
MUST_CHECK
enum status kube_openapi_open_v2(bool protobuf, struct kube_openapi **ret_document);
void kube_openapi_close(struct kube_openapi *document);
DEFINE_CLEANUP(struct kube_openapi *, kube_openapi_close)

/*
 * Adds kinds of other sources, before the first byte is read. Each call of `write` adds one of
 * them, first all paths, then all schemas; *ret_more false: none was left.
 */
void kube_openapi_add_others(struct kube_openapi *document,
                             enum status (*write)(void *ctx, bool schemas, struct json_writer *w,
                                                  bool *ret_more),
                             void *ctx);

/* Writes the next bytes, at most room; *ret_len 0: end of the document. ST_NOMEM. */
MUST_CHECK
enum status kube_openapi_read(struct kube_openapi *document, uint8_t *dst, size_t room,
                              size_t *ret_len);

/* -- For documents of other kinds -- */

/* Writes the operations of a kind: members of "paths". */
void kube_openapi_write_paths(struct json_writer *w, const struct kube_kind *kind,
                              enum kube_openapi_form form);
/* Writes the schemas of the metadata of objects and of lists, and of all types they contain:
 * members of "schemas". ST_NOMEM. */
MUST_CHECK
enum status kube_openapi_write_meta(struct json_writer *w);
#define KUBE_OPENAPI_META "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
#define KUBE_OPENAPI_LIST_META "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"

#endif
