#include "cmd/ctl/explore/kv_view.h"

#include "cmd/ctl/explore/output_test.h"
#include "codec/pb/rpc.pb.h"

static struct pb_key_value kvs[] = {
    {.key = {(const uint8_t *)"a\033b", 3},
     .value = {(const uint8_t *)"x\ny", 3},
     .create_revision = 2,
     .mod_revision = 3,
     .version = 2,
     .lease = 0x1f},
    {.key = {(const uint8_t *)"\xff", 1},
     .value = {(const uint8_t *)"{\"n\":1}", 7},
     .create_revision = 4,
     .mod_revision = 4,
     .version = 1},
};
static const struct pb_range_response range = {.kvs = kvs, .kvs_count = COUNT_OF(kvs)};

static void each_key_is_a_line_of_json(void **state)
{
    struct output output;
    (void)state;
    output_init(&output, CTL_JSONL, DECODE_AUTO);
    kv_view_range_jsonl(&output.ctl, &range);
    output_finish(&output,
                  "{\"key\":\"a\\u001bb\",\"value\":\"x\\ny\",\"create_revision\":2,"
                  "\"mod_revision\":3,\"version\":2,\"lease\":31}\n"
                  "{\"keyBase64\":\"/w==\",\"value\":\"{\\\"n\\\":1}\",\"create_revision\":4,"
                  "\"mod_revision\":4,\"version\":1}\n");
    output_init(&output, CTL_JSONL, DECODE_K8S);
    kv_view_range_jsonl(&output.ctl, &range);
    fflush(output.ctl.out);
    assert_non_null(strstr(output.text, "\"value\":{\"n\":1}"));
    char *copy = strdup(output.text);
    output_finish(&output, copy);
    free(copy);
}

static void assert_summary(const char *value, const char *expected)
{
    AUTO(buf_fini) struct buf text = {0};
    assert_int_equal(kv_view_summary(&text, DECODE_AUTO, slice_from_text(value)), ST_OK);
    assert_true(slice_is(buf_slice(&text), expected));
}

static void values_of_a_table_are_short(void **state)
{
    (void)state;
    assert_summary("a\nb", "a\\nb");
    assert_summary("", "");
    assert_summary("{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"web\","
                   "\"namespace\":\"default\"}}",
                   "Pod default/web");
    assert_summary("{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n\\u001b\"}}",
                   "Node n\\x1b");
    assert_summary("{\"kind\":\"Odd\",\"apiVersion\":\"v1\",\"metadata\":7}", "Odd");
    char text[200], expected[80];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    snprintf(expected, sizeof(expected), "%.59s…", text);
    assert_summary(text, expected);
}

static void tables_are_safe(void **state)
{
    struct output output;
    (void)state;
    output_init(&output, CTL_TABLE, DECODE_AUTO);
    kv_view_range_table(&output.ctl, &range);
    fflush(output.ctl.out);
    assert_non_null(strstr(output.text, "a\\x1bb"));
    assert_non_null(strstr(output.text, "\\xff"));
    assert_non_null(strstr(output.text, "x\\ny"));
    assert_null(strchr(output.text, '\033'));
    char *copy = strdup(output.text);
    output_finish(&output, copy);
    free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_key_is_a_line_of_json),
        cmocka_unit_test(values_of_a_table_are_short),
        cmocka_unit_test(tables_are_safe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
