/*
 * The content of a snapshot besides keys: the rows of the store, converted to etcd's format, and
 * information about the snapshot itself.
 *
 *   take, for every row in the order of the log ──► finish ──► a source of entries
 *
 * Memory: 24 bytes for each lease; other rows are few. One owner, one thread at a time. Aborts
 * without memory.
 */
#ifndef VIGIL_ENGINE_LOCAL_SNAPSHOT_SNAPSHOT_ROWS_H
#define VIGIL_ENGINE_LOCAL_SNAPSHOT_SNAPSHOT_ROWS_H

#include "base/buf.h"
#include "engine/snapshot.h"
#include "store/record/row.h"
#include "store/snapshot.h"

enum { SNAPSHOT_LEASE_BYTES_MAX = 2 * 11 };

struct snapshot_rows {
    struct snapshot_source source; /* after finish */
    struct arena arena;            /* bytes of the entries */
    struct buf leases;             /* struct snapshot_lease, by id */
    struct buf entries;            /* struct snapshot_kept, by bucket and key */
    size_t first[BOLT_BUCKETS + 1];
    uint32_t taken;
    /* Buffers of the entry that was returned last: */
    uint8_t key[BOLT_NUMBER_BYTES];
    uint8_t value[SNAPSHOT_LEASE_BYTES_MAX];
};

/* Information about the server that made the snapshot. */
struct snapshot_origin {
    struct engine_snapshot_about about;
    uint64_t member_id;
    uint64_t term, index; /* as of the snapshot */
};

void snapshot_rows_init(struct snapshot_rows *rows);
void snapshot_rows_fini(struct snapshot_rows *rows);

/* A row_fn. A later row of the same key replaces the earlier. ST_DAMAGED. */
MUST_CHECK
enum status snapshot_rows_take(void *rows, const struct row *row);
void snapshot_rows_finish(struct snapshot_rows *rows, const struct snapshot_origin *origin);

#endif
