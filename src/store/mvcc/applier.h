/*
 * Applies requests that change keys, one after the other at new revisions. Belongs to the writer's
 * thread. The name is etcd's (applierV3).
 *
 * A request is first checked against the state before it, as in etcd: compares (nested ones too),
 * leases, ignore_value and ignore_lease, revisions of ranges. Then log space for all it may write
 * is reserved. After that nothing can fail: its changes are written to one log record and to the
 * index.
 *
 * Answers refer to the log's bytes, and other threads can read them once the record is written.
 * Ranges in a transaction see its earlier writes.
 */
#ifndef VIGIL_STORE_MVCC_APPLIER_H
#define VIGIL_STORE_MVCC_APPLIER_H

#include "base/buf.h"
#include "base/memory/arena.h"
#include "codec/answer.h"
#include "store/index/index.h"
#include "store/log/log.h"
#include "store/record/change.h"
#include "store/record/row.h"

/*
 * What one stored version adds to the size that operators see and that quotas limit: its bytes, and
 * about what etcd's file needs in addition.
 */
static inline int64_t applier_db_bytes(size_t field_bytes)
{
    enum { BESIDE_BYTES = 64 };
    return (int64_t)field_bytes + BESIDE_BYTES;
}

struct applier;
/* Updates the size: called when in_use has grown, or held was counted. */
void applier_settle_size(struct applier *applier);

struct pb_put_request;
struct pb_delete_range_request;
struct pb_txn_request;

/* The state of the writer. Embedded in its owner, the store. */
struct applier {
    struct log *log;
    struct index *index;
    int64_t revision;
    int64_t compact_revision; /* -1 before the first compaction */
    int64_t db_bytes;         /* see store_view */
    int64_t db_bytes_in_use;
    /*
     * The part of it that is kept only for watches from the compact revision, and that etcd would
     * have freed: see store/upkeep/compaction.h. -1 until it is counted.
     */
    int64_t db_bytes_held;

    /* Whether a lease exists. NULL: no lease does. */
    bool (*lease_exists)(void *ctx, int64_t lease);
    /* Called when a key's lease changes; 0 means no lease. May be NULL. */
    void (*lease_moved)(void *ctx, struct slice key, int64_t from, int64_t to);
    void *lease_ctx;

    /* During replay only: called for each row of a record. May be NULL. */
    row_fn row_seen;
    void *row_ctx;

    uint64_t puts, deletes, put_bytes; /* since the start, without replayed ones */

    /* The current request. */
    uint8_t *body; /* body of its record, between record_begin and record_end */
    log_loc body_loc;
    size_t body_bytes;
    uint32_t changes;
    uint32_t rows;
    struct buf keys; /* scratch: items to delete */
};

void applier_init(struct applier *applier, struct log *log, struct index *index);
void applier_fini(struct applier *applier);

/*
 * Each fills *ret_answer, whose revision is that of the response header. After ST_TIMEOUT the
 * request was applied and could not be answered because memory is exhausted; after any other
 * failure nothing was done.
 */
MUST_CHECK
enum status applier_put(struct applier *applier, const struct pb_put_request *request,
                        struct arena *arena, struct kv_answer *ret_answer);
MUST_CHECK
enum status applier_delete_range(struct applier *applier,
                                 const struct pb_delete_range_request *request, struct arena *arena,
                                 struct kv_answer *ret_answer);
MUST_CHECK
enum status applier_txn(struct applier *applier, const struct pb_txn_request *request,
                        struct arena *arena, struct kv_answer *ret_answer);

/*
 * A change by the server itself: deletes those of the keys that exist, in the given order, and
 * writes the rows, all in one record. Without a key to delete it takes no revision. ST_LIMIT if a
 * row's key is too long. *ret_revision is the newest revision afterwards; may be NULL.
 */
MUST_CHECK
enum status applier_rows(struct applier *applier, const struct row *rows, size_t row_count,
                         const struct slice *keys, size_t key_count, int64_t *ret_revision);

/* A change that another server has made, as it is stored there. */
struct imported_change {
    struct change_kv kv; /* only the key for a tombstone */
    uint32_t sub;
    bool is_tombstone;
};
/*
 * Imports what is left of a revision that another server has made: newer than all before, with
 * changes in the order of sub. Otherwise ST_INVALID, and nothing was done.
 */
MUST_CHECK
enum status applier_import(struct applier *applier, int64_t revision,
                           const struct imported_change *changes, size_t count);

/*
 * The same in a mirror (engine/local/mirror/mirror_store.h), where a tombstone of a key that does
 * not exist is left out. If nothing is left, the revision is reached without a record.
 */
MUST_CHECK
enum status applier_mirror(struct applier *applier, int64_t revision,
                           const struct imported_change *changes, size_t count);
/* Raises the revision without a record. */
void applier_reach(struct applier *applier, int64_t revision);
/* Appends the record of a compaction, which may be newer than what is reached: then the mirror is
 * incomplete, also after a start, until another such record has reached it. */
MUST_CHECK
enum status applier_mirror_compact(struct applier *applier, int64_t compact, int64_t reached);
static inline bool applier_is_complete(const struct applier *applier)
{
    return applier->compact_revision <= applier->revision;
}

/* Appends the record of a compaction; the index is trimmed later (store/upkeep/compaction.h). */
MUST_CHECK
enum status applier_compact(struct applier *applier, int64_t revision);

/* At start: applies a record of the log that is not in the checkpoint. */
MUST_CHECK
enum status applier_replay(struct applier *applier, const struct log_record *record);

/* The transaction has ranges only, so any thread can answer it from a published state. */
bool applier_txn_is_read_only(const struct pb_txn_request *request);

#endif
