/*
 * The rights of all users: an immutable snapshot made from the store, shared by all threads. A
 * check takes no lock and allocates no memory. After a change a new snapshot is made, which shares
 * all unchanged users with the one before (auth/user_table.h).
 *
 *   auth_store ── auth_rights_new, …_after ──► auth_rights ── published ──► checks on any thread
 *
 * Reference-counted: the publisher holds a reference, and so does every thread that keeps it for
 * longer than a turn.
 */
#ifndef VIGIL_AUTH_RIGHTS_H
#define VIGIL_AUTH_RIGHTS_H

#include "auth/access.h"
#include "base/slice.h"
#include "base/status.h"

#include <stdbool.h>

struct auth_row;
struct auth_store;

/* The part that every operation looks at; users and grants follow it in rights.c. */
struct auth_rights {
    bool enabled;
    uint64_t revision; /* revision of users and roles */
};

/* The user of a request. All zero: no credentials were given. */
struct auth_principal {
    struct slice user;
    uint64_t revision; /* revision of users and roles when the credentials were checked; 0: none
                          were given */
    bool is_server;    /* the server itself, which may do everything; set by our own code only */
    /* With an engine in front of a cluster: the client's own token, which the cluster checks; the
     * fields above are not set then. Empty: none was given. */
    struct slice token;
};

/* With one reference. Aborts without memory. */
struct auth_rights *auth_rights_new(const struct auth_store *store);
/* The same, from the snapshot before the rows were applied to the store. */
struct auth_rights *auth_rights_after(const struct auth_rights *before,
                                      const struct auth_store *store, const struct auth_row *rows,
                                      size_t row_count);
struct auth_rights *auth_rights_ref(struct auth_rights *rights);
void auth_rights_unref(struct auth_rights *rights); /* accepts NULL */
DEFINE_CLEANUP(struct auth_rights *, auth_rights_unref)

static inline bool auth_rights_enabled(const struct auth_rights *rights)
{
    return rights->enabled;
}

static inline uint64_t auth_rights_revision(const struct auth_rights *rights)
{
    return rights->revision;
}

/* Authentication is disabled, or the principal is the server itself. */
static inline bool auth_rights_unchecked(const struct auth_rights *rights,
                                         const struct auth_principal *principal)
{
    return !rights->enabled || principal->is_server;
}

/*
 * A range as in requests: without end one key, with the end "\0" everything from the key on.
 * ST_USER_EMPTY without a user, ST_AUTH_OLD_REVISION for credentials older than the last change,
 * ST_PERMISSION_DENIED. Everything is allowed while authentication is disabled.
 */
MUST_CHECK
enum status auth_rights_check(const struct auth_rights *rights,
                              const struct auth_principal *principal, enum auth_access access,
                              struct slice key, struct slice range_end);

/*
 * A number that identifies the ranges to which the user has this access; 0 without a user. Equal
 * numbers mean equal ranges, also in different snapshots; a number is never used again.
 */
uint64_t auth_rights_number(const struct auth_rights *rights,
                            const struct auth_principal *principal, enum auth_access access);

/* For operations that need the role root. ST_USER_EMPTY, ST_USER_NOT_FOUND, ST_PERMISSION_DENIED.
 */
MUST_CHECK
enum status auth_rights_check_admin(const struct auth_rights *rights,
                                    const struct auth_principal *principal);
/*
 * For operations that any user may do. ST_USER_EMPTY without a user. ST_PERMISSION_DENIED for a
 * name that is not a user: etcd accepts the common name of any certificate here.
 */
MUST_CHECK
enum status auth_rights_check_user(const struct auth_rights *rights,
                                   const struct auth_principal *principal);
/* For reading a user: that user, or root. For reading a role: a user that has it, or root. */
MUST_CHECK
enum status auth_rights_check_user_get(const struct auth_rights *rights,
                                       const struct auth_principal *principal, struct slice user);
MUST_CHECK
enum status auth_rights_check_role_get(const struct auth_rights *rights,
                                       const struct auth_principal *principal, struct slice role);

/* For tests: memory in use. */
size_t auth_rights_bytes(const struct auth_rights *rights);
/* For tests: users are found, ranges are sorted and disjoint. */
void auth_rights_check_order(const struct auth_rights *rights);

#endif
