/*
 * Writes over a fake of upstream.h: what is sent, in whose name, and what becomes of each answer.
 */
#include "base/clock.h"
#include "base/memory/budget.h"
#include "codec/pb/kv.pb.h"
#include "codec/pb/rpc.pb.h"
#include "io/loop.h"
#include "mirror/follow/follower.h"
#include "mirror/link/upstream.h"
#include "mirror/shard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* -- The cluster -- */

struct upstream_call {
    const struct upstream_ops *ops;
    void *user;
};

static struct {
    struct upstream_call call;
    struct upstream_request request;
    struct buf sent;
    unsigned started, canceled, half_closed;
    enum status start_fails, send_fails;
    int64_t compacted;
    bool too_long;
} cluster;

enum status upstream_start(struct upstream *upstream, const struct upstream_request *request,
                           const struct upstream_ops *ops, void *user,
                           struct upstream_call **ret_call)
{
    (void)upstream;
    if (cluster.start_fails != ST_OK)
        return cluster.start_fails;
    cluster.started++;
    cluster.request = *request;
    cluster.call = (struct upstream_call){.ops = ops, .user = user};
    *ret_call = &cluster.call;
    return ST_OK;
}

void *upstream_call_user(const struct upstream_call *call)
{
    return call->user;
}

bool upstream_call_is_too_long(const struct upstream_call *call)
{
    (void)call;
    return cluster.too_long;
}

enum status upstream_send(struct upstream_call *call, struct slice message)
{
    (void)call;
    buf_reset(&cluster.sent, SIZE_MAX);
    assert_int_equal(buf_append(&cluster.sent, message), ST_OK);
    return cluster.send_fails;
}

void upstream_half_close(struct upstream_call *call)
{
    (void)call;
    cluster.half_closed++;
}

void upstream_cancel(struct upstream_call *call)
{
    (void)call;
    cluster.canceled++;
}

void follower_note_compaction(struct follower *follower, int64_t revision)
{
    (void)follower;
    cluster.compacted = revision;
}

/* -- The fixture -- */

struct fixture {
    struct clock_sim clock;
    struct loop *loop;
    struct mirror_shared shared;
    struct mirror_shard shard;
    struct arena arena;
    struct engine_write write;
    struct engine_lease lease;
    struct engine_op op;
    unsigned done;
    int64_t written; /* as it was in done */
};

static struct fixture *f;

static void on_done(struct engine_op *op)
{
    (void)op;
    f->done++;
    f->written = atomic_load(&f->shared.state.written);
}

static void start(struct engine_op *op, enum engine_kind kind, const void *request)
{
    op->shard = &f->shard.base;
    op->kind = (uint8_t)kind;
    op->request = request;
    mirror_call_start(op);
}

static struct engine_op new_op(void)
{
    return (struct engine_op){.done = on_done, .arena = &f->arena, .principal = ENGINE_SERVER};
}

static int set_up(void **state)
{
    (void)state;
    f = calloc(1, sizeof(*f));
    clock_sim_init(&f->clock, 1700000000 * NS_PER_S);
    assert_int_equal(loop_new(&f->clock.clock, &f->loop), ST_OK);
    arena_init(&f->arena, NULL, 0, 1 << 20);
    f->shard.shared = &f->shared;
    f->shard.loop = f->loop;
    f->write.op = f->lease.op = f->op = new_op();
    memset(&cluster, 0, sizeof(cluster));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    mirror_write_close(&f->write);
    assert_int_equal(f->shard.in_progress, 0);
    assert_int_equal(f->done, 1);
    loop_free(f->loop);
    arena_fini(&f->arena);
    buf_fini(&cluster.sent);
    free(f);
    return 0;
}

static void answer_bytes(struct slice message)
{
    uint8_t *copy = malloc(message.len + 1); /* so that a sanitizer finds who keeps it */
    slice_copy(copy, message);
    cluster.call.ops->on_message(&cluster.call, slice_of(copy, message.len));
    free(copy);
}

