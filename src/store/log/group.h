/*
 * Records that are appended and not yet written: blocks of memory, each for a contiguous part of
 * one segment, so that a block takes one pwrite. A record is in one block and does not move until
 * it is written. Belongs to the writer.
 */
#ifndef VIGIL_STORE_LOG_GROUP_H
#define VIGIL_STORE_LOG_GROUP_H

#include "store/log/segment.h"

/* One block is kept between groups. Longer blocks, for single large records, are freed. */
enum { GROUP_BLOCK_BYTES = 256 * 1024 };

struct group_block {
    struct group_block *next; /* in order of creation */
    struct segment *segment;  /* borrowed from the log */
    uint64_t offset;          /* in the segment, of the block's first byte */
    uint64_t last_index;
    int64_t first_revision, last_revision; /* range of its records; 0 if they have none */
    size_t len, capacity;
    _Alignas(16) uint8_t bytes[];
};

struct group {
    struct group_block *first, *last; /* in order of index */
    struct group_block *spare;        /* GROUP_BLOCK_BYTES long, or NULL */
    size_t pending_bytes;
};

void group_fini(struct group *group);

/* Makes sure that the last block can take that many bytes at that offset of the segment. */
MUST_CHECK
enum status group_reserve(struct group *group, struct segment *segment, uint64_t offset,
                          size_t bytes);

/* The bytes at an offset that are not yet written, up to the end of their block; empty when the
 * group does not have them. */
struct slice group_rest_at(const struct group *group, const struct segment *segment,
                           uint64_t offset);

/* Drops the first block, which was written. */
void group_pop(struct group *group);

#endif
