/*
 * The checkpoint: the contents of the log up to some index, so that a start need not read it all.
 * Four tables (store/backend/tables.h), changed in transactions that are on disk completely or not
 * at all.
 *
 *   meta       name → number         index and revision of the checkpoint, ids, sizes …
 *   versions   revision, sub → what the index has of that version, and its key
 *   segments   id → what the cleaner needs to know about a segment of the log
 *   rows       table, key → value    leases, alarms … (store/record/row.h)
 *
 * On a disk it is an LMDB environment (backend_lmdb.c); backend_memory.c is the counterpart for the
 * simulator. Used by one thread at a time: the one that opens the store, then the keeper's.
 */
#ifndef VIGIL_STORE_BACKEND_BACKEND_H
#define VIGIL_STORE_BACKEND_BACKEND_H

#include "base/error.h"
#include "store/backend/tables.h"

struct backend;
struct change_head;

/*
 * The estimated bytes of pages that a transaction changes with a version whose revision has this
 * distance from the previous one. The pages are in memory until the commit.
 */
size_t backend_page_bytes(size_t key_bytes, int64_t distance);

/*
 * Opens or creates it. The caller syncs the directory, in which a new file has its name. map_bytes
 * limits its size forever; it is address space, not memory.
 */
MUST_CHECK
enum status backend_lmdb_open(const char *dir, size_t map_bytes, struct backend **ret_backend,
                              struct error *ret_error);
/*
 * Reads everything and verifies the sums, which every commit updates: LMDB has no checksums, so a
 * bit that was flipped on the disk would go unnoticed. A checkpoint that was made without sums gets
 * them with the next commit. To be called once, before the first change.
 */
MUST_CHECK
enum status backend_verify(struct backend *backend);
/* Drops a transaction in progress. Accepts NULL. */
void backend_close(struct backend *backend);
DEFINE_CLEANUP(struct backend *, backend_close)

/* The version that a change at this location of the log makes. Its key refers to the change. */
struct backend_version backend_version_of(const struct change_head *change, uint64_t loc);

/* -- Reading: what was committed; within a transaction, with its own changes -- */

int64_t backend_meta_get(struct backend *backend, enum backend_meta name, int64_t absent);
/* ST_NOT_FOUND. The key is valid until the next change. */
MUST_CHECK
enum status backend_version_get(struct backend *backend, struct backend_version_id id,
                                struct backend_version *ret_version);
/*
 * Calls fn for the versions from an id on, in order, until it returns anything but ST_OK; ST_END
 * ends the scan successfully. fn must not change anything.
 */
typedef enum status (*backend_version_fn)(void *ctx, const struct backend_version *version);
MUST_CHECK
enum status backend_versions_scan(struct backend *backend, struct backend_version_id from,
                                  backend_version_fn fn, void *ctx);
/* backend_verify that also calls fn with every version, before it is known whether the sums are
 * right. A status other than ST_OK ends it. The keys remain readable until the next change. */
MUST_CHECK
enum status backend_verify_and_scan(struct backend *backend, backend_version_fn fn, void *ctx);
typedef enum status (*backend_segment_fn)(void *ctx, const struct backend_segment *segment);
MUST_CHECK
enum status backend_segments_scan(struct backend *backend, backend_segment_fn fn, void *ctx);

/* By table, then by key; fn as above. */
MUST_CHECK
enum status backend_rows_scan(struct backend *backend, row_fn fn, void *ctx);

/* -- Changing: between begin and commit. After a failure the transaction must be aborted. -- */

MUST_CHECK
enum status backend_begin(struct backend *backend);
MUST_CHECK
enum status backend_meta_put(struct backend *backend, enum backend_meta name, int64_t value);
/* Fastest in the order of ids; replaces the version with the same id. */
MUST_CHECK
enum status backend_version_put(struct backend *backend, const struct backend_version *version);
MUST_CHECK
enum status backend_version_delete(struct backend *backend, struct backend_version_id id);
MUST_CHECK
enum status backend_segment_put(struct backend *backend, const struct backend_segment *segment);
MUST_CHECK
enum status backend_segment_delete(struct backend *backend, uint64_t id);
/* Replaces or deletes the row with that key. */
MUST_CHECK
enum status backend_row_put(struct backend *backend, const struct row *row);
/* Durable when it returns ST_OK. */
MUST_CHECK
enum status backend_commit(struct backend *backend);
void backend_abort(struct backend *backend); /* harmless without a transaction */

/* Why the last call failed, for a log line; "" if none did. */
const char *backend_error_text(const struct backend *backend);

#endif