static void end_call(enum grpc_code code, const char *text)
{
    cluster.call.ops->on_end(&cluster.call, code, slice_from_text(text));
}

static void answer(const struct pb_message *type, const void *response)
{
    struct buf bytes = {0};
    assert_int_equal(pb_append(type, response, &bytes), ST_OK);
    answer_bytes(buf_slice(&bytes));
    buf_fini(&bytes);
    assert_int_equal(f->done, 0);
    end_call(GRPC_OK, "");
}

static void assert_field(struct slice field, const struct pb_key_value *kv)
{
    struct buf bytes = {0};
    size_t len = pb_size(&pb_key_value_table, kv);
    assert_true(len < 128);
    assert_int_equal(buf_append(&bytes, slice_of((uint8_t[]){0x12, (uint8_t)len}, 2)), ST_OK);
    assert_int_equal(pb_append(&pb_key_value_table, kv, &bytes), ST_OK);
    assert_true(slice_equal(field, buf_slice(&bytes)));
    buf_fini(&bytes);
}

static struct pb_response_header header = {.cluster_id = 7, .member_id = 8, .revision = 42};
static struct pb_key_value kv = {.key = SLICE_LITERAL("k"),
                                 .value = SLICE_LITERAL("v"),
                                 .create_revision = 3,
                                 .mod_revision = 5,
                                 .version = 2};

static struct pb_put_request put_request = {
    .key = SLICE_LITERAL("k"), .value = SLICE_LITERAL("v"), .prev_kv = true};

static void start_put(void)
{
    start(&f->write.op, ENGINE_PUT, &put_request);
}

/* -- Puts and deletes -- */

static void put_is_sent_once_in_our_own_name_and_answered(void **state)
{
    (void)state;
    struct pb_put_request sent;
    start_put();
    assert_int_equal(f->shard.in_progress, 1);
    assert_int_equal(cluster.started, 1);
    assert_int_equal(cluster.half_closed, 1);
    assert_true(cluster.request.caller.is_self);
    assert_false(cluster.request.reads);
    assert_true(slice_is(cluster.request.path, "/etcdserverpb.KV/Put"));
    assert_true(cluster.request.deadline_ns > loop_now_ns(f->loop));
    assert_true(cluster.request.deadline_ns < CLOCK_NEVER);
    assert_int_equal(pb_decode(&pb_put_request_table, buf_slice(&cluster.sent), &f->arena, &sent),
                     ST_OK);
    assert_true(slice_equal(sent.value, put_request.value) && sent.prev_kv);

    answer(&pb_put_response_table, &(struct pb_put_response){.header = &header, .prev_kv = &kv});
    assert_int_equal(f->write.op.status, ST_OK);
    assert_int_equal(f->write.op.revision, 42);
    assert_int_equal(f->write.answer.kind, KV_ANSWER_PUT);
    assert_field(f->write.answer.put.prev_field, &kv);
    assert_int_equal(f->written, 42);
}

static void client_without_credentials_never_borrows_ours(void **state)
{
    (void)state;
    f->write.op.principal = (struct auth_principal){.token = SLICE_LITERAL("its.1")};
    start_put();
    assert_false(cluster.request.caller.is_self);
    assert_true(slice_is(cluster.request.caller.token, "its.1"));
    end_call(GRPC_UNAUTHENTICATED, "etcdserver: invalid auth token");
    assert_int_equal(f->write.op.status, ST_INVALID_AUTH_TOKEN);
}

