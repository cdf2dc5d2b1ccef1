/*
 * The ranges that a set of roles may read and those it may write: two lists, sorted and disjoint,
 * adjacent ranges joined. A request for [key, end) is allowed if one range contains all of it. This
 * is the result of etcd's interval trees, where adjacent ranges count as one.
 *
 * Immutable and reference-counted: users with the same roles share them. Any thread. Aborts without
 * memory.
 */
#ifndef VIGIL_AUTH_ROLE_RANGES_H
#define VIGIL_AUTH_ROLE_RANGES_H

#include "auth/access.h"
#include "base/slice.h"
#include "codec/pb/auth.pb.h"

struct role_ranges;

/* With one reference. Invalid permissions are ignored. */
struct role_ranges *role_ranges_new(const struct pb_role *const *roles, size_t role_count);
struct role_ranges *role_ranges_ref(struct role_ranges *role_ranges);
void role_ranges_unref(struct role_ranges *role_ranges); /* accepts NULL */

/* A role can be granted a range with a key that is not empty, and an end after it or "\0". */
bool auth_range_is_valid(struct slice key, struct slice range_end);

/* A range as in requests: see auth_rights_check. */
bool role_ranges_hold(const struct role_ranges *role_ranges, enum auth_access access,
                      struct slice key, struct slice range_end);

/* Unique in this process; not 0. */
uint64_t role_ranges_number(const struct role_ranges *role_ranges);
size_t role_ranges_bytes(const struct role_ranges *role_ranges); /* memory in use */
/* For tests: ranges are sorted and disjoint. */
void role_ranges_check(const struct role_ranges *role_ranges);

#endif
