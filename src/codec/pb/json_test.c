/* JSON to messages and back. tests/codec_oracle.py compares it with another implementation. */
#include "codec/pb/json_read.h"
#include "codec/pb/json_write.h"
#include "codec/pb/lock.pb.h"
#include "codec/pb/rpc.pb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static enum status read_text(const struct pb_message *type, const char *json, struct buf *out,
                             char error[PB_JSON_ERROR_BYTES])
{
    struct slice text = slice_from_text(json);
    uint8_t *copy = malloc(text.len ? text.len : 1);
    assert_non_null(copy);
    slice_copy(copy, text);
    error[0] = '\0';
    enum status status = pb_json_read(type, slice_of(copy, text.len), out, error);
    free(copy);
    return status;
}

/* Writes the message as JSON, from pieces of this many bytes. */
static void write_text(const struct pb_message *type, struct slice bytes, size_t piece,
                       struct buf *out)
{
    struct pb_json_writer w = {0};
    assert_int_equal(pb_json_begin(&w, type, (uint32_t)bytes.len, out), ST_OK);
    while (bytes.len) {
        size_t n = size_min(piece, bytes.len);
        assert_false(pb_json_ended(&w));
        assert_int_equal(pb_json_feed(&w, slice_sub(bytes, 0, n), out), ST_OK);
        bytes = slice_sub(bytes, n, bytes.len - n);
    }
    assert_true(pb_json_ended(&w));
    pb_json_writer_fini(&w);
}

static void assert_turned(const struct pb_message *type, const char *json, const char *expected)
{
    char error[PB_JSON_ERROR_BYTES];
    AUTO(buf_fini) struct buf bytes = {0};
    enum status status = read_text(type, json, &bytes, error);
    assert_string_equal(error, "");
    assert_int_equal(status, ST_OK);
    static const size_t pieces[] = {1, 2, 3, 5, 1 << 20};
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        AUTO(buf_fini) struct buf text = {0};
        write_text(type, buf_slice(&bytes), pieces[i], &text);
        if (!slice_equal(buf_slice(&text), slice_from_text(expected)))
            print_error("got %.*s\n", SLICE_ARGS(buf_slice(&text)));
        assert_true(slice_equal(buf_slice(&text), slice_from_text(expected)));
    }
}

static void names_numbers_and_enums_are_read_in_each_form(void **state)
{
    (void)state;
    const struct pb_message *range = &pb_range_request_table;
    assert_turned(range, "{}", "{}");
    assert_turned(range, "{\"key\":\"Zm9v\",\"range_end\":\"Zg\"}",
                  "{\"key\":\"Zm9v\",\"range_end\":\"Zg==\"}");
    assert_turned(range, "{\"rangeEnd\":\"-_-_\",\"k\\u0065y\":\"\\u005ag==\"}",
                  "{\"range_end\":\"+/+/\",\"key\":\"Zg==\"}");
    assert_turned(range, "{\"limit\":\"12\",\"revision\":-3}",
                  "{\"limit\":\"12\",\"revision\":\"-3\"}");
    assert_turned(range, "{\"limit\":1e2,\"revision\":\"1.0\"}",
                  "{\"limit\":\"100\",\"revision\":\"1\"}");
    assert_turned(range, "{\"limit\":\"5, or 6\"}", "{\"limit\":\"5\"}");
    assert_turned(range, "{\"sort_order\":\"DESCEND\",\"sortTarget\":3}",
                  "{\"sort_order\":\"DESCEND\",\"sort_target\":\"MOD\"}");
    assert_turned(range, "{\"sort_order\":\"SIDEWAYS\",\"sort_target\":77}",
                  "{\"sort_target\":77}");
    assert_turned(range, "{\"limit\":null,\"key\":null,\"serializable\":true,\"keys_only\":false}",
                  "{\"serializable\":true}");
    assert_turned(range, "{\"limit\":0,\"key\":\"\",\"sort_order\":\"NONE\"}", "{}");
    assert_turned(range, "{\"x\":{\"y\":[1,\"\\ud83d\\ude00\"]},\"limit\":1,\"z\":null}",
                  "{\"limit\":\"1\"}");
}

