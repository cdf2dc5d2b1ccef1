/* The Lease service over a real connection and the fake engine. */
#include "codec/pb/kv.pb.h"
#include "codec/pb/rpc.pb.h"
#include "etcd/peer_calls_test.h"

#include <stdio.h>

/* -- Calls -- */

static uint32_t start_grant(struct peer *p, int64_t id, int64_t ttl)
{
    struct pb_lease_grant_request request = {.id = id, .ttl = ttl};
    return peer_call(p, PB_LEASE_LEASE_GRANT_PATH, &pb_lease_grant_request_table, &request);
}

static struct pb_lease_grant_response grant(struct peer *p, int64_t id, int64_t ttl)
{
    struct pb_lease_grant_response response;
    uint32_t call = start_grant(p, id, ttl);
    answer_all(p);
    assert_answers(p, call, &pb_lease_grant_response_table, &response);
    return response;
}

static uint32_t start_revoke(struct peer *p, int64_t id)
{
    struct pb_lease_revoke_request request = {.id = id};
    return peer_call(p, PB_LEASE_LEASE_REVOKE_PATH, &pb_lease_revoke_request_table, &request);
}

static struct pb_lease_time_to_live_response time_to_live(struct peer *p, int64_t id, bool keys)
{
    struct pb_lease_time_to_live_request request = {.id = id, .keys = keys};
    struct pb_lease_time_to_live_response response;
    uint32_t call = peer_call(p, PB_LEASE_LEASE_TIME_TO_LIVE_PATH,
                              &pb_lease_time_to_live_request_table, &request);
    answer_all(p);
    assert_answers(p, call, &pb_lease_time_to_live_response_table, &response);
    return response;
}

static uint32_t start_put(struct peer *p, const char *key, int64_t lease)
{
    struct pb_put_request request = {
        .key = slice_from_text(key), .value = SLICE_LITERAL("v"), .lease = lease};
    return peer_call(p, PB_KV_PUT_PATH, &pb_put_request_table, &request);
}

static void put(struct peer *p, const char *key, int64_t lease)
{
    struct pb_put_response response;
    uint32_t call = start_put(p, key, lease);
    answer_all(p);
    assert_answers(p, call, &pb_put_response_table, &response);
}

static uint32_t open_keep_alive(struct peer *p)
{
    return peer_open(p, PB_LEASE_LEASE_KEEP_ALIVE_PATH, SLICE_LITERAL("3.7"));
}

static void keep_alive(struct peer *p, uint32_t stream, int64_t id)
{
    struct pb_lease_keep_alive_request request = {.id = id};
    uint8_t bytes[32];
    size_t size = pb_size(&pb_lease_keep_alive_request_table, &request);
    pb_encode(&pb_lease_keep_alive_request_table, &request, bytes, size);
    peer_send(p, stream, slice_of(bytes, size), false);
}

static void assert_kept(struct peer *p, uint32_t stream, size_t *at, int64_t id, int64_t ttl)
{
    struct pb_lease_keep_alive_response response;
    assert_true(next_message(p, stream, at, &pb_lease_keep_alive_response_table, &response));
    assert_int_equal(response.id, id);
    assert_int_equal(response.ttl, ttl);
    assert_int_equal(response.header->member_id, 9);
    assert_true(response.header->revision > 0);
}

/* -- Tests -- */

static void grant_returns_id_and_ttl(void **state)
{
    (void)state;
    struct peer *p = peer_new(3, 100, PEER_WINDOW);
    struct pb_lease_grant_response response = grant(p, 5, 60);
    assert_int_equal(response.id, 5);
    assert_int_equal(response.ttl, 60);
    assert_int_equal(response.header->cluster_id, 7);
    assert_int_equal(response.header->revision, 1);
    assert_int_equal(response.error.len, 0);
    assert_int_equal(grant(p, 6, 1).ttl, 2); /* the minimum TTL */
    assert_int_equal(grant(p, 7, -1).ttl, 2);
    assert_true(grant(p, 0, 10).id > 0); /* the server chooses */
    assert_int_equal(grant(p, -3, 10).id, -3);
    peer_free(p);
}

static void refusals_have_etcds_texts(void **state)
{
    (void)state;
    struct peer *p = peer_new(3, 100, PEER_WINDOW);
    grant(p, 5, 60);
    assert_fails(p, start_grant(p, 5, 60), GRPC_FAILED_PRECONDITION,
                 "etcdserver: lease already exists");
    assert_fails(p, start_grant(p, 5, 9000000001), GRPC_OUT_OF_RANGE,
                 "etcdserver: too large lease TTL");
    assert_fails(p, start_revoke(p, 6), GRPC_NOT_FOUND, "etcdserver: requested lease not found");
    assert_fails(p, start_revoke(p, 0), GRPC_NOT_FOUND, "etcdserver: requested lease not found");
    assert_fails(p, start_put(p, "k", 6), GRPC_NOT_FOUND, "etcdserver: requested lease not found");
    uint32_t garbage =
        peer_call_bytes(p, PB_LEASE_LEASE_GRANT_PATH, SLICE_LITERAL("3.7"), SLICE_LITERAL("\x08"));
    peer_pump(p);
    assert_int_equal(peer_stream(p, garbage)->code, GRPC_INTERNAL);
    peer_free(p);
}

