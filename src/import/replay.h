/*
 * Applies entries of etcd's write-ahead log to a store that is being built: what a starting etcd
 * would do with them, with the same checks, so that what was refused then is refused now.
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
    uint64_t refused; /* as etcd refused them: a compare's other branch is none of these */
    uint64_t v2;      /* of the v2 API, which are left out */
};

/* The builder is borrowed. Of the etcd the minor version, as far as it is known; 0: before 3.6. */
struct import_replay *import_replay_new(struct store_builder *builder, unsigned etcd_minor);
void import_replay_free(struct import_replay *replay); /* accepts NULL */
DEFINE_CLEANUP(struct import_replay *, import_replay_free)

/* Each row that the store was given before the first entry: a row_fn. */
MUST_CHECK
enum status import_replay_row(void *replay, const struct row *row);
/* All keys and rows are there. */
MUST_CHECK
enum status import_replay_start(struct import_replay *replay);

/* A failure is of ours, or bytes that no etcd writes: ST_DAMAGED. */
MUST_CHECK
enum status import_replay_entry(struct import_replay *replay, const struct pb_log_entry *entry);

/* Of what there is now, other than keys. */
void import_replay_tally(const struct import_replay *replay, struct import_counts *counts);
const struct import_replay_counts *import_replay_counts(const struct import_replay *replay);

#endif