static void delete_returns_previous_values(void **state)
{
    (void)state;
    struct pb_delete_range_request request = {.key = SLICE_LITERAL("a"),
                                              .range_end = SLICE_LITERAL("z")};
    struct pb_key_value kvs[2] = {kv, {.key = SLICE_LITERAL("l"), .mod_revision = 9}};
    start(&f->write.op, ENGINE_DELETE_RANGE, &request);
    answer(&pb_delete_range_response_table,
           &(struct pb_delete_range_response){
               .header = &header, .deleted = 2, .prev_kvs = kvs, .prev_kvs_count = 2});
    const struct kv_delete_answer *got = &f->write.answer.delete_range;
    assert_int_equal(f->write.answer.kind, KV_ANSWER_DELETE);
    assert_int_equal(got->deleted, 2);
    assert_int_equal(got->prev_field_count, 2);
    assert_field(got->prev_fields[0], &kvs[0]);
    assert_field(got->prev_fields[1], &kvs[1]);
    assert_int_equal(got->prev_fields_bytes, got->prev_fields[0].len + got->prev_fields[1].len);
}

/* -- Transactions -- */

/* A transaction of a put, a range and a transaction with a delete; if it fails, of a range. */
struct nested {
    struct pb_put_request put;
    struct pb_range_request range;
    struct pb_delete_range_request deletion;
    struct pb_request_op inner_ops[1], success[3], failure[1];
    struct pb_txn_request inner, outer;
};

static struct nested *nested_new(void)
{
    struct nested *n = arena_calloc(&f->arena, 1, sizeof(*n));
    n->put.key = n->range.key = n->deletion.key = SLICE_LITERAL("k");
    n->inner_ops[0] = (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_DELETE_RANGE,
                                             .request_delete_range = &n->deletion};
    n->inner = (struct pb_txn_request){.success = n->inner_ops, .success_count = 1};
    n->success[0] =
        (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_PUT, .request_put = &n->put};
    n->success[1] = n->failure[0] = (struct pb_request_op){
        .request_case = PB_REQUEST_OP_REQUEST_RANGE, .request_range = &n->range};
    n->success[2] =
        (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_TXN, .request_txn = &n->inner};
    n->outer = (struct pb_txn_request){
        .success = n->success, .success_count = 3, .failure = n->failure, .failure_count = 1};
    return n;
}

static void transaction_is_answered_operation_by_operation(void **state)
{
    (void)state;
    struct pb_response_header inside = {.revision = 42};
    struct pb_put_response put = {.header = &inside};
    struct pb_range_response range = {
        .header = &inside, .kvs = &kv, .kvs_count = 1, .count = 3, .more = true};
    struct pb_delete_range_response deletion = {.header = &inside, .deleted = 1};
    struct pb_response_op inner_op = {.response_case = PB_RESPONSE_OP_RESPONSE_DELETE_RANGE,
                                      .response_delete_range = &deletion};
    struct pb_txn_response inner = {
        .succeeded = true, .responses = &inner_op, .responses_count = 1};
    struct pb_response_op ops[3] = {
        {.response_case = PB_RESPONSE_OP_RESPONSE_PUT, .response_put = &put},
        {.response_case = PB_RESPONSE_OP_RESPONSE_RANGE, .response_range = &range},
        {.response_case = PB_RESPONSE_OP_RESPONSE_TXN, .response_txn = &inner},
    };
    start(&f->write.op, ENGINE_TXN, &nested_new()->outer);
    answer(&pb_txn_response_table,
           &(struct pb_txn_response){
               .header = &header, .succeeded = true, .responses = ops, .responses_count = 3});
    const struct kv_txn_answer *txn = &f->write.answer.txn;
    assert_int_equal(f->write.op.status, ST_OK);
    assert_true(txn->succeeded);
    assert_int_equal(txn->answer_count, 3);
    assert_int_equal(txn->answers[0].kind, KV_ANSWER_PUT);
    assert_int_equal(txn->answers[0].revision, 42);
    assert_field(txn->answers[1].range.fields[0], &kv);
    assert_int_equal(txn->answers[1].range.count, 3);
    assert_true(txn->answers[1].range.more);
    assert_true(txn->answers[2].txn.succeeded);
    assert_int_equal(txn->answers[2].txn.answers[0].delete_range.deleted, 1);
}

