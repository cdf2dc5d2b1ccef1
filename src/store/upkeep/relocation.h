/*
 * Versions that the cleaner has copied to a new segment: from where, to where. Some at a time, so
 * that the number of versions in a segment does not matter. Owned by the keeper.
 */
#ifndef VIGIL_STORE_UPKEEP_RELOCATION_H
#define VIGIL_STORE_UPKEEP_RELOCATION_H

#include "store/change.h"
#include "store/log/reader.h"

enum { RELOCATION_MOVES_MAX = 1 << 15 };

struct relocated {
    log_loc from, to;
};

/* Through the changes of one segment, in their order; it may be one that was swapped out. */
struct segment_walk {
    struct log_reader reader;
    uint64_t segment;
    bool passes; /* what cannot be read; otherwise that is ST_DAMAGED */
    bool inside; /* a record: `record` */
    struct log_record record;
    struct change_walk changes;
};

struct relocation {
    uint64_t old_segment;
    uint64_t new_segment; /* 0: nothing was left alive */
    struct relocated moves[RELOCATION_MOVES_MAX];
    size_t count, moves_max;
    size_t done; /* the writer's: how many of them the index knows */
    /* The keeper's: the moves are found by going through both segments side by side. */
    struct segment_walk old_walk, new_walk;
    enum status found; /* ST_AGAIN: there may be more. ST_OK: these are the last. Or a failure. */
    /* Then the new segment once more, for the checkpoint to get the new places. */
    struct segment_walk record_walk;
    bool recording;
    int64_t recorded_revision; /* of the last one */
};

#endif
