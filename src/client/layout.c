/*
 * Responses are decoded directly into the structs of the installed headers, which have the layout
 * that tools/pbgen.py gives to the messages. This file fails to compile when the two differ.
 */
#include "base/slice.h"
#include "codec/pb/kv.pb.h"
#include "codec/pb/rpc.pb.h"

#include <vigil/kv.h>
#include <vigil/lease.h>
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
