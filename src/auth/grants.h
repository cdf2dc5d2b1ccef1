/*
 * The ranges that a set of roles may read and those it may write: two lists, sorted and disjoint,
 * adjacent ranges joined. A request for [key, end) is allowed if one range contains all of it. This
 * is the result of etcd's interval trees, where adjacent ranges count as one.
 *
 * Immutable and reference-counted: users with the same roles share them. Any thread. Aborts without
 * memory.
 */
#ifndef VIGIL_AUTH_GRANTS_H
#define VIGIL_AUTH_GRANTS_H

#include "auth/access.h"
#include "base/slice.h"
#include "codec/pb/auth.pb.h"

struct auth_grants;

/* With one reference. Invalid permissions are ignored. */
struct auth_grants *auth_grants_new(const struct pb_role *const *roles, size_t role_count);
struct auth_grants *auth_grants_ref(struct auth_grants *grants);
void auth_grants_unref(struct auth_grants *grants); /* accepts NULL */

/* A role can be granted a range with a key that is not empty, and an end after it or "\0". */
bool auth_range_is_valid(struct slice key, struct slice range_end);

/* A range as in requests: see auth_rights_check. */
bool auth_grants_hold(const struct auth_grants *grants, enum auth_access access, struct slice key,
                      struct slice range_end);

/* Unique in this process; not 0. */
uint64_t auth_grants_number(const struct auth_grants *grants);
size_t auth_grants_bytes(const struct auth_grants *grants); /* memory in use */
/* For tests: ranges are sorted and disjoint. */
void auth_grants_check(const struct auth_grants *grants);

#endif
