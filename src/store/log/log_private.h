/* The struct of the log and the functions that its files share. For this directory only. */
#ifndef VIGIL_STORE_LOG_LOG_PRIVATE_H
#define VIGIL_STORE_LOG_LOG_PRIVATE_H

#include "base/lock.h"
#include "store/log/group.h"
#include "store/log/log.h"
#include "store/log/mark.h"
#include "store/log/order.h"
#include "store/log/segment_table.h"

/*
 * The writer's next record.
 *
 *            log_reserve           log_append_begin
 *   IDLE ───────────────► RESERVED ────────────────► BUILDING
 *    ▲                     │  │ ▲                        │
 *    │                     │  └─┘ log_reserve            │
 *    └─────────────────────┴─────────────────────────────┘
 *      log_append_abort, log_write    log_append_end, log_append_abort
 */
enum log_append { LOG_IDLE, LOG_RESERVED, LOG_BUILDING };

struct log {
    struct fs *fs;
    char *dir; /* owned */
    size_t segment_bytes_first;
    size_t segment_bytes_max;
    bool unsynced;
    uint64_t salt;

    struct segment_table table;   /* read by any thread; written under lock */
    struct lock lock;             /* guards order, retired, and writing to the table */
    struct segment_order order;   /* owns its segments; the writer appends to the last */
    struct segment_order retired; /* swapped out, still readable; owned */

    /* prepared by the keeper; owned by the thread that exchanges it */
    _Atomic(struct segment *) waiting;
    /* linked by next_left: forgotten, to be removed by the keeper */
    _Atomic(struct segment *) forgotten;
    struct segment_draft draft; /* the next one to wait, while it is being made; the keeper's */
    _Atomic bool drafting;      /* there is a draft */
    _Atomic uint64_t next_id;
    _Atomic uint64_t next_capacity;
    struct log_cut cut;            /* what the start cut off */
    uint64_t removed_spare;        /* log_removed_spare */
    unsigned heads_mended;         /* number of damaged heads for which the start has found twins */
    struct mark mark;              /* as last read or written; the keeper's */
    _Atomic uint64_t damage_count; /* log_damage_count */
    _Atomic log_loc damage_loc;
    _Atomic int failed; /* enum status: ST_OK, or the result of every later call of the writer */
    const char *failed_doing; /* with the lock: what failed, with which segment */
    uint64_t failed_id;

    /* Used by the writer only */
    struct segment *current;  /* in order */
    struct segment *upcoming; /* owned until the reserved record is appended to it; or NULL */
    /* linked by next_left: empty ones that were too small, freed at close */
    struct segment *replaced;
    struct segment *left;   /* in order, linked by next_left: to be sealed by the next write */
    uint64_t append_offset; /* in current, where the next record begins */
    uint64_t last_index;    /* index of the last appended record */
    size_t reserved_bytes;  /* size of the record's body */
    enum log_append append;
    struct group group;

    _Atomic uint64_t written_index;
    _Atomic uint64_t durable_index;
    _Atomic(struct segment *) dirty; /* linked by next_dirty: written to since their last sync */
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

/* An empty log, to be filled by log_recover. */
MUST_CHECK
enum status log_new(const struct log_options *options, struct log **ret_log,
                    struct error *ret_error);
enum status log_failed(const struct log *log); /* ST_OK, or why the log cannot be used any more */
bool log_lacks_next(const struct log *log);    /* no segment is ready to follow the current one */
/*
 * The head of a segment with a new id. If the disk has less space than the capacity, tries smaller
 * ones down to capacity_min; ST_DISK_FULL if that does not fit either.
 */
MUST_CHECK
enum status log_new_head(struct log *log, uint64_t capacity, uint64_t capacity_min,
                         struct segment_head *ret_head);
/* For a segment. Asks the file system, because filling it with zeros would take long to fail. */
bool log_has_space(const struct log *log, uint64_t capacity);
/* What is left of a segment is kept for records that free space. */
bool log_is_kept(uint64_t capacity, uint64_t used);
/* Gives a new segment its name and adds it to the table; after a failure its file is removed. */
MUST_CHECK
enum status log_add_segment(struct log *log, struct segment *segment);
/* Offers an unused segment for the next use; one is enough, so a second one is removed. */
MUST_CHECK
enum status log_offer(struct log *log, struct segment *segment);
/*
 * Makes an empty segment with a new id (log_new_head), in the table but in no order. ST_DISK_FULL
 * comes before anything is written.
 */
MUST_CHECK
enum status log_new_segment(struct log *log, uint64_t capacity, uint64_t capacity_min,
                            struct segment **ret_segment);
/* Removes a segment from the table, frees it and removes its file. */
MUST_CHECK
enum status log_remove_segment(struct log *log, struct segment *segment);
/* Unmaps and removes forgotten segments that are not held. */
void log_sweep(struct log *log);
/* Doubles the capacity for the next segment from this one, up to the limit. */
void log_note_capacity(struct log *log, uint64_t capacity);
uint32_t log_salt_for(const struct log *log, uint64_t id);

/* Fills the record from the mapping; the head was checked. */
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

/* Finds, checks, cuts and replays; sets order, table, current and the indexes of a new log. */
MUST_CHECK
enum status log_recover(struct log *log, uint64_t after_index, const uint64_t *listed,
                        size_t listed_count, log_replay_fn replay, void *ctx,
                        struct error *ret_error);

#endif
