/*
 * Applies entries of etcd's write-ahead log to a store that is being built, as a starting etcd
 * would do, with the same checks, so that requests that were refused then are refused now.
 *
 * Owns leases and alarms as they were before the first entry. One owner, one thread.
 */
#ifndef VIGIL_IMPORT_REPLAY_H
#define VIGIL_IMPORT_REPLAY_H

#include "codec/pb/raft.pb.h"
#include "store/builder.h"

struct import_counts;
struct import_replay;

struct import_replay_counts {
    uint64_t applied;
    uint64_t refused; /* as in etcd; a transaction whose comparison failed is not refused */
    uint64_t v2;      /* keys of the v2 API, which are not imported */
};

/* The builder is borrowed. The minor version is etcd's, if known; 0: before 3.6. */
struct import_replay *import_replay_new(struct store_builder *builder, unsigned etcd_minor);
void import_replay_free(struct import_replay *replay); /* accepts NULL */
DEFINE_CLEANUP(struct import_replay *, import_replay_free)

/* Takes each row that was added to the store before the first entry: a row_fn. */
MUST_CHECK
enum status import_replay_row(void *replay, const struct row *row);
/* To be called when all keys and rows were added. */
MUST_CHECK
enum status import_replay_start(struct import_replay *replay);

/* Failures are our own, or ST_DAMAGED for bytes that no etcd writes. */
MUST_CHECK
enum status import_replay_entry(struct import_replay *replay, const struct pb_log_entry *entry);

/* Counts what exists now, except keys. */
void import_replay_tally(const struct import_replay *replay, struct import_counts *counts);
const struct import_replay_counts *import_replay_counts(const struct import_replay *replay);

#endif
