/*
 * Users, roles and their permissions, as etcd's Auth service keeps them, with its checks in its
 * order and its errors. It keeps no log, hashes nothing and reads no clock.
 *
 *   auth_store_user_add …  ──►  checks, and returns the rows of the change; nothing is changed yet
 *   the caller writes the rows to its log
 *   auth_store_apply       ──►  applies one row: of a change, or read from the log at a start
 *
 * So memory depends on rows alone, and replay makes no decisions. The row of a user is an
 * authpb.User under its name, that of a role an authpb.Role; two more rows have the switch and the
 * revision, under the names that they have in etcd's file.
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
/* All rows together, names included. It limits the rows of one change and the memory of the
 * rights. */
enum { AUTH_STORE_BYTES_MAX = 16 << 20 };

enum auth_table { AUTH_TABLE_USERS, AUTH_TABLE_ROLES, AUTH_TABLE_STATE, AUTH_TABLES };

/* A row; its slices are in the arena of the change. */
struct auth_row {
    enum auth_table table;
    bool deleted; /* there is no value */
    struct slice key;
    struct slice value;
};

/* The rows that a request changes; none if it changes nothing. */
struct auth_change {
    struct auth_row *rows;
    size_t row_count;
    /* Simple tokens that end with it: those of one user, or all. Tokens are not rows. */
    struct slice ends_tokens_of;
    bool ends_all_tokens;
};

struct auth_store *auth_store_new(void);
void auth_store_free(struct auth_store *store); /* accepts NULL */
DEFINE_CLEANUP(struct auth_store *, auth_store_free)

/* ST_DAMAGED for an invalid row; nothing is changed then. */
MUST_CHECK
enum status auth_store_apply(struct auth_store *store, const struct auth_row *row);

/* -- Reading -- */

bool auth_store_enabled(const struct auth_store *store);
/* 1 at first, incremented by every change. */
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
 * The permissions of a role as a client sees them: the role root has all, whatever was granted to
 * it. They belong to the store, or are static.
 */
void auth_role_shown(const struct pb_role *role, const struct pb_permission **ret_permissions,
                     size_t *ret_count);

/*
 * The hash of a user's password. ST_AUTH_NOT_ENABLED; ST_AUTH_FAILED for a user that does not exist
 * or has no password. The hash belongs to the store. The revision must be unchanged when the token
 * is issued.
 */
MUST_CHECK
enum status auth_store_password(const struct auth_store *store, struct slice user,
                                struct slice *ret_hash, uint64_t *ret_revision);

/* -- Changing: each fills in *ret_change, or fails. ST_LIMIT beyond a limit -- */

MUST_CHECK
enum status auth_store_enable(const struct auth_store *store, struct arena *arena,
                              struct auth_change *ret_change);
MUST_CHECK
enum status auth_store_disable(const struct auth_store *store, struct arena *arena,
                               struct auth_change *ret_change);
/* The hash is from auth_password_hash; empty with no_password, for a user that cannot log in with a
 * password. */
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
/* permission is NULL if the request has none. */
MUST_CHECK
enum status auth_store_role_grant(const struct auth_store *store, struct slice role,
                                  const struct pb_permission *permission, struct arena *arena,
                                  struct auth_change *ret_change);
MUST_CHECK
enum status auth_store_role_revoke(const struct auth_store *store, struct slice role,
                                   struct slice key, struct slice range_end, struct arena *arena,
                                   struct auth_change *ret_change);

/* For tests: the order of the entries and the sum of their sizes. */
void auth_store_check(const struct auth_store *store);

#endif
