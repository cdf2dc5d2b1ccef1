/*
 * The keeper's table of segments: how much of each is alive. Kept in the checkpoint; the part that
 * changed is written with it.
 */
#ifndef VIGIL_STORE_UPKEEP_SEGMENTS_H
#define VIGIL_STORE_UPKEEP_SEGMENTS_H

#include "store/backend/backend.h"
#include "store/log/log.h"

struct segments {
    struct backend *backend;
    struct backend_segment *rows; /* ascending ids */
    size_t count, capacity;
    /* Those that cannot be copied, and what lived in them then; not in the checkpoint. */
    struct segments_damaged {
        uint64_t id, live_bytes;
    } * damaged;
    size_t damaged_count;
    /* Versions that are said to lie in the first lie in the second (store/upkeep/cleaner.h). 0:
     * none. */
    uint64_t moved_from, moved_to;
};

/* Reads what the checkpoint has. After a failure it may be finished only. */
MUST_CHECK
enum status segments_init(struct segments *segments, struct backend *backend);
void segments_fini(struct segments *segments);

/*
 * What a living change takes of a segment. As if it were alone in its record, which is more than
 * the truth for changes of one transaction: so rewriting a segment never takes more than this says.
 */
size_t segments_live_bytes(size_t field_bytes);

/* Changes at and behind loc came alive, which take so much (segments_live_bytes). */
void segments_add_live(struct segments *segments, log_loc loc, uint64_t live_bytes);
/* A change of that length at loc died. */
void segments_drop_live(struct segments *segments, log_loc loc, size_t field_bytes);

/*
 * Inside a transaction: writes the rows of all segments that begin at or before index, without
 * `except`, a copy that the checkpoint does not refer to yet (0: none).
 */
MUST_CHECK
enum status segments_write(struct segments *segments, const struct log *log, uint64_t index,
                           uint64_t except);

/* A segment was replaced by another (0: by none), in which the same versions live. */
MUST_CHECK
enum status segments_replace(struct segments *segments, uint64_t old_id, uint64_t new_id);
/* All versions are said to lie where they are. */
void segments_settle(struct segments *segments);

/* Which segments to copy: full ones that are in the checkpoint wholly, … */
struct segments_choice {
    uint64_t index_max; /* … which reaches so far, */
    uint64_t id_end;    /* with smaller ids than this, */
    double part_max;    /* whose copies would be shorter than this part of them */
    bool heals;         /* and those with damage: a copy of what lives may have none */
};
/* The one of which a copy would be the smallest in proportion; 0: none. */
uint64_t segments_most_dead(const struct segments *segments, const struct log *log,
                            const struct segments_choice *choice);
/* It cannot be copied, and is chosen no more until they are forgiven, unless nothing lives in it.
 */
void segments_set_damaged(struct segments *segments, uint64_t id);
void segments_forgive(struct segments *segments);
/* How many bytes of a segment live. */
uint64_t segments_live(const struct segments *segments, uint64_t id);
/* More than all ids there are. */
uint64_t segments_id_end(const struct log *log);

/* Bytes the log has got since the rows were last written. */
uint64_t segments_bytes_after(const struct segments *segments, const struct log *log);

#endif
