/*
 * One segment: a file of fixed size, its mapping, and what is known about its contents.
 *
 * A segment is created or opened by one thread and passed to the log. Afterwards only the writer
 * advances the atomic fields, and other threads read them.
 */
#ifndef VIGIL_STORE_LOG_SEGMENT_H
#define VIGIL_STORE_LOG_SEGMENT_H

#include "io/file.h"
#include "store/log/format.h"

#include <stdatomic.h>

/*
 * Long writes on the writer's thread are synced after this many bytes, and other requests are
 * served.
 */
enum { SEGMENT_PIECE_BYTES = 2 << 20 };

struct segment {
    const uint8_t *base; /* the mapping */
    uint64_t file_bytes; /* its length */
    /* Where the written records end: bytes below it are in the mapping and never change. */
    _Atomic uint64_t written;

    struct segment_head head; /* its capacity does not include the twin (log/format.h) */
    struct file *file;        /* owned */
    bool has_twin;
    uint64_t first_index; /* start of the range it covers; set before it is added to the order */
    uint64_t next_id;     /* the segment in which the writer continued; 0 before that */
    _Atomic uint64_t last_index; /* first_index - 1 while it has no record */
    _Atomic int64_t first_revision, last_revision;
    _Atomic bool full; /* the writer has left it */
    atomic_bool dirty; /* written to since its last sync: is or will be in log.dirty */
    bool blank;        /* during recovery: only zeros follow its good records */
    bool seal_lost;    /* during a repair: its seal is damaged, and … */
    bool seal_mended;  /* … is to be written again */
    bool head_mended;  /* its head is damaged on the disk; `head` was made again */
    struct segment *next_dirty;
    struct segment *next_left; /* links log.left, .replaced or .doomed */
    atomic_bool damaged;       /* part of it could not be read */
    _Atomic unsigned holds;    /* log/hold.h: it stays mapped while this is not 0 */
};

enum {
    SEGMENT_PATH_MAX = 4096,
    SEGMENT_DIR_MAX = SEGMENT_PATH_MAX - 32,
    SEGMENT_ID_MAX = (1 << 30) - 1,
};

struct segment_path {
    char text[SEGMENT_PATH_MAX];
};
/* The directory's name has at most SEGMENT_DIR_MAX bytes; log_new checks this. */
struct segment_path segment_path(const char *dir, uint64_t id, const char *suffix);
/* Parses `NNNNNNNNNNNNNNNN.seg`; false for any other name. */
bool segment_name_parse(const char *name, const char *suffix, uint64_t *ret_id);

/*
 * Creates a segment, zeroed and durable, under a temporary name. After a failure nothing is left
 * but, at worst, a temporary file, which the next start removes.
 */
MUST_CHECK
enum status segment_create(struct fs *fs, const char *dir, const struct segment_head *head,
                           bool synced, struct segment **ret_segment);

/*
 * The same in pieces, because zeroing a segment and making it durable takes 100 ms of the disk.
 * Zeroed: no segment is being made.
 */
struct segment_draft {
    struct segment_head head;
    struct file *file; /* owned; NULL: no segment is being made */
    uint64_t filled;   /* this many bytes are written and, if synced, durable */
    bool synced;
};
MUST_CHECK
enum status segment_draft_begin(struct fs *fs, const char *dir, const struct segment_head *head,
                                bool synced, struct segment_draft *ret_draft);
/* Fills this many more bytes, up to the capacity. */
MUST_CHECK
enum status segment_draft_fill(struct segment_draft *draft, uint64_t bytes);
/* The draft is full and becomes the segment. */
MUST_CHECK
enum status segment_draft_finish(struct segment_draft *draft, struct segment **ret_segment);
/* Closes and removes the file. */
void segment_draft_drop(struct fs *fs, const char *dir, struct segment_draft *draft);

/* Gives it its final name, durably if synced; replaces a file with that name. */
MUST_CHECK
enum status segment_publish(struct fs *fs, const char *dir, uint64_t id, bool synced);
/* Removes the file with the id's final or temporary name, and ignores failures. */
void segment_discard(struct fs *fs, const char *dir, uint64_t id);

/* Opens, checks the head against file size and name, and maps. The records are not examined. */
MUST_CHECK
enum status segment_open(struct fs *fs, const char *dir, uint64_t id, struct segment **ret_segment);

/*
 * Opens a segment of which any part may be damaged, for reading only: a damaged head is made again
 * from the rest of the file (log/mend.h), and a wrong length is accepted. ST_DAMAGED when the file
 * is too short for a record.
 */
MUST_CHECK
enum status segment_open_damaged(struct fs *fs, const char *dir, uint64_t id,
                                 struct segment **ret_segment);

/*
 * For a repair: a damaged head without a twin is made again, if its records prove that it is right,
 * and is written if `writes`. ST_DAMAGED.
 */
MUST_CHECK
enum status segment_open_mended(struct fs *fs, const char *dir, uint64_t id, bool writes,
                                struct segment **ret_segment);

/*
 * The file length according to a valid head, if a different length is its only fault; otherwise 0.
 */
uint64_t segment_lost_length(struct fs *fs, const char *dir, uint64_t id);

/* Unmaps and closes; the file stays. Accepts NULL. */
void segment_free(struct segment *segment);
DEFINE_CLEANUP(struct segment *, segment_free)

/*
 * Writes head and twin again, where they are missing or damaged and the bytes are unused; synced.
 * Before the segment is written to.
 */
MUST_CHECK
enum status segment_write_heads(struct segment *segment, bool synced);

/* Writes zeros over [from, to). */
MUST_CHECK
enum status file_write_zeros(struct file *file, uint64_t from, uint64_t to);

/* The seal for what is written now. */
struct segment_seal segment_seal_of(const struct segment *segment);
/* Sets the fields from a seal that was checked. */
void segment_apply_seal(struct segment *segment, const struct segment_seal *seal);

/* The seal as stored in the mapping. */
struct segment_seal segment_seal_read(const struct segment *segment);

#endif
