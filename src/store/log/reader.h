/*
 * Sequential reading in order of index over everything written: for the checkpoint, compaction,
 * hashes and history. Every record it gives was held to its checksum. A reader belongs to one
 * thread and must not be held across log_forget of the segment it stands in: its owner's epoch pins
 * it.
 */
#ifndef VIGIL_STORE_LOG_READER_H
#define VIGIL_STORE_LOG_READER_H

#include "store/log/log.h"

struct log_reader {
    const struct log *log;
    uint64_t segment_id;
    uint64_t offset;
    uint64_t next_index;
    /* Of records with longer bodies only the head is held to its checksum; the reader's owner does
     * the rest with log_record_sum. 0: there is no such limit. */
    uint64_t checked_bytes_max;
};
/* Stands before the first record with index >= index. */
void log_reader_init(struct log_reader *reader, const struct log *log, uint64_t index);
/* Stands before the first record whose revision is >= revision (records without one skipped). */
void log_reader_seek_revision(struct log_reader *reader, const struct log *log, int64_t revision);
/* Stands before a record that was read, whose segment is pinned. */
void log_reader_init_before(struct log_reader *reader, const struct log *log,
                            const struct log_record *record);
/*
 * Whether the segment it stands in is part of the log now, so that it may be read under a pin taken
 * before. One that was rewritten since the reader's last pin may go at any time: seek again then.
 */
bool log_reader_stands(const struct log_reader *reader);
/*
 * ST_END after the record with last_index. ST_DAMAGED when its checksum is wrong: then the reader
 * stands before it, and the damage is noted with the log.
 */
MUST_CHECK
enum status log_reader_next(struct log_reader *reader, uint64_t last_index,
                            struct log_record *ret_record);
/*
 * For checking a body in pieces: crc32c of *ret_sum and all of the body must come to *ret_wanted.
 * The segment of the record is pinned.
 */
void log_record_sum(const struct log *log, const struct log_record *record, uint32_t *ret_sum,
                    uint32_t *ret_wanted);
/* Where it stands. */
static inline log_loc log_reader_loc(const struct log_reader *reader)
{
    return reader->segment_id << LOG_OFFSET_BITS | reader->offset;
}
/* After ST_DAMAGED: goes on behind what cannot be read. */
void log_reader_pass_damage(struct log_reader *reader);

#endif
