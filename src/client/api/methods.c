#include "client/api/methods.h"

#include "client/api/strip.h"
#include "codec/pb/election.pb.h"
#include "codec/pb/lock.pb.h"

#define TYPES(name) .request = &pb_##name##_request_table, .response = &pb_##name##_response_table

const struct client_method client_methods[METHOD_COUNT] = {
    [METHOD_TXN] = {.path = "/etcdserverpb.KV/Txn",
                    TYPES(txn),
                    .strip = strip_txn,
                    .kind = LOCAL_KIND_TXN},
    [METHOD_RANGE] = {.path = "/etcdserverpb.KV/Range",
                      TYPES(range),
                      .reads = true,
                      .strip = strip_range,
                      .kind = LOCAL_KIND_RANGE},
    [METHOD_PUT] = {.path = "/etcdserverpb.KV/Put",
                    TYPES(put),
                    .strip = strip_put,
                    .kind = LOCAL_KIND_PUT},
    [METHOD_DELETE_RANGE] = {.path = "/etcdserverpb.KV/DeleteRange",
                             TYPES(delete_range),
                             .strip = strip_delete,
                             .kind = LOCAL_KIND_DELETE},
    [METHOD_COMPACT] = {.path = "/etcdserverpb.KV/Compact",
                        TYPES(compaction),
                        .kind = LOCAL_KIND_COMPACT},
    [METHOD_LEASE_GRANT] = {.path = "/etcdserverpb.Lease/LeaseGrant", TYPES(lease_grant)},
    [METHOD_LEASE_REVOKE] = {.path = "/etcdserverpb.Lease/LeaseRevoke", TYPES(lease_revoke)},
    [METHOD_LEASE_TIME_TO_LIVE] = {.path = "/etcdserverpb.Lease/LeaseTimeToLive",
                                   TYPES(lease_time_to_live),
                                   .reads = true,
                                   .strip = strip_lease},
    [METHOD_LEASE_LEASES] = {.path = "/etcdserverpb.Lease/LeaseLeases",
                             TYPES(lease_leases),
                             .reads = true},
    [METHOD_LEASE_KEEP_ALIVE] = {.path = "/etcdserverpb.Lease/LeaseKeepAlive",
                                 TYPES(lease_keep_alive),
                                 .reads = true},
    [METHOD_MEMBER_LIST] = {.path = "/etcdserverpb.Cluster/MemberList",
                            TYPES(member_list),
                            .reads = true},
    [METHOD_MEMBER_ADD] = {.path = "/etcdserverpb.Cluster/MemberAdd", TYPES(member_add)},
    [METHOD_MEMBER_REMOVE] = {.path = "/etcdserverpb.Cluster/MemberRemove", TYPES(member_remove)},
    [METHOD_MEMBER_UPDATE] = {.path = "/etcdserverpb.Cluster/MemberUpdate", TYPES(member_update)},
    [METHOD_MEMBER_PROMOTE] = {.path = "/etcdserverpb.Cluster/MemberPromote",
                               TYPES(member_promote)},
    [METHOD_AUTH_ENABLE] = {.path = "/etcdserverpb.Auth/AuthEnable", TYPES(auth_enable)},
    [METHOD_AUTH_DISABLE] = {.path = "/etcdserverpb.Auth/AuthDisable", TYPES(auth_disable)},
    [METHOD_AUTH_STATUS] = {.path = "/etcdserverpb.Auth/AuthStatus",
                            TYPES(auth_status),
                            .reads = true},
    [METHOD_USER_ADD] = {.path = "/etcdserverpb.Auth/UserAdd", TYPES(auth_user_add)},
    [METHOD_USER_DELETE] = {.path = "/etcdserverpb.Auth/UserDelete", TYPES(auth_user_delete)},
    [METHOD_USER_CHANGE_PASSWORD] = {.path = "/etcdserverpb.Auth/UserChangePassword",
                                     TYPES(auth_user_change_password)},
    [METHOD_USER_GRANT_ROLE] = {.path = "/etcdserverpb.Auth/UserGrantRole",
                                TYPES(auth_user_grant_role)},
    [METHOD_USER_REVOKE_ROLE] = {.path = "/etcdserverpb.Auth/UserRevokeRole",
                                 TYPES(auth_user_revoke_role)},
    [METHOD_USER_GET] = {.path = "/etcdserverpb.Auth/UserGet", TYPES(auth_user_get), .reads = true},
    [METHOD_USER_LIST] = {.path = "/etcdserverpb.Auth/UserList",
                          TYPES(auth_user_list),
                          .reads = true},
    [METHOD_ROLE_ADD] = {.path = "/etcdserverpb.Auth/RoleAdd", TYPES(auth_role_add)},
    [METHOD_ROLE_DELETE] = {.path = "/etcdserverpb.Auth/RoleDelete", TYPES(auth_role_delete)},
    [METHOD_ROLE_GET] = {.path = "/etcdserverpb.Auth/RoleGet", TYPES(auth_role_get), .reads = true},
    [METHOD_ROLE_LIST] = {.path = "/etcdserverpb.Auth/RoleList",
                          TYPES(auth_role_list),
                          .reads = true},
    [METHOD_ROLE_GRANT_PERMISSION] = {.path = "/etcdserverpb.Auth/RoleGrantPermission",
                                      TYPES(auth_role_grant_permission)},
    [METHOD_ROLE_REVOKE_PERMISSION] = {.path = "/etcdserverpb.Auth/RoleRevokePermission",
                                       TYPES(auth_role_revoke_permission)},
    [METHOD_STATUS] = {.path = "/etcdserverpb.Maintenance/Status", TYPES(status), .reads = true},
    [METHOD_ALARM_LIST] = {.path = "/etcdserverpb.Maintenance/Alarm", TYPES(alarm), .reads = true},
    [METHOD_ALARM_DISARM] = {.path = "/etcdserverpb.Maintenance/Alarm", TYPES(alarm)},
    [METHOD_DEFRAGMENT] = {.path = "/etcdserverpb.Maintenance/Defragment", TYPES(defragment)},
    [METHOD_HASH_KV] = {.path = "/etcdserverpb.Maintenance/HashKV", TYPES(hash_kv), .reads = true},
    [METHOD_MOVE_LEADER] = {.path = "/etcdserverpb.Maintenance/MoveLeader", TYPES(move_leader)},
    [METHOD_DOWNGRADE] = {.path = "/etcdserverpb.Maintenance/Downgrade", TYPES(downgrade)},
    [METHOD_LOCK] = {.path = "/v3lockpb.Lock/Lock", TYPES(lock)},
    [METHOD_UNLOCK] = {.path = "/v3lockpb.Lock/Unlock", TYPES(unlock)},
    [METHOD_CAMPAIGN] = {.path = "/v3electionpb.Election/Campaign", TYPES(campaign)},
    [METHOD_PROCLAIM] = {.path = "/v3electionpb.Election/Proclaim", TYPES(proclaim)},
    [METHOD_RESIGN] = {.path = "/v3electionpb.Election/Resign", TYPES(resign)},
    [METHOD_LEADER] = {.path = "/v3electionpb.Election/Leader", TYPES(leader), .reads = true},
};

struct vigil_call *client_request(struct vigil_client *client, enum client_method_id id,
                                  const void *request)
{
    return client_call_with(client_call_new(client, &client_methods[id]), request);
}

const void *client_result(const struct vigil_call *call, enum client_method_id id)
{
    return client_call_response(call, &client_methods[id]);
}
