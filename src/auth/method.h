/*
 * The permission that each gRPC method needs, in one table. It is generated from the methods of
 * proto/: a method without an entry here does not compile, and an unknown path is refused.
 */
#ifndef VIGIL_AUTH_METHOD_H
#define VIGIL_AUTH_METHOD_H

#include "auth/rights.h"

enum auth_need {
    AUTH_NEED_NOTHING, /* also without a login */
    AUTH_NEED_USER,    /* any user */
    AUTH_NEED_ROOT,    /* a user with the role root */

    /* For these, the named function also checks the contents of the request (auth/check.h). */
    AUTH_NEED_RANGE,        /* auth_check_range */
    AUTH_NEED_PUT,          /* auth_check_put */
    AUTH_NEED_DELETE_RANGE, /* auth_check_delete_range */
    AUTH_NEED_TXN,          /* auth_check_txn */
    AUTH_NEED_WATCH,        /* auth_check_watch, for each watch that is created */
    AUTH_NEED_LEASE_WRITE,  /* auth_check_lease_write */
    AUTH_NEED_LEASE_READ,   /* auth_check_lease_read, when keys are requested */
    AUTH_NEED_LEASES_READ,  /* auth_check_lease_read, for every lease */
    AUTH_NEED_ALARM,        /* any user to list them, root to change one */
    AUTH_NEED_USER_GET,     /* auth_rights_check_user_get */
    AUTH_NEED_ROLE_GET,     /* auth_rights_check_role_get */
    /* Consists of operations on keys, each of which is checked. */
    AUTH_NEED_OF_ITS_PARTS,
};

struct auth_method {
    const char *path;
    enum auth_need need;
};

extern const struct auth_method auth_methods[];
extern const size_t auth_method_count;

/* NULL: there is no such method; the call must be refused. */
const struct auth_method *auth_method_find(struct slice path);

/* The check that is possible before the contents of the request are known. */
MUST_CHECK
enum status auth_method_allows(const struct auth_method *method, const struct auth_rights *rights,
                               const struct auth_principal *principal);
/* The same by path. ST_PERMISSION_DENIED for an unknown path, also while authentication is
 * disabled. */
MUST_CHECK
enum status auth_method_check(struct slice path, const struct auth_rights *rights,
                              const struct auth_principal *principal);

#endif