static void time_to_live_returns_times_and_keys(void **state)
{
    (void)state;
    struct peer *p = peer_new(3, 100, PEER_WINDOW);
    grant(p, 5, 60);
    put(p, "b", 5);
    put(p, "a", 5);
    struct pb_lease_time_to_live_response response = time_to_live(p, 5, false);
    assert_int_equal(response.id, 5);
    assert_int_equal(response.ttl, 60);
    assert_int_equal(response.granted_ttl, 60);
    assert_int_equal(response.keys_count, 0);
    assert_int_equal(response.header->revision, 3);
    response = time_to_live(p, 5, true);
    assert_int_equal(response.keys_count, 2);
    assert_true(slice_is(response.keys[0], "a"));
    assert_true(slice_is(response.keys[1], "b"));
    response = time_to_live(p, 6, true); /* a missing lease is not an error */
    assert_int_equal(response.id, 6);
    assert_int_equal(response.ttl, -1);
    assert_int_equal(response.granted_ttl, 0);
    peer_free(p);
}

/* They are sent as the client reads, and the answer is the same. */
static void many_keys_of_a_lease_are_sent_completely(void **state)
{
    (void)state;
    enum { KEYS = 5, KEY_BYTES = 9000 };
    struct peer *p = peer_new(3, 100, PEER_WINDOW);
    char keys[KEYS][KEY_BYTES + 1];
    grant(p, 5, 60);
    for (size_t i = 0; i < KEYS; i++) {
        memset(keys[i], 'a' + (int)i, KEY_BYTES);
        keys[i][KEY_BYTES - i] = '\0';
        put(p, keys[i], 5);
        struct pb_lease_time_to_live_response response = time_to_live(p, 5, true);
        assert_int_equal(response.header->revision, 2 + i);
        assert_int_equal(response.id, 5);
        assert_int_equal(response.ttl, 60);
        assert_int_equal(response.granted_ttl, 60);
        assert_int_equal(response.keys_count, i + 1);
        for (size_t k = 0; k <= i; k++)
            assert_true(slice_is(response.keys[k], keys[k]));
    }
    peer_free(p);
}

static void revoking_a_lease_deletes_its_keys_in_one_revision(void **state)
{
    (void)state;
    struct peer *p = peer_new(3, 100, PEER_WINDOW);
    grant(p, 5, 60);
    put(p, "a", 5);
    put(p, "b", 5);
    put(p, "a", 0); /* detached */
    struct pb_lease_revoke_response revoked;
    assert_answers(p, start_revoke(p, 5), &pb_lease_revoke_response_table, &revoked);
    assert_int_equal(revoked.header->revision, 5);
    assert_int_equal(time_to_live(p, 5, true).ttl, -1);
    struct pb_range_request all = {.key = SLICE_LITERAL("\0"), .range_end = SLICE_LITERAL("\0")};
    struct pb_range_response left;
    assert_answers(p, peer_call(p, PB_KV_RANGE_PATH, &pb_range_request_table, &all),
                   &pb_range_response_table, &left);
    assert_int_equal(left.kvs_count, 1);
    assert_true(slice_is(left.kvs[0].key, "a"));
    peer_free(p);
}

static void leases_are_listed_by_expiry(void **state)
{
    (void)state;
    struct peer *p = peer_new(3, 100, PEER_WINDOW);
    struct pb_lease_leases_request request = {0};
    struct pb_lease_leases_response response;
    grant(p, 1, 300);
    grant(p, 2, 100);
    grant(p, 3, 200);
    assert_answers(
        p, peer_call(p, PB_LEASE_LEASE_LEASES_PATH, &pb_lease_leases_request_table, &request),
        &pb_lease_leases_response_table, &response);
    assert_int_equal(response.leases_count, 3);
    assert_int_equal(response.leases[0].id, 2);
    assert_int_equal(response.leases[1].id, 3);
    assert_int_equal(response.leases[2].id, 1);
    peer_free(p);
}

static void stream_renews_leases_and_reports_missing_ones(void **state)
{
    (void)state;
    struct peer *p = peer_new(3, 100, PEER_WINDOW);
    grant(p, 5, 60);
    grant(p, 6, 70);
    uint32_t stream = open_keep_alive(p);
    size_t at = 0;
    keep_alive(p, stream, 6);
    keep_alive(p, stream, 4);
    keep_alive(p, stream, 5);
    peer_pump(p);
    assert_kept(p, stream, &at, 6, 70);
    assert_kept(p, stream, &at, 4, 0);
    assert_kept(p, stream, &at, 5, 60);
    assert_false(peer_stream(p, stream)->ended);
    peer_half_close(p, stream);
    peer_pump(p);
    assert_true(peer_stream(p, stream)->ended);
    assert_int_equal(peer_stream(p, stream)->code, GRPC_OK);
    peer_free(p);
}

