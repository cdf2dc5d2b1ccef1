/*
 * Shared by the parts of recovery: recover.c reads, recover_stop.c decides, recover_repair.c has
 * what differs in a repair.
 */
#ifndef VIGIL_STORE_LOG_RECOVER_PRIVATE_H
#define VIGIL_STORE_LOG_RECOVER_PRIVATE_H

#include "store/log/log_private.h"
#include "store/log/repair.h"

#include <inttypes.h>

struct recovery {
    struct log *log;
    uint64_t after_index;
    const uint64_t *listed;
    size_t listed_count;
    log_replay_fn replay;
    void *ctx;
    struct error *error;

    struct segment_order found; /* opened and not placed yet; owned */
    uint64_t *ids;              /* ids of segment files; owned */
    size_t id_count, id_capacity;
    uint64_t *temporary_ids; /* ids of temporary files; owned */
    size_t temporary_count, temporary_capacity;
    uint64_t *spare_ids; /* ids of damaged segments without any record, to be removed; owned */
    size_t spare_count, spare_capacity;
    bool nomem;

    struct mark mark;     /* zeros without a mark */
    uint64_t expected;    /* the next index */
    uint64_t claimed;     /* the greatest index that anything read claims to be durable */
    struct segment *stop; /* in log.order */
    uint64_t stop_offset;
    bool ends_before_missing; /* the segment after the stop, which its seal names */

    const struct log_repair_options *repair; /* NULL at a start */
    struct log_repair repaired;
    uint64_t *unreadable_ids; /* ids of segments that a repair sets aside; owned */
    size_t unreadable_count, unreadable_capacity;
};

/* Everything that changes nothing: finds the files, reads the chain and judges the stop. */
MUST_CHECK
enum status recovery_read(struct recovery *r);
void recovery_fini(struct recovery *r);

/* Nothing may be written: a repair that was not accepted yet. */
static inline bool recovery_is_dry_run(const struct recovery *r)
{
    return r->repair && !r->repair->accept;
}

#define SEGMENT_NAME "%s/%016" PRIx64 ".seg"

/* -- Reporting what is wrong; what to do is added by the store (datadir_advise) -- */

enum status recovery_fail_file(struct recovery *r, enum status status, uint64_t id,
                               const char *what);
enum status recovery_fail_damaged(struct recovery *r, uint64_t id, uint64_t offset,
                                  const char *what);

/* Removes a segment that was found and is not part of the log. */
MUST_CHECK
enum status recovery_remove_found(struct recovery *r, size_t at);

/* -- The stop -- */

/* Fails if there is damage; otherwise notes what is to be cut off. */
MUST_CHECK
enum status recovery_judge(struct recovery *r);
/* Cuts the tail, makes what was replayed durable, and removes files beyond the stop. */
MUST_CHECK
enum status recovery_settle(struct recovery *r);

/* -- Repairs -- */

/* The first index of a segment whose first record is damaged, if it is known from elsewhere. */
bool recovery_knows_first_index(const struct recovery *r, uint64_t id, uint64_t *ret_index);
/*
 * Skips damage to records that the checkpoint has, if an operator has accepted it; advances
 * expected.
 */
bool recovery_pass(struct recovery *r, struct segment *segment, uint64_t *offset);
void recovery_mend_seals(struct recovery *r);
/* Makes the seal from the records; false if none can be read. */
bool segment_walk_records(struct segment *segment);
/* The segment after this one is missing: true if the log may end here, because the checkpoint needs
 * nothing more. */
bool recovery_ends_before_missing(struct recovery *r, struct segment *before);
MUST_CHECK
enum status recovery_set_aside_found(struct recovery *r, size_t at);
void recovery_report_lost(struct recovery *r, uint64_t claim, const char *why);
void recovery_report_passed(struct recovery *r);

#endif
