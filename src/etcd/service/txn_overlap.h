/*
 * Whether one branch of a transaction writes a key twice. etcd's rules, quirks included:
 *
 *  - Two puts of a key clash, unless they stand in the two branches of one nested transaction,
 *    of which only one runs.
 *  - A delete clashes with a put of a key in its range if it stands in the same list or in one
 *    around it; if it is nested beside a put of the list itself; and, both being nested in
 *    different transactions, if it comes first. (Put first, then delete, is let through.)
 *  - Deletes never clash with deletes. A delete from a key to the end ("\0") clashes with
 *    nothing: etcd compares its end as it stands.
 *
 * Costs n log n in puts and deletes, and one comparison per level of nesting; nothing is
 * allocated for a branch that cannot clash.
 */
#ifndef VIGIL_ETCD_SERVICE_TXN_OVERLAP_H
#define VIGIL_ETCD_SERVICE_TXN_OVERLAP_H

#include "base/memory/arena.h"
#include "base/status.h"

struct pb_request_op;

/* ST_OK, ST_DUPLICATE_KEY, or ST_NOMEM when the arena is exhausted. All keys are non-empty. */
MUST_CHECK
enum status txn_overlap_check(const struct pb_request_op *ops, size_t count, struct arena *arena);

#endif
