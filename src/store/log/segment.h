/*
 * One segment: a file of fixed size, its mapping, and what is known of its contents. And the
 * table that finds a segment by id from any thread without a lock.
 *
 * A segment is made or opened by one thread and handed to the log; afterwards the writer alone
 * advances the atomic fields, and others read them.
 */
#ifndef VIGIL_STORE_LOG_SEGMENT_H
#define VIGIL_STORE_LOG_SEGMENT_H

#include "io/file.h"
#include "store/log/format.h"

#include <stdatomic.h>

/* Long writes on the writer's thread are synced after so much, and others are served then. */
enum { SEGMENT_PIECE_BYTES = 2 << 20 };

struct segment {
    const uint8_t *base; /* the mapping, head.capacity bytes */
    /* Where the written records end: bytes below it are in the mapping and never change. */
    _Atomic uint64_t written;

    struct segment_head head;
    struct file *file;           /* ours */
    uint64_t first_index;        /* of the range it stands for; set before it is put in order */
    uint64_t next_id;            /* where the writer went from here; 0 as long as it did not */
    _Atomic uint64_t last_index; /* first_index - 1 while it has no record */
    _Atomic int64_t first_revision, last_revision;
    _Atomic bool full; /* the writer has left it */
    atomic_bool dirty; /* written to since its last sync: is or will be in log.dirty */
    bool blank;        /* while recovering: only zeros lie behind its good records */
    bool seal_lost;    /* while repairing: its seal is damaged, and … */
    bool seal_mended;  /* … is to be written anew */
    struct segment *next_dirty;
    struct segment *next_left; /* links log.left: its seal is to be written */
    atomic_bool damaged;       /* something in it could not be read */
    _Atomic unsigned holds;    /* of log/hold.h: while there are any it stays mapped */
};

enum {
    SEGMENT_PATH_MAX = 4096,
    SEGMENT_DIR_MAX = SEGMENT_PATH_MAX - 32,
    SEGMENT_ID_MAX = (1 << 30) - 1,
};

struct segment_path {
    char text[SEGMENT_PATH_MAX];
};
/* The directory's name has at most SEGMENT_DIR_MAX bytes: the log has seen to that. */
struct segment_path segment_path(const char *dir, uint64_t id, const char *suffix);
/* Reads `NNNNNNNNNNNNNNNN.seg`; false for any other name. */
bool segment_name_parse(const char *name, const char *suffix, uint64_t *ret_id);

/*
 * Makes a new segment, zeroed and durable, under a temporary name. After a failure nothing of it is
 * left but, at worst, a temporary file, which the next start removes.
 */
MUST_CHECK
enum status segment_create(struct fs *fs, const char *dir, const struct segment_head *head,
                           struct segment **ret_segment);
/* Gives it its name, for good; one that had the name is replaced. */
MUST_CHECK
enum status segment_publish(struct fs *fs, const char *dir, uint64_t id);
/* Removes what has the id's name, or its temporary name, as far as that can be done. */
void segment_discard(struct fs *fs, const char *dir, uint64_t id);

/* Opens, checks the head against file size and name, and maps. Nothing is known of records yet. */
MUST_CHECK
enum status segment_open(struct fs *fs, const char *dir, uint64_t id, struct segment **ret_segment);

/* How long the file should be by its head, if that is whole and another length is all that is wrong
 * with it; otherwise 0. */
uint64_t segment_lost_length(struct fs *fs, const char *dir, uint64_t id);

/* Unmaps and closes; the file stays. Accepts NULL. */
void segment_free(struct segment *segment);
DEFINE_CLEANUP(struct segment *, segment_free)

/* Writes zeros over [from, to). */
MUST_CHECK
enum status file_write_zeros(struct file *file, uint64_t from, uint64_t to);

/* The segment's seal as of what is written. */
struct segment_seal segment_seal_of(const struct segment *segment);
/* Takes over what a checked seal says. */
void segment_apply_seal(struct segment *segment, const struct segment_seal *seal);

/* Seal as it lies in the mapping. */
struct segment_seal segment_seal_read(const struct segment *segment);

/* -- The table: ids of 30 bits, two levels of 2^15 -- */

enum { SEGMENT_TABLE_BITS = 15, SEGMENT_TABLE_FANOUT = 1 << SEGMENT_TABLE_BITS };

typedef _Atomic(struct segment *) segment_slot;

struct segment_table {
    _Atomic(segment_slot *) *chunks;
    size_t chunks_end; /* after the last one in use: the writers' */
};

MUST_CHECK
enum status segment_table_init(struct segment_table *table);
void segment_table_fini(struct segment_table *table); /* the segments are not the table's */
/* Writers take turns (log.lock); readers are any. NULL removes. */
MUST_CHECK
enum status segment_table_put(struct segment_table *table, uint64_t id, struct segment *segment);

/* NULL when there is none. */
static inline struct segment *segment_table_get(const struct segment_table *table, uint64_t id)
{
    segment_slot *chunk = atomic_load_explicit(
        &table->chunks[(id >> SEGMENT_TABLE_BITS) & (SEGMENT_TABLE_FANOUT - 1)],
        memory_order_acquire);
    if (UNLIKELY(!chunk))
        return NULL;
    return atomic_load_explicit(&chunk[id & (SEGMENT_TABLE_FANOUT - 1)], memory_order_acquire);
}

#endif
