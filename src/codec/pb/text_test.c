#include "codec/pb/rpc.pb.h"
#include "codec/pb/text_write.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void fields_that_are_set_are_shown_by_name(void **state)
{
    (void)state;
    char text[256];
    struct pb_range_request range = {.key = SLICE_LITERAL("a\"\n\xff"),
                                     .range_end = SLICE_LITERAL("b"),
                                     .limit = 5,
                                     .sort_order = 2,
                                     .sort_target = 77,
                                     .serializable = true};
    pb_text_write(&pb_range_request_table, &range, text, sizeof(text));
    assert_string_equal(text, "key:\"a\\\"\\012\\377\" range_end:\"b\" limit:5 sort_order:DESCEND "
                              "sort_target:77 serializable:true");
}

static void values_show_their_size_only(void **state)
{
    (void)state;
    char text[256];
    struct pb_put_request put = {.key = SLICE_LITERAL("k"), .value = SLICE_LITERAL("secret")};
    struct pb_range_request range = {.key = SLICE_LITERAL("r")};
    struct pb_request_op operations[] = {
        {.request_case = PB_REQUEST_OP_REQUEST_PUT, .request_put = &put},
        {.request_case = PB_REQUEST_OP_REQUEST_RANGE, .request_range = &range},
    };
    struct pb_compare compare = {
        .key = SLICE_LITERAL("k"), .target_union_case = PB_COMPARE_VERSION, .version = 0};
    struct pb_txn_request txn = {
        .compare = &compare, .compare_count = 1, .success = operations, .success_count = 2};
    pb_text_write(&pb_txn_request_table, &txn, text, sizeof(text));
    assert_string_equal(text, "compare:<key:\"k\" version:0> success:<request_put:<key:\"k\" "
                              "value_size:6> request_range:<key:\"r\">>");
}

static void passwords_are_not_shown(void **state)
{
    (void)state;
    char text[256];
    struct pb_authenticate_request who = {.name = SLICE_LITERAL("root"),
                                          .password = SLICE_LITERAL("hunter2")};
    pb_text_write(&pb_authenticate_request_table, &who, text, sizeof(text));
    assert_string_equal(text, "name:\"root\" password:***");
}

static void long_output_is_cut(void **state)
{
    (void)state;
    char text[8];
    struct pb_range_request range = {.key = SLICE_LITERAL("aaaaaaaaaaaaaaaaaaaaa"), .limit = 5};
    for (size_t room = 1; room <= sizeof(text); room++) {
        size_t len = pb_text_write(&pb_range_request_table, &range, text, room);
        assert_int_equal(len, room - 1);
        assert_int_equal(strlen(text), len);
    }
    assert_string_equal(text, "key:\"aa");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_that_are_set_are_shown_by_name),
        cmocka_unit_test(values_show_their_size_only),
        cmocka_unit_test(passwords_are_not_shown),
        cmocka_unit_test(long_output_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
