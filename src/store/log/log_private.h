/* The inside of the log, for the files of this directory. */
#ifndef VIGIL_STORE_LOG_LOG_PRIVATE_H
#define VIGIL_STORE_LOG_LOG_PRIVATE_H

#include "base/lock.h"
#include "store/log/group.h"
#include "store/log/log.h"
#include "store/log/mark.h"
#include "store/log/order.h"
#include "store/log/segment.h"

struct log {
    struct fs *fs;
    char *dir; /* ours */
    size_t segment_bytes_first;
    size_t segment_bytes_max;
    uint64_t salt;

    struct segment_table table;   /* read by any thread; written under lock */
    struct lock lock;             /* order, retired, and writing the table */
    struct segment_order order;   /* owns what is in it; the last one is the writer's */
    struct segment_order retired; /* swapped out, still readable; owned */

    _Atomic(struct segment *) waiting; /* prepared by the keeper; who exchanges it owns it */
    _Atomic(struct segment *) doomed; /* linked by next_left: forgotten, for the keeper to remove */
    _Atomic uint64_t next_id;
    _Atomic uint64_t next_capacity;
    struct log_cut cut;          /* by the start */
    struct mark mark;            /* as it was read or last written: the keeper's */
    _Atomic uint64_t damage_met; /* see log_note_damage */
    _Atomic log_loc damage_loc;
    _Atomic int failed; /* enum status: ST_OK, or what every later call of the writer returns */

    /* The writer's own */
    struct segment *current;  /* in order */
    struct segment *upcoming; /* ours until the record reserved in it is appended; or NULL */
    struct segment *replaced; /* linked by next_left: empty ones that were too small, until close */
    struct segment *left;     /* in order, linked by next_left: sealed by the next write */
    uint64_t append_offset;   /* in current, of the next record */
    uint64_t last_index;      /* appended */
    size_t reserved_bytes;    /* of body */
    enum { LOG_IDLE, LOG_RESERVED, LOG_BUILDING } building;
    struct group group;

    _Atomic uint64_t written_index;
    _Atomic uint64_t durable_index;
    _Atomic(struct segment *) dirty; /* linked by next_dirty: written to and not synced since */
};

static inline log_loc log_loc_of(uint64_t id, uint64_t offset)
{
    return id << LOG_OFFSET_BITS | offset;
}

static inline uint64_t log_loc_segment(log_loc loc)
{
    return loc >> LOG_OFFSET_BITS;
}

static inline uint64_t log_loc_offset(log_loc loc)
{
    return loc & (((uint64_t)1 << LOG_OFFSET_BITS) - 1);
}

/* A log with nothing in it yet, to be recovered. */
MUST_CHECK
enum status log_new(const struct log_options *options, struct log **ret_log,
                    struct error *ret_error);
/*
 * Makes an empty segment with a new id, in the table and in no order: of that capacity or, on a
 * disk that has not so much room left, down to capacity_min. ST_DISK_FULL before anything is
 * written when that does not fit either.
 */
MUST_CHECK
enum status log_new_segment(struct log *log, uint64_t capacity, uint64_t capacity_min,
                            struct segment **ret_segment);
/* Takes a segment out of the table, frees it and removes its file. */
MUST_CHECK
enum status log_remove_segment(struct log *log, struct segment *segment);
/* Unmaps and removes what was forgotten. */
void log_sweep(struct log *log);
/* The next segment to be made is twice as large as one like this, up to the limit. */
void log_note_capacity(struct log *log, uint64_t capacity);
uint32_t log_salt_for(const struct log *log, uint64_t id);

/* Fills record from the mapping; the head was checked. */
static inline void log_record_from(const struct segment *segment, uint64_t offset,
                                   const struct record_head *head, struct log_record *ret_record)
{
    *ret_record = (struct log_record){
        .index = head->index,
        .revision = head->revision,
        .type = head->type,
        .body = slice_of(segment->base + offset + RECORD_HEAD_BYTES, head->len - RECORD_HEAD_BYTES),
        .body_loc = log_loc_of(segment->head.id, offset + RECORD_HEAD_BYTES),
    };
}

/* Finds, checks, cuts and replays; fills order, table, current and the indexes of a new log. */
MUST_CHECK
enum status log_recover(struct log *log, uint64_t after_index, const uint64_t *listed,
                        size_t listed_count, log_replay_fn replay, void *ctx,
                        struct error *ret_error);

#endif
