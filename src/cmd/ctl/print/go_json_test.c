#include "cmd/ctl/print/go_json.h"

#include "cmd/ctl/print/print.h"
#include "codec/pb/rpc.pb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static char *text;
static size_t text_len;
static FILE *to;

static int begin(void **state)
{
    (void)state;
    to = open_memstream(&text, &text_len);
    return to ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    fclose(to);
    free(text);
    return 0;
}

/* What was written since the last call. */
static const char *written(void)
{
    fputc(0, to);
    fflush(to);
    rewind(to);
    return text;
}

#define CHECK(expected)                           \
    do {                                          \
        assert_string_equal(written(), expected); \
    } while (0)

static void zeros_are_left_out_and_names_are_those_of_the_proto_file(void **state)
{
    (void)state;
    struct go_json json = {.to = to};
    struct pb_response_header header = {.cluster_id = UINT64_MAX, .revision = -1};
    struct pb_key_value kv = {.key = SLICE_LITERAL("a"), .version = 1};
    struct pb_range_response range = {
        .header = &header, .kvs = &kv, .kvs_count = 1, .more = true, .count = INT64_MAX};
    go_json_message(&json, &pb_range_response_table, &range);
    CHECK("{\"header\":{\"cluster_id\":18446744073709551615,\"revision\":-1},\"kvs\":[{\"key\":"
          "\"YQ==\",\"version\":1}],\"more\":true,\"count\":9223372036854775807}");
    go_json_message(&json, &pb_range_response_table, &(struct pb_range_response){0});
    CHECK("{}");
}

static void oneof_has_the_name_of_its_version(void **state)
{
    (void)state;
    struct pb_put_response put = {0};
    struct pb_response_op op = {.response_case = PB_RESPONSE_OP_RESPONSE_PUT, .response_put = &put};
    struct pb_txn_response txn = {.succeeded = true, .responses = &op, .responses_count = 1};
    struct go_json json = {.to = to};
    go_json_message(&json, &pb_txn_response_table, &txn);
    CHECK("{\"succeeded\":true,\"responses\":[{\"Response\":{\"response_put\":{}}}]}");
    json.go_names = true;
    go_json_message(&json, &pb_txn_response_table, &txn);
    CHECK("{\"succeeded\":true,\"responses\":[{\"Response\":{\"ResponsePut\":{}}}]}");
}

static void ids_may_be_hexadecimal(void **state)
{
    (void)state;
    struct go_json json = {.to = to, .hex_ids = true};
    struct pb_response_header header = {.cluster_id = 0xabc, .raft_term = 2};
    go_json_message(&json, &pb_response_header_table, &header);
    CHECK("{\"cluster_id\":\"abc\",\"member_id\":\"0\",\"raft_term\":2}");
}

static void texts_are_escaped_as_go_does(void **state)
{
    (void)state;
    go_json_text(to, SLICE_LITERAL("<a>&\"\\\n\t\x01\x7f\xc3\xa9\xe2\x80\xa8\xe2\x80\xa9\xff\xc3"));
    CHECK(
        "\"\\u003ca\\u003e\\u0026\\\"\\\\\\n\\t\\u0001\x7f\xc3\xa9\\u2028\\u2029\\ufffd\\ufffd\"");
    go_json_bytes(to, SLICE_LITERAL("\xff\x00"));
    CHECK("\"/wA=\"");
    go_json_bytes(to, (struct slice){0});
    CHECK("\"\"");
}

static void quoted_texts_are_those_of_go(void **state)
{
    (void)state;
    ctl_write_quoted(to, SLICE_LITERAL("\a\b\t\n\v\f\r\"\\ \x01\x7f\xff"));
    CHECK("\"\\a\\b\\t\\n\\v\\f\\r\\\"\\\\ \\x01\\x7f\\xff\"");
    /* é, an emoji and a combining mark are printable; a space without a break, a joiner, a private
     * character and an unassigned one are not. */
    ctl_write_quoted(to, SLICE_LITERAL("\xc3\xa9\xf0\x9f\x98\x80\xcc\x81"));
    CHECK("\"\xc3\xa9\xf0\x9f\x98\x80\xcc\x81\"");
    ctl_write_quoted(to, SLICE_LITERAL("\xc2\xa0\xe2\x80\x8b\xee\x80\x80\xf3\xb0\x80\x80\xcd\xb8"));
    CHECK("\"\\u00a0\\u200b\\ue000\\U000f0000\\u0378\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(zeros_are_left_out_and_names_are_those_of_the_proto_file,
                                        begin, end),
        cmocka_unit_test_setup_teardown(oneof_has_the_name_of_its_version, begin, end),
        cmocka_unit_test_setup_teardown(ids_may_be_hexadecimal, begin, end),
        cmocka_unit_test_setup_teardown(texts_are_escaped_as_go_does, begin, end),
        cmocka_unit_test_setup_teardown(quoted_texts_are_those_of_go, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
