/*
 * How far the log is known to be durable, kept outside of it.
 *
 * Each record says how far the log was durable when it was written, so damage to a record is
 * recognised as soon as another one follows it. The mark says the same of the last ones: it is
 * written when the log falls idle and at a clean stop, never while somebody waits for it.
 *
 *   MARK   0     one copy in the first 4096 bytes
 *          4096  the other in the second
 *
 * The copies are written and synced one after the other, and the file gets its name with both in
 * it. So whatever a power cut leaves behind, one of them is whole: a file without a whole copy is
 * damaged. What a mark says was true when it was written and stays true.
 */
#ifndef VIGIL_STORE_LOG_MARK_H
#define VIGIL_STORE_LOG_MARK_H

#include "base/slice.h"
#include "base/status.h"
#include "io/file.h"

#define MARK_FILE_NAME "MARK"

enum { MARK_FORMAT_VERSION = 1, MARK_COPY_BYTES = 4096, MARK_COPIES = 2 };

/* Damage below the checkpoint that an operator has accepted: a start reads past it. */
struct mark_passed {
    uint64_t segment_id;  /* 0: none was */
    uint64_t first_index; /* of the segment, whose first record may be what is damaged */
    uint64_t index;       /* records up to this are not checked, and … */
    uint64_t offset;      /* … the one after it begins here */
    int64_t revision;     /* the greatest of those that are not checked */
};

struct mark {
    uint64_t index; /* every record up to it was durable; 0: none was */
    struct mark_passed passed;
};

/*
 * ST_NOT_FOUND where there is no file: a new log, or one of an older version. ST_DAMAGED when no
 * copy is whole, ST_WRONG_FORMAT for one of a newer version.
 */
MUST_CHECK
enum status mark_read(struct fs *fs, const char *dir, struct mark *ret_mark);

/* Durable when this returns ST_OK. After a failure each copy is the one before or this one. */
MUST_CHECK
enum status mark_write(struct fs *fs, const char *dir, const struct mark *mark);

/* -- The log's own: the keeper's side -- */

struct log;

/*
 * Notes outside of the log how far it is durable, so that damage to the last records is not taken
 * for a write that was not finished. Two syncs of a small file, none of the log; for when nobody
 * writes. Does nothing if that was noted already. A failure changes nothing for the log.
 */
MUST_CHECK
enum status log_mark(struct log *log);
bool log_is_marked(const struct log *log);

#endif
