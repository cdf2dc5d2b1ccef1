#include "codec/pb/kv.pb.h"
#include "codec/pb/pb.h"
#include "codec/pb/rpc.pb.h"
#include "codec/pb/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ROOMY = 1 << 20 };

/* One decoded message; its bytes are a separate allocation, so that a sanitizer finds each overrun.
 */
struct decoded {
    struct arena arena;
    uint8_t *bytes;
};

static enum status decode_within(struct decoded *d, const struct pb_message *type,
                                 struct slice bytes, size_t limit_bytes, void *ret_struct)
{
    d->bytes = malloc(bytes.len ? bytes.len : 1);
    assert_non_null(d->bytes);
    slice_copy(d->bytes, bytes);
    arena_init(&d->arena, NULL, 0, limit_bytes);
    return pb_decode(type, slice_of(d->bytes, bytes.len), &d->arena, ret_struct);
}

static enum status decode(struct decoded *d, const struct pb_message *type, struct slice bytes,
                          void *ret_struct)
{
    return decode_within(d, type, bytes, ROOMY, ret_struct);
}

static void decoded_fini(struct decoded *d)
{
    arena_fini(&d->arena);
    free(d->bytes);
}

/* Asserts that the arena allocated these bytes, which a sanitizer cannot check: it sees whole
 * blocks. */
static void assert_taken(const struct decoded *d, const void *items, size_t bytes)
{
    const uint8_t *end = (const uint8_t *)items + bytes;
    assert_true(end <= d->arena.next);
}

#define DECODED AUTO(decoded_fini) struct decoded
#define BYTES(text) SLICE_LITERAL(text)

static void assert_slice(struct slice got, const char *expected)
{
    assert_true(slice_equal(got, slice_from_text(expected)));
}

static void empty_bytes_are_a_message_of_defaults(void **state)
{
    (void)state;
    struct pb_range_response response;
    memset(&response, 0xff, sizeof(response));
    DECODED d;
    assert_int_equal(decode(&d, &pb_range_response_table, SLICE_EMPTY, &response), ST_OK);
    assert_null(response.header);
    assert_int_equal(response.kvs_count, 0);
    assert_false(response.more);
    assert_int_equal(response.count, 0);
}

static void slices_point_into_the_message(void **state)
{
    (void)state;
    struct pb_put_request put;
    DECODED d;
    assert_int_equal(
        decode(&d, &pb_put_request_table, BYTES("\x0a\x03key\x12\x05value\x18\x07\x20\x01"), &put),
        ST_OK);
    assert_ptr_equal(put.key.ptr, d.bytes + 2);
    assert_slice(put.key, "key");
    assert_slice(put.value, "value");
    assert_int_equal(put.lease, 7);
    assert_true(put.prev_kv);
    assert_false(put.ignore_value);
    assert_int_equal(d.arena.held_bytes, 0);
}

static void fields_come_in_any_order(void **state)
{
    (void)state;
    struct pb_put_request put;
    DECODED d;
    assert_int_equal(decode(&d, &pb_put_request_table, BYTES("\x30\x01\x18\x05\x0a\x01k"), &put),
                     ST_OK);
    assert_slice(put.key, "k");
    assert_int_equal(put.lease, 5);
    assert_true(put.ignore_lease);
}

static void last_value_wins_even_if_zero(void **state)
{
    (void)state;
    struct pb_put_request put;
    DECODED d;
    assert_int_equal(
        decode(&d, &pb_put_request_table,
               BYTES("\x0a\x03old\x18\x05\x20\x01\x0a\x03new\x18\x00\x20\x00\x12\x01v\x12\x00"),
               &put),
        ST_OK);
    assert_slice(put.key, "new");
    assert_slice(put.value, "");
    assert_int_equal(put.lease, 0);
    assert_false(put.prev_kv);
}

