/*
 * What was read is not what was written: a disk that rots, or somebody who writes into the files.
 * Whoever finds it says so here, on any thread; it is known from then on until the log is closed.
 */
#ifndef VIGIL_STORE_LOG_DAMAGE_H
#define VIGIL_STORE_LOG_DAMAGE_H

#include "store/log/log.h"

void log_note_damage(const struct log *log, log_loc loc);
bool log_is_damaged(const struct log *log);
/* How often it was noted; and the last place. */
uint64_t log_damage_met(const struct log *log, uint64_t *ret_segment_id, uint64_t *ret_offset);

/*
 * Which segment is mapped at an address, and where in it: for whoever is told of a page that could
 * not be read. Safe in a signal handler. False when it is none of ours.
 */
bool log_find_address(const struct log *log, const void *address, uint64_t *ret_segment_id,
                      uint64_t *ret_offset);

static inline void log_loc_split(log_loc loc, uint64_t *ret_segment_id, uint64_t *ret_offset)
{
    *ret_segment_id = loc >> LOG_OFFSET_BITS;
    *ret_offset = loc & (((uint64_t)1 << LOG_OFFSET_BITS) - 1);
}

#endif
