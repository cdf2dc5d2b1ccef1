/*
 * Sequential reading in order of index of everything written: for the checkpoint, compaction,
 * hashes and history. The checksum of every returned record was verified. A reader belongs to one
 * thread and must not be used across log_forget of its current segment: its owner pins the epoch.
 */
#ifndef VIGIL_STORE_LOG_READER_H
#define VIGIL_STORE_LOG_READER_H

#include "store/log/log.h"

struct log_reader {
    const struct log *log;
    uint64_t segment_id;
    uint64_t offset;
    uint64_t next_index;
    /*
     * For records with longer bodies only the head is verified; the reader's owner does the rest
     * with log_record_sum. 0: no limit.
     */
    uint64_t checked_bytes_max;
};
/* Positions the reader before the first record with index >= index. */
void log_reader_init(struct log_reader *reader, const struct log *log, uint64_t index);
/* Positions it before the first record with revision >= revision; skips records without one. */
void log_reader_seek_revision(struct log_reader *reader, const struct log *log, int64_t revision);
/* Positions it before a record that was read, whose segment is pinned. */
void log_reader_init_before(struct log_reader *reader, const struct log *log,
                            const struct log_record *record);
/*
 * Whether its current segment is part of the log now, so that it may be read under a pin that was
 * taken before. A segment that was rewritten since the reader's last pin may be removed at any
 * time: then seek again.
 */
bool log_reader_is_current(const struct log_reader *reader);
/*
 * ST_END after the record with last_index. ST_DAMAGED when the checksum is wrong: then the reader
 * stays before that record, and the damage is noted in the log.
 */
MUST_CHECK
enum status log_reader_next(struct log_reader *reader, uint64_t last_index,
                            struct log_record *ret_record);
/*
 * For verifying a body in pieces: crc32c of *ret_sum continued over the body must equal
 * *ret_wanted. The segment of the record is pinned.
 */
void log_record_sum(const struct log *log, const struct log_record *record, uint32_t *ret_sum,
                    uint32_t *ret_wanted);
/* The location of the next record. */
static inline log_loc log_reader_loc(const struct log_reader *reader)
{
    return reader->segment_id << LOG_OFFSET_BITS | reader->offset;
}
/*
 * After ST_DAMAGED: the record as far as its head can be read; it is not verified. Its bytes end at
 * the next readable record. False: the head is damaged, too, and only body and body_loc are set.
 */
bool log_reader_damaged(const struct log_reader *reader, struct log_record *ret_record);
/* After ST_DAMAGED: continues after what cannot be read. */
void log_reader_pass_damage(struct log_reader *reader);

#endif