static void messages_lists_and_unions_nest(void **state)
{
    (void)state;
    assert_turned(&pb_txn_request_table,
                  "{\"compare\":[{\"version\":\"0\",\"key\":\"YQ==\"},{\"value\":\"\"}],"
                  "\"success\":[{\"request_put\":{\"key\":\"YQ==\"}},{\"requestRange\":{}},{}],"
                  "\"failure\":[]}",
                  "{\"compare\":[{\"version\":\"0\",\"key\":\"YQ==\"},{\"value\":\"\"}],"
                  "\"success\":[{\"request_put\":{\"key\":\"YQ==\"}},{\"request_range\":{}},{}]}");
    assert_turned(&pb_watch_create_request_table,
                  "{\"filters\":[\"NOPUT\",1,\"WHAT\",9],\"watch_id\":\"5\"}",
                  "{\"filters\":[\"NOPUT\",\"NODELETE\",9],\"watch_id\":\"5\"}");
    assert_turned(&pb_member_add_request_table,
                  "{\"peerURLs\":[\"a\\\"\\n\\u0001\\b\",\"\",\"\\u00e9\"],\"isLearner\":true}",
                  "{\"peerURLs\":[\"a\\\"\\n\\u0001\\b\",\"\",\"\xc3\xa9\"],\"isLearner\":true}");
    assert_turned(&pb_hash_kv_response_table, "{\"hash\":4294967295,\"compact_revision\":\"-1\"}",
                  "{\"hash\":4294967295,\"compact_revision\":\"-1\"}");
    assert_turned(&pb_lease_time_to_live_response_table, "{\"keys\":[\"YQ==\",\"YWI=\",\"YWJj\"]}",
                  "{\"keys\":[\"YQ==\",\"YWI=\",\"YWJj\"]}");
    /* null does not count as a member of a union. */
    assert_turned(&pb_watch_request_table,
                  "{\"create_request\":null,\"cancel_request\":{\"watch_id\":2}}",
                  "{\"cancel_request\":{\"watch_id\":\"2\"}}");
}

