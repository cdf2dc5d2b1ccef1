/*
 * One key in the index: its newest version, and the locations of its older ones.
 *
 * The index's writer makes items, which are immutable once published; readers access them through a
 * pinned root (store/index/index.h).
 */
#ifndef VIGIL_STORE_INDEX_ITEM_H
#define VIGIL_STORE_INDEX_ITEM_H

#include "base/slice.h"

/* One version of a key. */
struct index_version {
    int64_t mod_revision;
    int64_t create_revision; /* 0 for a tombstone, whose version and lease are 0 too */
    int64_t version;
    int64_t lease;
    uint64_t loc;          /* location of its change in the log (store/record/change.h) */
    uint32_t field_bytes;  /* length of the encoded `12 len KeyValue`; 0 for a tombstone */
    uint32_t sub_revision; /* position within its revision */
};

/*
 * A key and its versions; 8-byte aligned. After the key and its padding there are up to
 * INDEX_OLDER_INLINE older locations. If there are more, a pointer to an array of them follows
 * instead, which successive items share: a later item appends after the count of the earlier ones.
 */
struct index_item {
    struct index_version newest;
    uint32_t key_len;
    uint32_t older_count;
    uint8_t bytes[]; /* begins with the key */
};
enum { INDEX_OLDER_INLINE = 4 };

/* Live keys of a subtree or range, and the sum of their field_bytes. */
struct index_sum {
    uint64_t live_keys;
    uint64_t live_bytes;
};

/* Levels of the tree. With nodes a quarter full, 16 levels hold far more keys than fit in memory.
 */
enum { INDEX_DEPTH_MAX = 16 };

/* Far above any request limit; a longer key is a bug. */
enum { INDEX_KEY_BYTES_MAX = 1 << 28 };

static inline struct slice index_item_key(const struct index_item *item)
{
    return slice_of(item->bytes, item->key_len);
}

/* The locations of the older_count older versions, oldest first. */
static inline const uint64_t *index_item_older(const struct index_item *item)
{
    const void *tail = item->bytes + align_up(item->key_len, 8);
    if (item->older_count <= INDEX_OLDER_INLINE)
        return tail;
    return *(const uint64_t *const *)tail;
}

static inline bool index_item_live(const struct index_item *item)
{
    return item->newest.create_revision != 0;
}

#endif
