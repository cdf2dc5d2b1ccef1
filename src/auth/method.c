#include "auth/method.h"

#include "codec/pb/election.pb.h"
#include "codec/pb/health.pb.h"
#include "codec/pb/lock.pb.h"
#include "codec/pb/rpc.pb.h"

enum {
    NEED_KV_RANGE = AUTH_NEED_RANGE,
    NEED_KV_RANGE_STREAM = AUTH_NEED_RANGE,
    NEED_KV_PUT = AUTH_NEED_PUT,
    NEED_KV_DELETE_RANGE = AUTH_NEED_DELETE_RANGE,
    NEED_KV_TXN = AUTH_NEED_TXN,
    NEED_KV_COMPACT = AUTH_NEED_ROOT,

    NEED_WATCH_WATCH = AUTH_NEED_WATCH,

    NEED_LEASE_LEASE_GRANT = AUTH_NEED_USER,
    NEED_LEASE_LEASE_REVOKE = AUTH_NEED_LEASE_WRITE,
    NEED_LEASE_LEASE_KEEP_ALIVE = AUTH_NEED_LEASE_WRITE,
    NEED_LEASE_LEASE_TIME_TO_LIVE = AUTH_NEED_LEASE_READ,
    NEED_LEASE_LEASE_LEASES = AUTH_NEED_LEASES_READ,

    NEED_CLUSTER_MEMBER_ADD = AUTH_NEED_ROOT,
    NEED_CLUSTER_MEMBER_REMOVE = AUTH_NEED_ROOT,
    NEED_CLUSTER_MEMBER_UPDATE = AUTH_NEED_ROOT,
    NEED_CLUSTER_MEMBER_LIST = AUTH_NEED_USER,
    NEED_CLUSTER_MEMBER_PROMOTE = AUTH_NEED_ROOT,

    NEED_MAINTENANCE_ALARM = AUTH_NEED_ALARM,
    NEED_MAINTENANCE_STATUS = AUTH_NEED_USER,
    NEED_MAINTENANCE_DEFRAGMENT = AUTH_NEED_ROOT,
    NEED_MAINTENANCE_HASH = AUTH_NEED_ROOT,
    NEED_MAINTENANCE_HASH_KV = AUTH_NEED_ROOT,
    NEED_MAINTENANCE_SNAPSHOT = AUTH_NEED_ROOT,
    NEED_MAINTENANCE_MOVE_LEADER = AUTH_NEED_ROOT,
    NEED_MAINTENANCE_DOWNGRADE = AUTH_NEED_ROOT,

    NEED_AUTH_AUTH_ENABLE = AUTH_NEED_ROOT,
    NEED_AUTH_AUTH_DISABLE = AUTH_NEED_ROOT,
    NEED_AUTH_AUTH_STATUS = AUTH_NEED_NOTHING,
    NEED_AUTH_AUTHENTICATE = AUTH_NEED_NOTHING,
    NEED_AUTH_USER_ADD = AUTH_NEED_ROOT,
    NEED_AUTH_USER_GET = AUTH_NEED_USER_GET,
    NEED_AUTH_USER_LIST = AUTH_NEED_ROOT,
    NEED_AUTH_USER_DELETE = AUTH_NEED_ROOT,
    NEED_AUTH_USER_CHANGE_PASSWORD = AUTH_NEED_ROOT,
    NEED_AUTH_USER_GRANT_ROLE = AUTH_NEED_ROOT,
    NEED_AUTH_USER_REVOKE_ROLE = AUTH_NEED_ROOT,
    NEED_AUTH_ROLE_ADD = AUTH_NEED_ROOT,
    NEED_AUTH_ROLE_GET = AUTH_NEED_ROLE_GET,
    NEED_AUTH_ROLE_LIST = AUTH_NEED_ROOT,
    NEED_AUTH_ROLE_DELETE = AUTH_NEED_ROOT,
    NEED_AUTH_ROLE_GRANT_PERMISSION = AUTH_NEED_ROOT,
    NEED_AUTH_ROLE_REVOKE_PERMISSION = AUTH_NEED_ROOT,

    NEED_LOCK_LOCK = AUTH_NEED_OF_ITS_PARTS,
    NEED_LOCK_UNLOCK = AUTH_NEED_OF_ITS_PARTS,
    NEED_ELECTION_CAMPAIGN = AUTH_NEED_OF_ITS_PARTS,
    NEED_ELECTION_PROCLAIM = AUTH_NEED_OF_ITS_PARTS,
    NEED_ELECTION_LEADER = AUTH_NEED_OF_ITS_PARTS,
    NEED_ELECTION_OBSERVE = AUTH_NEED_OF_ITS_PARTS,
    NEED_ELECTION_RESIGN = AUTH_NEED_OF_ITS_PARTS,

    /* Health probes have no credentials. */
    NEED_HEALTH_CHECK = AUTH_NEED_NOTHING,
    NEED_HEALTH_WATCH = AUTH_NEED_NOTHING,
};

#define ROW(name) {PB_##name##_PATH, (enum auth_need)NEED_##name},
/* The macros are generated from the proto files. */
/* cppcheck-suppress unknownMacro */
const struct auth_method auth_methods[] = {PB_METHODS_OF_RPC(ROW) PB_METHODS_OF_LOCK(
    ROW) PB_METHODS_OF_ELECTION(ROW) PB_METHODS_OF_HEALTH(ROW)};
#undef ROW

const size_t auth_method_count = COUNT_OF(auth_methods);

const struct auth_method *auth_method_find(struct slice path)
{
    for (size_t i = 0; i < auth_method_count; i++) {
        if (slice_equal(slice_from_text(auth_methods[i].path), path))
            return &auth_methods[i];
    }
    return NULL;
}

enum status auth_method_check(struct slice path, const struct auth_rights *rights,
                              const struct auth_principal *principal)
{
    const struct auth_method *method = auth_method_find(path);
    return method ? auth_method_allows(method, rights, principal) : ST_PERMISSION_DENIED;
}

enum status auth_method_allows(const struct auth_method *method, const struct auth_rights *rights,
                               const struct auth_principal *principal)
{
    switch (method->need) {
    case AUTH_NEED_NOTHING:
    /* Each watch is checked separately; the stream continues after a refused one. */
    case AUTH_NEED_WATCH:
        return ST_OK;
    case AUTH_NEED_ROOT:
        return auth_rights_check_admin(rights, principal);
    case AUTH_NEED_RANGE:
    case AUTH_NEED_PUT:
    case AUTH_NEED_DELETE_RANGE:
    case AUTH_NEED_TXN:
    case AUTH_NEED_USER_GET:
    case AUTH_NEED_ROLE_GET:
        /* The check of the contents tests the revision before the name, as etcd does. */
        if (auth_rights_unchecked(rights, principal))
            return ST_OK;
        return principal->revision == 0 ? ST_USER_EMPTY : ST_OK;
    case AUTH_NEED_USER:
    case AUTH_NEED_LEASE_WRITE:
    case AUTH_NEED_LEASE_READ:
    case AUTH_NEED_LEASES_READ:
    case AUTH_NEED_ALARM:
    case AUTH_NEED_OF_ITS_PARTS:
        return auth_rights_check_user(rights, principal);
    }
    return ST_PERMISSION_DENIED;
}
