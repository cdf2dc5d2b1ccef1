/*
 * What each operation needs of who started it: the one place where engines ask, before they do
 * anything for it. The seam's functions say which need it is (engine_op.need), so that no engine
 * and no caller can leave it out; what was not said is refused.
 *
 * Pure: any thread that holds the rights.
 */
#ifndef VIGIL_ENGINE_PERMISSION_H
#define VIGIL_ENGINE_PERMISSION_H

#include "auth/check.h"
#include "auth/method.h"
#include "engine/operation.h"

/* Who owns the leases says which keys hang on them; for operations without leases it may be NULL.
 */
MUST_CHECK
enum status gate_check(const struct engine_op *op, const struct auth_rights *rights,
                       const struct auth_leases *leases);
/* One of those that are renewed together: each is asked for by itself, when its turn comes. */
MUST_CHECK
enum status gate_check_renewal(const struct engine_op *op, const struct auth_rights *rights,
                               const struct auth_leases *leases, int64_t lease);

/* For the seam's functions: an operation begins. */
static inline void gate_begin(struct engine_op *op, struct engine_shard *shard, enum auth_need need,
                              const void *request)
{
    op->shard = shard;
    op->need = (uint8_t)need;
    op->request = request;
}

#endif
