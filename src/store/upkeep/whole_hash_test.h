/* Hashes for tests: all steps at once. */
#ifndef VIGIL_STORE_UPKEEP_WHOLE_HASH_TEST_H
#define VIGIL_STORE_UPKEEP_WHOLE_HASH_TEST_H

#include "store/keeper.h"

MUST_CHECK
static inline enum status whole_hash_at(struct keeper *keeper, int64_t at,
                                        struct keeper_hash *ret_hash)
{
    struct store_hash hash;
    TRY(keeper_hash_begin(keeper, at, &hash, ret_hash));
    return keeper_hash_step(keeper, &hash, SIZE_MAX, &ret_hash->hash);
}

MUST_CHECK
static inline enum status whole_hash_of_compaction(struct keeper *keeper, int64_t before,
                                                   int64_t revision, uint32_t *ret_hash)
{
    struct store_hash hash;
    keeper_hash_begin_compaction(keeper, before, revision, &hash);
    return keeper_hash_step(keeper, &hash, SIZE_MAX, ret_hash);
}

#endif
