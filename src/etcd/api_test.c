/* Maintenance, Cluster and Health over a real connection and the fake engine. */
#include "etcd/api.h"

#include "codec/pb/health.pb.h"
#include "codec/pb/rpc.pb.h"
#include "etcd/peer_calls_test.h"

#include <stdio.h>

static void status_and_member_list_show_this_member(void **state)
{
    (void)state;
    struct peer *p = peer_new(1, 100, PEER_WINDOW);
    struct pb_status_response status;
    assert_answers(p,
                   peer_call(p, PB_MAINTENANCE_STATUS_PATH, &pb_status_request_table,
                             &(struct pb_status_request){0}),
                   &pb_status_response_table, &status);
    assert_true(slice_is(status.version, "3.7.0"));
    assert_true(slice_is(status.storage_version, "3.7.0"));
    assert_int_equal(status.leader, 9);
    assert_int_equal(status.raft_term, 2);
    assert_int_equal(status.header->revision, 1);
    assert_non_null(status.downgrade_info);
    struct pb_member_list_response members;
    assert_answers(p,
                   peer_call(p, PB_CLUSTER_MEMBER_LIST_PATH, &pb_member_list_request_table,
                             &(struct pb_member_list_request){.linearizable = true}),
                   &pb_member_list_response_table, &members);
    assert_int_equal(members.members_count, 1);
    assert_int_equal(members.members[0].id, 9);
    assert_true(slice_is(members.members[0].name, "default"));
    assert_true(slice_equal(members.members[0].client_urls[0], peer_urls[0]));
    struct pb_alarm_response alarms;
    assert_answers(p,
                   peer_call(p, PB_MAINTENANCE_ALARM_PATH, &pb_alarm_request_table,
                             &(struct pb_alarm_request){0}),
                   &pb_alarm_response_table, &alarms);
    assert_int_equal(alarms.alarms_count, 0);
    assert_fails(p,
                 peer_call(p, PB_MAINTENANCE_MOVE_LEADER_PATH, &pb_move_leader_request_table,
                           &(struct pb_move_leader_request){.target_id = 8}),
                 GRPC_FAILED_PRECONDITION, "etcdserver: bad leader transferee");
    peer_free(p);
}

static void hashes_come_from_the_engine(void **state)
{
    (void)state;
    struct peer *p = peer_new(1, 100, PEER_WINDOW);
    put_all(p, 3, 3);
    struct pb_hash_kv_response of_kv;
    struct pb_hash_response whole;
    assert_answers(p,
                   peer_call(p, PB_MAINTENANCE_HASH_KV_PATH, &pb_hash_kv_request_table,
                             &(struct pb_hash_kv_request){.revision = 4}),
                   &pb_hash_kv_response_table, &of_kv);
    assert_int_equal(of_kv.hash_revision, 4);
    assert_int_equal(of_kv.compact_revision, -1);
    assert_answers(p,
                   peer_call(p, PB_MAINTENANCE_HASH_PATH, &pb_hash_request_table,
                             &(struct pb_hash_request){0}),
                   &pb_hash_response_table, &whole);
    assert_int_equal(of_kv.hash, whole.hash);
    peer_free(p);
}

static void health_is_checked_and_watched(void **state)
{
    (void)state;
    struct peer *p = peer_new(1, 100, PEER_WINDOW);
    struct pb_health_check_request whole = {0}, other = {.service = SLICE_LITERAL("x")};
    struct pb_health_check_response response;
    assert_answers(p, peer_call(p, PB_HEALTH_CHECK_PATH, &pb_health_check_request_table, &whole),
                   &pb_health_check_response_table, &response);
    assert_int_equal(response.status, PB_SERVING_STATUS_SERVING);
    assert_fails(p, peer_call(p, PB_HEALTH_CHECK_PATH, &pb_health_check_request_table, &other),
                 GRPC_NOT_FOUND, "unknown service");
    uint32_t watch = peer_call(p, PB_HEALTH_WATCH_PATH, &pb_health_check_request_table, &whole);
    peer_pump(p);
    size_t at = 0;
    assert_true(next_message(p, watch, &at, &pb_health_check_response_table, &response));
    assert_int_equal(response.status, PB_SERVING_STATUS_SERVING);
    assert_false(peer_stream(p, watch)->ended);
    peer_reset(p, watch);
    peer_free(p);
}

static void unknown_services_and_methods_are_unimplemented(void **state)
{
    (void)state;
    struct peer *p = peer_new(1, 100, PEER_WINDOW);
    assert_fails(p,
                 peer_call_bytes(p, "/missing.Service/Method", SLICE_LITERAL("3.7"), SLICE_EMPTY),
                 GRPC_UNIMPLEMENTED, "unknown service missing.Service");
    assert_fails(
        p, peer_call_bytes(p, "/etcdserverpb.Maintenance/Shred", SLICE_LITERAL("3.7"), SLICE_EMPTY),
        GRPC_UNIMPLEMENTED, "unknown method Shred for service etcdserverpb.Maintenance");
    peer_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_and_member_list_show_this_member),
        cmocka_unit_test(hashes_come_from_the_engine),
        cmocka_unit_test(health_is_checked_and_watched),
        cmocka_unit_test(unknown_services_and_methods_are_unimplemented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
