/*
 * Who may read and write what: an immutable picture of the store, shared by all threads. A check
 * takes no lock and no memory. After a change the next one is made of it, and shares with it all
 * users that the change has not touched (auth/user_table.h).
 *
 *   auth_store ── auth_rights_new, …_after ──► auth_rights ── published ──► checks on any thread
 *
 * Reference-counted: who publishes it holds one, and whoever keeps it for longer than a turn.
 */
#ifndef VIGIL_AUTH_RIGHTS_H
#define VIGIL_AUTH_RIGHTS_H

#include "auth/access.h"
#include "base/slice.h"
#include "base/status.h"

#include <stdbool.h>

struct auth_row;
struct auth_store;
struct auth_rights;

/* Who asks. Without credentials all zero: nobody. */
struct auth_principal {
    struct slice user;
    uint64_t revision; /* of the store when the credentials were made; 0: none were given */
    bool is_server;    /* the server itself, which may everything; set by our own code only */
};

/* With one reference. Aborts without memory. */
struct auth_rights *auth_rights_new(const struct auth_store *store);
/* The same, out of the one before the rows were applied to the store. */
struct auth_rights *auth_rights_after(const struct auth_rights *before,
                                      const struct auth_store *store, const struct auth_row *rows,
                                      size_t row_count);
struct auth_rights *auth_rights_ref(struct auth_rights *rights);
void auth_rights_unref(struct auth_rights *rights); /* accepts NULL */
DEFINE_CLEANUP(struct auth_rights *, auth_rights_unref)

bool auth_rights_enabled(const struct auth_rights *rights);
uint64_t auth_rights_revision(const struct auth_rights *rights);

/* Access is not controlled, or the server itself asks. */
bool auth_rights_unchecked(const struct auth_rights *rights,
                           const struct auth_principal *principal);

/*
 * A range as requests have it: without end one key, with the end "\0" everything from the key on.
 * ST_USER_EMPTY for nobody, ST_AUTH_OLD_REVISION for credentials older than the last change,
 * ST_PERMISSION_DENIED. Everything is allowed while access is not controlled.
 */
MUST_CHECK
enum status auth_rights_check(const struct auth_rights *rights,
                              const struct auth_principal *principal, enum auth_access access,
                              struct slice key, struct slice range_end);

/*
 * The number of what the user may do in this way, 0 without a user. Two that are the same are the
 * same rights to keys, in whatever picture; a number does not come again with others.
 */
uint64_t auth_rights_number(const struct auth_rights *rights,
                            const struct auth_principal *principal, enum auth_access access);

/* For what needs the role root. ST_USER_EMPTY, ST_USER_NOT_FOUND, ST_PERMISSION_DENIED. */
MUST_CHECK
enum status auth_rights_check_admin(const struct auth_rights *rights,
                                    const struct auth_principal *principal);
/*
 * For what any user may: ST_USER_EMPTY for nobody. ST_PERMISSION_DENIED for a name that is no
 * user's: etcd lets the common name of any certificate pass here.
 */
MUST_CHECK
enum status auth_rights_check_user(const struct auth_rights *rights,
                                   const struct auth_principal *principal);
/* For looking at a user: oneself, or root. For a role: who has it, or root. */
MUST_CHECK
enum status auth_rights_check_user_get(const struct auth_rights *rights,
                                       const struct auth_principal *principal, struct slice user);
MUST_CHECK
enum status auth_rights_check_role_get(const struct auth_rights *rights,
                                       const struct auth_principal *principal, struct slice role);

/* Of memory. */
size_t auth_rights_bytes(const struct auth_rights *rights);
/* For tests: users are found, ranges are sorted and parted. */
void auth_rights_check_order(const struct auth_rights *rights);

#endif
