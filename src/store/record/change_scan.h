/*
 * Reads all changes and records of a log in order, for repairs. To salvage, it continues after
 * damage: of a damaged record the changes whose own checksum is right are used, and what cannot be
 * read is reported. For one thread.
 */
#ifndef VIGIL_STORE_RECORD_CHANGE_SCAN_H
#define VIGIL_STORE_RECORD_CHANGE_SCAN_H

#include "store/record/change.h"

/* A version of a key that is lost. */
struct store_lost {
    struct slice key;
    int64_t revision;
    bool deleted;  /* the lost version is a deletion */
    bool unsure;   /* read from damaged bytes: the key may be wrong */
    bool doubtful; /* it is unknown whether the key was deleted since */
    bool older;    /* the key has a newer version, which is kept */
};

/* Records of the log that cannot be read as a whole. */
struct store_gap {
    uint64_t from_index, to_index;
    uint64_t segment_id, offset; /* where they are; segment_id 0: they are in no file */
    uint64_t kept_changes;       /* how many of their changes are used all the same */
};

struct change_scan {
    const struct log *log;
    uint64_t from_index, to_index;
    bool salvages; /* otherwise damage ends the scan: ST_DAMAGED */
    /* To salvage: from here on every index has a record, so one that is missing is reported. */
    uint64_t complete_from;
    enum status (*change_seen)(void *ctx, const struct log_record *record,
                               const struct change_head *change, log_loc loc);
    /* After its changes; not for a damaged record. May be NULL. */
    enum status (*record_seen)(void *ctx, const struct log_record *record);
    void (*lost)(void *ctx, const struct store_lost *lost); /* may be NULL */
    void (*gap)(void *ctx, const struct store_gap *gap);
    void *ctx;

    /* Results: where the damage is that has ended the scan. */
    uint64_t damaged_segment, damaged_offset;
};

MUST_CHECK
enum status change_scan_run(struct change_scan *scan);

#endif
