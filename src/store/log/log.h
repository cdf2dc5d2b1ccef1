/*
 * The value log: every request that changed something, in order, in segments of the data
 * directory. It is the write-ahead log and the home of the values at once: nothing is written
 * twice. Segments are mapped and immutable once published, so a value is read where it lies.
 *
 *   segment   head | record | record | …  zeros to the end      (NNNNNNNNNNNNNNNN.seg, hex id)
 *   record    crc32c len type index revision durable | body | pad to 8
 *
 * A location names a byte: segment id and offset in it. Locations are stable until the cleaner
 * rewrites the segment under a new id.
 *
 * Threads: one writer (reserve, append, write, sync); any reader of published locations. Preparing
 * the next segment and rewriting old ones belong to the keeper's thread. A segment that was
 * dropped stays mapped until its last reader's epoch has passed: the caller says when.
 *
 * Faults: a torn tail is cut, and log_cut says so. A bad record is damage only if a later record,
 * the mark (log/mark.h) or the checkpoint says that it was durable; then opening fails and the
 * error names segment and offset. A failed write or sync is final: every later call fails.
 */
#ifndef VIGIL_STORE_LOG_LOG_H
#define VIGIL_STORE_LOG_LOG_H

#include "base/error.h"
#include "base/slice.h"
#include "io/file.h"

struct log;

/* Segment id in the upper bits, offset in the lower 34: 16 GiB a segment is plenty. 0 is none. */
typedef uint64_t log_loc;
enum { LOG_OFFSET_BITS = 34 };

struct log_options {
    struct fs *fs;
    const char *dir;            /* exists; holds the segments */
    size_t segment_bytes_first; /* capacity of the first segment; each next one doubles … */
    size_t segment_bytes_max;   /* … up to this */
    uint64_t salt;              /* random: keeps stored values from passing for records */
};

/* Of the caller's types, that of records which make the revision they carry. */
enum { LOG_TYPE_OF_REVISIONS = 1 };

/* What is stored with each record. */
struct log_record {
    uint64_t index;   /* one more than the record before */
    int64_t revision; /* 0 where the record has none */
    uint8_t type;
    struct slice body; /* in the mapping */
    log_loc body_loc;  /* where body begins: 8-byte aligned */
};

/* Called for every record found, in order of index. A failure ends the opening with that status. */
typedef enum status (*log_replay_fn)(void *ctx, const struct log_record *record);

/*
 * Opens or creates the log and replays the records with index > after_index.
 * listed: ids of the segments the checkpoint knows: all with first_index <= after_index, and no
 * other (NULL at first start). A file whose first index is at or below after_index and that is
 * not listed is left over from the cleaner and is removed; a listed one that is missing is damage.
 * When this returns, all that was replayed is durable.
 */
MUST_CHECK
enum status log_open(const struct log_options *options, uint64_t after_index,
                     const uint64_t *listed, size_t listed_count, log_replay_fn replay, void *ctx,
                     struct log **ret_log, struct error *ret_error);
void log_close(struct log *log);
DEFINE_CLEANUP(struct log *, log_close)

/* -- The writer's side -- */

/*
 * Makes sure that one record with a body of that length can be appended: in the current segment, or
 * in a new one. The only call of the writer that may fail for lack of space; nothing is changed
 * then.
 */
MUST_CHECK
enum status log_reserve(struct log *log, size_t body_bytes);

/* The disk is full and the current segment nearly: the rest is for records that make room. */
bool log_is_short(const struct log *log);

/*
 * Begins the record that was reserved: returns where its body will be, and memory to build it in.
 * log_append_end fixes its real length (at most what was reserved) and gives it the next index.
 * The memory is readable through log_at by the writer at once, by others after log_write.
 */
uint8_t *log_append_begin(struct log *log, log_loc *ret_body_loc);
uint64_t log_append_end(struct log *log, uint8_t type, int64_t revision, size_t body_bytes);
/* Drops the record begun: nothing was appended. */
void log_append_abort(struct log *log);

/* Bytes appended and not yet written. */
size_t log_pending_bytes(const struct log *log);
/* Writes what was appended to the file; not durable yet. */
MUST_CHECK
enum status log_write(struct log *log);
/*
 * Makes durable all that was written before the call: log_durable_index says how far that was. May
 * run on a thread of its own, one call at a time, while the writer reserves, appends and writes.
 */
MUST_CHECK
enum status log_sync(struct log *log);
uint64_t log_last_index(const struct log *log);
uint64_t log_durable_index(const struct log *log);

/* -- Reading -- */

/*
 * The bytes at a location, valid as long as the segment is; those of a record not yet written,
 * which only the writer can ask for, until log_write.
 */
const uint8_t *log_at(const struct log *log, log_loc loc);
/* The same, and all that was written behind them in their segment; empty for no place of the log.
 */
struct slice log_rest_at(const struct log *log, log_loc loc);
/*
 * Where every thread will find those bytes once they are written: the place in the mapping, also
 * for a record that is still in the writer's memory.
 */
const uint8_t *log_mapped_at(const struct log *log, log_loc loc);

/* -- The keeper's side -- */

/*
 * Creates the next segment ahead of the writer, zeroed and synced, if none is waiting. Removes the
 * files of segments that were forgotten.
 */
MUST_CHECK
enum status log_prepare(struct log *log);
bool log_wants_prepare(const struct log *log); /* any thread */

struct log_segment_info {
    uint64_t id;
    uint64_t first_index, last_index;
    int64_t first_revision, last_revision; /* 0 when it has none */
    uint64_t used_bytes;                   /* head and records */
    bool full;                             /* the writer has left it */
    bool damaged;                          /* something in it could not be read: log/damage.h */
};
/* Segments in order of index. Returns how many there are; fills at most max. Any thread. */
size_t log_segments(const struct log *log, struct log_segment_info *ret_infos, size_t max);

/* The rest of the log, in headers of its own. */
#include "store/log/damage.h"
#include "store/log/reader.h"
#include "store/log/rewrite.h"

#endif
