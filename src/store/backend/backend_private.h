/*
 * The interface between backend.c and its two implementations. backend.c keeps the meta numbers in
 * memory and checks that changes are made in a transaction, so that the implementations need not.
 */
#ifndef VIGIL_STORE_BACKEND_BACKEND_PRIVATE_H
#define VIGIL_STORE_BACKEND_BACKEND_PRIVATE_H

#include "base/buf.h"
#include "store/backend/backend.h"

struct backend_ops {
    void (*close)(struct backend *backend);
    enum status (*begin)(struct backend *backend);
    enum status (*commit)(struct backend *backend); /* always ends the transaction */
    void (*abort)(struct backend *backend);
    enum status (*meta_put)(struct backend *backend, enum backend_meta name, int64_t value);
    enum status (*version_get)(struct backend *backend, struct backend_version_id id,
                               struct backend_version *ret_version);
    enum status (*version_put)(struct backend *backend, const struct backend_version *version);
    enum status (*version_delete)(struct backend *backend, struct backend_version_id id);
    enum status (*versions_scan)(struct backend *backend, struct backend_version_id from,
                                 backend_version_fn fn, void *ctx);
    enum status (*segment_put)(struct backend *backend, const struct backend_segment *segment);
    enum status (*segment_delete)(struct backend *backend, uint64_t id);
    enum status (*segments_scan)(struct backend *backend, backend_segment_fn fn, void *ctx);
    enum status (*row_put)(struct backend *backend, const struct row *row);
    /* ST_NOT_FOUND. The value is valid until the next change. */
    enum status (*row_get)(struct backend *backend, const struct row *row, struct slice *ret_value);
    /* There is no version after this one. Within a transaction. */
    struct backend_version_id (*version_bound)(struct backend *backend);
    enum status (*rows_scan)(struct backend *backend, row_fn fn, void *ctx);
};

struct backend {
    const struct backend_ops *ops;
    struct backend_numbers numbers;   /* with the changes of the current transaction */
    struct backend_numbers committed; /* restored by an abort; set at open */
    bool changing;                    /* between begin and commit or abort */
    struct buf encoded;               /* scratch: a version to be added to the sum */
    char error_text[384];
};

/* The name under which a number is stored. */
const char *backend_meta_name(enum backend_meta name);

/* The stored form of a version: small numbers take few bytes, and revisions are distances. */
MUST_CHECK
enum status backend_version_encode(const struct backend_version *version, struct buf *to);
/* ST_DAMAGED if the bytes are not a version. The key refers to bytes. */
MUST_CHECK
enum status backend_version_decode(struct backend_version_id id, struct slice bytes,
                                   struct backend_version *ret_version);

/* Removes a checkpoint of LMDB and its directory, also if it was not finished. */
void backend_lmdb_remove(const char *dir);

#endif
