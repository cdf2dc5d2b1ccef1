/* Versions that the cleaner has copied to a new segment: from where, to where. Owned by the keeper.
 */
#ifndef VIGIL_STORE_RELOCATION_H
#define VIGIL_STORE_RELOCATION_H

#include "store/log/log.h"

struct relocated {
    log_loc from, to;
};

struct relocation {
    uint64_t old_segment;
    uint64_t new_segment; /* 0: nothing was left alive */
    struct relocated *moves;
    size_t count, capacity;
    size_t done; /* the writer's: how many the index knows */
};

#endif
