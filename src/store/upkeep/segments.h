/*
 * The keeper's table of segments: how many bytes of each are live. Stored in the checkpoint;
 * changed rows are written with it.
 */
#ifndef VIGIL_STORE_UPKEEP_SEGMENTS_H
#define VIGIL_STORE_UPKEEP_SEGMENTS_H

#include "store/backend/backend.h"
#include "store/log/log.h"

struct segments {
    struct backend *backend;
    struct backend_segment *rows; /* in ascending order of id */
    size_t count, capacity;
    /* Segments that cannot be copied, and their live bytes at that time; not in the checkpoint. */
    struct segments_damaged {
        uint64_t id, live_bytes;
    } * damaged;
    size_t damaged_count;
    /* Versions with a location in the first are in the second (store/upkeep/cleaner.h). 0: none. */
    uint64_t moved_from, moved_to;
};

/* Loads the table from the checkpoint. After a failure only segments_fini may be called. */
MUST_CHECK
enum status segments_init(struct segments *segments, struct backend *backend);
void segments_fini(struct segments *segments);

/*
 * The bytes of a segment that a live change needs, as if it were alone in its record. This is too
 * much for changes of one transaction, so a copy never takes more than this says.
 */
size_t segments_live_bytes(size_t field_bytes);

/* Changes at and after loc became live, with this sum of segments_live_bytes. */
void segments_add_live(struct segments *segments, log_loc loc, uint64_t live_bytes);
/* A change of that length at loc is dead. */
void segments_drop_live(struct segments *segments, log_loc loc, size_t field_bytes);

/*
 * Within a transaction: writes the rows of all segments that begin at or before index, except for
 * one: a copy that the checkpoint does not refer to yet (0: none).
 */
MUST_CHECK
enum status segments_write(struct segments *segments, const struct log *log, uint64_t index,
                           uint64_t except);

/* A segment was replaced by another (0: by none) with the same live versions. */
MUST_CHECK
enum status segments_replace(struct segments *segments, uint64_t old_id, uint64_t new_id);
/* All versions have locations in existing segments again. */
void segments_settle(struct segments *segments);

/* Which segments to copy: full ones that are completely in the checkpoint, … */
struct segments_choice {
    uint64_t index_max; /* … which extends to this index, */
    uint64_t id_end;    /* with smaller ids than this, */
    double part_max;    /* at most this part of which would be copied, */
    bool heals;         /* including damaged ones: a copy of the live part may have no damage */
};
/* The segment of which the smallest part would be copied; 0: none. */
uint64_t segments_most_dead(const struct segments *segments, const struct log *log,
                            const struct segments_choice *choice);
/*
 * It cannot be copied and is not chosen again until segments_clear_damaged, unless nothing in it is
 * live any more.
 */
void segments_set_damaged(struct segments *segments, uint64_t id);
void segments_clear_damaged(struct segments *segments);
/* The live bytes of a segment. */
uint64_t segments_live(const struct segments *segments, uint64_t id);
/* All segments of the log; the caller frees *ret_infos. */
size_t segments_of_log(const struct log *log, struct log_segment_info **ret_infos);
/* Greater than all ids in use. */
uint64_t segments_id_end(const struct log *log);

/* Bytes of the log after the record with this index, which ends at `end`. 0: where it ends is not
 * known, and what was written when the rows were is taken for added. Without the segment `except`.
 */
uint64_t segments_bytes_after(const struct segments *segments, const struct log *log,
                              uint64_t index, log_loc end, uint64_t except);

void segments_check(const struct segments *segments); /* for tests */

#endif
