/*
 * Writes a bbolt file from its first byte to its last, of what is handed to it in order: buckets
 * by name, keys within them. Holds one open page for each level of the tree it is in.
 *
 *   0 meta | 1 meta | 2 freelist, empty | the pages of each bucket | the leaf of the buckets
 *
 * A page goes out as soon as it is full, so a branch stands behind what is below it and the root
 * behind everything. The meta pages say where that is, and stand first: so the same things are
 * handed to a writer twice, first to one that only counts pages. That one looks at no value, only
 * at its length.
 *
 * One owner, one thread. Aborts without memory, of which it needs some 10 KiB a level.
 */
#ifndef VIGIL_BOLT_WRITER_H
#define VIGIL_BOLT_WRITER_H

#include "bolt/format.h"

struct bolt_writer;

enum {
    BOLT_WRITER_KEY_BYTES_MAX = 1024, /* so that a branch has room for three */
    BOLT_WRITER_BUCKETS_MAX = 16,
};

/* pages: what another writer has counted; 0: this one is to count. */
struct bolt_writer *bolt_writer_new(uint64_t pages);
void bolt_writer_free(struct bolt_writer *writer); /* accepts NULL */
DEFINE_CLEANUP(struct bolt_writer *, bolt_writer_free)

/* The next bucket. Names ascend; they are borrowed until the end. */
void bolt_writer_bucket(struct bolt_writer *writer, struct slice name);
/*
 * The bucket's next key. Keys ascend. A long value is not copied: it is borrowed until everything
 * was taken, which must be before the next call of any but bolt_writer_take.
 */
void bolt_writer_add(struct bolt_writer *writer, struct slice key, struct slice value);
/* That was all. Returns how many pages the file has. */
uint64_t bolt_writer_end(struct bolt_writer *writer);

/* Moves the next bytes of the file to dst; less than room only when more must be handed in, or when
 * all was. Never anything from a writer that counts. */
size_t bolt_writer_take(struct bolt_writer *writer, uint8_t *dst, size_t room);

#endif
