/*
 * Checks whether one branch of a transaction writes a key twice, with etcd's rules, including their
 * oddities:
 *
 *  - Two puts of a key conflict, unless they are in the two branches of one nested transaction, of
 *    which only one runs.
 *  - A delete conflicts with a put of a key in its range if it is in the same list or in a list
 *    around it; if it is nested, and the put is in the list around it; and, if both are nested in
 *    different transactions, if the delete comes first. (A put before the delete is permitted.)
 *  - Deletes never conflict with each other. A delete from a key to the end of all keys ("\0")
 *    conflicts with nothing, because etcd compares the "\0" as an ordinary key.
 *
 * It takes n log n steps for n puts and deletes, and one comparison per level of nesting. Nothing
 * is allocated for a branch that cannot have a conflict.
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
