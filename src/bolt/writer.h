/*
 * Writes a bbolt file from its first byte to its last; the caller adds the contents in order:
 * buckets by name, keys within them. Holds one open page for each level of the current tree.
 *
 *   0 meta │ 1 meta │ 2 freelist, empty │ the pages of each bucket │ the leaf of the buckets
 *
 * A page is written as soon as it is full, so a branch follows the pages below it, and the root
 * follows everything. The meta pages say where the root is, and come first: so the same contents
 * are added twice, first to a writer that only counts pages. That one uses only the length of a
 * value.
 *
 * One owner, one thread. Aborts without memory, of which it needs some 10 KiB per level.
 */
#ifndef VIGIL_BOLT_WRITER_H
#define VIGIL_BOLT_WRITER_H

#include "bolt/format.h"

struct bolt_writer;

enum {
    BOLT_WRITER_KEY_BYTES_MAX = 1024, /* so that a branch has room for three */
    BOLT_WRITER_BUCKETS_MAX = 16,
};

/* pages: the result of the writer that counted; 0: this one counts. */
struct bolt_writer *bolt_writer_new(uint64_t pages);
void bolt_writer_free(struct bolt_writer *writer); /* accepts NULL */
DEFINE_CLEANUP(struct bolt_writer *, bolt_writer_free)

/* Begins the next bucket. Names ascend; they are borrowed until the end. */
void bolt_writer_bucket(struct bolt_writer *writer, struct slice name);
/* Adds the bucket's next key. Keys ascend. A long value is not copied: it is borrowed until
 * everything was taken, which must happen before the next call other than bolt_writer_take. */
void bolt_writer_add(struct bolt_writer *writer, struct slice key, struct slice value);
/* Ends the file. Returns its number of pages. */
uint64_t bolt_writer_end(struct bolt_writer *writer);

/* Moves the next bytes of the file to dst; fewer than room only when more must be added, or at the
 * end. A writer that counts gives none. */
size_t bolt_writer_take(struct bolt_writer *writer, uint8_t *dst, size_t room);

#endif
