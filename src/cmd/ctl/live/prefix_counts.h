/*
 * How often keys below each prefix change. The prefix of "/registry/pods/default/a" with a depth of
 * two is "/registry/pods/": a separator at the beginning does not count.
 *
 * The number of prefixes and the length of each are bounded; what does not fit is counted as
 * others. One owner.
 */
#ifndef VIGIL_CMD_CTL_LIVE_PREFIX_COUNTS_H
#define VIGIL_CMD_CTL_LIVE_PREFIX_COUNTS_H

#include "base/container/hash_map.h"

enum { PREFIX_COUNTS_MAX = 10 * 1000, PREFIX_NAME_BYTES_MAX = 128 };

struct prefix_count {
    uint64_t changes, bytes; /* since the last prefix_counts_next */
    uint64_t total;          /* changes since the beginning */
    size_t name_len;
    uint8_t name[PREFIX_NAME_BYTES_MAX];
};

struct prefix_counts {
    struct hash_map map;        /* owns the prefix_count */
    struct prefix_count others; /* all others together; its name is empty */
    uint64_t changes, bytes;    /* all changes and their bytes */
    uint64_t total;
    struct slice separator;
    unsigned depth;
};

enum prefix_order { PREFIX_BY_CHANGES, PREFIX_BY_BYTES, PREFIX_BY_TOTAL };

/* The separator is borrowed. */
void prefix_counts_init(struct prefix_counts *counts, struct slice separator, unsigned depth);
void prefix_counts_fini(struct prefix_counts *counts);

void prefix_counts_add(struct prefix_counts *counts, struct slice key, size_t bytes);
/* The largest ones, at most max; returns their number. Borrowed until the next change. */
size_t prefix_counts_largest(const struct prefix_counts *counts, enum prefix_order order,
                             const struct prefix_count **ret_largest, size_t max);
/* Begins the next period. If many prefixes are known, those without changes are forgotten. */
void prefix_counts_next(struct prefix_counts *counts);

#endif
