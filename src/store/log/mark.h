/*
 * How far the log is known to be durable, stored outside of it.
 *
 * Each record says how far the log was durable when it was written, so damage to a record is
 * recognised as soon as another record follows. The mark says the same about the last records. It
 * is written when the log becomes idle and at a clean stop, never while a request waits.
 *
 *   MARK   0     one copy in the first 4096 bytes
 *          4096  the other in the second
 *
 * The copies are written and synced one after the other, and the file gets its name when it has
 * both. So after a power cut one of them is complete: a file without a complete copy is damaged.
 * What a mark says was true when it was written and stays true.
 */
#ifndef VIGIL_STORE_LOG_MARK_H
#define VIGIL_STORE_LOG_MARK_H

#include "base/slice.h"
#include "base/status.h"
#include "io/file.h"

#define MARK_FILE_NAME "MARK"

enum { MARK_FORMAT_VERSION = 1, MARK_COPY_BYTES = 4096, MARK_COPIES = 2 };

/* Damage before the checkpoint's index that an operator has accepted: a start skips it. */
struct mark_passed {
    uint64_t segment_id; /* 0: no damage was accepted */
    /* First index of the segment, whose first record may be the damaged one. */
    uint64_t first_index;
    uint64_t index;   /* records up to this are not checked, and … */
    uint64_t offset;  /* … the next one begins here */
    int64_t revision; /* the greatest of the records that are not checked */
};

struct mark {
    uint64_t index; /* every record up to this was durable; 0: none */
    struct mark_passed passed;
};

/*
 * ST_NOT_FOUND without a file: a new log, or one of an older version. ST_DAMAGED if no copy is
 * complete, ST_WRONG_FORMAT if it has a newer version.
 */
MUST_CHECK
enum status mark_read(struct fs *fs, const char *dir, struct mark *ret_mark);

/*
 * Durable when this returns ST_OK. After a failure each copy is either the previous one or this
 * one.
 */
MUST_CHECK
enum status mark_write(struct fs *fs, const char *dir, const struct mark *mark);

/* -- The mark of a log: for the keeper -- */

struct log;

/*
 * Writes a mark with the durable index, so that damage to the last records is not mistaken for an
 * unfinished write. Costs two syncs of a small file and none of the log; called when the writer is
 * idle. Does nothing if the mark is up to date. A failure does not affect the log.
 */
MUST_CHECK
enum status log_mark(struct log *log);
bool log_is_marked(const struct log *log);

#endif
