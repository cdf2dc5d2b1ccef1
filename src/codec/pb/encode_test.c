#include "codec/pb/election.pb.h"
#include "codec/pb/kv.pb.h"
#include "codec/pb/pb.h"
#include "codec/pb/rpc.pb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define BYTES(text) SLICE_LITERAL(text)

static void assert_encodes(const struct pb_message *type, const void *message,
                           struct slice expected)
{
    AUTO(buf_fini) struct buf out = {0};
    assert_int_equal(pb_size(type, message), expected.len);
    assert_int_equal(pb_append(type, message, &out), ST_OK);
    assert_int_equal(out.len, expected.len);
    if (expected.len)
        assert_memory_equal(out.ptr, expected.ptr, expected.len);
}

static void fields_come_ascending(void **state)
{
    (void)state;
    struct pb_key_value kv = {.key = BYTES("key"),
                              .create_revision = 2,
                              .mod_revision = 300,
                              .version = 1,
                              .value = BYTES("value"),
                              .lease = -1};
    assert_encodes(&pb_key_value_table, &kv,
                   BYTES("\x0a\x03key\x10\x02\x18\xac\x02\x20\x01\x2a\x05value"
                         "\x30\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
}

static void defaults_are_left_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < pb_message_count; i++) {
        void *message = calloc(1, pb_messages[i]->struct_bytes);
        assert_non_null(message);
        assert_encodes(pb_messages[i], message, SLICE_EMPTY);
        free(message);
    }
}

static void present_sub_messages_are_written_even_if_empty(void **state)
{
    (void)state;
    struct pb_response_header header = {0};
    struct pb_put_response put = {.header = &header};
    assert_encodes(&pb_put_response_table, &put, BYTES("\x0a\x00"));
}

static void oneof_writes_its_member_even_if_zero(void **state)
{
    (void)state;
    struct pb_compare compare = {.target = PB_COMPARE_TARGET_VERSION,
                                 .target_union_case = PB_COMPARE_VERSION};
    assert_encodes(&pb_compare_table, &compare, BYTES("\x20\x00"));
    compare.target_union_case = PB_COMPARE_VALUE;
    compare.value = SLICE_EMPTY;
    compare.range_end = BYTES("z");
    assert_encodes(&pb_compare_table, &compare, BYTES("\x3a\x00\x82\x04\x01z"));
    struct pb_request_op op = {.request_case = PB_REQUEST_OP_REQUEST_RANGE};
    assert_encodes(&pb_request_op_table, &op, BYTES("\x0a\x00"));
}

static void oneof_without_a_case_is_left_out(void **state)
{
    (void)state;
    struct pb_range_request range = {.key = BYTES("k")};
    struct pb_request_op op = {.request_case = PB_REQUEST_OP_REQUEST_NONE, .request_range = &range};
    assert_encodes(&pb_request_op_table, &op, SLICE_EMPTY);
}