static void failed_condition_returns_the_current_value(void **state)
{
    (void)state;
    struct pb_range_response range = {.kvs = &kv, .kvs_count = 1, .count = 1};
    struct pb_response_op op = {.response_case = PB_RESPONSE_OP_RESPONSE_RANGE,
                                .response_range = &range};
    start(&f->write.op, ENGINE_TXN, &nested_new()->outer);
    answer(&pb_txn_response_table,
           &(struct pb_txn_response){.header = &header, .responses = &op, .responses_count = 1});
    assert_int_equal(f->write.op.status, ST_OK);
    assert_false(f->write.answer.txn.succeeded);
    assert_field(f->write.answer.txn.answers[0].range.fields[0], &kv);
}

/* -- Responses that do not answer the request -- */

static void assert_unread(void)
{
    assert_int_equal(f->write.op.status, ST_INTERNAL);
    assert_non_null(memmem(f->write.op.text.ptr, f->write.op.text.len, "may have been executed",
                           strlen("may have been executed")));
}

static void response_with_too_few_operations_is_not_used(void **state)
{
    (void)state;
    start(&f->write.op, ENGINE_TXN, &nested_new()->outer);
    answer(&pb_txn_response_table, &(struct pb_txn_response){.header = &header});
    assert_unread();
}

static void response_of_another_kind_is_not_used(void **state)
{
    (void)state;
    struct pb_put_response put = {.header = &header};
    struct pb_response_op op = {.response_case = PB_RESPONSE_OP_RESPONSE_PUT, .response_put = &put};
    start(&f->write.op, ENGINE_TXN, &nested_new()->outer);
    answer(&pb_txn_response_table,
           &(struct pb_txn_response){.header = &header, .responses = &op, .responses_count = 1});
    assert_unread();
}

static void response_without_a_revision_is_not_used(void **state)
{
    (void)state;
    start_put();
    answer(&pb_put_response_table, &(struct pb_put_response){0});
    assert_unread();
    assert_int_equal(f->written, 0);
}

static void response_that_cannot_be_parsed_is_not_used(void **state)
{
    (void)state;
    start_put();
    answer_bytes(SLICE_LITERAL("\x0a\xff"));
    end_call(GRPC_OK, "");
    assert_unread();
}

static void missing_response_is_not_success(void **state)
{
    (void)state;
    start_put();
    end_call(GRPC_OK, "");
    assert_unread();
}

static void second_response_makes_both_unusable(void **state)
{
    (void)state;
    struct buf bytes = {0};
    start_put();
    assert_int_equal(
        pb_append(&pb_put_response_table, &(struct pb_put_response){.header = &header}, &bytes),
        ST_OK);
    answer_bytes(buf_slice(&bytes));
    answer_bytes(buf_slice(&bytes));
    buf_fini(&bytes);
    end_call(GRPC_OK, "");
    assert_unread();
}

/* An applied write whose answer finds no memory must not look like one that was refused. */
static void answer_without_memory_is_not_a_refusal(void **state)
{
    (void)state;
    struct budget *budget;
    struct account *account;
    assert_int_equal(budget_new(64 << 10, &budget), ST_OK);
    assert_int_equal(account_new(budget, &account), ST_OK);
    char value[128 << 10];
    memset(value, 'v', sizeof(value));
    struct pb_key_value large = {.key = SLICE_LITERAL("k"),
                                 .value = slice_of(value, sizeof(value))};
    arena_charge(&f->arena, account);
    start_put();
    answer(&pb_put_response_table, &(struct pb_put_response){.header = &header, .prev_kv = &large});
    assert_unread();
    mirror_write_close(&f->write);
    arena_fini(&f->arena);
    account_unref(account);
    budget_free(budget);
}

/* -- Failures -- */

static void unknown_outcome_is_reported_and_not_repeated(void **state)
{
    (void)state;
    start_put();
    end_call(GRPC_UNAVAILABLE, "etcdserver: request timed out");
    assert_int_equal(f->write.op.status, ST_TIMEOUT);
    assert_int_equal(cluster.started, 1);
    assert_int_equal(f->written, 0);
}

