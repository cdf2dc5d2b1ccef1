/*
 * The checkpoint: what the log meant up to some index, so that a start need not read it all. Four
 * tables, changed in transactions that are wholly on disk or not at all.
 *
 *   meta       name → number         index and revision of the checkpoint, ids, sizes …
 *   versions   revision, sub → what the index keeps of that version, and its key
 *   segments   id → what the cleaner knows of a segment of the log
 *   rows       table, key → value    leases, alarms … (store/row.h)
 *
 * On a disk it is an LMDB environment (backend_lmdb.c); backend_memory.c is its twin for the
 * simulator. One thread at a time: the keeper's, and the opening one before it.
 */
#ifndef VIGIL_STORE_BACKEND_BACKEND_H
#define VIGIL_STORE_BACKEND_BACKEND_H

#include "base/error.h"
#include "store/backend/tables.h"

struct backend;

/*
 * About how many bytes of pages, which are in memory until the commit, a transaction changes with a
 * version when the version it changed before is so many revisions away.
 */
size_t backend_page_bytes(size_t key_bytes, int64_t distance);

/* Opens or makes it. map_bytes bounds how large it may ever be; address space, not memory. */
MUST_CHECK
enum status backend_lmdb_open(const char *dir, size_t map_bytes, struct backend **ret_backend,
                              struct error *ret_error);
/*
 * Reads all of it and holds it to its sums, which every commit brings up to date: LMDB has no
 * checksums, so a bit that was flipped on the disk would be believed. One that was made before
 * there were sums gets them with the next commit. To be called once, before the first change.
 */
MUST_CHECK
enum status backend_verify(struct backend *backend);
/* Closing drops a transaction under way. Accepts NULL. */
void backend_close(struct backend *backend);
DEFINE_CLEANUP(struct backend *, backend_close)

/* -- Reading: what was committed; inside a transaction, with its own changes -- */

int64_t backend_meta_get(struct backend *backend, enum backend_meta name, int64_t absent);
/* ST_NOT_FOUND. The key lies in the backend until the next change. */
MUST_CHECK
enum status backend_version_get(struct backend *backend, struct backend_version_id id,
                                struct backend_version *ret_version);
/*
 * Versions from an id on, in order, until fn returns something else than ST_OK; ST_END ends the
 * scan well. fn must not change anything.
 */
typedef enum status (*backend_version_fn)(void *ctx, const struct backend_version *version);
MUST_CHECK
enum status backend_versions_scan(struct backend *backend, struct backend_version_id from,
                                  backend_version_fn fn, void *ctx);
typedef enum status (*backend_segment_fn)(void *ctx, const struct backend_segment *segment);
MUST_CHECK
enum status backend_segments_scan(struct backend *backend, backend_segment_fn fn, void *ctx);

/* By table, then by key; fn as above. */
MUST_CHECK
enum status backend_rows_scan(struct backend *backend, row_fn fn, void *ctx);

/* -- Changing: between begin and commit. A failure leaves the transaction to be aborted. -- */

MUST_CHECK
enum status backend_begin(struct backend *backend);
MUST_CHECK
enum status backend_meta_put(struct backend *backend, enum backend_meta name, int64_t value);
/* Cheapest in the order of ids; replaces one of the same id. */
MUST_CHECK
enum status backend_version_put(struct backend *backend, const struct backend_version *version);
MUST_CHECK
enum status backend_version_delete(struct backend *backend, struct backend_version_id id);
MUST_CHECK
enum status backend_segment_put(struct backend *backend, const struct backend_segment *segment);
MUST_CHECK
enum status backend_segment_delete(struct backend *backend, uint64_t id);
/* Replaces the row of that key, or deletes it, if it is there. */
MUST_CHECK
enum status backend_row_put(struct backend *backend, const struct row *row);
/* On disk when it returns ST_OK. */
MUST_CHECK
enum status backend_commit(struct backend *backend);
void backend_abort(struct backend *backend); /* harmless without a transaction */

/* Why the last call failed, for a log line; "": none did. */
const char *backend_error_text(const struct backend *backend);

#endif
