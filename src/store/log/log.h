/*
 * The value log: every request that changed something, in order, in segment files of the data
 * directory. It is the write-ahead log and also the only copy of the values. Segments are mapped
 * into memory and immutable once published, so a value is read where it is stored.
 *
 *   segment   head | record | record | …  zeros to the end      (NNNNNNNNNNNNNNNN.seg, hex id)
 *   record    crc32c len type index revision durable | body | pad to 8
 *
 * A location names a byte: a segment id and an offset in that segment. Locations are stable until
 * the cleaner rewrites the segment under a new id.
 *
 * Threads: one writer reserves, appends, writes and syncs; any thread reads published locations.
 * The keeper's thread prepares the next segment and rewrites old ones. A dropped segment stays
 * mapped until its last reader's epoch has passed: the caller says when.
 *
 * Faults: a torn tail is cut off and reported by log_cut. A bad record is damage only if a later
 * record, the mark (log/mark.h) or the checkpoint proves that it was durable; then opening fails
 * with an error that names segment and offset. After a failed write or sync every later call fails.
 */
#ifndef VIGIL_STORE_LOG_LOG_H
#define VIGIL_STORE_LOG_LOG_H

#include "base/error.h"
#include "base/slice.h"
#include "io/file.h"

struct log;

/* The segment id in the upper bits, the offset in the lower 34 (16 GiB). 0 means "none". */
typedef uint64_t log_loc;
enum { LOG_OFFSET_BITS = 34 };

struct log_options {
    struct fs *fs;
    const char *dir;            /* exists; contains the segments */
    size_t segment_bytes_first; /* capacity of the first segment; each next one doubles … */
    size_t segment_bytes_max;   /* … up to this */
    bool unsynced;              /* nothing is synced before log_sync_all; "durable" means written */
    uint64_t salt;              /* random: stored values cannot be mistaken for records */
};

/* The caller's type of records that create the revision they carry. */
enum { LOG_TYPE_OF_REVISIONS = 1 };

struct log_record {
    uint64_t index;   /* one more than the record before */
    int64_t revision; /* 0 if the record has none */
    uint8_t type;
    struct slice body; /* in the mapping */
    log_loc body_loc;  /* where body begins: 8-byte aligned */
};

/* Called for every record found, in order of index. A failure ends the opening with that status. */
typedef enum status (*log_replay_fn)(void *ctx, const struct log_record *record);

/*
 * Opens or creates the log and replays the records with index > after_index; they are durable when
 * this returns. listed: ids of the segments in the checkpoint, which are exactly those with
 * first_index <= after_index (NULL at first start). Another file with such a first index is left
 * over from the cleaner and is removed; a listed segment that is missing is damage.
 */
MUST_CHECK
enum status log_open(const struct log_options *options, uint64_t after_index,
                     const uint64_t *listed, size_t listed_count, log_replay_fn replay, void *ctx,
                     struct log **ret_log, struct error *ret_error);
void log_close(struct log *log);
DEFINE_CLEANUP(struct log *, log_close)

/* The tail that log_open cut off: an unfinished write. */
struct log_cut {
    uint64_t index; /* the first that is missing; the next record gets it */
    uint64_t bytes; /* 0: nothing was cut */
    uint64_t segment_id, offset;
    const char *reason;
};
struct log_cut log_cut(const struct log *log);

/* -- The writer's side -- */

/*
 * Makes sure that one record with a body of that length can be appended, in the current segment or
 * in a new one. The only call of the writer that may fail because space is lacking; after a failure
 * nothing has changed.
 */
MUST_CHECK
enum status log_reserve(struct log *log, size_t body_bytes);

/* The disk and the current segment are nearly full: only records that free space should follow. */
bool log_is_short(const struct log *log);

/*
 * Begins the reserved record: returns memory to build its body in, and the body's location.
 * log_append_end sets the final length (at most the reserved one) and assigns the next index.
 * The writer can read the memory through log_rest_at at once, other threads after log_write.
 */
uint8_t *log_append_begin(struct log *log, log_loc *ret_body_loc);
uint64_t log_append_end(struct log *log, uint8_t type, int64_t revision, size_t body_bytes);
void log_append_abort(struct log *log);          /* drops the record that was begun */
size_t log_pending_bytes(const struct log *log); /* appended and not yet written */
/* Writes what was appended to the file; not durable yet. */
MUST_CHECK
enum status log_write(struct log *log);
/*
 * Makes durable what was written before the call, up to log_durable_index. May run on its own
 * thread, one call at a time, while the writer reserves, appends and writes.
 */
MUST_CHECK
enum status log_sync(struct log *log);
/* Syncs a log that was written without syncs. No other thread may use it. */
MUST_CHECK
enum status log_sync_all(struct log *log);
uint64_t log_last_index(const struct log *log); /* for tests */
uint64_t log_durable_index(const struct log *log);

/* -- Reading -- */

/*
 * The bytes at a location and all written ones after it in its segment; empty if the location is
 * invalid. Valid as long as the segment; those of a record that is not yet written, which only the
 * writer can request, until log_write.
 */
struct slice log_rest_at(const struct log *log, log_loc loc);
/* The address in the mapping where every thread finds those bytes once they are written. */
const uint8_t *log_mapped_at(const struct log *log, log_loc loc);

/* -- The keeper's side -- */

/*
 * Creates the next segment ahead of the writer, zeroed and synced, if none is waiting. Removes the
 * files of forgotten segments. In steps: log/prepare.h.
 */
MUST_CHECK
enum status log_prepare(struct log *log);
bool log_wants_prepare(const struct log *log); /* there is something to begin; any thread */

struct log_segment_info {
    uint64_t id;
    uint64_t first_index, last_index;
    int64_t first_revision, last_revision; /* 0 when it has none */
    uint64_t used_bytes;                   /* head and records */
    bool full;                             /* the writer has left it */
    bool damaged;                          /* part of it could not be read: log/damage.h */
};
/* Segments in order of index. Returns how many there are; fills at most max. Any thread. */
size_t log_segments(const struct log *log, struct log_segment_info *ret_infos, size_t max);

void log_check(const struct log *log); /* for tests, on the writer's thread */

#endif
