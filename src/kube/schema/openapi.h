/*
 * OpenAPI v3 of the built-in kinds, made from the schema table while it is sent: a document of any
 * size holds a few kilobytes. It says what kubectl asks it: which parameters a PATCH takes, the
 * members of each kind and their types, and how lists are merged. There are no descriptions.
 *
 *     /openapi/v3                 which documents there are
 *     /openapi/v3/apis/apps/v1    paths and schemas of one group and version
 */
#ifndef VIGIL_KUBE_SCHEMA_OPENAPI_H
#define VIGIL_KUBE_SCHEMA_OPENAPI_H

#include "base/buf.h"
#include "base/slice.h"
#include "codec/json/writer.h"
#include "kube/resource/kind.h"

enum { KUBE_OPENAPI_HASH_BYTES = 32 };

/* Another table or another way to write it has another. Hexadecimal; never changes while we run. */
const char *kube_openapi_hash(void);

/* Kinds of others, which may be of the same group and version as built-in ones. */
struct kube_openapi_others {
    /* The hash of a document that may have kinds of both; text may be used for it. */
    const char *(*hash)(void *ctx, struct slice api_version, char text[KUBE_OPENAPI_HASH_BYTES]);
    /* Rows of the index for documents that have none that are built in. */
    void (*write_rows)(void *ctx, struct json_writer *w);
    void *ctx;
};

/* {"paths":{"api/v1":{"serverRelativeURL":"/openapi/v3/api/v1?hash=…"},…}}; others may be NULL. */
MUST_CHECK
enum status kube_openapi_index(struct buf *out, const struct kube_openapi_others *others);

/* A document that is being read. One owner, one thread. */
struct kube_openapi;

/* "v1", "apps/v1". ST_NOT_FOUND, ST_NOMEM. */
MUST_CHECK
enum status kube_openapi_open(struct slice api_version, struct kube_openapi **ret_document);
void kube_openapi_close(struct kube_openapi *document);
DEFINE_CLEANUP(struct kube_openapi *, kube_openapi_close)

/* Before the first byte: adds kinds of others. `write` adds one of them, first their paths, then
 * their schemas; *ret_more false: there was none left. */
void kube_openapi_add_others(struct kube_openapi *document,
                             enum status (*write)(void *ctx, bool schemas, struct json_writer *w,
                                                  bool *ret_more),
                             void *ctx);

/* Writes the next bytes, at most room; *ret_len 0: that was all. ST_NOMEM. */
MUST_CHECK
enum status kube_openapi_read(struct kube_openapi *document, uint8_t *dst, size_t room,
                              size_t *ret_len);

/* -- For documents of other kinds -- */

/* What can be done with it: members of "paths". */
void kube_openapi_write_paths(struct json_writer *w, const struct kube_kind *kind);
/* The schema of metadata and what that is made of: members of "schemas". ST_NOMEM. */
MUST_CHECK
enum status kube_openapi_write_meta(struct json_writer *w);
#define KUBE_OPENAPI_META "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

#endif