/* The texts are protojson's, except for what they quote of a long token. */
static void errors_say_where_and_what(void **state)
{
    (void)state;
    static const struct {
        const struct pb_message *type;
        const char *json, *error;
    } rows[] = {
        {&pb_range_request_table, "[]", "proto: syntax error (line 1:1): unexpected token ["},
        {&pb_range_request_table, "null", "proto: syntax error (line 1:1): unexpected token null"},
        {&pb_range_request_table, "{\"key\":5}",
         "proto: (line 1:8): invalid value for bytes field key: 5"},
        {&pb_range_request_table, "{\"key\":\"*\"}",
         "proto: (line 1:8): invalid value for bytes field key: \"*\""},
        {&pb_range_request_table, "{\n \"\xc3\xa9\":1, \"keys_only\":\"true\"}",
         "proto: (line 2:21): invalid value for bool field keysOnly: \"true\""},
        {&pb_range_request_table, "{\"limit\":1.5}",
         "proto: (line 1:10): invalid value for int64 field limit: 1.5"},
        {&pb_range_request_table, "{\"limit\":\" 1\"}",
         "proto: (line 1:10): invalid value for int64 field limit: \" 1\""},
        {&pb_range_request_table, "{\"limit\":\"5x\"}",
         "proto: (line 1:10): invalid value for int64 field limit: \"5x\""},
        {&pb_range_request_table, "{\"limit\":\"\"}",
         "proto: (line 1:10): invalid value for int64 field limit: \"\""},
        {&pb_range_request_table, "{\"sort_order\":1e10}",
         "proto: (line 1:15): invalid value for enum field sortOrder: 1e10"},
        {&pb_member_remove_request_table, "{\"ID\":-1}",
         "proto: (line 1:7): invalid value for uint64 field ID: -1"},
        {&pb_hash_kv_response_table, "{\"hash\":4294967296}",
         "proto: (line 1:9): invalid value for uint32 field hash: 4294967296"},
        {&pb_range_request_table, "{\"key\":\"\",\"key\":\"\"}",
         "proto: (line 1:11): duplicate field \"key\""},
        {&pb_range_request_table, "{\"range_end\":null,\"rangeEnd\":\"\"}",
         "proto: (line 1:19): duplicate field \"rangeEnd\""},
        {&pb_compare_table, "{\"version\":1,\"lease\":2}",
         "proto: (line 1:14): error parsing \"lease\", oneof of etcdserverpb.Compare is already "
         "set"},
        {&pb_txn_request_table, "{\"compare\":[null]}",
         "proto: syntax error (line 1:13): unexpected token null"},
        {&pb_txn_request_table, "{\"compare\":{}}",
         "proto: syntax error (line 1:12): unexpected token {"},
        {&pb_range_request_table, "{\"unknown\":\"\xff\"}",
         "proto: syntax error (line 1:12): invalid UTF-8 in string"},
        {&pb_range_request_table, "{\"\\ud800\":1}",
         "proto: syntax error (line 1:2): invalid escape code in string"},
        {&pb_watch_create_request_table, "{\"filters\":[true]}",
         "proto: (line 1:13): invalid value for enum field filters: true"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char error[PB_JSON_ERROR_BYTES];
        AUTO(buf_fini) struct buf out = {0};
        assert_int_equal(read_text(rows[i].type, rows[i].json, &out, error), ST_INVALID);
        assert_string_equal(error, rows[i].error);
    }
}

static void long_tokens_are_cut_in_errors(void **state)
{
    (void)state;
    char error[PB_JSON_ERROR_BYTES];
    AUTO(buf_fini) struct buf json = {0}, out = {0};
    assert_int_equal(buf_append_format(&json, "{\"key\":\"%02000d*\"}", 0), ST_OK);
    assert_int_equal(pb_json_read(&pb_range_request_table, buf_slice(&json), &out, error),
                     ST_INVALID);
    assert_true(strlen(error) < PB_JSON_ERROR_BYTES);
}

static void nest(struct buf *json, unsigned transactions)
{
    for (unsigned i = 0; i < transactions; i++)
        assert_int_equal(buf_append_text(json, "{\"success\":[{\"request_txn\":"), ST_OK);
    assert_int_equal(buf_append_text(json, "{}"), ST_OK);
    for (unsigned i = 0; i < transactions; i++)
        assert_int_equal(buf_append_text(json, "}]}"), ST_OK);
}

static void nesting_ends_where_messages_do(void **state)
{
    (void)state;
    char error[PB_JSON_ERROR_BYTES];
    AUTO(buf_fini) struct buf json = {0}, out = {0}, back = {0};
    nest(&json, (PB_DEPTH_MAX - 1) / 2);
    assert_int_equal(pb_json_read(&pb_txn_request_table, buf_slice(&json), &out, error), ST_OK);
    write_text(&pb_txn_request_table, buf_slice(&out), 7, &back);
    assert_true(slice_equal(buf_slice(&back), buf_slice(&json)));
    json.len = out.len = 0;
    nest(&json, PB_DEPTH_MAX / 2);
    assert_int_equal(pb_json_read(&pb_txn_request_table, buf_slice(&json), &out, error), ST_LIMIT);
    assert_string_equal(error, "proto: exceeded max recursion depth");
}

static void invalid_bytes_are_refused(void **state)
{
    (void)state;
    static const struct slice rows[] = {
        {(const uint8_t *)"\x0a", 1},      /* a tag without a length */
        {(const uint8_t *)"\x0a\x05z", 3}, /* longer than the message */
        {(const uint8_t *)"\x78\x01", 2},  /* no such field */
        {(const uint8_t *)"\x08\x01", 2},  /* another wire type than the field's */
        {(const uint8_t *)"\x18\xff", 2},  /* an incomplete number */
        {(const uint8_t *)"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct pb_json_writer w = {0};
        AUTO(buf_fini) struct buf out = {0};
        const struct pb_message *type = &pb_range_request_table;
        assert_int_equal(pb_json_begin(&w, type, (uint32_t)rows[i].len, &out), ST_OK);
        assert_int_equal(pb_json_feed(&w, rows[i], &out), ST_MALFORMED);
        pb_json_writer_fini(&w);
    }
}

static void messages_have_at_most_as_many_fields_as_the_reader_supports(void **state)
{
    (void)state;
    for (size_t i = 0; i < pb_message_count; i++)
        assert_true(pb_messages[i]->field_count <= 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_numbers_and_enums_are_read_in_each_form),
        cmocka_unit_test(messages_lists_and_unions_nest),
        cmocka_unit_test(errors_say_where_and_what),
        cmocka_unit_test(long_tokens_are_cut_in_errors),
        cmocka_unit_test(nesting_ends_where_messages_do),
        cmocka_unit_test(invalid_bytes_are_refused),
        cmocka_unit_test(messages_have_at_most_as_many_fields_as_the_reader_supports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
