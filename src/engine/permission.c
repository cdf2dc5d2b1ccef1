#include "engine/permission.h"

#include "codec/pb/rpc.pb.h"
#include "engine/leases.h"
#include "engine/maintenance.h"

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

static enum status check_user_or_admin(const struct auth_asker *asker, bool any_user)
{
    return any_user ? auth_rights_check_user(asker->rights, &asker->principal)
                    : auth_rights_check_admin(asker->rights, &asker->principal);
}

/* The permission that each kind of operation needs. */
enum status permission_check_user(const struct engine_op *op, const struct auth_rights *rights,
                                  const struct auth_leases *leases)
{
    struct auth_asker asker = asker_of(op, rights, leases);
    const struct engine_lease *lease = CONTAINER_OF(op, struct engine_lease, op);
    const struct engine_members *members = CONTAINER_OF(op, struct engine_members, op);
    const struct pb_alarm_request *alarm = op->request;
    switch ((enum engine_kind)op->kind) {
    case ENGINE_RANGE:
        return auth_check_range(&asker, op->request);
    case ENGINE_PUT:
        return auth_check_put(&asker, op->request);
    case ENGINE_DELETE_RANGE:
        return auth_check_delete_range(&asker, op->request);
    case ENGINE_TXN:
        return auth_check_txn(&asker, op->request);
    case ENGINE_LEASE_GRANT:
    case ENGINE_LEASE_RENEW: /* and each lease: permission_check_renewal */
        return auth_rights_check_user(rights, &op->principal);
    case ENGINE_LEASE_REVOKE:
        return auth_check_lease_write(&asker, lease->id);
    case ENGINE_LEASE_TIME_TO_LIVE:
        /* The attached keys matter only if they are requested. */
        return lease->want_keys ? auth_check_lease_read(&asker, lease->id)
                                : auth_rights_check_user(rights, &op->principal);
    case ENGINE_LEASE_LIST:
        return auth_check_leases_read(&asker);
    case ENGINE_MEMBERS:
        return check_user_or_admin(&asker, members->call == ENGINE_MEMBER_LIST);
    case ENGINE_ALARM:
        return check_user_or_admin(&asker, alarm->action == PB_ALARM_ACTION_GET);
    case ENGINE_COMPACT:
    case ENGINE_HASH_KV:
    case ENGINE_DEFRAGMENT:
    case ENGINE_DOWNGRADE:
    case ENGINE_SNAPSHOT_START:
    case ENGINE_SNAPSHOT_READ:
        return auth_rights_check_admin(rights, &op->principal);
    case ENGINE_AUTH:        /* auth_state_decide checks it, by call */
    case ENGINE_WATCH_ADMIT: /* it is the check */
    case ENGINE_NOT_STARTED:
        break;
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
