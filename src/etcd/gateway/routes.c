/* The paths of the gateway and their methods, from the annotations in etcd's proto files. */
#include "codec/pb/election.pb.h"
#include "codec/pb/lock.pb.h"
#include "codec/pb/rpc.pb.h"
#include "etcd/gateway/gateway.h"

#define ROW(url, method, message)                                      \
    {                                                                  \
        "/v3/" url, PB_##method##_PATH, &pb_##message##_request_table, \
            &pb_##message##_response_table                             \
    }

static const struct gateway_row rows[] = {
    ROW("kv/range", KV_RANGE, range),
    ROW("kv/put", KV_PUT, put),
    ROW("kv/deleterange", KV_DELETE_RANGE, delete_range),
    ROW("kv/txn", KV_TXN, txn),
    ROW("kv/compaction", KV_COMPACT, compaction),
    ROW("watch", WATCH_WATCH, watch),
    ROW("lease/grant", LEASE_LEASE_GRANT, lease_grant),
    ROW("lease/revoke", LEASE_LEASE_REVOKE, lease_revoke),
    ROW("kv/lease/revoke", LEASE_LEASE_REVOKE, lease_revoke),
    ROW("lease/keepalive", LEASE_LEASE_KEEP_ALIVE, lease_keep_alive),
    ROW("lease/timetolive", LEASE_LEASE_TIME_TO_LIVE, lease_time_to_live),
    ROW("kv/lease/timetolive", LEASE_LEASE_TIME_TO_LIVE, lease_time_to_live),
    ROW("lease/leases", LEASE_LEASE_LEASES, lease_leases),
    ROW("kv/lease/leases", LEASE_LEASE_LEASES, lease_leases),
    ROW("cluster/member/add", CLUSTER_MEMBER_ADD, member_add),
    ROW("cluster/member/remove", CLUSTER_MEMBER_REMOVE, member_remove),
    ROW("cluster/member/update", CLUSTER_MEMBER_UPDATE, member_update),
    ROW("cluster/member/list", CLUSTER_MEMBER_LIST, member_list),
    ROW("cluster/member/promote", CLUSTER_MEMBER_PROMOTE, member_promote),
    ROW("maintenance/alarm", MAINTENANCE_ALARM, alarm),
    ROW("maintenance/status", MAINTENANCE_STATUS, status),
    ROW("maintenance/defragment", MAINTENANCE_DEFRAGMENT, defragment),
    ROW("maintenance/hash", MAINTENANCE_HASH, hash),
    ROW("maintenance/hashkv", MAINTENANCE_HASH_KV, hash_kv),
    ROW("maintenance/snapshot", MAINTENANCE_SNAPSHOT, snapshot),
    ROW("maintenance/transfer-leadership", MAINTENANCE_MOVE_LEADER, move_leader),
    ROW("maintenance/downgrade", MAINTENANCE_DOWNGRADE, downgrade),
    ROW("auth/enable", AUTH_AUTH_ENABLE, auth_enable),
    ROW("auth/disable", AUTH_AUTH_DISABLE, auth_disable),
    ROW("auth/status", AUTH_AUTH_STATUS, auth_status),
    ROW("auth/authenticate", AUTH_AUTHENTICATE, authenticate),
    ROW("auth/user/add", AUTH_USER_ADD, auth_user_add),
    ROW("auth/user/get", AUTH_USER_GET, auth_user_get),
    ROW("auth/user/list", AUTH_USER_LIST, auth_user_list),
    ROW("auth/user/delete", AUTH_USER_DELETE, auth_user_delete),
    ROW("auth/user/changepw", AUTH_USER_CHANGE_PASSWORD, auth_user_change_password),
    ROW("auth/user/grant", AUTH_USER_GRANT_ROLE, auth_user_grant_role),
    ROW("auth/user/revoke", AUTH_USER_REVOKE_ROLE, auth_user_revoke_role),
    ROW("auth/role/add", AUTH_ROLE_ADD, auth_role_add),
    ROW("auth/role/get", AUTH_ROLE_GET, auth_role_get),
    ROW("auth/role/list", AUTH_ROLE_LIST, auth_role_list),
    ROW("auth/role/delete", AUTH_ROLE_DELETE, auth_role_delete),
    ROW("auth/role/grant", AUTH_ROLE_GRANT_PERMISSION, auth_role_grant_permission),
    ROW("auth/role/revoke", AUTH_ROLE_REVOKE_PERMISSION, auth_role_revoke_permission),
    ROW("lock/lock", LOCK_LOCK, lock),
    ROW("lock/unlock", LOCK_UNLOCK, unlock),
    ROW("election/campaign", ELECTION_CAMPAIGN, campaign),
    ROW("election/proclaim", ELECTION_PROCLAIM, proclaim),
    ROW("election/leader", ELECTION_LEADER, leader),
    ROW("election/observe", ELECTION_OBSERVE, leader),
    ROW("election/resign", ELECTION_RESIGN, resign),
};

const struct gateway_row *gateway_row_find(struct slice path)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (slice_is(path, rows[i].path))
            return &rows[i];
    }
    return NULL;
}

const struct gateway_row *gateway_rows(size_t *ret_count)
{
    *ret_count = COUNT_OF(rows);
    return rows;
}