static void numbers_are_truncated_to_their_width(void **state)
{
    (void)state;
    struct pb_hash_kv_response hash;
    DECODED a;
    assert_int_equal(decode(&a, &pb_hash_kv_response_table,
                            BYTES("\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
                                  "\x18\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
                            &hash),
                     ST_OK);
    assert_int_equal(hash.hash, UINT32_MAX);
    assert_int_equal(hash.compact_revision, -2);

    struct pb_range_request range;
    DECODED b;
    /* 2^32 + 1 as an enum, 2^32 as a bool. */
    assert_int_equal(decode(&b, &pb_range_request_table,
                            BYTES("\x28\x81\x80\x80\x80\x10\x38\x80\x80\x80\x80\x10"), &range),
                     ST_OK);
    assert_int_equal(range.sort_order, PB_SORT_ORDER_ASCEND);
    assert_true(range.serializable);
}

static void numbers_may_be_longer_than_needed(void **state)
{
    (void)state;
    struct pb_put_request put;
    DECODED d;
    assert_int_equal(
        decode(&d, &pb_put_request_table,
               BYTES("\x98\x80\x80\x80\x80\x80\x00\x85\x80\x80\x80\x80\x80\x80\x80\x80\x00"
                     "\x0a\x81\x80\x80\x80\x80\x80\x00k"),
               &put),
        ST_OK);
    assert_int_equal(put.lease, 5);
    assert_slice(put.key, "k");
}

static void enums_without_a_name_are_kept(void **state)
{
    (void)state;
    struct pb_event event;
    DECODED d;
    assert_int_equal(
        decode(&d, &pb_event_table, BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), &event),
        ST_OK);
    assert_int_equal(event.type, -1);
}

static void repeated_sub_messages_merge(void **state)
{
    (void)state;
    struct pb_put_response put;
    DECODED d;
    assert_int_equal(decode(&d, &pb_put_response_table,
                            BYTES("\x0a\x04\x08\x01\x18\x05\x0a\x04\x10\x02\x18\x06"), &put),
                     ST_OK);
    assert_non_null(put.header);
    assert_int_equal(put.header->cluster_id, 1);
    assert_int_equal(put.header->member_id, 2);
    assert_int_equal(put.header->revision, 6);
    assert_null(put.prev_kv);
}

static void arrays_of_merged_messages_grow(void **state)
{
    (void)state;
    struct pb_range_stream_response stream;
    DECODED d;
    assert_int_equal(decode(&d, &pb_range_stream_response_table,
                            BYTES("\x0a\x0a\x12\x03\x0a\x01"
                                  "a\x12\x03\x0a\x01"
                                  "b\x0a\x07\x12\x03\x0a\x01"
                                  "c\x20\x03"),
                            &stream),
                     ST_OK);
    const struct pb_range_response *range = stream.range_response;
    assert_int_equal(range->kvs_count, 3);
    assert_slice(range->kvs[0].key, "a");
    assert_slice(range->kvs[1].key, "b");
    assert_slice(range->kvs[2].key, "c");
    assert_int_equal(range->count, 3);
    assert_taken(&d, range->kvs, 3 * sizeof(struct pb_key_value));
}

static void repeated_fields_may_alternate(void **state)
{
    (void)state;
    struct pb_txn_request txn;
    DECODED d;
    assert_int_equal(decode(&d, &pb_txn_request_table,
                            BYTES("\x12\x00\x0a\x02\x08\x01\x1a\x00\x0a\x02\x08\x02\x12\x00\x0a\x02"
                                  "\x08\x03\x12\x00"),
                            &txn),
                     ST_OK);
    assert_int_equal(txn.compare_count, 3);
    assert_int_equal(txn.success_count, 3);
    assert_int_equal(txn.failure_count, 1);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(txn.compare[i].result, i + 1);
    assert_int_equal(txn.success[2].request_case, PB_REQUEST_OP_REQUEST_NONE);
}

static void oneof_keeps_the_last_member(void **state)
{
    (void)state;
    struct pb_request_op op;
    DECODED a;
    assert_int_equal(
        decode(&a, &pb_request_op_table, BYTES("\x0a\x03\x0a\x01r\x12\x03\x0a\x01p"), &op), ST_OK);
    assert_int_equal(op.request_case, PB_REQUEST_OP_REQUEST_PUT);
    assert_slice(op.request_put->key, "p");
    assert_slice(op.request_put->value, "");

    /* A number after bytes, then bytes after a number: nothing of the earlier value remains. */
    struct pb_compare compare;
    DECODED b;
    assert_int_equal(decode(&b, &pb_compare_table, BYTES("\x3a\x03xyz\x20\x05\x3a\x00"), &compare),
                     ST_OK);
    assert_int_equal(compare.target_union_case, PB_COMPARE_VALUE);
    assert_int_equal(compare.value.len, 0);
}

