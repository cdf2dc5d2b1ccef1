/* Bytes of keys as numbers, and their common prefixes. Used within store/index only. */
#ifndef VIGIL_STORE_INDEX_KEY_H
#define VIGIL_STORE_INDEX_KEY_H

#include "base/slice.h"

#include <endian.h>

static inline uint64_t load_big_endian(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof(word));
    return be64toh(word);
}

/* The 8 bytes of the key after the first `skip`, big-endian, padded with zeros. */
static inline uint64_t key_prefix(struct slice key, size_t skip)
{
    if (key.len >= skip + 8)
        return load_big_endian(key.ptr + skip);
    if (key.len <= skip)
        return 0;
    size_t missing = 8 - (key.len - skip); /* 1 to 7 bytes */
    if (LIKELY(key.len >= 8))
        return load_big_endian(key.ptr + key.len - 8) << (8 * missing);
    uint64_t word = 0;
    memcpy(&word, key.ptr + skip, key.len - skip);
    return be64toh(word);
}

/* Length of the common prefix, at most `most`. */
static inline size_t common_prefix(struct slice a, struct slice b, size_t most)
{
    size_t limit = size_min(size_min(a.len, b.len), most);
    size_t n = 0;
    while (n + 8 <= limit) {
        uint64_t x, y;
        memcpy(&x, a.ptr + n, 8);
        memcpy(&y, b.ptr + n, 8);
        if (x != y)
            break;
        n += 8;
    }
    while (n < limit && a.ptr[n] == b.ptr[n])
        n++;
    return n;
}

/*
 * Compares the key with the bytes that all keys of a node begin with; sample is one of these keys.
 * 0: the key begins with them too.
 */
static inline int compare_skipped(struct slice key, struct slice sample, size_t skip)
{
    size_t common = size_min(key.len, skip);
    int order = common ? memcmp(key.ptr, sample.ptr, common) : 0;
    if (order != 0)
        return order;
    return key.len < skip ? -1 : 0;
}

#endif
