/* The Cluster service over a real connection and the fake engine. */
#include "codec/pb/rpc.pb.h"
#include "etcd/peer_calls_test.h"

static uint32_t start_add(struct peer *p, const char *url, bool learner)
{
    struct slice urls[] = {slice_from_text(url)};
    struct pb_member_add_request request = {
        .peer_urls = urls, .peer_urls_count = *url ? 1 : 0, .is_learner = learner};
    return peer_call(p, PB_CLUSTER_MEMBER_ADD_PATH, &pb_member_add_request_table, &request);
}

static uint32_t start_list(struct peer *p)
{
    struct pb_member_list_request request = {.linearizable = true};
    return peer_call(p, PB_CLUSTER_MEMBER_LIST_PATH, &pb_member_list_request_table, &request);
}

static uint32_t start_remove(struct peer *p, uint64_t id)
{
    struct pb_member_remove_request request = {.id = id};
    return peer_call(p, PB_CLUSTER_MEMBER_REMOVE_PATH, &pb_member_remove_request_table, &request);
}

static void new_member_is_listed_without_name_and_clients(void **state)
{
    (void)state;
    struct peer *p = peer_new(3, 0, PEER_WINDOW);
    uint32_t call = start_add(p, " http://a:1 ", true);
    answer_all(p);
    struct pb_member_add_response added;
    assert_answers(p, call, &pb_member_add_response_table, &added);
    assert_int_equal(added.header->member_id, 9);
    assert_int_equal(added.header->revision, 0);
    assert_true(added.member->is_learner);
    assert_true(slice_is(added.member->peer_urls[0], "http://a:1"));
    assert_int_equal(added.members_count, 2);

    call = start_list(p);
    answer_all(p);
    struct pb_member_list_response list;
    assert_answers(p, call, &pb_member_list_response_table, &list);
    assert_int_equal(list.members_count, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct pb_member *member = &list.members[i];
        assert_int_equal(member->name.len, member->id == 9 ? strlen("default") : 0);
        assert_int_equal(member->client_urls_count, member->id == 9 ? 1 : 0);
    }

    call = start_remove(p, added.member->id);
    answer_all(p);
    struct pb_member_remove_response left;
    assert_answers(p, call, &pb_member_remove_response_table, &left);
    assert_int_equal(left.members_count, 1);
    peer_free(p);
}

static void invalid_changes_get_etcds_errors(void **state)
{
    (void)state;
    struct peer *p = peer_new(3, 100, PEER_WINDOW);
    static const char *const bad[] = {"", "x", "http://h", "http://h:1/path"};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_fails(p, start_add(p, bad[i], false), GRPC_INVALID_ARGUMENT,
                     "etcdserver: given member URLs are invalid");
    assert_fails(p, start_remove(p, 5), GRPC_NOT_FOUND, "etcdserver: member not found");
    assert_fails(p, start_remove(p, 9), GRPC_UNKNOWN,
                 "etcdserver: re-configuration failed due to not enough started members");
    struct slice urls[] = {SLICE_LITERAL("http://h:1")};
    struct pb_member_update_request update = {.id = 5, .peer_urls = urls, .peer_urls_count = 1};
    assert_fails(
        p, peer_call(p, PB_CLUSTER_MEMBER_UPDATE_PATH, &pb_member_update_request_table, &update),
        GRPC_NOT_FOUND, "etcdserver: member not found");
    struct pb_member_promote_request promote = {.id = 9};
    assert_fails(
        p, peer_call(p, PB_CLUSTER_MEMBER_PROMOTE_PATH, &pb_member_promote_request_table, &promote),
        GRPC_FAILED_PRECONDITION, "etcdserver: can only promote a learner member");
    peer_free(p);
}

static void disconnect_does_not_undo_the_change(void **state)
{
    (void)state;
    struct peer *p = peer_new(3, 0, PEER_WINDOW);
    uint32_t call = start_add(p, "http://a:1", false);
    peer_pump(p);
    assert_int_equal(fake_waiting(p->engine), 1);
    peer_reset(p, call);
    answer_all(p);
    call = start_list(p);
    answer_all(p);
    struct pb_member_list_response list;
    assert_answers(p, call, &pb_member_list_response_table, &list);
    assert_int_equal(list.members_count, 2);
    peer_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_member_is_listed_without_name_and_clients),
        cmocka_unit_test(invalid_changes_get_etcds_errors),
        cmocka_unit_test(disconnect_does_not_undo_the_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
