/*
 * A hold keeps the log as it is: its segments stay readable, even if they are cleaned, without
 * pinning an epoch. It costs disk space and no memory: a segment that is cleaned meanwhile keeps
 * its file until the last hold on it ends.
 *
 * Taken on the keeper's thread, so that no segment is being swapped; read and freed by any one
 * thread, before the log is closed.
 */
#ifndef VIGIL_STORE_LOG_HOLD_H
#define VIGIL_STORE_LOG_HOLD_H

#include "store/log/log.h"

struct log_hold;

/* All records up to last_index, which are written. Aborts when memory is exhausted. */
struct log_hold *log_hold_new(struct log *log, uint64_t last_index);
/* Accepts NULL. The keeper's next log_prepare removes files that were kept only for the hold. */
void log_hold_free(struct log_hold *hold);
DEFINE_CLEANUP(struct log_hold *, log_hold_free)

/* After log_prepare: some forgotten segments still exist, because they are held. */
bool log_is_held_back(const struct log *log);

struct log_hold_reader {
    const struct log_hold *hold;
    size_t segment; /* position among the held segments */
    uint64_t offset;
    log_loc at;    /* location of the last record that was read, or could not be */
    bool verifies; /* checks whole records, not only their heads */
};
/* Positions the reader before the first record. */
void log_hold_read(const struct log_hold *hold, bool verifies, struct log_hold_reader *ret_reader);
/* The next record in order of index. ST_END after the last, or ST_DAMAGED. */
MUST_CHECK
enum status log_hold_next(struct log_hold_reader *reader, struct log_record *ret_record);

#endif
