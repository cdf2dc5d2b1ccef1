/* Hashes for tests: all steps at once. */
#ifndef VIGIL_STORE_UPKEEP_WHOLE_HASH_TEST_H
#define VIGIL_STORE_UPKEEP_WHOLE_HASH_TEST_H

#include "store/upkeep.h"

MUST_CHECK
static inline enum status whole_hash_at(struct upkeep *upkeep, int64_t at,
                                        struct upkeep_hash *ret_hash)
{
    struct store_hash hash;
    TRY(upkeep_hash_begin(upkeep, at, &hash, ret_hash));
    return upkeep_hash_step(upkeep, &hash, SIZE_MAX, &ret_hash->hash);
}

MUST_CHECK
static inline enum status whole_hash_of_compaction(struct upkeep *upkeep, int64_t before,
                                                   int64_t revision, uint32_t *ret_hash)
{
    struct store_hash hash;
    upkeep_hash_begin_compaction(upkeep, before, revision, &hash);
    return upkeep_hash_step(upkeep, &hash, SIZE_MAX, ret_hash);
}

#endif
