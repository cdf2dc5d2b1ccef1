/* KV over a real connection and the fake engine: operations complete late and out of order. */
#include "base/random.h"
#include "codec/pb/rpc.pb.h"
#include "etcd/peer_calls_test.h"

#include <stdio.h>

/* -- Shorthands -- */

static uint32_t start_put(struct peer *p, struct slice key, struct slice value)
{
    struct pb_put_request request = {.key = key, .value = value, .prev_kv = true};
    return peer_call(p, PB_KV_PUT_PATH, &pb_put_request_table, &request);
}

static uint32_t start_list(struct peer *p, const char *path)
{
    struct pb_range_request request = {.key = SLICE_LITERAL("\0"),
                                       .range_end = SLICE_LITERAL("\0")};
    return peer_call(p, path, &pb_range_request_table, &request);
}

/* -- Tests -- */

static void put_get_and_delete_answer_like_etcd(void **state)
{
    (void)state;
    struct peer *p = peer_new(1, 100, PEER_WINDOW);
    struct pb_put_response put;
    assert_answers(p, start_put(p, SLICE_LITERAL("a"), SLICE_LITERAL("1")), &pb_put_response_table,
                   &put);
    assert_int_equal(put.header->revision, 2);
    assert_int_equal(put.header->cluster_id, 7);
    assert_int_equal(put.header->member_id, 9);
    assert_int_equal(put.header->raft_term, 2);
    assert_null(put.prev_kv);
    assert_answers(p, start_put(p, SLICE_LITERAL("a"), SLICE_LITERAL("2")), &pb_put_response_table,
                   &put);
    assert_true(slice_is(put.prev_kv->value, "1"));

    struct pb_range_response range;
    assert_answers(p, start_list(p, PB_KV_RANGE_PATH), &pb_range_response_table, &range);
    assert_int_equal(range.header->revision, 3);
    assert_int_equal(range.count, 1);
    assert_int_equal(range.kvs_count, 1);
    assert_int_equal(range.kvs[0].version, 2);

    struct pb_delete_range_request request = {.key = SLICE_LITERAL("a"), .prev_kv = true};
    struct pb_delete_range_response deleted;
    assert_answers(p,
                   peer_call(p, PB_KV_DELETE_RANGE_PATH, &pb_delete_range_request_table, &request),
                   &pb_delete_range_response_table, &deleted);
    assert_int_equal(deleted.deleted, 1);
    assert_true(slice_is(deleted.prev_kvs[0].value, "2"));
    peer_free(p);
}

static void txn_returns_the_results_of_the_branch_taken(void **state)
{
    (void)state;
    struct peer *p = peer_new(1, 100, PEER_WINDOW);
    struct pb_put_request put = {.key = SLICE_LITERAL("k"), .value = SLICE_LITERAL("v")};
    struct pb_range_request get = {.key = SLICE_LITERAL("k")};
    struct pb_compare absent = {.key = SLICE_LITERAL("k"), .target = PB_COMPARE_TARGET_MOD};
    struct pb_request_op then[2] = {
        {.request_case = PB_REQUEST_OP_REQUEST_PUT, .request_put = &put},
        {.request_case = PB_REQUEST_OP_REQUEST_RANGE, .request_range = &get},
    };
    struct pb_txn_request txn = {.compare = &absent,
                                 .compare_count = 1,
                                 .success = then,
                                 .success_count = 2,
                                 .failure = &then[1],
                                 .failure_count = 1};
    struct pb_txn_response response;
    assert_answers(p, peer_call(p, PB_KV_TXN_PATH, &pb_txn_request_table, &txn),
                   &pb_txn_response_table, &response);
    assert_true(response.succeeded);
    assert_int_equal(response.header->revision, 2);
    assert_int_equal(response.responses_count, 2);
    assert_int_equal(response.responses[1].response_range->kvs_count, 1);
    assert_int_equal(response.responses[1].response_range->header->revision, 2);
    assert_int_equal(response.responses[1].response_range->header->cluster_id, 0);
    assert_answers(p, peer_call(p, PB_KV_TXN_PATH, &pb_txn_request_table, &txn),
                   &pb_txn_response_table, &response);
    assert_false(response.succeeded);
    assert_int_equal(response.responses_count, 1);
    peer_free(p);
}