static void repeated_oneof_member_merges(void **state)
{
    (void)state;
    struct pb_request_op op;
    DECODED a;
    assert_int_equal(
        decode(&a, &pb_request_op_table, BYTES("\x12\x03\x0a\x01k\x12\x03\x12\x01v"), &op), ST_OK);
    assert_slice(op.request_put->key, "k");
    assert_slice(op.request_put->value, "v");

    /* With another member in between it begins again. */
    DECODED b;
    assert_int_equal(
        decode(&b, &pb_request_op_table, BYTES("\x12\x03\x0a\x01k\x0a\x00\x12\x03\x12\x01v"), &op),
        ST_OK);
    assert_slice(op.request_put->key, "");
    assert_slice(op.request_put->value, "v");
}

static void oneof_is_set_by_a_zero_too(void **state)
{
    (void)state;
    struct pb_compare compare;
    DECODED d;
    assert_int_equal(decode(&d, &pb_compare_table, BYTES("\x30\x00"), &compare), ST_OK);
    assert_int_equal(compare.target_union_case, PB_COMPARE_MOD_REVISION);
    assert_int_equal(compare.mod_revision, 0);
}

static void repeated_numbers_come_packed_or_not(void **state)
{
    (void)state;
    struct pb_watch_create_request create;
    DECODED a;
    assert_int_equal(decode(&a, &pb_watch_create_request_table,
                            BYTES("\x28\x01\x2a\x03\x00\x81\x01\x28\x00\x2a\x00\x28\x07"), &create),
                     ST_OK);
    const int32_t expected[] = {1, 0, 129, 0, 7};
    assert_int_equal(create.filters_count, COUNT_OF(expected));
    assert_memory_equal(create.filters, expected, sizeof(expected));
    assert_taken(&a, create.filters, sizeof(expected));

    DECODED b;
    assert_int_equal(decode(&b, &pb_watch_create_request_table, BYTES("\x2a\x00"), &create), ST_OK);
    assert_int_equal(create.filters_count, 0);
}

static void packed_numbers_get_room_for_all(void **state)
{
    (void)state;
    uint8_t bytes[2 + 100] = {0x2a, 100};
    for (size_t i = 0; i < 100; i++)
        bytes[2 + i] = (uint8_t)i;
    struct pb_watch_create_request create;
    DECODED d;
    assert_int_equal(
        decode(&d, &pb_watch_create_request_table, slice_of(bytes, sizeof(bytes)), &create), ST_OK);
    assert_int_equal(create.filters_count, 100);
    assert_taken(&d, create.filters, 100 * sizeof(int32_t));
    for (int32_t i = 0; i < 100; i++)
        assert_int_equal(create.filters[i], i);
}

static void repeated_text_and_bytes_are_slices(void **state)
{
    (void)state;
    struct pb_member member;
    DECODED d;
    assert_int_equal(decode(&d, &pb_member_table,
                            BYTES("\x1a\x01p\x22\x01q\x1a\x00\x1a\x03\xe2\x82\xac"), &member),
                     ST_OK);
    assert_int_equal(member.peer_urls_count, 3);
    assert_int_equal(member.client_urls_count, 1);
    assert_slice(member.peer_urls[0], "p");
    assert_slice(member.peer_urls[1], "");
    assert_slice(member.peer_urls[2], "\xe2\x82\xac");
    assert_slice(member.client_urls[0], "q");
    assert_taken(&d, member.peer_urls, 3 * sizeof(struct slice));
    assert_taken(&d, member.client_urls, sizeof(struct slice));
}

