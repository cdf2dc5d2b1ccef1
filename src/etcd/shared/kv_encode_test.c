#include "etcd/shared/kv_encode.h"

#include "base/buf.h"
#include "codec/pb/rpc.pb.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct arena arena;

static const uint64_t cluster_id = UINT64_MAX, member_id = 0x8e9e05c52164694d;
static struct kv_ids ids;
static const struct kv_header full_header = {
    .ids = &ids,
    .revision = 1234567,
    .raft_term = 2,
};

static int setup(void **state)
{
    (void)state;
    kv_ids_init(&ids, cluster_id, member_id);
    arena_init(&arena, NULL, 0, 1 << 20);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_fini(&arena);
    return 0;
}

static struct pb_key_value sample(unsigned i)
{
    static const char *const values[] = {"", "one", "two two"};
    return (struct pb_key_value){
        .key = SLICE_LITERAL("key"),
        .create_revision = 2 + i,
        .mod_revision = 300 * (i + 1),
        .version = i + 1,
        .value = slice_from_text(values[i % 3]),
        .lease = i % 2 ? -1 : 0,
    };
}

/* `12 len KeyValue`, the stored form. */
static struct slice field_of(const struct pb_key_value *kv)
{
    size_t size = pb_size(&pb_key_value_table, kv);
    uint8_t *field = arena_alloc(&arena, pb_message_head_size(2, size) + size);
    uint8_t *body = pb_message_head_write(field, 2, size);
    pb_encode(&pb_key_value_table, kv, body, size);
    return slice_of(field, (size_t)(body - field) + size);
}

/* Writing at once and byte by byte must give the same bytes. */
static struct slice encode(const struct kv_answer *answer, const struct kv_header *header)
{
    struct kv_plan plan;
    struct kv_writer writer;
    assert_int_equal(kv_plan_make(&plan, answer, header, &arena), ST_OK);
    uint8_t *dst = arena_alloc(&arena, plan.bytes);
    kv_writer_init(&writer, &plan);
    assert_int_equal(kv_writer_fill(&writer, dst, plan.bytes), plan.bytes);
    assert_int_equal(kv_writer_fill(&writer, dst, 1), 0);

    for (size_t step = 1; step <= 7; step += 2) {
        uint8_t *again = arena_alloc(&arena, plan.bytes + step);
        size_t at = 0;
        kv_writer_init(&writer, &plan);
        for (size_t n; (n = kv_writer_fill(&writer, again + at, step)) > 0; at += n)
            assert_true(n == step || at + n == plan.bytes);
        assert_int_equal(at, plan.bytes);
        assert_memory_equal(again, dst, at);
    }
    return slice_of(dst, plan.bytes);
}

/* The hand-written encoder must give the same bytes as the table-driven one. */
static void assert_bytes(struct slice bytes, const struct pb_message *type, const void *message)
{
    size_t size = pb_size(type, message);
    assert_int_equal(bytes.len, size);
    uint8_t *expected = arena_alloc(&arena, size);
    pb_encode(type, message, expected, size);
    assert_memory_equal(bytes.ptr, expected, size);
}

static struct pb_response_header pb_header_of(const struct kv_header *header)
{
    return (struct pb_response_header){
        .cluster_id = cluster_id,
        .member_id = member_id,
        .revision = header->revision,
        .raft_term = header->raft_term,
    };
}

static void put_answer_is_encoded_as_put_response(void **state)
{
    (void)state;
    struct pb_key_value prev = sample(1);
    struct pb_response_header header = pb_header_of(&full_header);
    struct kv_answer with = {.kind = KV_ANSWER_PUT, .put = {.prev_field = field_of(&prev)}};
    struct kv_answer without = {.kind = KV_ANSWER_PUT};
    assert_bytes(encode(&with, &full_header), &pb_put_response_table,
                 &(struct pb_put_response){.header = &header, .prev_kv = &prev});
    assert_bytes(encode(&without, &full_header), &pb_put_response_table,
                 &(struct pb_put_response){.header = &header});
}

static struct slice *fields_of(const struct pb_key_value *kvs, size_t count, uint64_t *ret_bytes)
{
    struct slice *fields = arena_calloc(&arena, count, sizeof(*fields));
    *ret_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        fields[i] = field_of(&kvs[i]);
        *ret_bytes += fields[i].len;
    }
    return fields;
}

static void delete_answer_retags_previous_values(void **state)
{
    (void)state;
    struct pb_key_value prevs[3] = {sample(0), sample(1), sample(2)};
    struct pb_response_header header = pb_header_of(&full_header);
    struct kv_answer answer = {.kind = KV_ANSWER_DELETE,
                               .delete_range = {.deleted = 3, .prev_field_count = 3}};
    answer.delete_range.prev_fields = fields_of(prevs, 3, &answer.delete_range.prev_fields_bytes);
    struct slice stored = answer.delete_range.prev_fields[0];
    assert_bytes(encode(&answer, &full_header), &pb_delete_range_response_table,
                 &(struct pb_delete_range_response){
                     .header = &header, .deleted = 3, .prev_kvs = prevs, .prev_kvs_count = 3});
    assert_int_equal(stored.ptr[0], 0x12); /* the stored bytes are unchanged */
}

