/*
 * What a set of roles may: one list of ranges to read and one to write, sorted, parted, neighbours
 * joined. A request for [key, end) is in order when one of them holds all of it, which is what
 * etcd's interval trees find out: ranges that touch count as one.
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

/* With one reference. Permissions that nobody could have granted give nothing. */
struct auth_grants *auth_grants_new(const struct pb_role *const *roles, size_t role_count);
struct auth_grants *auth_grants_ref(struct auth_grants *grants);
void auth_grants_unref(struct auth_grants *grants); /* accepts NULL */

/* What a role can be granted: a key that is not empty, and an end that comes after it or "\0". */
bool auth_range_is_valid(struct slice key, struct slice range_end);

/* A range as requests have it: see auth_rights_check. */
bool auth_grants_hold(const struct auth_grants *grants, enum auth_access access, struct slice key,
                      struct slice range_end);

/* Its own for as long as the process runs; not 0. */
uint64_t auth_grants_number(const struct auth_grants *grants);
size_t auth_grants_bytes(const struct auth_grants *grants); /* of memory */
/* For tests: ranges are sorted and parted. */
void auth_grants_check(const struct auth_grants *grants);

#endif
