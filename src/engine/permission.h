/*
 * Permission checks: the one place where engines decide whether an operation may run, before they
 * do anything for it. Which permission an operation needs follows from its kind, so neither an
 * engine nor a caller can forget it.
 *
 * Pure functions, on any thread that holds the rights.
 */
#ifndef VIGIL_ENGINE_PERMISSION_H
#define VIGIL_ENGINE_PERMISSION_H

#include "auth/check.h"
#include "engine/operation.h"

/* For permission_check: the user of the operation has the permission that it needs. */
MUST_CHECK
enum status permission_check_user(const struct engine_op *op, const struct auth_rights *rights,
                                  const struct auth_leases *leases);
/* leases enumerates the keys that are attached to a lease; NULL for operations without leases. */
MUST_CHECK
static inline enum status permission_check(const struct engine_op *op,
                                           const struct auth_rights *rights,
                                           const struct auth_leases *leases)
{
    /* Authentication is disabled, or the server itself has started the operation. */
    if (auth_rights_unchecked(rights, &op->principal))
        return ST_OK;
    return permission_check_user(op, rights, leases);
}
/* Checks one of the leases of an engine_renewals; each is checked when its turn comes. */
MUST_CHECK
enum status permission_check_renewal(const struct engine_op *op, const struct auth_rights *rights,
                                     const struct auth_leases *leases, int64_t lease);

#endif
