/*
 * What the mirror takes, in memory and on the disk, about: the store maps its files, and the
 * follower and the index of the store know each object besides its bytes.
 *
 *     received ──► held ──(replaced, deleted)──► history ──(compacted)──► nothing
 *
 * The follower's thread.
 */
#ifndef VIGIL_TIER_MIRROR_USAGE_H
#define VIGIL_TIER_MIRROR_USAGE_H

#include <stddef.h>
#include <stdint.h>

enum {
    USAGE_OBJECT_BYTES = 300, /* what an object takes besides its value and its key */
    USAGE_KEY_COPIES = 3,     /* here, in the index and in the log */
    USAGE_CHANGE_BYTES =
        200, /* what a change takes in the index, the log and the table of versions */
};

struct usage {
    /* By the objects of all states that are being received or may be read. */
    uint64_t held;
    /* Since the start: by what was replaced or deleted. It is history until it is compacted. */
    uint64_t replaced;
};

static inline uint64_t usage_of(uint64_t objects, uint64_t keys_bytes, uint64_t values_bytes)
{
    return values_bytes + USAGE_KEY_COPIES * keys_bytes + USAGE_OBJECT_BYTES * objects;
}

/* What a state that was replaced, or an object that was deleted, becomes. */
static inline void usage_replace(struct usage *usage, uint64_t bytes)
{
    usage->replaced += bytes + USAGE_CHANGE_BYTES;
}

#endif
