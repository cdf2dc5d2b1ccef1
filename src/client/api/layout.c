/*
 * Responses are decoded directly into the structs of the installed headers, which have the layout
 * that tools/pbgen.py gives to the messages. This file fails to compile when the two differ.
 */
#include "base/slice.h"
#include "codec/pb/auth.pb.h"
#include "codec/pb/election.pb.h"
#include "codec/pb/kv.pb.h"
#include "codec/pb/lock.pb.h"
#include "codec/pb/rpc.pb.h"

#include <vigil/auth.h>
#include <vigil/cluster.h>
#include <vigil/concurrency.h>
#include <vigil/kv.h>
#include <vigil/lease.h>
#include <vigil/maintenance.h>
#include <vigil/txn.h>
#include <vigil/watch.h>

#define SAME_SIZE(ours, theirs) \
    _Static_assert(sizeof(ours) == sizeof(struct theirs), "another size than " #theirs)
#define SAME(ours, field, theirs, their_field)                                                  \
    _Static_assert(offsetof(ours, field) == offsetof(struct theirs, their_field) &&             \
                       sizeof(((ours *)0)->field) == sizeof(((struct theirs *)0)->their_field), \
                   #field " differs in " #theirs)
/* Requests begin with their size, and the message follows. */
#define SAME_AFTER_SIZE(ours, field, theirs, their_field)                                       \
    _Static_assert(offsetof(ours, field) - sizeof(size_t) ==                                    \
                           offsetof(struct theirs, their_field) &&                              \
                       sizeof(((ours *)0)->field) == sizeof(((struct theirs *)0)->their_field), \
                   #field " differs in " #theirs)

SAME_SIZE(vigil_bytes, slice);
SAME(vigil_bytes, data, slice, ptr);
SAME(vigil_bytes, size, slice, len);

SAME_SIZE(vigil_kv, pb_key_value);
SAME(vigil_kv, key, pb_key_value, key);
SAME(vigil_kv, create_revision, pb_key_value, create_revision);
SAME(vigil_kv, mod_revision, pb_key_value, mod_revision);
SAME(vigil_kv, version, pb_key_value, version);
SAME(vigil_kv, value, pb_key_value, value);
SAME(vigil_kv, lease, pb_key_value, lease);

SAME_SIZE(vigil_header, pb_response_header);
SAME(vigil_header, cluster_id, pb_response_header, cluster_id);
SAME(vigil_header, member_id, pb_response_header, member_id);
SAME(vigil_header, revision, pb_response_header, revision);
SAME(vigil_header, raft_term, pb_response_header, raft_term);

SAME_SIZE(vigil_event, pb_event);
SAME(vigil_event, type, pb_event, type);
SAME(vigil_event, kv, pb_event, kv);
SAME(vigil_event, prev_kv, pb_event, prev_kv);

SAME_SIZE(vigil_range_response, pb_range_response);
SAME(vigil_range_response, header, pb_range_response, header);
SAME(vigil_range_response, kvs, pb_range_response, kvs);
SAME(vigil_range_response, kv_count, pb_range_response, kvs_count);
SAME(vigil_range_response, more, pb_range_response, more);
SAME(vigil_range_response, count, pb_range_response, count);

SAME_SIZE(vigil_put_response, pb_put_response);
SAME(vigil_put_response, header, pb_put_response, header);
SAME(vigil_put_response, prev_kv, pb_put_response, prev_kv);

SAME_SIZE(vigil_delete_response, pb_delete_range_response);
SAME(vigil_delete_response, header, pb_delete_range_response, header);
SAME(vigil_delete_response, deleted, pb_delete_range_response, deleted);
SAME(vigil_delete_response, prev_kvs, pb_delete_range_response, prev_kvs);
SAME(vigil_delete_response, prev_kv_count, pb_delete_range_response, prev_kvs_count);

SAME_AFTER_SIZE(vigil_range_request, key, pb_range_request, key);
SAME_AFTER_SIZE(vigil_range_request, range_end, pb_range_request, range_end);
SAME_AFTER_SIZE(vigil_range_request, limit, pb_range_request, limit);
SAME_AFTER_SIZE(vigil_range_request, revision, pb_range_request, revision);
SAME_AFTER_SIZE(vigil_range_request, sort_order, pb_range_request, sort_order);
SAME_AFTER_SIZE(vigil_range_request, sort_target, pb_range_request, sort_target);
SAME_AFTER_SIZE(vigil_range_request, serializable, pb_range_request, serializable);
SAME_AFTER_SIZE(vigil_range_request, keys_only, pb_range_request, keys_only);
SAME_AFTER_SIZE(vigil_range_request, count_only, pb_range_request, count_only);
SAME_AFTER_SIZE(vigil_range_request, min_mod_revision, pb_range_request, min_mod_revision);
SAME_AFTER_SIZE(vigil_range_request, max_mod_revision, pb_range_request, max_mod_revision);
SAME_AFTER_SIZE(vigil_range_request, min_create_revision, pb_range_request, min_create_revision);
SAME_AFTER_SIZE(vigil_range_request, max_create_revision, pb_range_request, max_create_revision);

SAME_AFTER_SIZE(vigil_put_request, key, pb_put_request, key);
SAME_AFTER_SIZE(vigil_put_request, value, pb_put_request, value);
SAME_AFTER_SIZE(vigil_put_request, lease, pb_put_request, lease);
SAME_AFTER_SIZE(vigil_put_request, prev_kv, pb_put_request, prev_kv);
SAME_AFTER_SIZE(vigil_put_request, ignore_value, pb_put_request, ignore_value);
SAME_AFTER_SIZE(vigil_put_request, ignore_lease, pb_put_request, ignore_lease);

SAME_AFTER_SIZE(vigil_delete_request, key, pb_delete_range_request, key);
SAME_AFTER_SIZE(vigil_delete_request, range_end, pb_delete_range_request, range_end);
SAME_AFTER_SIZE(vigil_delete_request, prev_kv, pb_delete_range_request, prev_kv);

SAME_SIZE(vigil_op_response, pb_response_op);
SAME(vigil_op_response, kind, pb_response_op, response_case);
SAME(vigil_op_response, as, pb_response_op, response_range);

SAME_SIZE(vigil_txn_response, pb_txn_response);
SAME(vigil_txn_response, header, pb_txn_response, header);
SAME(vigil_txn_response, succeeded, pb_txn_response, succeeded);
SAME(vigil_txn_response, responses, pb_txn_response, responses);
SAME(vigil_txn_response, response_count, pb_txn_response, responses_count);

SAME_SIZE(vigil_lease_grant_response, pb_lease_grant_response);
SAME(vigil_lease_grant_response, header, pb_lease_grant_response, header);
SAME(vigil_lease_grant_response, id, pb_lease_grant_response, id);
SAME(vigil_lease_grant_response, ttl, pb_lease_grant_response, ttl);
SAME(vigil_lease_grant_response, error, pb_lease_grant_response, error);

SAME_SIZE(vigil_lease_ttl_response, pb_lease_time_to_live_response);
SAME(vigil_lease_ttl_response, header, pb_lease_time_to_live_response, header);
SAME(vigil_lease_ttl_response, id, pb_lease_time_to_live_response, id);
SAME(vigil_lease_ttl_response, ttl, pb_lease_time_to_live_response, ttl);
SAME(vigil_lease_ttl_response, granted_ttl, pb_lease_time_to_live_response, granted_ttl);
SAME(vigil_lease_ttl_response, keys, pb_lease_time_to_live_response, keys);
SAME(vigil_lease_ttl_response, key_count, pb_lease_time_to_live_response, keys_count);

SAME_SIZE(vigil_lease_status, pb_lease_status);
SAME(vigil_lease_status, id, pb_lease_status, id);

SAME_SIZE(vigil_lease_list_response, pb_lease_leases_response);
SAME(vigil_lease_list_response, header, pb_lease_leases_response, header);
SAME(vigil_lease_list_response, leases, pb_lease_leases_response, leases);
SAME(vigil_lease_list_response, lease_count, pb_lease_leases_response, leases_count);

SAME_SIZE(vigil_permission, pb_permission);
SAME(vigil_permission, type, pb_permission, perm_type);
SAME(vigil_permission, key, pb_permission, key);
SAME(vigil_permission, range_end, pb_permission, range_end);

SAME_SIZE(vigil_auth_status_response, pb_auth_status_response);
SAME(vigil_auth_status_response, header, pb_auth_status_response, header);
SAME(vigil_auth_status_response, enabled, pb_auth_status_response, enabled);
SAME(vigil_auth_status_response, auth_revision, pb_auth_status_response, auth_revision);

SAME_SIZE(vigil_names_response, pb_auth_user_get_response);
SAME(vigil_names_response, header, pb_auth_user_get_response, header);
SAME(vigil_names_response, names, pb_auth_user_get_response, roles);
SAME(vigil_names_response, name_count, pb_auth_user_get_response, roles_count);

SAME_SIZE(vigil_names_response, pb_auth_user_list_response);
SAME(vigil_names_response, header, pb_auth_user_list_response, header);
SAME(vigil_names_response, names, pb_auth_user_list_response, users);
SAME(vigil_names_response, name_count, pb_auth_user_list_response, users_count);

SAME_SIZE(vigil_names_response, pb_auth_role_list_response);
SAME(vigil_names_response, header, pb_auth_role_list_response, header);
SAME(vigil_names_response, names, pb_auth_role_list_response, roles);
SAME(vigil_names_response, name_count, pb_auth_role_list_response, roles_count);

SAME_SIZE(vigil_role_response, pb_auth_role_get_response);
SAME(vigil_role_response, header, pb_auth_role_get_response, header);
SAME(vigil_role_response, permissions, pb_auth_role_get_response, perm);
SAME(vigil_role_response, permission_count, pb_auth_role_get_response, perm_count);

SAME_SIZE(vigil_member, pb_member);
SAME(vigil_member, id, pb_member, id);
SAME(vigil_member, name, pb_member, name);
SAME(vigil_member, peer_urls, pb_member, peer_urls);
SAME(vigil_member, peer_url_count, pb_member, peer_urls_count);
SAME(vigil_member, client_urls, pb_member, client_urls);
SAME(vigil_member, client_url_count, pb_member, client_urls_count);
SAME(vigil_member, is_learner, pb_member, is_learner);

SAME_SIZE(vigil_members_response, pb_member_list_response);
SAME(vigil_members_response, header, pb_member_list_response, header);
SAME(vigil_members_response, members, pb_member_list_response, members);
SAME(vigil_members_response, member_count, pb_member_list_response, members_count);

SAME_SIZE(vigil_members_response, pb_member_remove_response);
SAME(vigil_members_response, header, pb_member_remove_response, header);
SAME(vigil_members_response, members, pb_member_remove_response, members);
SAME(vigil_members_response, member_count, pb_member_remove_response, members_count);

SAME_SIZE(vigil_members_response, pb_member_update_response);
SAME(vigil_members_response, header, pb_member_update_response, header);
SAME(vigil_members_response, members, pb_member_update_response, members);
SAME(vigil_members_response, member_count, pb_member_update_response, members_count);

SAME_SIZE(vigil_members_response, pb_member_promote_response);
SAME(vigil_members_response, header, pb_member_promote_response, header);
SAME(vigil_members_response, members, pb_member_promote_response, members);
SAME(vigil_members_response, member_count, pb_member_promote_response, members_count);

SAME_SIZE(vigil_member_add_response, pb_member_add_response);
SAME(vigil_member_add_response, header, pb_member_add_response, header);
SAME(vigil_member_add_response, member, pb_member_add_response, member);
SAME(vigil_member_add_response, members, pb_member_add_response, members);
SAME(vigil_member_add_response, member_count, pb_member_add_response, members_count);

SAME_SIZE(vigil_status_response, pb_status_response);
SAME(vigil_status_response, header, pb_status_response, header);
SAME(vigil_status_response, version, pb_status_response, version);
SAME(vigil_status_response, db_size, pb_status_response, db_size);
SAME(vigil_status_response, leader, pb_status_response, leader);
SAME(vigil_status_response, raft_index, pb_status_response, raft_index);
SAME(vigil_status_response, raft_term, pb_status_response, raft_term);
SAME(vigil_status_response, raft_applied_index, pb_status_response, raft_applied_index);
SAME(vigil_status_response, errors, pb_status_response, errors);
SAME(vigil_status_response, error_count, pb_status_response, errors_count);
SAME(vigil_status_response, db_size_in_use, pb_status_response, db_size_in_use);
SAME(vigil_status_response, is_learner, pb_status_response, is_learner);
SAME(vigil_status_response, storage_version, pb_status_response, storage_version);
SAME(vigil_status_response, db_size_quota, pb_status_response, db_size_quota);
SAME(vigil_status_response, reserved, pb_status_response, downgrade_info);

SAME_SIZE(vigil_alarm, pb_alarm_member);
SAME(vigil_alarm, member_id, pb_alarm_member, member_id);
SAME(vigil_alarm, type, pb_alarm_member, alarm);

SAME_SIZE(vigil_alarms_response, pb_alarm_response);
SAME(vigil_alarms_response, header, pb_alarm_response, header);
SAME(vigil_alarms_response, alarms, pb_alarm_response, alarms);
SAME(vigil_alarms_response, alarm_count, pb_alarm_response, alarms_count);

SAME_SIZE(vigil_hash_kv_response, pb_hash_kv_response);
SAME(vigil_hash_kv_response, header, pb_hash_kv_response, header);
SAME(vigil_hash_kv_response, hash, pb_hash_kv_response, hash);
SAME(vigil_hash_kv_response, compact_revision, pb_hash_kv_response, compact_revision);
SAME(vigil_hash_kv_response, hash_revision, pb_hash_kv_response, hash_revision);

SAME_SIZE(vigil_snapshot_part, pb_snapshot_response);
SAME(vigil_snapshot_part, header, pb_snapshot_response, header);
SAME(vigil_snapshot_part, remaining_bytes, pb_snapshot_response, remaining_bytes);
SAME(vigil_snapshot_part, blob, pb_snapshot_response, blob);
SAME(vigil_snapshot_part, version, pb_snapshot_response, version);

SAME_SIZE(vigil_lock_response, pb_lock_response);
SAME(vigil_lock_response, header, pb_lock_response, header);
SAME(vigil_lock_response, key, pb_lock_response, key);

SAME_SIZE(vigil_leader_key, pb_leader_key);
SAME(vigil_leader_key, name, pb_leader_key, name);
SAME(vigil_leader_key, key, pb_leader_key, key);
SAME(vigil_leader_key, revision, pb_leader_key, rev);
SAME(vigil_leader_key, lease, pb_leader_key, lease);

SAME_SIZE(vigil_campaign_response, pb_campaign_response);
SAME(vigil_campaign_response, header, pb_campaign_response, header);
SAME(vigil_campaign_response, leader, pb_campaign_response, leader);

SAME_SIZE(vigil_leader_response, pb_leader_response);
SAME(vigil_leader_response, header, pb_leader_response, header);
SAME(vigil_leader_response, kv, pb_leader_response, kv);