static void errors_carry_etcds_code_and_text(void **state)
{
    (void)state;
    struct peer *p = peer_new(1, 100, PEER_WINDOW);
    assert_fails(p, start_put(p, SLICE_EMPTY, SLICE_EMPTY), GRPC_INVALID_ARGUMENT,
                 "etcdserver: key is not provided");
    struct pb_range_request future = {.key = SLICE_LITERAL("a"), .revision = 9};
    assert_fails(p, peer_call(p, PB_KV_RANGE_PATH, &pb_range_request_table, &future),
                 GRPC_OUT_OF_RANGE, "etcdserver: mvcc: required revision is a future revision");
    struct pb_range_request sorted = {.key = SLICE_LITERAL("a"), .sort_order = 2};
    assert_fails(p, peer_call(p, PB_KV_RANGE_STREAM_PATH, &pb_range_request_table, &sorted),
                 GRPC_UNIMPLEMENTED, "RangeStream does not support custom sort orders");
    struct pb_compaction_request compaction = {.revision = 5};
    assert_fails(p, peer_call(p, PB_KV_COMPACT_PATH, &pb_compaction_request_table, &compaction),
                 GRPC_OUT_OF_RANGE, "etcdserver: mvcc: required revision is a future revision");
    fake_fail_next(p->engine, ST_UNHEALTHY, SLICE_LITERAL("the upstream's words"));
    assert_fails(p, start_put(p, SLICE_LITERAL("a"), SLICE_EMPTY), GRPC_UNAVAILABLE,
                 "the upstream's words");
    peer_free(p);
}

static void malformed_requests_are_refused(void **state)
{
    (void)state;
    struct peer *p = peer_new(1, 100, PEER_WINDOW);
    struct slice bad = SLICE_LITERAL("\x0a\xff");
    uint32_t id = peer_call_bytes(p, PB_KV_PUT_PATH, SLICE_LITERAL("3.7"), bad);
    assert_fails(p, id, GRPC_INTERNAL,
                 "grpc: error unmarshalling request: proto: cannot parse invalid wire-format data");
    id =
        peer_call_bytes(p, PB_KV_RANGE_PATH, SLICE_LITERAL("\xff\xfe"), SLICE_LITERAL("\x0a\x01k"));
    assert_fails(p, id, GRPC_INVALID_ARGUMENT, "etcdserver: invalid client api version");
    peer_free(p);
}

static void request_size_is_counted_as_etcd_logs_it(void **state)
{
    (void)state;
    struct peer *p = peer_new(1, 100, PEER_WINDOW);
    /* message: 0a 01 k 12 len3 value; log: 1 + len3 + message + header of 4 + varint(id) */
    size_t log_header = 2 + 1 + 1 + 8; /* member 9: 4 bits above 48 */
    size_t fits = peer_config.request_bytes_max - log_header - 1 - 3;
    uint8_t *value = arena_calloc(&p->arena, 1, fits);
    size_t value_bytes = fits - 3 - 1 - 3;
    assert_fails(p, start_put(p, SLICE_LITERAL("k"), slice_of(value, value_bytes + 1 - 2)),
                 GRPC_INVALID_ARGUMENT, "etcdserver: request is too large");
    struct pb_put_response put;
    assert_answers(p, start_put(p, SLICE_LITERAL("k"), slice_of(value, value_bytes - 2)),
                   &pb_put_response_table, &put);
    peer_free(p);
}

static void long_list_is_sent_as_the_window_opens(void **state)
{
    (void)state;
    enum { KEYS = 400, VALUE = 1000, WINDOW = 5000 };
    struct peer *p = peer_new(1, 100, WINDOW);
    put_all(p, KEYS, VALUE);
    uint32_t id = start_list(p, PB_KV_RANGE_PATH);
    peer_pump(p);
    assert_int_equal(peer_stream(p, id)->body.len, WINDOW);
    assert_int_equal(fake_open(p->engine), 1);
    while (!peer_stream(p, id)->ended) {
        peer_open_window(p, id, 777);
        peer_pump(p);
    }
    struct pb_range_response range;
    assert_answers(p, id, &pb_range_response_table, &range);
    assert_int_equal(range.kvs_count, KEYS);
    assert_int_equal(range.count, KEYS);
    assert_int_equal(fake_open(p->engine), 0);
    peer_free(p);
}

