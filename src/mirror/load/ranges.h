/* The ranges of keys that are mirrored: one for each prefix, sorted and disjoint, or all keys. */
#ifndef VIGIL_MIRROR_LOAD_RANGES_H
#define VIGIL_MIRROR_LOAD_RANGES_H

#include "base/slice.h"

struct range {
    struct slice key, range_end; /* as in a request */
};

struct ranges {
    struct range *items; /* owned, with their bytes; at least one */
    size_t count;
    struct slice *prefixes; /* owned: the same as prefixes; none: all keys */
    size_t prefix_count;
};

/* A prefix within another one is left out; an empty one means all keys, as none does. The slices
 * are borrowed. Aborts without memory. */
void ranges_init(struct ranges *ranges, const struct slice *prefixes, size_t count);
void ranges_fini(struct ranges *ranges);

/* All keys. */
struct range range_all(void);

#endif
