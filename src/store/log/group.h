/*
 * Records appended and not yet written: blocks of memory, each one stretch of one segment, so that
 * a block is one pwrite. A record lies in one block and does not move until it is written.
 * Belongs to the writer.
 */
#ifndef VIGIL_STORE_LOG_GROUP_H
#define VIGIL_STORE_LOG_GROUP_H

#include "store/log/segment.h"

/* One block is kept between groups; longer ones serve single large records and are given back. */
enum { GROUP_BLOCK_BYTES = 256 * 1024 };

struct group_block {
    struct group_block *next; /* the one begun after this */
    struct segment *segment;  /* the log's */
    uint64_t offset;          /* in the segment, of the block's first byte */
    uint64_t last_index;
    int64_t first_revision, last_revision; /* of the records in it that have one; else 0 */
    size_t len, capacity;
    _Alignas(16) uint8_t bytes[];
};

struct group {
    struct group_block *first, *last; /* in order of index */
    struct group_block *spare;        /* GROUP_BLOCK_BYTES long, or NULL */
    size_t pending_bytes;
};

void group_fini(struct group *group);

/* Makes sure that the last block has room for bytes at that place of the segment. */
MUST_CHECK
enum status group_reserve(struct group *group, struct segment *segment, uint64_t offset,
                          size_t bytes);

/* The bytes at a place not yet written; NULL when the group does not hold it. */
const uint8_t *group_at(const struct group *group, const struct segment *segment, uint64_t offset);
/* With what may be behind it in its block; empty. */
struct slice group_rest_at(const struct group *group, const struct segment *segment,
                           uint64_t offset);

/* Drops the first block: it was written. */
void group_pop(struct group *group);

#endif