static void broken_connection_leaves_the_outcome_open(void **state)
{
    (void)state;
    start_put();
    end_call(GRPC_UNAVAILABLE, "the connection to 127.0.0.1:1 was closed");
    assert_int_equal(f->write.op.status, ST_TIMEOUT_DUE_TO_CONNECTION_LOST);
}

static void request_beyond_the_limit_of_grpc_is_too_large(void **state)
{
    (void)state;
    start_put();
    end_call(GRPC_RESOURCE_EXHAUSTED, "grpc: received message larger than max (9 vs. 8)");
    assert_int_equal(f->write.op.status, ST_REQUEST_TOO_LARGE);
}

static void answer_beyond_the_limit_of_grpc_leaves_the_outcome_open(void **state)
{
    (void)state;
    start_put();
    end_call(GRPC_RESOURCE_EXHAUSTED, "grpc: trying to send message larger than max (9 vs. 8)");
    assert_int_equal(f->write.op.status, ST_UPSTREAM);
}

static void answer_that_was_not_received_leaves_the_outcome_open(void **state)
{
    (void)state;
    start_put();
    cluster.too_long = true;
    end_call(GRPC_RESOURCE_EXHAUSTED, "grpc: received message larger than max (9 vs. 8)");
    assert_int_equal(f->write.op.status, ST_INTERNAL);
}

static void request_that_finds_no_room_is_refused_before_it_is_sent(void **state)
{
    (void)state;
    cluster.send_fails = ST_LIMIT;
    start_put();
    assert_int_equal(f->write.op.status, ST_REQUEST_TOO_MANY_REQUESTS);
    assert_int_equal(cluster.canceled, 1);
    assert_int_equal(cluster.half_closed, 0);
}

static void call_that_cannot_be_started_fails(void **state)
{
    (void)state;
    cluster.start_fails = ST_NOMEM;
    start_put();
    assert_int_equal(f->write.op.status, ST_NOMEM);
}

/* -- Compaction and leases -- */

static void compaction_is_noted(void **state)
{
    (void)state;
    struct pb_compaction_request request = {.revision = 40};
    start(&f->op, ENGINE_COMPACT, &request);
    answer(&pb_compaction_response_table, &(struct pb_compaction_response){.header = &header});
    assert_int_equal(f->op.status, ST_OK);
    assert_int_equal(f->op.revision, 42);
    assert_int_equal(cluster.compacted, 40);
    assert_int_equal(f->written, 0);
}

static void refused_compaction_is_not_noted(void **state)
{
    (void)state;
    struct pb_compaction_request request = {.revision = 40};
    start(&f->op, ENGINE_COMPACT, &request);
    end_call(GRPC_OUT_OF_RANGE, "etcdserver: mvcc: required revision has been compacted");
    assert_int_equal(f->op.status, ST_COMPACTED);
    assert_int_equal(cluster.compacted, 0);
}

static void lease_is_granted(void **state)
{
    (void)state;
    struct pb_lease_grant_request sent;
    f->lease.ttl_s = 60;
    start(&f->lease.op, ENGINE_LEASE_GRANT, NULL);
    assert_false(cluster.request.reads);
    assert_int_equal(
        pb_decode(&pb_lease_grant_request_table, buf_slice(&cluster.sent), &f->arena, &sent),
        ST_OK);
    assert_int_equal(sent.ttl, 60);
    answer(&pb_lease_grant_response_table,
           &(struct pb_lease_grant_response){.header = &header, .id = 77, .ttl = 61});
    assert_int_equal(f->lease.op.status, ST_OK);
    assert_int_equal(f->lease.id, 77);
    assert_int_equal(f->lease.ttl_s, 61);
}

