/* Requests that keep the writer busy for long, and requests that do not wait for them. */
#include "codec/pb/rpc.pb.h"
#include "engine/engine.h"
#include "engine/local/fixture_test.h"

#include <string.h>

enum { KEYS = 40 * 1000, RENEWED = 1, HOLDER = 2, NEW = 3 };

/* Operations in the order in which they were done. */
static const struct engine_op *done[8];
static size_t done_count;

static void note_done(struct engine_op *op)
{
    fixture->waiting--;
    if (done_count < COUNT_OF(done))
        done[done_count++] = op;
}

static bool is_done(const struct engine_op *op)
{
    for (size_t i = 0; i < done_count; i++)
        if (done[i] == op)
            return true;
    return false;
}

static struct engine_op noted_op(struct fixture *f)
{
    f->waiting++;
    return (struct engine_op){.done = note_done, .arena = &f->arena};
}

static void grant(struct fixture *f, int64_t id)
{
    struct engine_lease op = {.op = new_op(f), .id = id, .ttl_s = 3600};
    engine_lease_grant(f->shard, &op);
    wait_for(f, 0);
    assert_int_equal(op.op.status, ST_OK);
}

/* Many keys, all on one lease. */
static void put_many(struct fixture *f)
{
    enum { AT_ONCE = 1000 };
    static struct engine_write writes[AT_ONCE];
    static struct pb_put_request requests[AT_ONCE];
    static char texts[AT_ONCE][16];
    for (int first = 0; first < KEYS; first += AT_ONCE) {
        for (int i = 0; i < AT_ONCE; i++) {
            snprintf(texts[i], sizeof(texts[i]), "key%08d", first + i);
            requests[i] =
                (struct pb_put_request){.key = slice_from_text(texts[i]), .lease = HOLDER};
            writes[i] = (struct engine_write){.op = new_op(f)};
            engine_put(f->shard, &writes[i], &requests[i]);
        }
        wait_for(f, 0);
        for (int i = 0; i < AT_ONCE; i++)
            engine_write_close(&writes[i]);
    }
}

static int setup(void **state)
{
    struct fixture *f = *state = fixture_new((struct engine_local_options){.member_id = 1});
    done_count = 0;
    grant(f, RENEWED);
    grant(f, HOLDER);
    put_many(f);
    return 0;
}

/* How often the lease is renewed, one renewal after the other, until the operation is done. */
static unsigned renewals_until(struct fixture *f, const struct engine_op *op)
{
    unsigned renewals = 0;
    engine_shard_turn_end(f->shard);
    while (!is_done(op)) {
        struct engine_renewal item = {.id = RENEWED};
        struct engine_renewals renewal = {.op = new_op(f), .items = &item, .count = 1};
        int waiting = f->waiting;
        engine_lease_renew(f->shard, &renewal);
        engine_shard_turn_end(f->shard);
        while (f->waiting == waiting && !is_done(op))
            turn_shard(f->shard, f->loop, 10 * NS_PER_S);
        renewals += !is_done(op);
        wait_for(f, is_done(op) ? 0 : waiting - 1);
        assert_int_equal(renewal.op.status, ST_OK);
        assert_int_equal(item.ttl_s, 3600);
    }
    return renewals;
}

static void leases_are_renewed_while_many_keys_are_deleted(void **state)
{
    struct fixture *f = *state;
    struct pb_delete_range_request request = {.key = SLICE_LITERAL("key"),
                                              .range_end = SLICE_LITERAL("kez")};
    struct engine_write write = {.op = noted_op(f)};
    engine_delete_range(f->shard, &write, &request);
    assert_in_range(renewals_until(f, &write.op), 3, UINT32_MAX);
    assert_int_equal(write.op.status, ST_OK);
    assert_int_equal(write.answer.delete_range.deleted, KEYS);
    engine_write_close(&write);
}

static void fill_compares(struct pb_compare *compares, size_t count)
{
    for (size_t i = 0; i < count; i++)
        compares[i] = (struct pb_compare){.key = SLICE_LITERAL("key"),
                                          .range_end = SLICE_LITERAL("kez"),
                                          .target = PB_COMPARE_TARGET_VERSION,
                                          .target_union_case = PB_COMPARE_VERSION,
                                          .version = 1};
}

static void leases_are_renewed_while_many_keys_are_compared(void **state)
{
    struct fixture *f = *state;
    struct pb_put_request put = {.key = SLICE_LITERAL("a")};
    struct pb_request_op op = {.request_case = PB_REQUEST_OP_REQUEST_PUT, .request_put = &put};
    struct pb_compare compares[20];
    fill_compares(compares, COUNT_OF(compares));
    struct pb_txn_request request = {.compare = compares,
                                     .compare_count = COUNT_OF(compares),
                                     .success = &op,
                                     .success_count = 1};
    struct engine_write write = {.op = noted_op(f)};
    engine_txn(f->shard, &write, &request);
    assert_in_range(renewals_until(f, &write.op), 3, UINT32_MAX);
    assert_int_equal(write.op.status, ST_OK);
    assert_true(write.answer.txn.succeeded);
    engine_write_close(&write);
}

static void leases_are_renewed_while_one_with_many_keys_is_revoked(void **state)
{
    struct fixture *f = *state;
    struct engine_lease revoke = {.op = noted_op(f), .id = HOLDER};
    engine_lease_revoke(f->shard, &revoke);
    assert_in_range(renewals_until(f, &revoke.op), 3, UINT32_MAX);
    assert_int_equal(revoke.op.status, ST_OK);
    struct engine_renewal item = {.id = HOLDER};
    struct engine_renewals late = {.op = new_op(f), .items = &item, .count = 1};
    engine_lease_renew(f->shard, &late);
    wait_for(f, 0);
    assert_int_equal(item.ttl_s, 0);
}