static void unknown_fields_are_skipped(void **state)
{
    (void)state;
    struct slice messages[] = {
        BYTES("\x78\x96\x01\x0a\x01k"),                                          /* a number */
        BYTES("\x79\x01\x02\x03\x04\x05\x06\x07\x08\x0a\x01k"),                  /* eight bytes */
        BYTES("\x7a\x03\x0a\x01x\x0a\x01k"),                                     /* a message */
        BYTES("\x7d\x01\x02\x03\x04\x0a\x01k"),                                  /* four bytes */
        BYTES("\x7b\x0a\x01x\x83\x01\x84\x01\x7d\x00\x00\x00\x00\x7c\x0a\x01k"), /* a group */
        BYTES("\x82\x01\x01x\x0a\x01k"),                                         /* number 16 */
        BYTES("\xfa\xff\xff\xff\x0f\x01x\x0a\x01k"), /* the largest number */
    };
    for (size_t i = 0; i < COUNT_OF(messages); i++) {
        struct pb_put_request put;
        DECODED d;
        assert_int_equal(decode(&d, &pb_put_request_table, messages[i], &put), ST_OK);
        assert_slice(put.key, "k");
        assert_int_equal(put.lease, 0);
    }
}

static void known_fields_of_a_wrong_wire_type_are_skipped(void **state)
{
    (void)state;
    struct pb_put_request put;
    DECODED d;
    /* key as a number, lease as bytes, prev_kv as a group, value as four and eight bytes. */
    assert_int_equal(decode(&d, &pb_put_request_table,
                            BYTES("\x08\x05\x1a\x01x\x23\x08\x01\x24\x15\x01\x02\x03\x04"
                                  "\x11\x01\x02\x03\x04\x05\x06\x07\x08\x0a\x01k"),
                            &put),
                     ST_OK);
    assert_slice(put.key, "k");
    assert_slice(put.value, "");
    assert_int_equal(put.lease, 0);
    assert_false(put.prev_kv);
}

static void numbers_past_the_direct_ones_are_found(void **state)
{
    (void)state;
    struct pb_compare compare;
    DECODED d;
    assert_int_equal(decode(&d, &pb_compare_table,
                            BYTES("\xfa\x03\x01x\x82\x04\x03"
                                  "end\x8a\x04\x01y"),
                            &compare),
                     ST_OK);
    assert_slice(compare.range_end, "end");
    assert_ptr_equal(pb_field_find(&pb_compare_table, 64),
                     &pb_compare_table.fields[pb_compare_table.field_count - 1]);
    assert_null(pb_field_find(&pb_compare_table, 0));
    assert_null(pb_field_find(&pb_compare_table, 15));
    assert_null(pb_field_find(&pb_compare_table, 16));
    assert_null(pb_field_find(&pb_compare_table, 65));
    assert_null(pb_field_find(&pb_hash_request_table, 16));
}

