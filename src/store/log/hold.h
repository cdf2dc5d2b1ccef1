/*
 * Holding on to the log as it is: its segments stay readable, whatever the cleaner does, without
 * any epoch being pinned. It costs disk and no memory: a segment that was cleaned meanwhile keeps
 * its file until the last hold on it ends.
 *
 * Taken on the keeper's thread, so that no segment is being swapped; read and let go of by any one
 * thread, before the log is closed.
 */
#ifndef VIGIL_STORE_LOG_HOLD_H
#define VIGIL_STORE_LOG_HOLD_H

#include "store/log/log.h"

struct log_hold;

/* All records up to last_index, which are written. Aborts without memory. */
struct log_hold *log_hold_new(struct log *log, uint64_t last_index);
/* Accepts NULL. The keeper's next log_prepare removes what was only held. */
void log_hold_free(struct log_hold *hold);
DEFINE_CLEANUP(struct log_hold *, log_hold_free)

/* After log_prepare: what was forgotten is there for a hold alone. */
bool log_is_held_back(const struct log *log);

struct log_hold_reader {
    const struct log_hold *hold;
    size_t segment; /* place among those held */
    uint64_t offset;
    bool verifies; /* every byte, and not heads alone */
};
/* Stands before the first record. */
void log_hold_read(const struct log_hold *hold, bool verifies, struct log_hold_reader *ret_reader);
/* In order of index. ST_END after the last; ST_DAMAGED. */
MUST_CHECK
enum status log_hold_next(struct log_hold_reader *reader, struct log_record *ret_record);

#endif
