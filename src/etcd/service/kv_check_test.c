#include "etcd/service/kv_check.h"

#include "base/buf.h"
#include "codec/pb/rpc.pb.h"
#include "codec/pb/wire.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define KEY SLICE_LITERAL("k")

static struct arena arena;

static int setup(void **state)
{
    (void)state;
    arena_init(&arena, NULL, 0, 64 << 20);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_fini(&arena);
    return 0;
}

static void range_needs_a_key_before_a_known_sort(void **state)
{
    (void)state;
    static const struct {
        struct pb_range_request request;
        enum status expected;
    } rows[] = {
        {{.key = {0}}, ST_EMPTY_KEY},
        {{.sort_order = 9}, ST_EMPTY_KEY},
        {{.key = KEY, .sort_order = 3}, ST_INVALID_SORT_OPTION},
        {{.key = KEY, .sort_order = -1}, ST_INVALID_SORT_OPTION},
        {{.key = KEY, .sort_target = 5}, ST_INVALID_SORT_OPTION},
        {{.key = KEY, .sort_target = INT32_MIN}, ST_INVALID_SORT_OPTION},
        {{.key = KEY, .sort_order = 2, .sort_target = 4}, ST_OK},
        {{.key = KEY, .limit = -1, .revision = -1}, ST_OK},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_int_equal(kv_check_range(&rows[i].request), rows[i].expected);
}

static void put_with_ignored_fields_must_not_set_them(void **state)
{
    (void)state;
    static const struct {
        struct pb_put_request request;
        enum status expected;
    } rows[] = {
        {{.ignore_value = true, .value = KEY}, ST_EMPTY_KEY},
        {{.key = KEY, .ignore_value = true, .value = KEY, .ignore_lease = true, .lease = 1},
         ST_VALUE_PROVIDED},
        {{.key = KEY, .ignore_lease = true, .lease = -1}, ST_LEASE_PROVIDED},
        {{.key = KEY, .ignore_value = true, .ignore_lease = true}, ST_OK},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_int_equal(kv_check_put(&rows[i].request), rows[i].expected);
}

static void range_stream_supports_only_key_order(void **state)
{
    (void)state;
    assert_null(kv_check_range_stream(&(struct pb_range_request){.sort_target = 2}));
    assert_null(kv_check_range_stream(&(struct pb_range_request){.sort_order = 1}));
    assert_string_equal(kv_check_range_stream(&(struct pb_range_request){.sort_order = 2}),
                        "RangeStream does not support custom sort orders");
    assert_string_equal(
        kv_check_range_stream(&(struct pb_range_request){.sort_order = 1, .sort_target = 1}),
        "RangeStream does not support custom sort orders");
    assert_string_equal(kv_check_range_stream(&(struct pb_range_request){.max_mod_revision = -1}),
                        "RangeStream does not support revision filters");
}

/* -- Transactions -- */

static struct pb_request_op op_put(const char *key)
{
    struct pb_put_request *put = arena_calloc(&arena, 1, sizeof(*put));
    put->key = slice_from_text(key);
    return (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_PUT, .request_put = put};
}

static struct pb_request_op op_txn(struct pb_txn_request *txn)
{
    return (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_TXN, .request_txn = txn};
}

static void longest_list_is_limited(void **state)
{
    (void)state;
    struct pb_compare compares[4] = {{.key = KEY}, {.key = KEY}, {.key = KEY}, {.key = KEY}};
    struct pb_request_op ops[3] = {op_put("a"), op_put("b"), op_put("c")};
    struct pb_txn_request txn = {
        .compare = compares, .compare_count = 4, .failure = ops, .failure_count = 3};
    assert_int_equal(kv_check_txn(&txn, 4, &arena), ST_OK);
    assert_int_equal(kv_check_txn(&txn, 3, &arena), ST_TOO_MANY_OPS);
    txn.compare_count = 0;
    assert_int_equal(kv_check_txn(&txn, 3, &arena), ST_OK);
    assert_int_equal(kv_check_txn(&txn, 2, &arena), ST_TOO_MANY_OPS);
}

static void nesting_reduces_the_limit(void **state)
{
    (void)state;
    struct pb_request_op inner_ops[2] = {op_put("a"), op_put("b")};
    struct pb_txn_request inner = {.success = inner_ops, .success_count = 2};
    struct pb_request_op outer_ops[3] = {op_txn(&inner), op_put("c"), op_put("d")};
    struct pb_txn_request outer = {.success = outer_ops, .success_count = 3};
    assert_int_equal(kv_check_txn(&outer, 5, &arena), ST_OK);
    assert_int_equal(kv_check_txn(&outer, 4, &arena), ST_TOO_MANY_OPS);
}

static void first_fault_in_etcds_order_is_reported(void **state)
{
    (void)state;
    struct pb_compare bad_compare = {0};
    struct pb_request_op bad_put = op_put("");
    struct pb_request_op nothing = {0};
    struct pb_txn_request txn = {
        .compare = &bad_compare, .compare_count = 1, .success = &nothing, .success_count = 1};
    assert_int_equal(kv_check_txn(&txn, 1, &arena), ST_EMPTY_KEY);
    txn.compare_count = 0;
    assert_int_equal(kv_check_txn(&txn, 1, &arena), ST_KEY_NOT_FOUND);
    txn.failure = &bad_put;
    txn.failure_count = 1;
    assert_int_equal(kv_check_txn(&txn, 1, &arena), ST_KEY_NOT_FOUND);
    txn.success_count = 0;
    assert_int_equal(kv_check_txn(&txn, 1, &arena), ST_EMPTY_KEY);
}

static void only_flat_ranges_are_reads(void **state)
{
    (void)state;
    struct pb_range_request range = {.key = KEY};
    struct pb_request_op get = {.request_case = PB_REQUEST_OP_REQUEST_RANGE,
                                .request_range = &range};
    struct pb_txn_request empty = {0};
    struct pb_request_op nested = op_txn(&empty);
    assert_true(kv_txn_reads_only(&empty));
    assert_true(kv_txn_reads_only(&(struct pb_txn_request){.success = &get, .success_count = 1}));
    assert_false(
        kv_txn_reads_only(&(struct pb_txn_request){.failure = &nested, .failure_count = 1}));
}

/* Encoded: `count` empty fields, inside `depth` nested transactions. */
static struct slice empty_fields(uint8_t *room, uint8_t tag, size_t count, unsigned depth)
{
    uint8_t *p = room + 64;
    for (size_t i = 0; i < count; i++)
        p[2 * i] = tag, p[2 * i + 1] = 0;
    struct slice message = slice_of(p, 2 * count);
    while (depth--) {
        size_t op_bytes = 1 + pb_varint_size(message.len) + message.len;
        uint8_t head[16], *end = head;
        end = pb_message_head_write(end, 2, op_bytes);
        end = pb_message_head_write(end, 4, message.len);
        uint8_t *start = (uint8_t *)(uintptr_t)message.ptr - (end - head);
        memcpy(start, head, (size_t)(end - head));
        message = slice_of(start, (size_t)(end - head) + message.len);
    }
    return message;
}

static void too_long_lists_are_found_before_decoding(void **state)
{
    (void)state;
    uint8_t room[1024] = {0};
    for (uint8_t tag = 0x0a; tag <= 0x1a; tag = (uint8_t)(tag + 8)) {
        for (unsigned depth = 0; depth < 4; depth++) {
            assert_false(kv_txn_is_too_long(empty_fields(room, tag, 128, depth), 128));
            /* A nested list may come after another fault, which etcd reports instead. */
            assert_int_equal(kv_txn_is_too_long(empty_fields(room, tag, 129, depth), 128),
                             depth == 0);
        }
    }
    assert_false(kv_txn_is_too_long(SLICE_EMPTY, 128));
    assert_false(kv_txn_is_too_long(SLICE_LITERAL("\x12\xff"), 0));
    /* Fields of other wire types are skipped. */
    assert_true(kv_txn_is_too_long(SLICE_LITERAL("\x0d\0\0\0\0\x0a\0"), 0));
    assert_true(kv_txn_is_too_long(SLICE_LITERAL("\x09\0\0\0\0\0\0\0\0\x38\x01\x0a\0"), 0));
    assert_false(kv_txn_is_too_long(SLICE_LITERAL("\x09\0\0\x0a\0"), 0));
}

/* A transaction with `total` operations, in lists of 100 that are nested two deep; the last list is
 * shorter. Each operation has `members` empty gets. */
static void nested_lists(struct buf *out, size_t total, size_t members)
{
    AUTO(buf_fini) struct buf list = {0};
    static const uint8_t get[] = {0x0a, 0};
    uint8_t head[16];
    while (total) {
        size_t outer = total > 1,
               width = size_min(total - outer, 100); /* one operation contains the list */
        list.len = 0;
        for (size_t i = 0; i < (outer ? width : 1); i++) {
            uint8_t *end = pb_message_head_write(head, 2, members * sizeof(get));
            assert_int_equal(buf_append(&list, slice_of(head, (size_t)(end - head))), ST_OK);
            for (size_t k = 0; k < members; k++)
                assert_int_equal(buf_append(&list, slice_of(get, sizeof(get))), ST_OK);
        }
        uint8_t *end = head;
        if (outer) {
            end = pb_message_head_write(end, 2, 1 + pb_varint_size(list.len) + list.len);
            end = pb_message_head_write(end, 4, list.len);
        }
        assert_int_equal(buf_append(out, slice_of(head, (size_t)(end - head))), ST_OK);
        assert_int_equal(buf_append(out, buf_slice(&list)), ST_OK);
        total -= outer + (outer ? width : 1);
    }
}

static bool nested_lists_are_too_long(size_t total, size_t members, size_t ops_max)
{
    AUTO(buf_fini) struct buf message = {0};
    nested_lists(&message, total, members);
    return kv_txn_is_too_long(buf_slice(&message), ops_max);
}

static void all_lists_together_have_a_limit(void **state)
{
    (void)state;
    assert_false(nested_lists_are_too_long(KV_TXN_TOTAL_MAX, 1, 200));
    assert_true(nested_lists_are_too_long(KV_TXN_TOTAL_MAX + 1, 1, 200));
    /* Repeated members of an operation take time as well. */
    assert_false(nested_lists_are_too_long(KV_TXN_TOTAL_MAX / 8, 2, 200));
    assert_true(nested_lists_are_too_long(KV_TXN_TOTAL_MAX / 2, 4, 200));
    /* A larger ops_max permits longer lists. */
    assert_false(nested_lists_are_too_long(3 * KV_TXN_TOTAL_MAX, 1, KV_TXN_TOTAL_MAX));
    assert_true(nested_lists_are_too_long(3 * KV_TXN_TOTAL_MAX + 1, 1, KV_TXN_TOTAL_MAX));
    assert_false(nested_lists_are_too_long(3 * KV_TXN_TOTAL_MAX + 1, 1, SIZE_MAX));
}

static void unknown_fields_hide_nothing(void **state)
{
    (void)state;
    /* Fields after a group count, also after nested groups, but fields inside a group do not. */
    assert_true(kv_txn_is_too_long(SLICE_LITERAL("\x2b\x2c\x0a\0"), 0));
    assert_true(kv_txn_is_too_long(SLICE_LITERAL("\x2b\x3b\x38\x01\x3c\x2c\x0a\0"), 0));
    assert_false(kv_txn_is_too_long(SLICE_LITERAL("\x2b\x0a\0\x2c"), 0));
    assert_false(kv_txn_is_too_long(SLICE_LITERAL("\x2c\x0a\0"), 0));
    assert_false(kv_txn_is_too_long(SLICE_LITERAL("\x2b\x0a\0"), 0));
    /* The decoder skips unknown fields several times, so they are counted. */
    uint8_t unknown[2 * (KV_TXN_TOTAL_MAX + 1)] = {0};
    for (size_t i = 0; i < sizeof(unknown); i += 2)
        unknown[i] = 0x38;
    assert_true(kv_txn_is_too_long(slice_of(unknown, sizeof(unknown)), 128));
    assert_false(kv_txn_is_too_long(slice_of(unknown, sizeof(unknown) - 2), 128));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(range_needs_a_key_before_a_known_sort),
        cmocka_unit_test(put_with_ignored_fields_must_not_set_them),
        cmocka_unit_test(range_stream_supports_only_key_order),
        cmocka_unit_test_setup_teardown(longest_list_is_limited, setup, teardown),
        cmocka_unit_test_setup_teardown(nesting_reduces_the_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(first_fault_in_etcds_order_is_reported, setup, teardown),
        cmocka_unit_test(only_flat_ranges_are_reads),
        cmocka_unit_test(too_long_lists_are_found_before_decoding),
        cmocka_unit_test(all_lists_together_have_a_limit),
        cmocka_unit_test(unknown_fields_hide_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