static void malformed_bytes_are_refused(void **state)
{
    (void)state;
    struct {
        const struct pb_message *type;
        struct slice bytes;
    } cases[] = {
        {&pb_put_request_table, BYTES("\x8a")},     /* half of a tag */
        {&pb_put_request_table, BYTES("\x0a")},     /* no length */
        {&pb_put_request_table, BYTES("\x0a\x80")}, /* half of a length */
        {&pb_put_request_table, BYTES("\x0a\x02k")},
        {&pb_put_request_table, BYTES("\x0a\xff\xff\xff\xff\x0f")},
        {&pb_put_request_table, BYTES("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f")},
        {&pb_put_request_table, BYTES("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")},
        {&pb_put_request_table, BYTES("\x18")}, /* no number */
        {&pb_put_request_table, BYTES("\x18\x80")},
        {&pb_put_request_table,
         BYTES("\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02")}, /* 65 bits */
        {&pb_put_request_table, BYTES("\x18\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00")},
        {&pb_put_request_table, BYTES("\x00\x01")},                 /* number 0 */
        {&pb_put_request_table, BYTES("\x02\x00")},                 /* number 0, other wire type */
        {&pb_put_request_table, BYTES("\x80\x80\x80\x80\x10\x01")}, /* number 2^29 */
        {&pb_put_request_table, BYTES("\x88\x80\x80\x80\x80\x80\x80\x80\x80\x01\x01")},
        {&pb_put_request_table, BYTES("\x0e")},                             /* wire type 6 */
        {&pb_put_request_table, BYTES("\x7f")},                             /* wire type 7 */
        {&pb_put_request_table, BYTES("\x79\x01\x02\x03\x04\x05\x06\x07")}, /* seven bytes */
        {&pb_put_request_table, BYTES("\x7d\x01\x02\x03")},                 /* three bytes */
        {&pb_put_request_table, BYTES("\x7a\x01")},
        {&pb_put_request_table, BYTES("\x78")},
        {&pb_put_request_table, BYTES("\x7c")},             /* an end without a group */
        {&pb_put_request_table, BYTES("\x7b")},             /* a group without an end */
        {&pb_put_request_table, BYTES("\x7b\x08\x01")},     /* the same, not empty */
        {&pb_put_request_table, BYTES("\x7b\x74")},         /* the end of another group */
        {&pb_put_request_table, BYTES("\x7b\x00\x00\x7c")}, /* number 0 in a group */
        {&pb_put_request_table, BYTES("\x7b\x80")},
        {&pb_put_response_table, BYTES("\x0a\x02\x18")},         /* truncated in a sub-message */
        {&pb_put_response_table, BYTES("\x0a\x01\x18\x05")},     /* the number is past the end */
        {&pb_put_response_table, BYTES("\x12\x02\x0a\x01\x6b")}, /* the bytes are past the end */
        {&pb_put_response_table, BYTES("\x0a\x01\x7c")},
        {&pb_put_response_table, BYTES("\x0a")},
        {&pb_txn_request_table, BYTES("\x0a\x02\x1a\x05")},
        {&pb_txn_request_table, BYTES("\x0a\x00\x0a")},
        {&pb_txn_request_table, BYTES("\x0a\x00\x80")},
        {&pb_watch_create_request_table, BYTES("\x2a")},
        {&pb_watch_create_request_table,
         BYTES("\x2a\x02\x01\x80")}, /* truncated in a packed number */
        {&pb_watch_create_request_table, BYTES("\x2a\x01\x80")},
        {&pb_watch_create_request_table, BYTES("\x28")},
        {&pb_watch_create_request_table, BYTES("\x28\x80")},
        {&pb_member_table, BYTES("\x1a\x05url")},
        {&pb_member_table, BYTES("\x1a")},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(decoded_fini) struct decoded d;
        uint8_t into[512];
        assert_true(cases[i].type->struct_bytes <= sizeof(into));
        enum status status = decode(&d, cases[i].type, cases[i].bytes, into);
        if (status != ST_MALFORMED)
            print_error("case %zu of %s\n", i, cases[i].type->name);
        assert_int_equal(status, ST_MALFORMED);
    }
}

static void text_must_be_utf8_and_bytes_need_not(void **state)
{
    (void)state;
    struct pb_auth_role_add_request role;
    DECODED a;
    assert_int_equal(decode(&a, &pb_auth_role_add_request_table, BYTES("\x0a\x01\xff"), &role),
                     ST_MALFORMED);
    struct pb_member member;
    DECODED b;
    assert_int_equal(decode(&b, &pb_member_table, BYTES("\x1a\x02\xc3("), &member), ST_MALFORMED);
    struct pb_put_request put;
    DECODED c;
    assert_int_equal(decode(&c, &pb_put_request_table, BYTES("\x0a\x01\xff"), &put), ST_OK);
    assert_int_equal(put.key.ptr[0], 0xff);
}

static void text_keeps_its_zero_bytes(void **state)
{
    (void)state;
    struct pb_auth_role_add_request role;
    DECODED d;
    assert_int_equal(decode(&d, &pb_auth_role_add_request_table,
                            BYTES("\x0a\x03"
                                  "a\0b"),
                            &role),
                     ST_OK);
    assert_true(slice_equal(role.name, BYTES("a\0b")));
}