/* An answer with every kind of operation, nested two deep, and the message that it must encode to.
 */
static void txn_answer_is_nested_like_etcds(void **state)
{
    (void)state;
    struct pb_key_value kvs[3] = {sample(0), sample(1), sample(2)};
    struct kv_answer inner[2] = {
        {.kind = KV_ANSWER_PUT, .revision = 9},
        {.kind = KV_ANSWER_TXN, .revision = 9, .txn = {.succeeded = false}},
    };
    struct kv_answer ops[4] = {
        {.kind = KV_ANSWER_RANGE, .revision = 8, .range = {.count = 70, .more = true}},
        {.kind = KV_ANSWER_PUT, .revision = 9, .put = {.prev_field = field_of(&kvs[2])}},
        {.kind = KV_ANSWER_DELETE, .revision = 9},
        {.kind = KV_ANSWER_TXN,
         .revision = 9,
         .txn = {.succeeded = true, .answers = inner, .answer_count = 2}},
    };
    ops[0].range.field_count = 3;
    ops[0].range.fields = fields_of(kvs, 3, &ops[0].range.fields_bytes);
    struct kv_answer answer = {.kind = KV_ANSWER_TXN,
                               .txn = {.succeeded = true, .answers = ops, .answer_count = 4}};

    struct pb_response_header header = pb_header_of(&full_header);
    struct pb_response_header at_8 = {.revision = 8}, at_9 = {.revision = 9}, empty = {0};
    struct pb_range_response range = {
        .header = &at_8, .kvs = kvs, .kvs_count = 3, .more = true, .count = 70};
    struct pb_put_response put = {.header = &at_9, .prev_kv = &kvs[2]};
    struct pb_put_response inner_put = {.header = &at_9};
    struct pb_delete_range_response deleted = {.header = &at_9};
    struct pb_txn_response innermost = {.header = &empty};
    struct pb_response_op inner_ops[2] = {
        {.response_case = PB_RESPONSE_OP_RESPONSE_PUT, .response_put = &inner_put},
        {.response_case = PB_RESPONSE_OP_RESPONSE_TXN, .response_txn = &innermost},
    };
    struct pb_txn_response nested = {
        .header = &empty, .succeeded = true, .responses = inner_ops, .responses_count = 2};
    struct pb_response_op response_ops[4] = {
        {.response_case = PB_RESPONSE_OP_RESPONSE_RANGE, .response_range = &range},
        {.response_case = PB_RESPONSE_OP_RESPONSE_PUT, .response_put = &put},
        {.response_case = PB_RESPONSE_OP_RESPONSE_DELETE_RANGE, .response_delete_range = &deleted},
        {.response_case = PB_RESPONSE_OP_RESPONSE_TXN, .response_txn = &nested},
    };
    assert_bytes(
        encode(&answer, &full_header), &pb_txn_response_table,
        &(struct pb_txn_response){
            .header = &header, .succeeded = true, .responses = response_ops, .responses_count = 4});
}

static void range_parts_form_a_range_response(void **state)
{
    (void)state;
    struct pb_key_value kvs[2] = {sample(0), sample(1)};
    struct pb_response_header header = pb_header_of(&full_header);
    uint8_t bytes[512];
    uint8_t *p = kv_header_write(bytes, &full_header);
    assert_int_equal(p - bytes, kv_header_size(&full_header));
    assert_true(p - bytes <= KV_HEADER_BYTES_MAX);
    for (size_t i = 0; i < 2; i++) {
        struct slice field = field_of(&kvs[i]);
        slice_copy(p, field);
        p += field.len;
    }
    uint8_t *tail = p;
    p = kv_range_tail_write(p, true, INT64_MAX);
    assert_int_equal(p - tail, kv_range_tail_size(true, INT64_MAX));
    assert_true(p - tail <= KV_RANGE_TAIL_BYTES_MAX);
    assert_bytes(
        slice_of(bytes, (size_t)(p - bytes)), &pb_range_response_table,
        &(struct pb_range_response){
            .header = &header, .kvs = kvs, .kvs_count = 2, .more = true, .count = INT64_MAX});
}

static void plan_without_memory_is_an_error(void **state)
{
    (void)state;
    struct kv_answer ops[8] = {{.kind = KV_ANSWER_DELETE}};
    struct kv_answer answer = {.kind = KV_ANSWER_TXN, .txn = {.answers = ops, .answer_count = 8}};
    struct arena small;
    arena_init(&small, NULL, 0, 32);
    struct kv_plan plan;
    assert_int_equal(kv_plan_make(&plan, &answer, &full_header, &small), ST_NOMEM);
    arena_fini(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(put_answer_is_encoded_as_put_response, setup, teardown),
        cmocka_unit_test_setup_teardown(delete_answer_retags_previous_values, setup, teardown),
        cmocka_unit_test_setup_teardown(txn_answer_is_nested_like_etcds, setup, teardown),
        cmocka_unit_test_setup_teardown(range_parts_form_a_range_response, setup, teardown),
        cmocka_unit_test_setup_teardown(plan_without_memory_is_an_error, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
