/*
 * Repairing a log that a start refuses: an operator accepts that part of it is lost.
 *
 *   a damaged record after the checkpoint     it and all after it are cut off, as if they had never
 *                                             been written
 *   a damaged record that the checkpoint has  nothing is cut off: starts skip it from now on, and
 *                                             reading it returns ST_DAMAGED
 *   a damaged seal                            is made again from the records
 *   a damaged head                            is made again from its twin or its first record
 *   … if that is damaged, too, after the      the segment and all after it are set aside
 *   checkpoint
 *   a damaged mark                            is made again
 *
 * Bytes that are cut off are saved next to their segment, in NNN.seg.lost-OFFSET; segments that are
 * set aside are renamed to NNN.seg.lost. Anything else cannot be repaired: a missing segment, or
 * one that the checkpoint needs and whose head and first record are damaged. A shortened segment is
 * refused until it has its old length again, because then the rest of it can be read.
 */
#ifndef VIGIL_STORE_LOG_REPAIR_H
#define VIGIL_STORE_LOG_REPAIR_H

#include "store/log/log.h"

/* A segment as listed in the checkpoint. */
struct log_listed {
    uint64_t id;
    uint64_t first_index;
    uint64_t used_bytes;
};

/* A record that would be cut off, if its head can be read. */
struct log_lost {
    struct log_record record;
    bool whole; /* its checksum is right */
};

struct log_repair_options {
    struct log_options log;
    uint64_t after_index; /* last index of the checkpoint, and … */
    int64_t after_revision;
    const struct log_listed *listed; /* … the segments it lists */
    size_t listed_count;
    bool accept; /* otherwise nothing is changed */
    void (*lost)(void *ctx, const struct log_lost *lost);
    /* Records that the checkpoint has are damaged, between these two locations of one segment. */
    void (*passed)(void *ctx, const struct log *log, log_loc from, log_loc to);
    void *ctx;
};

struct log_repair {
    bool damaged;        /* a start refuses this log, or did before the repair */
    struct log_cut cut;  /* bytes 0 and reason NULL: nothing after the checkpoint is lost */
    uint64_t last_index; /* the greatest known to have been durable; cut.index is the first lost */
    uint64_t passed_from_index, passed_to_index; /* 0: none */
    uint64_t passed_segment_id, passed_offset;
    bool mark;             /* the mark was damaged */
    unsigned seals;        /* how many were damaged */
    unsigned heads;        /* how many damaged ones without a twin were made again */
    unsigned segments;     /* how many were set aside */
    char saved_path[4200]; /* the file with the bytes that were cut off; "" before that */
};

/* ST_DAMAGED when it cannot be repaired; the error says why. */
MUST_CHECK
enum status log_repair(const struct log_repair_options *options, struct log_repair *ret_repair,
                       struct error *ret_error);

#endif