static void negative_enums_take_ten_bytes(void **state)
{
    (void)state;
    struct pb_event event = {.type = -2};
    assert_encodes(&pb_event_table, &event, BYTES("\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
}

static void unsigned_numbers_keep_their_width(void **state)
{
    (void)state;
    struct pb_hash_response hash = {.hash = UINT32_MAX};
    assert_encodes(&pb_hash_response_table, &hash, BYTES("\x10\xff\xff\xff\xff\x0f"));
    struct pb_response_header header = {.member_id = UINT64_MAX};
    assert_encodes(&pb_response_header_table, &header,
                   BYTES("\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
}

static void repeated_fields_keep_empty_items(void **state)
{
    (void)state;
    struct slice urls[] = {BYTES("a"), SLICE_EMPTY, BYTES("b")};
    struct pb_member member = {.peer_urls = urls, .peer_urls_count = 3};
    assert_encodes(&pb_member_table, &member,
                   BYTES("\x1a\x01"
                         "a\x1a\x00\x1a\x01"
                         "b"));
    struct pb_key_value kvs[] = {{.version = 1}, {.version = 0}};
    struct pb_range_response range = {.kvs = kvs, .kvs_count = 2, .more = true, .count = 2};
    assert_encodes(&pb_range_response_table, &range,
                   BYTES("\x12\x02\x20\x01\x12\x00\x18\x01\x20\x02"));
}

static void repeated_numbers_are_packed(void **state)
{
    (void)state;
    int32_t filters[] = {0, 1, 300, -1};
    struct pb_watch_create_request create = {.filters = filters, .filters_count = 3};
    assert_encodes(&pb_watch_create_request_table, &create, BYTES("\x2a\x04\x00\x01\xac\x02"));
    create.filters_count = 4;
    assert_encodes(&pb_watch_create_request_table, &create,
                   BYTES("\x2a\x0e\x00\x01\xac\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
}

static void messages_nest(void **state)
{
    (void)state;
    struct pb_put_request put = {.key = BYTES("k"), .value = BYTES("v")};
    struct pb_request_op inner_op = {.request_case = PB_REQUEST_OP_REQUEST_PUT,
                                     .request_put = &put};
    struct pb_txn_request inner = {.success = &inner_op, .success_count = 1};
    struct pb_request_op outer_op = {.request_case = PB_REQUEST_OP_REQUEST_TXN,
                                     .request_txn = &inner};
    struct pb_txn_request outer = {.failure = &outer_op, .failure_count = 1};
    assert_encodes(&pb_txn_request_table, &outer,
                   BYTES("\x1a\x0c\x22\x0a\x12\x08\x12\x06\x0a\x01k\x12\x01v"));
}

static void lengths_past_one_byte_are_right(void **state)
{
    (void)state;
    static uint8_t value[20000];
    struct pb_key_value kv = {.value = slice_of(value, sizeof(value))};
    struct pb_leader_response leader = {.kv = &kv};
    AUTO(buf_fini) struct buf out = {0};
    assert_int_equal(pb_append(&pb_leader_response_table, &leader, &out), ST_OK);
    /* 0x4e20 and 0x4e24: three bytes each. */
    assert_memory_equal(out.ptr, "\x12\xa4\x9c\x01\x2a\xa0\x9c\x01", 8);
    assert_int_equal(out.len, 8 + sizeof(value));
}

static void append_keeps_the_contents(void **state)
{
    (void)state;
    AUTO(buf_fini) struct buf out = {0};
    struct pb_put_request put = {.lease = 5};
    assert_int_equal(buf_append_text(&out, "head"), ST_OK);
    assert_int_equal(pb_append(&pb_put_request_table, &put, &out), ST_OK);
    assert_int_equal(pb_append(&pb_put_request_table, &put, &out), ST_OK);
    assert_true(slice_equal(buf_slice(&out), BYTES("head\x18\x05\x18\x05")));
}

static void decoded_messages_encode_to_the_same_bytes(void **state)
{
    (void)state;
    /* The empty range_end is a default: it is not encoded again. */
    struct slice bytes =
        BYTES("\x0a\x0c\x08\x01\x10\x02\x1a\x01k\x30\x00\x82\x04\x00"
              "\x12\x08\x12\x06\x0a\x01k\x12\x01v\x12\x02\x22\x00\x1a\x02\x0a\x00");
    struct slice expected =
        BYTES("\x0a\x09\x08\x01\x10\x02\x1a\x01k\x30\x00"
              "\x12\x08\x12\x06\x0a\x01k\x12\x01v\x12\x02\x22\x00\x1a\x02\x0a\x00");
    struct arena arena;
    struct pb_txn_request txn;
    arena_init(&arena, NULL, 0, 1 << 20);
    assert_int_equal(pb_decode(&pb_txn_request_table, bytes, &arena, &txn), ST_OK);
    assert_encodes(&pb_txn_request_table, &txn, expected);
    arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_come_ascending),
        cmocka_unit_test(defaults_are_left_out),
        cmocka_unit_test(present_sub_messages_are_written_even_if_empty),
        cmocka_unit_test(oneof_writes_its_member_even_if_zero),
        cmocka_unit_test(oneof_without_a_case_is_left_out),
        cmocka_unit_test(negative_enums_take_ten_bytes),
        cmocka_unit_test(unsigned_numbers_keep_their_width),
        cmocka_unit_test(repeated_fields_keep_empty_items),
        cmocka_unit_test(repeated_numbers_are_packed),
        cmocka_unit_test(messages_nest),
        cmocka_unit_test(lengths_past_one_byte_are_right),
        cmocka_unit_test(append_keeps_the_contents),
        cmocka_unit_test(decoded_messages_encode_to_the_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