static void lease_until_a_time_lasts_at_least_until_then(void **state)
{
    (void)state;
    struct pb_lease_grant_request sent;
    f->lease.until_ns = clock_real_ns(&f->clock.clock) + 90 * NS_PER_S + 1;
    start(&f->lease.op, ENGINE_LEASE_GRANT, NULL);
    assert_int_equal(
        pb_decode(&pb_lease_grant_request_table, buf_slice(&cluster.sent), &f->arena, &sent),
        ST_OK);
    assert_int_equal(sent.ttl, 91);
    end_call(GRPC_OUT_OF_RANGE, "etcdserver: too large lease TTL");
    assert_int_equal(f->lease.op.status, ST_LEASE_TTL_TOO_LARGE);
}

static void revoked_lease_is_a_write(void **state)
{
    (void)state;
    f->lease.id = 77;
    start(&f->lease.op, ENGINE_LEASE_REVOKE, NULL);
    assert_false(cluster.request.reads);
    answer(&pb_lease_revoke_response_table, &(struct pb_lease_revoke_response){.header = &header});
    assert_int_equal(f->written, 42);
}

static void time_to_live_has_sorted_keys(void **state)
{
    (void)state;
    struct slice keys[2] = {SLICE_LITERAL("b"), SLICE_LITERAL("a")};
    f->lease.id = 77;
    f->lease.want_keys = true;
    start(&f->lease.op, ENGINE_LEASE_TIME_TO_LIVE, NULL);
    assert_true(cluster.request.reads);
    answer(&pb_lease_time_to_live_response_table,
           &(struct pb_lease_time_to_live_response){.header = &header,
                                                    .id = 77,
                                                    .ttl = 5,
                                                    .granted_ttl = 60,
                                                    .keys = keys,
                                                    .keys_count = 2});
    assert_int_equal(f->lease.ttl_s, 5);
    assert_int_equal(f->lease.granted_ttl_s, 60);
    assert_int_equal(f->lease.key_count, 2);
    assert_true(slice_is(f->lease.keys[0], "a"));
}

static void leases_are_listed(void **state)
{
    (void)state;
    struct pb_lease_status leases[2] = {{.id = 77}, {.id = 5}};
    start(&f->lease.op, ENGINE_LEASE_LIST, NULL);
    assert_true(cluster.request.reads);
    answer(
        &pb_lease_leases_response_table,
        &(struct pb_lease_leases_response){.header = &header, .leases = leases, .leases_count = 2});
    assert_int_equal(f->lease.id_count, 2);
    assert_int_equal(f->lease.ids[0], 77);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(put_is_sent_once_in_our_own_name_and_answered),
        TEST(client_without_credentials_never_borrows_ours),
        TEST(delete_returns_previous_values),
        TEST(transaction_is_answered_operation_by_operation),
        TEST(failed_condition_returns_the_current_value),
        TEST(response_with_too_few_operations_is_not_used),
        TEST(response_of_another_kind_is_not_used),
        TEST(response_without_a_revision_is_not_used),
        TEST(response_that_cannot_be_parsed_is_not_used),
        TEST(missing_response_is_not_success),
        TEST(second_response_makes_both_unusable),
        TEST(answer_without_memory_is_not_a_refusal),
        TEST(unknown_outcome_is_reported_and_not_repeated),
        TEST(broken_connection_leaves_the_outcome_open),
        TEST(request_beyond_the_limit_of_grpc_is_too_large),
        TEST(answer_beyond_the_limit_of_grpc_leaves_the_outcome_open),
        TEST(answer_that_was_not_received_leaves_the_outcome_open),
        TEST(request_that_finds_no_room_is_refused_before_it_is_sent),
        TEST(call_that_cannot_be_started_fails),
        TEST(compaction_is_noted),
        TEST(refused_compaction_is_not_noted),
        TEST(lease_is_granted),
        TEST(lease_until_a_time_lasts_at_least_until_then),
        TEST(revoked_lease_is_a_write),
        TEST(time_to_live_has_sorted_keys),
        TEST(leases_are_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