/* A lease is not renewed while it is being revoked: its client would rely on the answer. */
static void lease_that_is_being_revoked_is_not_renewed(void **state)
{
    struct fixture *f = *state;
    struct engine_lease revoke = {.op = noted_op(f), .id = HOLDER};
    engine_lease_revoke(f->shard, &revoke);
    engine_shard_turn_end(f->shard);
    for (int i = 0; i < 2 && !is_done(&revoke.op); i++) { /* so that the writer has begun */
        struct engine_renewal item = {.id = RENEWED};
        struct engine_renewals renewal = {.op = new_op(f), .items = &item, .count = 1};
        engine_lease_renew(f->shard, &renewal);
        wait_for(f, is_done(&revoke.op) ? 0 : 1);
    }
    struct engine_renewal item = {.id = HOLDER};
    struct engine_renewals renewal = {.op = noted_op(f), .items = &item, .count = 1};
    engine_lease_renew(f->shard, &renewal);
    wait_for(f, 0);
    assert_int_equal(item.ttl_s, 0);
    assert_ptr_equal(done[0], &revoke.op);
    assert_ptr_equal(done[1], &renewal.op);
}

/* A renewal finds a lease only once its grant is durable, with its group and not before. */
static void lease_granted_during_a_long_request_is_renewed_after_both(void **state)
{
    struct fixture *f = *state;
    struct pb_delete_range_request request = {.key = SLICE_LITERAL("key"),
                                              .range_end = SLICE_LITERAL("kez")};
    struct engine_lease grants = {.op = noted_op(f), .id = NEW, .ttl_s = 60};
    struct engine_write write = {.op = noted_op(f)};
    engine_lease_grant(f->shard, &grants);
    engine_delete_range(f->shard, &write, &request);
    engine_shard_turn_end(f->shard);
    /* Once another lease was renewed twice, the writer is in the middle of the group. */
    for (int i = 0; i < 2 && !is_done(&write.op); i++) {
        struct engine_renewal item = {.id = RENEWED};
        struct engine_renewals renewal = {.op = new_op(f), .items = &item, .count = 1};
        engine_lease_renew(f->shard, &renewal);
        wait_for(f, is_done(&write.op) ? 0 : 2);
    }
    struct engine_renewal item = {.id = NEW};
    struct engine_renewals renewal = {.op = noted_op(f), .items = &item, .count = 1};
    engine_lease_renew(f->shard, &renewal);
    wait_for(f, 0);
    assert_int_equal(item.ttl_s, 60);
    assert_ptr_equal(done[0], &grants.op);
    assert_ptr_equal(done[1], &write.op);
    assert_ptr_equal(done[2], &renewal.op);
    engine_write_close(&write);
}

/* -- On the shard -- */

static void transaction_that_reads_much_leaves_turns_to_others(void **state)
{
    enum { COMPARES = 20, KEYS_PER_TURN = 4096 };
    struct fixture *f = *state;
    struct pb_range_request one = {.key = SLICE_LITERAL("key00000007")};
    struct pb_request_op op = {.request_case = PB_REQUEST_OP_REQUEST_RANGE, .request_range = &one};
    struct pb_compare compares[COMPARES];
    fill_compares(compares, COMPARES);
    struct pb_txn_request request = {
        .compare = compares, .compare_count = COMPARES, .success = &op, .success_count = 1};
    struct engine_write write = {.op = noted_op(f)};
    engine_txn(f->shard, &write, &request);
    unsigned turns = 0;
    for (; !is_done(&write.op); turns++) {
        struct engine_range get = {.op = new_op(f)};
        turn_shard(f->shard, f->loop, 0);
        int waiting = f->waiting;
        engine_range_start(f->shard, &get, &one);
        assert_int_equal(f->waiting, waiting - 1); /* done at once, although others take long */
        assert_int_equal(get.kvs, 1);
        engine_range_close(&get);
    }
    assert_in_range(turns, COMPARES * KEYS / KEYS_PER_TURN, UINT32_MAX);
    assert_int_equal(write.op.status, ST_OK);
    assert_true(write.answer.txn.succeeded);
    assert_int_equal(write.answer.txn.answers[0].range.count, 1);
    engine_write_close(&write);
}

static void canceled_transaction_stops(void **state)
{
    struct fixture *f = *state;
    struct pb_compare compares[2];
    fill_compares(compares, COUNT_OF(compares));
    struct pb_txn_request request = {.compare = compares, .compare_count = COUNT_OF(compares)};
    struct engine_write write = {.op = noted_op(f)};
    engine_txn(f->shard, &write, &request);
    assert_false(is_done(&write.op));
    engine_give_up(&write.op);
    turn_shard(f->shard, f->loop, 0);
    assert_true(is_done(&write.op));
    assert_int_equal(write.op.status, ST_CANCELED);
    engine_write_close(&write);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_free)
    const struct CMUnitTest tests[] = {
        TEST(leases_are_renewed_while_many_keys_are_deleted),
        TEST(leases_are_renewed_while_many_keys_are_compared),
        TEST(leases_are_renewed_while_one_with_many_keys_is_revoked),
        TEST(lease_that_is_being_revoked_is_not_renewed),
        TEST(transaction_that_reads_much_leaves_turns_to_others),
        TEST(canceled_transaction_stops),
        TEST(lease_granted_during_a_long_request_is_renewed_after_both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