static void list_is_closed_when_its_client_disconnects(void **state)
{
    (void)state;
    struct peer *p = peer_new(1, 100, 5000);
    put_all(p, 100, 1000);
    uint32_t id = start_list(p, PB_KV_RANGE_PATH);
    uint32_t stream_id = start_list(p, PB_KV_RANGE_STREAM_PATH);
    peer_pump(p);
    assert_int_equal(fake_open(p->engine), 2);
    peer_reset(p, id);
    peer_reset(p, stream_id);
    assert_int_equal(fake_open(p->engine), 0);
    peer_free(p);
}

static void long_answer_of_a_write_is_sent_as_the_window_opens(void **state)
{
    (void)state;
    enum { KEYS = 100, VALUE = 1000, WINDOW = 5000 };
    struct peer *p = peer_new(1, 100, WINDOW);
    put_all(p, KEYS, VALUE);
    struct pb_range_request all = {.key = SLICE_LITERAL("\0"), .range_end = SLICE_LITERAL("\0")};
    struct pb_request_op op = {.request_case = PB_REQUEST_OP_REQUEST_RANGE, .request_range = &all};
    struct pb_txn_request txn = {.success = &op, .success_count = 1};
    struct pb_delete_range_request request = {
        .key = SLICE_LITERAL("\0"), .range_end = SLICE_LITERAL("\0"), .prev_kv = true};
    uint32_t read = peer_call(p, PB_KV_TXN_PATH, &pb_txn_request_table, &txn);
    uint32_t left = peer_call(p, PB_KV_TXN_PATH, &pb_txn_request_table, &txn);
    uint32_t removed =
        peer_call(p, PB_KV_DELETE_RANGE_PATH, &pb_delete_range_request_table, &request);
    peer_pump(p);
    assert_int_equal(peer_stream(p, removed)->body.len, WINDOW);
    assert_int_equal(fake_open(p->engine), 3);
    peer_reset(p, left);
    assert_int_equal(fake_open(p->engine), 2);
    while (!peer_stream(p, read)->ended || !peer_stream(p, removed)->ended) {
        if (!peer_stream(p, read)->ended)
            peer_open_window(p, read, 777);
        if (!peer_stream(p, removed)->ended)
            peer_open_window(p, removed, 3);
        peer_pump(p);
        if (peer_stream(p, read)->ended && !peer_stream(p, removed)->ended)
            peer_open_window(p, removed, 5000);
    }
    assert_int_equal(fake_open(p->engine), 0);
    struct pb_delete_range_response deleted;
    assert_answers(p, removed, &pb_delete_range_response_table, &deleted);
    assert_int_equal(deleted.deleted, KEYS);
    assert_int_equal(deleted.prev_kvs_count, KEYS);
    struct pb_txn_response response;
    assert_answers(p, read, &pb_txn_response_table, &response);
    assert_int_equal(response.responses[0].response_range->kvs_count, KEYS);
    peer_free(p);
}

static void long_answer_of_a_write_must_be_read_within_a_minute(void **state)
{
    (void)state;
    struct peer *p = peer_new(1, 100, 5000);
    put_all(p, 100, 1000);
    struct pb_delete_range_request request = {
        .key = SLICE_LITERAL("\0"), .range_end = SLICE_LITERAL("\0"), .prev_kv = true};
    uint32_t id = peer_call(p, PB_KV_DELETE_RANGE_PATH, &pb_delete_range_request_table, &request);
    peer_pump(p);
    /* The client reads a little every 20 seconds, so the connection is not stalled. */
    for (int i = 1; i <= 3; i++) {
        p->now_ns = i * INT64_C(20000000000);
        assert_int_equal(fake_open(p->engine), 1);
        peer_open_window(p, id, 777);
        peer_pump(p);
        assert_false(peer_stream(p, id)->ended);
    }
    p->now_ns = INT64_C(61000000000);
    peer_open_window(p, id, 777);
    peer_pump(p);
    assert_int_equal(fake_open(p->engine), 0);
    assert_int_equal(peer_stream(p, id)->code, GRPC_UNAVAILABLE);
    assert_string_equal(peer_stream(p, id)->text, "etcdserver: request timed out");
    peer_free(p);
}

