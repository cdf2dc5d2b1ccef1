#include "engine/quota.h"

#include "codec/pb/rpc.pb.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct pb_put_request put;

static int setup(void **state)
{
    (void)state;
    put = (struct pb_put_request){.key = SLICE_LITERAL("key"), .value = SLICE_LITERAL("value")};
    return 0;
}

static struct pb_request_op op_put(void)
{
    return (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_PUT, .request_put = &put};
}

static void a_put_costs_its_bytes_and_an_overhead(void **state)
{
    (void)state;
    assert_int_equal(quota_cost_put(&put), 256 + 3 + 5);
    assert_int_equal(quota_cost_put(&(struct pb_put_request){0}), 256);
}

static void a_transaction_costs_its_more_expensive_branch(void **state)
{
    (void)state;
    struct pb_delete_range_request delete_range = {0};
    struct pb_request_op puts[] = {op_put(), op_put()};
    struct pb_request_op others[] = {
        {.request_case = PB_REQUEST_OP_REQUEST_DELETE_RANGE, .request_delete_range = &delete_range},
        op_put(),
    };
    struct pb_txn_request txn = {
        .success = others, .success_count = 2, .failure = puts, .failure_count = 2};
    assert_int_equal(quota_cost_txn(&txn), 2 * 264);
    txn.failure_count = 0;
    assert_int_equal(quota_cost_txn(&txn), 264);
    txn.success_count = 1;
    assert_int_equal(quota_cost_txn(&txn), 0);
}

static void nested_transactions_count(void **state)
{
    (void)state;
    struct pb_request_op one = op_put();
    struct pb_txn_request inner = {.failure = &one, .failure_count = 1};
    struct pb_request_op ops[] = {
        {.request_case = PB_REQUEST_OP_REQUEST_TXN, .request_txn = &inner},
        op_put(),
    };
    struct pb_txn_request txn = {.success = ops, .success_count = 2};
    assert_int_equal(quota_cost_txn(&txn), 2 * 264);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_put_costs_its_bytes_and_an_overhead),
        cmocka_unit_test(a_transaction_costs_its_more_expensive_branch),
        cmocka_unit_test(nested_transactions_count),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
