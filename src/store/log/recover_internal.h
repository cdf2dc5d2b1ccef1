/* The parts of bringing a log back, to each other: recover.c reads, recover_stop.c decides. */
#ifndef VIGIL_STORE_LOG_RECOVER_INTERNAL_H
#define VIGIL_STORE_LOG_RECOVER_INTERNAL_H

#include "store/log/internal.h"

#include <inttypes.h>

struct recovery {
    struct log *log;
    uint64_t after_index;
    const uint64_t *listed;
    size_t listed_count;
    log_replay_fn replay;
    void *ctx;
    struct error *error;

    struct segment_order found; /* opened and not placed yet: ours */
    uint64_t *ids;              /* of segment files, ours */
    size_t id_count, id_capacity;
    uint64_t *temporary_ids; /* of temporary files, ours */
    size_t temporary_count, temporary_capacity;
    bool nomem;

    struct mark mark;     /* zeros where there is none */
    uint64_t expected;    /* the next index */
    uint64_t claimed;     /* the greatest index that anything seen says is durable */
    struct segment *stop; /* in log.order */
    uint64_t stop_offset;
};

/* What a person does about a log that cannot be read. */
#define RECOVERY_ADVICE "restore the data directory from a backup or a snapshot"

#define SEGMENT_NAME "%s/%016" PRIx64 ".seg"

/* -- Saying what is wrong -- */

enum status recovery_fail_file(struct recovery *r, enum status status, uint64_t id,
                               const char *what);
enum status recovery_fail_damaged(struct recovery *r, uint64_t id, uint64_t offset,
                                  const char *what);

/* Removes a segment that was found and has no place. */
MUST_CHECK
enum status recovery_remove_found(struct recovery *r, size_t at);

/* -- The stop -- */

/* Refuses what is damage, and notes what is to be cut off otherwise. */
MUST_CHECK
enum status recovery_judge(struct recovery *r);
/* Cuts the tail, makes what was replayed durable, and lets go of files beyond the stop. */
MUST_CHECK
enum status recovery_settle(struct recovery *r);

#endif