static void write_without_memory_for_its_answer_has_unknown_outcome(void **state)
{
    (void)state;
    struct peer *p = malloc(sizeof(*p));
    assert_non_null(p);
    struct fake_options options = {.seed = 1, .inline_percent = 100};
    peer_init(p, &peer_config, &options, 1 << 20, 1 << 20);
    put_all(p, 1, 1000);
    while (account_charge(p->memory.account, 500)) /* use up the connection's memory limit */
        continue;
    struct engine_status before, after;
    engine_status_get(p->shard, &before);
    assert_fails(p, start_put(p, SLICE_LITERAL("key-000000"), SLICE_EMPTY), GRPC_UNAVAILABLE,
                 "etcdserver: request timed out");
    engine_status_get(p->shard, &after);
    assert_int_equal(after.revision, before.revision + 1);
    struct pb_range_request get = {.key = SLICE_LITERAL("key-000000"), .revision = before.revision};
    assert_fails(p, peer_call(p, PB_KV_RANGE_PATH, &pb_range_request_table, &get),
                 GRPC_RESOURCE_EXHAUSTED, status_text(ST_NOMEM));
    account_release(p->memory.account, account_held_bytes(p->memory.account) / 500 * 500);
    peer_free(p);
}

static void range_stream_is_cut_as_etcd_cuts_it(void **state)
{
    (void)state;
    /* The target is 64 KiB: 10, 20, then 40 keys of about 1 KB, which is between half and twice. */
    static const size_t expected[] = {10, 20, 40, 40, 40};
    struct peer *p = peer_new(1, 100, PEER_WINDOW);
    put_all(p, 150, 1000);
    uint32_t id = start_list(p, PB_KV_RANGE_STREAM_PATH);
    peer_pump(p);
    assert_int_equal(peer_stream(p, id)->code, GRPC_OK);
    size_t at = 0, keys = 0, i = 0;
    struct pb_range_stream_response message;
    for (; next_message(p, id, &at, &pb_range_stream_response_table, &message); i++) {
        const struct pb_range_response *part = message.range_response;
        bool last = i + 1 == COUNT_OF(expected);
        assert_int_equal(part->kvs_count, expected[i]);
        assert_int_equal(part->header != NULL, last);
        assert_int_equal(part->count, last ? 150 : 0);
        keys += part->kvs_count;
    }
    assert_int_equal(i, COUNT_OF(expected));
    assert_int_equal(keys, 150);
    peer_free(p);
}

static void range_stream_with_a_limit_reports_more(void **state)
{
    (void)state;
    struct peer *p = peer_new(1, 100, PEER_WINDOW);
    put_all(p, 30, 10);
    struct pb_range_request request = {
        .key = SLICE_LITERAL("a"), .range_end = SLICE_LITERAL("z"), .limit = 12};
    uint32_t id = peer_call(p, PB_KV_RANGE_STREAM_PATH, &pb_range_request_table, &request);
    peer_pump(p);
    size_t at = 0;
    struct pb_range_stream_response message;
    assert_true(next_message(p, id, &at, &pb_range_stream_response_table, &message));
    assert_int_equal(message.range_response->kvs_count, 10);
    assert_false(message.range_response->more);
    assert_true(next_message(p, id, &at, &pb_range_stream_response_table, &message));
    assert_int_equal(message.range_response->kvs_count, 2);
    assert_true(message.range_response->more);
    assert_int_equal(message.range_response->count, 30);
    assert_false(next_message(p, id, &at, &pb_range_stream_response_table, &message));
    peer_free(p);
}

