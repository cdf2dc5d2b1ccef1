/*
 * Reads a bbolt file, whoever wrote it: page by page through a callback, so that a file that
 * shrinks meanwhile is an error and no signal, and a file of any size takes a few pages of memory.
 *
 * Trusts no byte. Pages and elements are held to the bounds of the file, keys to their order, trees
 * to a depth; a page that says it is another one, or that is met too often, is damage. The newer of
 * the two meta pages that are whole counts, as in bbolt. Checksums stand in the meta pages alone:
 * bytes of keys and values that were changed cannot be told.
 *
 * One owner, one thread. Aborts without memory.
 */
#ifndef VIGIL_BOLT_READER_H
#define VIGIL_BOLT_READER_H

#include "base/buf.h"
#include "base/error.h"
#include "bolt/format.h"

/* Where the bytes come from. */
struct bolt_source {
    /* All bytes asked for, which lie within `bytes`, or a failure. */
    enum status (*read)(void *ctx, void *to, size_t len, uint64_t offset);
    void *ctx;
    uint64_t bytes;
};

struct bolt_reader {
    struct bolt_source source;
    struct bolt_meta meta; /* the one that counts */
    struct error error;    /* what was wrong, and where; set with every failure */
};

/* Branches above each other. bbolt's fan-out makes five of any file there is. */
enum { BOLT_DEPTH_MAX = 24 };
/* One page with what overflows it: a value and little else. The largest value etcd could have. */
#define BOLT_PAGE_RUN_BYTES_MAX ((uint64_t)1 << 31)

/* ST_WRONG_FORMAT: no bbolt file. ST_DAMAGED: one that was cut or whose meta pages are. */
MUST_CHECK
enum status bolt_reader_init(struct bolt_reader *reader, struct bolt_source source);

struct bolt_entry {
    struct slice key, value; /* valid until the cursor moves */
    bool is_bucket;          /* then the value is for bolt_cursor_init_in */
};

struct bolt_level {
    struct buf page; /* and what overflows it */
    uint64_t id;
    unsigned at, count; /* the next element */
    bool is_leaf;
};

/* Walks one bucket in the order of its keys. */
struct bolt_cursor {
    struct bolt_reader *reader;
    struct bolt_level levels[BOLT_DEPTH_MAX];
    unsigned depth; /* levels in use; 0: at the end, or not begun */
    uint64_t root;
    bool begun;
    bool is_inline;      /* level 0 was filled at the beginning */
    bool has_last;       /* a key was seen */
    struct buf last;     /* that key */
    uint64_t pages_left; /* to be read: a file's tree has no more pages than the file */
};

/* The bucket of all buckets. */
void bolt_cursor_init(struct bolt_cursor *cursor, struct bolt_reader *reader);
/* A bucket in another, given its value, which is copied as far as it is needed. */
MUST_CHECK
enum status bolt_cursor_init_in(struct bolt_cursor *cursor, struct bolt_reader *reader,
                                struct slice bucket_value);
void bolt_cursor_fini(struct bolt_cursor *cursor); /* accepts a zeroed one */

/* ST_END after the last; ST_DAMAGED, or what the source said: the reader's error says where. */
MUST_CHECK
enum status bolt_cursor_next(struct bolt_cursor *cursor, struct bolt_entry *ret_entry);

/* A bucket of the first level. ST_NOT_FOUND: there is none; the cursor may be finished only. */
MUST_CHECK
enum status bolt_cursor_init_named(struct bolt_cursor *cursor, struct bolt_reader *reader,
                                   struct slice name);

#endif
