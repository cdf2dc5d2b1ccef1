/*
 * The versions that the cleaner has copied to a new segment, as moves from one location to another.
 * A limited number at a time, so that memory does not grow with the segment. Owned by the keeper;
 * drawn in store/upkeep/cleaner.h.
 */
#ifndef VIGIL_STORE_UPKEEP_RELOCATION_H
#define VIGIL_STORE_UPKEEP_RELOCATION_H

#include "store/log/reader.h"
#include "store/record/change.h"

enum { RELOCATION_MOVES_MAX = 1 << 15 };

struct relocated {
    log_loc from, to;
};

/* Walks the changes of one segment in order; the segment may be swapped out. */
struct segment_walk {
    struct log_reader reader;
    uint64_t segment;
    bool passes; /* skips what cannot be read; otherwise ST_DAMAGED */
    bool inside; /* within `record` */
    struct log_record record;
    struct change_walk changes;
};

struct relocation {
    uint64_t old_segment;
    uint64_t new_segment; /* 0: no live change was left */
    struct relocated moves[RELOCATION_MOVES_MAX];
    size_t count, moves_max;
    size_t done; /* set by the writer: the number of moves that the index has */
    /* The keeper's: the moves are found by walking both segments side by side. */
    struct segment_walk old_walk, new_walk;
    enum status found; /* ST_AGAIN: there may be more. ST_OK: these are the last. Or a failure. */
    /* Then the new segment is walked again, to put the new locations into the checkpoint. */
    struct segment_walk record_walk;
    bool recording;
    int64_t recorded_revision; /* revision of the last version recorded */
};

#endif
