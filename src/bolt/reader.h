/*
 * Reads a bbolt file from any source: page by page through a callback, so that a file that shrinks
 * meanwhile causes an error and no signal, and a file of any size takes a few pages of memory.
 *
 * No byte is trusted. Pages and elements are checked against the bounds of the file, keys against
 * their order, trees against a depth; a page with a wrong number, or one that is reached too often,
 * is damage. The newer of the two intact meta pages is used, as in bbolt. Only the meta pages have
 * checksums: changed bytes of keys and values cannot be found.
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
    /* Reads all requested bytes, which are within `bytes`, or fails. */
    enum status (*read)(void *ctx, void *to, size_t len, uint64_t offset);
    void *ctx;
    uint64_t bytes;
};

struct bolt_reader {
    struct bolt_source source;
    struct bolt_meta meta; /* the newer one */
    struct error error;    /* what was wrong, and where; set with every failure */
};

/* Levels of branches. With bbolt's fan-out, real files have at most five. */
enum { BOLT_DEPTH_MAX = 24 };
/* One page with its overflow: mostly one value. The largest value etcd could have. */
#define BOLT_PAGE_RUN_BYTES_MAX ((uint64_t)1 << 31)

/* ST_WRONG_FORMAT: not a bbolt file. ST_DAMAGED: it was truncated, or its meta pages are damaged.
 */
MUST_CHECK
enum status bolt_reader_init(struct bolt_reader *reader, struct bolt_source source);

struct bolt_entry {
    struct slice key, value; /* valid until the cursor moves */
    bool is_bucket;          /* then the value is for bolt_cursor_init_in */
};

struct bolt_level {
    struct buf page; /* with its overflow */
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
    bool has_last;       /* a key was read */
    struct buf last;     /* that key */
    uint64_t pages_left; /* that may still be read: a tree has at most as many pages as the file */
};

/* The bucket that contains all buckets. */
void bolt_cursor_init(struct bolt_cursor *cursor, struct bolt_reader *reader);
/* A bucket within another, given its value, of which the necessary part is copied. */
MUST_CHECK
enum status bolt_cursor_init_in(struct bolt_cursor *cursor, struct bolt_reader *reader,
                                struct slice bucket_value);
void bolt_cursor_fini(struct bolt_cursor *cursor); /* accepts a zeroed one */

/* ST_END after the last; ST_DAMAGED, or the source's failure: the reader's error says where. */
MUST_CHECK
enum status bolt_cursor_next(struct bolt_cursor *cursor, struct bolt_entry *ret_entry);

/* A bucket of the first level. ST_NOT_FOUND: it does not exist; the cursor may only be finished. */
MUST_CHECK
enum status bolt_cursor_init_named(struct bolt_cursor *cursor, struct bolt_reader *reader,
                                   struct slice name);

#endif