/* A TxnRequest with sub-messages `levels` deep: success, request_txn, success… */
static size_t nest_transactions(uint8_t *dst, size_t room, unsigned levels)
{
    size_t len = 0;
    for (unsigned level = levels; level > 0; level--) {
        uint8_t head[1 + PB_VARINT_BYTES_MAX];
        size_t head_len = (size_t)(pb_varint_write(head + 1, len) - head);
        head[0] = level % 2 ? 0x12 : 0x22; /* success is on odd levels, request_txn on even */
        assert_true(len + head_len <= room);
        memmove(dst + head_len, dst, len);
        memcpy(dst, head, head_len);
        len += head_len;
    }
    return len;
}

static void nesting_ends_at_the_limit(void **state)
{
    (void)state;
    uint8_t bytes[65536];
    struct pb_txn_request txn;
    size_t len = nest_transactions(bytes, sizeof(bytes), PB_DEPTH_MAX);
    DECODED a;
    assert_int_equal(decode(&a, &pb_txn_request_table, slice_of(bytes, len), &txn), ST_OK);
    unsigned depth = 0;
    for (const struct pb_txn_request *at = &txn; at->success_count; at = at->success->request_txn)
        depth += 2;
    assert_int_equal(depth, PB_DEPTH_MAX);

    const unsigned too_deep[] = {PB_DEPTH_MAX + 1, PB_DEPTH_MAX + 2, 10000};
    for (size_t i = 0; i < COUNT_OF(too_deep); i++) {
        len = nest_transactions(bytes, sizeof(bytes), too_deep[i]);
        DECODED d;
        assert_int_equal(decode(&d, &pb_txn_request_table, slice_of(bytes, len), &txn), ST_LIMIT);
    }
}

static void unknown_groups_nest_to_the_same_limit(void **state)
{
    (void)state;
    uint8_t bytes[2 * (PB_DEPTH_MAX + 1)];
    for (unsigned levels = PB_DEPTH_MAX; levels <= PB_DEPTH_MAX + 1; levels++) {
        memset(bytes, 0x7b, levels);
        memset(bytes + levels, 0x7c, levels);
        struct pb_put_request put;
        DECODED d;
        enum status status =
            decode(&d, &pb_put_request_table, slice_of(bytes, 2 * (size_t)levels), &put);
        assert_int_equal(status, levels <= PB_DEPTH_MAX ? ST_OK : ST_LIMIT);
    }
}

static void many_small_elements_end_at_the_arena_limit(void **state)
{
    (void)state;
    /* Two bytes each on the wire, a whole struct each in memory. */
    enum { ELEMENTS = 100000 };
    AUTO(buf_fini) struct buf bytes = {0};
    for (size_t i = 0; i < ELEMENTS; i++)
        assert_int_equal(buf_append(&bytes, BYTES("\x12\x00")), ST_OK);
    struct pb_range_response range;

    DECODED small;
    assert_int_equal(
        decode_within(&small, &pb_range_response_table, buf_slice(&bytes), 1 << 20, &range),
        ST_LIMIT);
    assert_true(small.arena.held_bytes <= 1 << 20);

    DECODED large;
    assert_int_equal(
        decode_within(&large, &pb_range_response_table, buf_slice(&bytes), 16 << 20, &range),
        ST_OK);
    assert_int_equal(range.kvs_count, ELEMENTS);
    assert_true(large.arena.held_bytes <= ELEMENTS * sizeof(struct pb_key_value) + 8192);
}

static void single_sub_message_past_the_arena_limit_is_refused(void **state)
{
    (void)state;
    struct pb_put_response put;
    DECODED a;
    assert_int_equal(decode_within(&a, &pb_put_response_table, BYTES("\x0a\x02\x18\x05"), 16, &put),
                     ST_LIMIT);
    struct pb_watch_create_request create;
    DECODED b;
    assert_int_equal(decode_within(&b, &pb_watch_create_request_table,
                                   BYTES("\x2a\x04\x01\x01\x01\x01"), 16, &create),
                     ST_LIMIT);
    DECODED c;
    assert_int_equal(
        decode_within(&c, &pb_watch_create_request_table, BYTES("\x28\x01"), 24, &create),
        ST_LIMIT);
}

