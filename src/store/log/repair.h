/*
 * Going on with a log that a start refuses: an operator accepts that something of it is lost.
 *
 *   a damaged record after the checkpoint     it and all after it are cut off, as if they had never
 *                                             been written
 *   a damaged record that the checkpoint has  nothing is cut off: a start reads past it from now
 *                                             on, and whoever asks for it gets ST_DAMAGED
 *   a damaged seal                            is made anew from the records
 *   a damaged head after the checkpoint       the segment and all after it are set aside
 *   a damaged mark                            is made anew
 *
 * Bytes that are cut off are kept in a file beside their segment, NNN.seg.lost-OFFSET; segments
 * that are set aside are called NNN.seg.lost. What else a start refuses can not be repaired: a
 * segment that is missing, or one that the checkpoint needs and whose head is damaged. One that was
 * shortened is refused until it is as long as before, since what is left of it can be read then.
 */
#ifndef VIGIL_STORE_LOG_REPAIR_H
#define VIGIL_STORE_LOG_REPAIR_H

#include "store/log/log.h"

/* A segment as the checkpoint knows it. */
struct log_listed {
    uint64_t id;
    uint64_t first_index;
    uint64_t used_bytes;
};

/* A record that would be cut off, as far as it can be read. */
struct log_lost {
    struct log_record record;
    bool whole; /* its checksum is right */
};

struct log_repair_options {
    struct log_options log;
    uint64_t after_index; /* of the checkpoint, and … */
    int64_t after_revision;
    const struct log_listed *listed; /* … the segments it knows */
    size_t listed_count;
    bool accept; /* otherwise nothing is changed */
    void (*lost)(void *ctx, const struct log_lost *lost);
    /* Records that the checkpoint has are damaged, between these two places of one segment. */
    void (*passed)(void *ctx, const struct log *log, log_loc from, log_loc to);
    void *ctx;
};

struct log_repair {
    bool damaged;        /* a start refuses this log, or did */
    struct log_cut cut;  /* bytes 0 and reason NULL: nothing is lost after the checkpoint */
    uint64_t last_index; /* the greatest known to have been durable; cut.index is the first lost */
    uint64_t passed_from_index, passed_to_index; /* 0: none */
    uint64_t passed_segment_id, passed_offset;
    bool mark;             /* was damaged */
    unsigned seals;        /* were */
    unsigned segments;     /* set aside */
    char saved_path[4200]; /* where the bytes are that were cut off; "" before that */
};

/* ST_DAMAGED when it can not be repaired; the error says why. */
MUST_CHECK
enum status log_repair(const struct log_repair_options *options, struct log_repair *ret_repair,
                       struct error *ret_error);

#endif