static void stream_without_requests_ends_with_ok(void **state)
{
    (void)state;
    struct peer *p = peer_new(3, 100, PEER_WINDOW);
    uint32_t stream = open_keep_alive(p);
    peer_half_close(p, stream);
    peer_pump(p);
    assert_int_equal(peer_stream(p, stream)->code, GRPC_OK);
    peer_free(p);
}

static void half_closed_stream_is_answered_completely(void **state)
{
    (void)state;
    struct peer *p = peer_new(3, 0, PEER_WINDOW);
    grant(p, 5, 60);
    uint32_t stream = open_keep_alive(p);
    for (int i = 0; i < 3; i++)
        keep_alive(p, stream, 5);
    peer_half_close(p, stream);
    peer_pump(p);
    assert_int_equal(fake_waiting(p->engine), 1); /* one operation at a time */
    assert_false(peer_stream(p, stream)->ended);
    answer_all(p);
    size_t at = 0;
    for (int i = 0; i < 3; i++)
        assert_kept(p, stream, &at, 5, 60);
    assert_int_equal(peer_stream(p, stream)->code, GRPC_OK);
    peer_free(p);
}

static void disconnect_with_a_pending_renewal_leaks_nothing(void **state)
{
    (void)state;
    struct peer *p = peer_new(3, 0, PEER_WINDOW);
    uint32_t stream = open_keep_alive(p);
    keep_alive(p, stream, 5);
    keep_alive(p, stream, 6);
    uint32_t call = start_grant(p, 5, 60);
    peer_pump(p);
    assert_int_equal(fake_waiting(p->engine), 2);
    peer_reset(p, stream);
    peer_reset(p, call);
    answer_all(p);
    peer_free(p);
}

/*
 * While the engine answers nothing, a client continues to send. It gets no more window, so a
 * bounded number of requests waits, and all are answered when the engine continues.
 */
static void flooding_client_gets_no_more_window(void **state)
{
    (void)state;
    enum { BYTES_EACH = GRPC_PREFIX_BYTES + 2, WINDOW = 65535 };
    struct peer *p = peer_new(3, 0, PEER_WINDOW);
    grant(p, 5, 60);
    uint32_t stream = open_keep_alive(p);
    size_t sent = 0;
    while (p->window_used[stream / 2] + BYTES_EACH <= WINDOW && sent < 100000) {
        keep_alive(p, stream, 5);
        sent++;
        peer_pump(p);
    }
    assert_true(sent < 20000);
    assert_int_equal(fake_waiting(p->engine), 1);
    answer_all(p);
    size_t at = 0;
    for (size_t i = 0; i < sent; i++)
        assert_kept(p, stream, &at, 5, 60);
    assert_int_equal(p->window_used[stream / 2] < WINDOW / 2, 1); /* the window was opened again */
    peer_reset(p, stream);
    peer_free(p);
}

static void engine_failure_ends_the_stream_with_its_text(void **state)
{
    (void)state;
    struct peer *p = peer_new(3, 0, PEER_WINDOW);
    uint32_t stream = open_keep_alive(p);
    keep_alive(p, stream, 5);
    keep_alive(p, stream, 6);
    fake_fail_next(p->engine, ST_STOPPED, SLICE_LITERAL("upstream says no"));
    answer_all(p);
    peer_pump(p);
    assert_true(peer_stream(p, stream)->ended);
    assert_string_equal(peer_stream(p, stream)->text, "upstream says no");
    peer_free(p);
}

static void malformed_message_ends_the_stream(void **state)
{
    (void)state;
    struct peer *p = peer_new(3, 0, PEER_WINDOW);
    uint32_t stream = open_keep_alive(p);
    keep_alive(p, stream, 5);
    peer_send(p, stream, SLICE_LITERAL("\x08"), false);
    keep_alive(p, stream, 6);
    answer_all(p);
    peer_pump(p);
    assert_int_equal(peer_stream(p, stream)->code, GRPC_INTERNAL);
    peer_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grant_returns_id_and_ttl),
        cmocka_unit_test(refusals_have_etcds_texts),
        cmocka_unit_test(time_to_live_returns_times_and_keys),
        cmocka_unit_test(many_keys_of_a_lease_are_sent_completely),
        cmocka_unit_test(revoking_a_lease_deletes_its_keys_in_one_revision),
        cmocka_unit_test(leases_are_listed_by_expiry),
        cmocka_unit_test(stream_renews_leases_and_reports_missing_ones),
        cmocka_unit_test(stream_without_requests_ends_with_ok),
        cmocka_unit_test(half_closed_stream_is_answered_completely),
        cmocka_unit_test(disconnect_with_a_pending_renewal_leaks_nothing),
        cmocka_unit_test(flooding_client_gets_no_more_window),
        cmocka_unit_test(engine_failure_ends_the_stream_with_its_text),
        cmocka_unit_test(malformed_message_ends_the_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