static void merging_many_pieces_stays_in_proportion(void **state)
{
    (void)state;
    enum { PIECES = 20000 };
    AUTO(buf_fini) struct buf bytes = {0};
    for (size_t i = 0; i < PIECES; i++)
        assert_int_equal(buf_append(&bytes, BYTES("\x0a\x02\x12\x00")), ST_OK);
    struct pb_range_stream_response stream;
    DECODED d;
    assert_int_equal(
        decode_within(&d, &pb_range_stream_response_table, buf_slice(&bytes), 64 << 20, &stream),
        ST_OK);
    assert_int_equal(stream.range_response->kvs_count, PIECES);
    /* Doubling leaves as much unused as it keeps; the arena doubles its blocks once more. */
    assert_true(d.arena.held_bytes <= sizeof(struct pb_key_value) * PIECES * 8);
}

static void unpacked_numbers_stay_in_proportion(void **state)
{
    (void)state;
    enum { NUMBERS = 50000 };
    AUTO(buf_fini) struct buf bytes = {0};
    for (size_t i = 0; i < NUMBERS; i++)
        assert_int_equal(buf_append(&bytes, BYTES("\x28\x01")), ST_OK);
    struct pb_watch_create_request create;
    DECODED d;
    assert_int_equal(
        decode_within(&d, &pb_watch_create_request_table, buf_slice(&bytes), 4 << 20, &create),
        ST_OK);
    assert_int_equal(create.filters_count, NUMBERS);
    assert_true(d.arena.held_bytes <= sizeof(int32_t) * NUMBERS * 8);
}

static void every_truncation_of_a_message_is_handled(void **state)
{
    (void)state;
    struct slice whole = BYTES("\x0a\x09\x10\x02\x1a\x03key\x30\x05"
                               "\x12\x0c\x12\x0a\x0a\x03key\x12\x01v\x18\x07"
                               "\x1a\x07\x0a\x05\x0a\x03key\x7b\x0a\x01x\x7c");
    for (size_t len = 0; len <= whole.len; len++) {
        struct pb_txn_request txn;
        DECODED d;
        enum status status = decode(&d, &pb_txn_request_table, slice_sub(whole, 0, len), &txn);
        bool between_fields = len == 0 || len == 11 || len == 25 || len == 34 || len == whole.len;
        assert_int_equal(status, between_fields ? ST_OK : ST_MALFORMED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_bytes_are_a_message_of_defaults),
        cmocka_unit_test(slices_point_into_the_message),
        cmocka_unit_test(fields_come_in_any_order),
        cmocka_unit_test(last_value_wins_even_if_zero),
        cmocka_unit_test(numbers_are_truncated_to_their_width),
        cmocka_unit_test(numbers_may_be_longer_than_needed),
        cmocka_unit_test(enums_without_a_name_are_kept),
        cmocka_unit_test(repeated_sub_messages_merge),
        cmocka_unit_test(arrays_of_merged_messages_grow),
        cmocka_unit_test(repeated_fields_may_alternate),
        cmocka_unit_test(oneof_keeps_the_last_member),
        cmocka_unit_test(repeated_oneof_member_merges),
        cmocka_unit_test(oneof_is_set_by_a_zero_too),
        cmocka_unit_test(repeated_numbers_come_packed_or_not),
        cmocka_unit_test(packed_numbers_get_room_for_all),
        cmocka_unit_test(repeated_text_and_bytes_are_slices),
        cmocka_unit_test(unknown_fields_are_skipped),
        cmocka_unit_test(known_fields_of_a_wrong_wire_type_are_skipped),
        cmocka_unit_test(numbers_past_the_direct_ones_are_found),
        cmocka_unit_test(malformed_bytes_are_refused),
        cmocka_unit_test(text_must_be_utf8_and_bytes_need_not),
        cmocka_unit_test(text_keeps_its_zero_bytes),
        cmocka_unit_test(nesting_ends_at_the_limit),
        cmocka_unit_test(unknown_groups_nest_to_the_same_limit),
        cmocka_unit_test(many_small_elements_end_at_the_arena_limit),
        cmocka_unit_test(single_sub_message_past_the_arena_limit_is_refused),
        cmocka_unit_test(merging_many_pieces_stays_in_proportion),
        cmocka_unit_test(unpacked_numbers_stay_in_proportion),
        cmocka_unit_test(every_truncation_of_a_message_is_handled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