static void empty_range_stream_is_one_message(void **state)
{
    (void)state;
    struct peer *p = peer_new(1, 100, PEER_WINDOW);
    struct pb_range_stream_response message;
    assert_answers(p, start_list(p, PB_KV_RANGE_STREAM_PATH), &pb_range_stream_response_table,
                   &message);
    assert_int_equal(message.range_response->header->revision, 1);
    assert_int_equal(message.range_response->count, 0);
    peer_free(p);
}

static void answer_after_a_disconnect_is_dropped(void **state)
{
    (void)state;
    struct peer *p = peer_new(5, 0, 1 << 20);
    uint32_t ids[4] = {
        start_put(p, SLICE_LITERAL("a"), SLICE_EMPTY),
        start_list(p, PB_KV_RANGE_PATH),
        peer_call(p, PB_KV_COMPACT_PATH, &pb_compaction_request_table,
                  &(struct pb_compaction_request){.revision = 1}),
        peer_call(p, PB_MAINTENANCE_HASH_KV_PATH, &pb_hash_kv_request_table,
                  &(struct pb_hash_kv_request){0}),
    };
    assert_int_equal(fake_waiting(p->engine), 4);
    for (size_t i = 0; i < 4; i++)
        peer_reset(p, ids[i]);
    while (fake_step(p->engine))
        ;
    assert_int_equal(fake_open(p->engine), 0);
    /* The write took effect nevertheless. */
    struct engine_status status;
    engine_status_get(p->shard, &status);
    assert_int_equal(status.revision, 2);
    peer_free(p);
}

static void connection_may_end_with_operations_under_way(void **state)
{
    (void)state;
    struct peer *p = peer_new(6, 0, 1 << 20);
    for (unsigned i = 0; i < 50; i++) {
        start_put(p, SLICE_LITERAL("a"), SLICE_LITERAL("v"));
        start_list(p, PB_KV_RANGE_PATH);
    }
    peer_pump(p);
    peer_free(p); /* frees the connection first */
}

static void many_calls_at_once_get_their_own_answers(void **state)
{
    (void)state;
    enum { CALLS = 1500 };
    struct peer *p = peer_new(11, 30, 1 << 20);
    struct random random;
    random_init(&random, 12);
    static uint32_t ids[CALLS];
    for (unsigned i = 0; i < CALLS; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%u", i);
        ids[i] = start_put(p, slice_from_text(key), slice_from_text(key));
        for (uint64_t n = random_below(&random, 3); n > 0; n--)
            fake_step(p->engine);
        if (random_chance(&random, 1, 10) && !peer_stream(p, ids[i])->ended)
            peer_reset(p, ids[i]);
        if (random_chance(&random, 1, 5))
            peer_pump(p);
    }
    while (fake_step(p->engine))
        ;
    peer_pump(p);
    bool seen[CALLS + 2] = {false};
    for (unsigned i = 0; i < CALLS; i++) {
        if (peer_stream(p, ids[i])->code == -1)
            continue; /* reset */
        struct pb_put_response put;
        assert_answers(p, ids[i], &pb_put_response_table, &put);
        assert_in_range(put.header->revision, 2, CALLS + 1);
        assert_false(seen[put.header->revision]);
        seen[put.header->revision] = true;
    }
    peer_free(p);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(put_get_and_delete_answer_like_etcd),
        TEST(txn_returns_the_results_of_the_branch_taken),
        TEST(errors_carry_etcds_code_and_text),
        TEST(malformed_requests_are_refused),
        TEST(request_size_is_counted_as_etcd_logs_it),
        TEST(long_list_is_sent_as_the_window_opens),
        TEST(list_is_closed_when_its_client_disconnects),
        TEST(long_answer_of_a_write_is_sent_as_the_window_opens),
        TEST(long_answer_of_a_write_must_be_read_within_a_minute),
        TEST(write_without_memory_for_its_answer_has_unknown_outcome),
        TEST(range_stream_is_cut_as_etcd_cuts_it),
        TEST(range_stream_with_a_limit_reports_more),
        TEST(empty_range_stream_is_one_message),
        TEST(answer_after_a_disconnect_is_dropped),
        TEST(connection_may_end_with_operations_under_way),
        TEST(many_calls_at_once_get_their_own_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
