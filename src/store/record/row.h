/*
 * Rows: small durable data that are not keys of a client: leases, alarms, users, roles. A row is a
 * table's number, a key and a value. Rows of a request follow its changes in its log record, so
 * that after a crash both are present or neither is; the checkpoint has a table of them.
 *
 *   row   head (16 bytes) | key | value | pad to 8
 *
 * A record has the results of a request and not the request, so replay decides nothing.
 */
#ifndef VIGIL_STORE_RECORD_ROW_H
#define VIGIL_STORE_RECORD_ROW_H

#include "base/slice.h"
#include "base/status.h"

#include <stdbool.h>

/* Written to disk: never renumbered. */
enum row_table {
    ROW_LEASE = 1,
    ROW_ALARM = 2,
    ROW_USER = 3,
    ROW_ROLE = 4,
    ROW_AUTH = 5,
    ROW_MEMBER = 6,
    ROW_CLUSTER = 7, /* what the members of the cluster have agreed on */
    ROW_TABLES
};

/* The checkpoint's keys have at most 511 bytes. */
enum { ROW_KEY_BYTES_MAX = 500 };

struct row {
    enum row_table table;
    bool deleted; /* then without value; a row that does not exist may be deleted too */
    struct slice key;
    struct slice value;
};

/*
 * Called for each row of the checkpoint, then for each row of later records, in order. Slices are
 * borrowed.
 */
typedef enum status (*row_fn)(void *ctx, const struct row *row);

/* Bytes it takes in a record. */
size_t row_bytes(const struct row *row);
/* Writes it to dst; returns the bytes written. */
size_t row_write(uint8_t *dst, const struct row *row);

/* -- Walking the rows of a record's body: checks bounds, because the disk may be damaged -- */

struct row_walk {
    struct slice body;
    size_t offset;
    uint32_t left;
};
MUST_CHECK
enum status row_walk_init(struct row_walk *walk, struct slice body);
/* ST_END after the last. */
MUST_CHECK
enum status row_walk_next(struct row_walk *walk, struct row *ret_row);

#endif
