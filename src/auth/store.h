/*
 * Users, roles and what a role may touch, as etcd's Auth service keeps them: its checks in its
 * order, with its errors. Keeps no log, hashes nothing and knows no clock.
 *
 *   auth_store_user_add …  ──►  checks, and says which rows would change; nothing has yet
 *   the caller writes them to its log
 *   auth_store_apply       ──►  takes in one row: a new one, or one that a start reads again
 *
 * So what is in memory comes from rows alone, and replay decides nothing. A user's row is an
 * authpb.User under its name, a role's an authpb.Role; two more say whether access is controlled
 * and count the changes, under the names that etcd's own file has for them.
 *
 * One owner, one thread; checks on other threads use the rights (auth/rights.h) made from it.
 * Aborts without memory.
 */
#ifndef VIGIL_AUTH_STORE_H
#define VIGIL_AUTH_STORE_H

#include "base/memory/arena.h"
#include "base/slice.h"
#include "base/status.h"
#include "codec/pb/auth.pb.h"

#include <stdbool.h>

struct auth_store;

/* Names are keys of rows. etcd has no limit. */
enum { AUTH_NAME_BYTES_MAX = 500 };
/* All rows together, names included: it bounds what one change can write and what the rights hold.
 */
enum { AUTH_STORE_BYTES_MAX = 16 << 20 };

enum auth_table { AUTH_TABLE_USERS, AUTH_TABLE_ROLES, AUTH_TABLE_STATE, AUTH_TABLES };

/* One row as it is to be; the slices lie in the arena that the change was made in. */
struct auth_row {
    enum auth_table table;
    bool deleted; /* then without value */
    struct slice key;
    struct slice value;
};

/* What a request would change; without rows: nothing. */
struct auth_change {
    struct auth_row *rows;
    size_t row_count;
    /* Simple tokens that end with it: those of one user, or all. Tokens are no rows. */
    struct slice ends_tokens_of;
    bool ends_all_tokens;
};

struct auth_store *auth_store_new(void);
void auth_store_free(struct auth_store *store); /* accepts NULL */
DEFINE_CLEANUP(struct auth_store *, auth_store_free)

/* ST_DAMAGED for a row that nobody could have written; nothing has changed then. */
MUST_CHECK
enum status auth_store_apply(struct auth_store *store, const struct auth_row *row);

/* -- What there is -- */

bool auth_store_enabled(const struct auth_store *store);
/* 1 at first, and one more with every change. */
uint64_t auth_store_revision(const struct auth_store *store);

size_t auth_store_user_count(const struct auth_store *store);
size_t auth_store_role_count(const struct auth_store *store);
/* Sorted by name; valid until the next auth_store_apply. */
const struct pb_user *auth_store_user_at(const struct auth_store *store, size_t index);
const struct pb_role *auth_store_role_at(const struct auth_store *store, size_t index);
/* ST_USER_NOT_FOUND, ST_ROLE_NOT_FOUND. */
MUST_CHECK
enum status auth_store_user_get(const struct auth_store *store, struct slice name,
                                const struct pb_user **ret_user);
MUST_CHECK
enum status auth_store_role_get(const struct auth_store *store, struct slice name,
                                const struct pb_role **ret_role);
/*
 * What a client is shown of a role: that named root has everything, whatever was granted to it.
 * Permissions are the store's, or one that lasts.
 */
void auth_role_shown(const struct pb_role *role, const struct pb_permission **ret_permissions,
                     size_t *ret_count);

/*
 * Before the password is hashed: ST_AUTH_NOT_ENABLED, ST_AUTH_FAILED for a user that is not there
 * or has no password. The hash is the store's; the revision is the one to be seen unchanged when
 * the token is given out.
 */
MUST_CHECK
enum status auth_store_password(const struct auth_store *store, struct slice user,
                                struct slice *ret_hash, uint64_t *ret_revision);

/* -- Changing: each fills *ret_change in the arena, or says why not. ST_LIMIT past a limit -- */

MUST_CHECK
enum status auth_store_enable(const struct auth_store *store, struct arena *arena,
                              struct auth_change *ret_change);
MUST_CHECK
enum status auth_store_disable(const struct auth_store *store, struct arena *arena,
                               struct auth_change *ret_change);
/* The hash is auth_password_hash's; empty with no_password, and then such a user never logs in. */
MUST_CHECK
enum status auth_store_user_add(const struct auth_store *store, struct slice name,
                                struct slice hash, bool no_password, struct arena *arena,
                                struct auth_change *ret_change);
MUST_CHECK
enum status auth_store_user_delete(const struct auth_store *store, struct slice name,
                                   struct arena *arena, struct auth_change *ret_change);
MUST_CHECK
enum status auth_store_user_change_password(const struct auth_store *store, struct slice name,
                                            struct slice hash, struct arena *arena,
                                            struct auth_change *ret_change);
MUST_CHECK
enum status auth_store_user_grant_role(const struct auth_store *store, struct slice user,
                                       struct slice role, struct arena *arena,
                                       struct auth_change *ret_change);
MUST_CHECK
enum status auth_store_user_revoke_role(const struct auth_store *store, struct slice user,
                                        struct slice role, struct arena *arena,
                                        struct auth_change *ret_change);
MUST_CHECK
enum status auth_store_role_add(const struct auth_store *store, struct slice name,
                                struct arena *arena, struct auth_change *ret_change);
MUST_CHECK
enum status auth_store_role_delete(const struct auth_store *store, struct slice name,
                                   struct arena *arena, struct auth_change *ret_change);
/* permission is NULL when none was given. */
MUST_CHECK
enum status auth_store_role_grant(const struct auth_store *store, struct slice role,
                                  const struct pb_permission *permission, struct arena *arena,
                                  struct auth_change *ret_change);
MUST_CHECK
enum status auth_store_role_revoke(const struct auth_store *store, struct slice role,
                                   struct slice key, struct slice range_end, struct arena *arena,
                                   struct auth_change *ret_change);

/* For tests: order, sums. */
void auth_store_check(const struct auth_store *store);

#endif
