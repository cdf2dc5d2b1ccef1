#include "engine/permission.h"

#include "auth/method.h"

/* Without a list of the attached keys, nothing is allowed that depends on them. */
static enum status no_keys(void *ctx, int64_t lease, uint64_t whose, auth_key_fn visit,
                           void *visit_ctx)
{
    (void)ctx;
    (void)lease;
    (void)whose;
    (void)visit;
    (void)visit_ctx;
    return ST_PERMISSION_DENIED;
}

static struct auth_asker asker_of(const struct engine_op *op, const struct auth_rights *rights,
                                  const struct auth_leases *leases)
{
    return (struct auth_asker){
        .rights = rights,
        .principal = op->principal,
        .leases = leases ? *leases : (struct auth_leases){.each_key = no_keys},
    };
}

/* Time-to-live: the attached keys matter only if they are requested. */
static MUST_CHECK
enum status check_lease_read(const struct auth_asker *asker, const struct engine_op *op)
{
    const struct engine_lease *lease = CONTAINER_OF(op, struct engine_lease, op);
    if (lease->want_keys)
        return auth_check_lease_read(asker, lease->id);
    return auth_rights_check_user(asker->rights, &asker->principal);
}

static MUST_CHECK
enum status check_alarm(const struct auth_asker *asker, const struct engine_op *op)
{
    const struct pb_alarm_request *request = op->request;
    if (request->action == PB_ALARM_ACTION_GET)
        return auth_rights_check_user(asker->rights, &asker->principal);
    return auth_rights_check_admin(asker->rights, &asker->principal);
}

enum status permission_check_user(const struct engine_op *op, const struct auth_rights *rights,
                                  const struct auth_leases *leases)
{
    struct auth_asker asker = asker_of(op, rights, leases);
    switch ((enum auth_need)op->need) {
    case AUTH_NEED_RANGE:
        return auth_check_range(&asker, op->request);
    case AUTH_NEED_PUT:
        return auth_check_put(&asker, op->request);
    case AUTH_NEED_DELETE_RANGE:
        return auth_check_delete_range(&asker, op->request);
    case AUTH_NEED_TXN:
        return auth_check_txn(&asker, op->request);
    case AUTH_NEED_ROOT:
        return auth_rights_check_admin(rights, &op->principal);
    case AUTH_NEED_USER:
        return auth_rights_check_user(rights, &op->principal);
    case AUTH_NEED_LEASE_WRITE:
        return auth_check_lease_write(&asker, CONTAINER_OF(op, struct engine_lease, op)->id);
    case AUTH_NEED_LEASE_READ:
        return check_lease_read(&asker, op);
    case AUTH_NEED_LEASES_READ:
        return auth_check_leases_read(&asker);
    case AUTH_NEED_ALARM:
        return check_alarm(&asker, op);
    case AUTH_NEED_NOTHING:
    case AUTH_NEED_WATCH:
    case AUTH_NEED_USER_GET:
    case AUTH_NEED_ROLE_GET:
    case AUTH_NEED_OF_ITS_PARTS:
        break; /* no operation needs these */
    }
    return ST_PERMISSION_DENIED;
}

enum status permission_check_renewal(const struct engine_op *op, const struct auth_rights *rights,
                                     const struct auth_leases *leases, int64_t lease)
{
    if (auth_rights_unchecked(rights, &op->principal))
        return ST_OK;
    struct auth_asker asker = asker_of(op, rights, leases);
    return auth_check_lease_write(&asker, lease);
}
