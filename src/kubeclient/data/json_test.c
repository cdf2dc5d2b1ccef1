#include "base/slice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <vigil/kube/json.h>

static const char pod[] =
    "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"labels\":{\"app.kubernetes.io/name\":\"x\","
    "\"tier\":\"b\\u00e4ck\"},\"generation\":-7},\n"
    " \"spec\": {\"containers\" : [ {\"image\":\"one\"} , {\"image\":\"two\",\"tty\":true} ],"
    "\"empty\":{},\"none\":[]}, \"status\":null}";

/* The value at a path, or "-". */
static const char *find(const char *json, const char *path)
{
    static char text[512];
    vigil_bytes value;
    if (!vigil_json_find(vigil_text(json), path, &value))
        return "-";
    snprintf(text, sizeof(text), "%.*s", (int)value.size, (const char *)value.data);
    return text;
}

static void paths_find_values(void **state)
{
    (void)state;
    assert_string_equal(find(pod, "kind"), "\"Pod\"");
    assert_string_equal(find(pod, "metadata.name"), "\"a\"");
    assert_string_equal(find(pod, "metadata.generation"), "-7");
    assert_string_equal(find(pod, "metadata.labels['app.kubernetes.io/name']"), "\"x\"");
    assert_string_equal(find(pod, "spec.containers[1].image"), "\"two\"");
    assert_string_equal(find(pod, "spec.containers[1]"), "{\"image\":\"two\",\"tty\":true}");
    assert_string_equal(find(pod, "spec.empty"), "{}");
    assert_string_equal(find(pod, "status"), "null");
    assert_string_equal(find("[[1,2],[3]]", "[0][1]"), "2");
    assert_string_equal(find(" 12 ", ""), "12");
}

static void what_does_not_exist_is_not_found(void **state)
{
    (void)state;
    static const char *const paths[] = {
        "Kind",    "metadata.nam",          "metadata.name.x", "spec.containers[2]",
        "spec[0]", "spec.containers.image", "spec.none[0]",    "status.phase",
        "kind[0]", "spec.containers['0']",
    };
    for (size_t i = 0; i < COUNT_OF(paths); i++)
        assert_string_equal(find(pod, paths[i]), "-");
}

static void malformed_paths_find_nothing(void **state)
{
    (void)state;
    static const char *const paths[] = {".kind",
                                        "metadata.",
                                        "metadata..name",
                                        "spec.containers[",
                                        "spec.containers[]",
                                        "spec.containers[x]",
                                        "spec.containers[1",
                                        "metadata['name",
                                        "kind]",
                                        "spec.containers[99999999999]"};
    for (size_t i = 0; i < COUNT_OF(paths); i++)
        assert_string_equal(find(pod, paths[i]), "-");
}

/* Every prefix is a separate allocation, so that the sanitizer finds a read past its end. */
static void cut_off_text_has_only_what_is_complete(void **state)
{
    (void)state;
    size_t complete = 0;
    for (size_t len = 0; len < sizeof(pod); len++) {
        char *copy = malloc(len ? len : 1);
        vigil_bytes value;
        assert_non_null(copy);
        memcpy(copy, pod, len);
        if (vigil_json_find(vigil_bytes_of(copy, len), "spec.containers[1].image", &value)) {
            assert_true(vigil_json_is(value, "two"));
            complete++;
        }
        vigil_json_iterator all = vigil_json_iterate(vigil_bytes_of(copy, len));
        while (vigil_json_next(&all, NULL, &value))
            assert_true(value.size > 0);
        free(copy);
    }
    assert_true(complete > 10 && complete < sizeof(pod) / 2);
}

static void values_have_types(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int type;
    } rows[] = {
        {"null", VIGIL_JSON_NULL},   {"true", VIGIL_JSON_BOOLEAN}, {"false", VIGIL_JSON_BOOLEAN},
        {"-1.5", VIGIL_JSON_NUMBER}, {"0", VIGIL_JSON_NUMBER},     {"\"\"", VIGIL_JSON_TEXT},
        {"[]", VIGIL_JSON_ARRAY},    {"{}", VIGIL_JSON_OBJECT},    {"", VIGIL_JSON_NONE},
        {"x", VIGIL_JSON_NONE},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_int_equal(vigil_json_type_of(vigil_text(rows[i].text)), rows[i].type);
    assert_true(vigil_json_is_true(vigil_text("true")));
    assert_false(vigil_json_is_true(vigil_text("truer")));
}

static void numbers_are_read(void **state)
{
    (void)state;
    int64_t n = 5;
    assert_true(vigil_json_integer(vigil_text("-9223372036854775808"), &n));
    assert_true(n == INT64_MIN);
    assert_true(vigil_json_integer(vigil_text("1e3"), &n));
    assert_int_equal(n, 1000);
    assert_false(vigil_json_integer(vigil_text("9223372036854775808"), &n));
    assert_false(vigil_json_integer(vigil_text("1.5"), &n));
    assert_false(vigil_json_integer(vigil_text("\"1\""), &n));
    assert_false(vigil_json_integer(vigil_text(""), &n));
}

static void strings_are_decoded(void **state)
{
    (void)state;
    char text[16];
    size_t len;
    assert_true(vigil_json_text(vigil_text("\"b\\u00e4ck\""), text, sizeof(text), &len));
    assert_string_equal(text, "b\xc3\xa4"
                              "ck");
    assert_int_equal(len, 5);
    assert_true(vigil_json_text(vigil_text("\"abc\""), text, 4, NULL));
    assert_false(vigil_json_text(vigil_text("\"abc\""), text, 3, NULL)); /* no room for the zero */
    assert_false(vigil_json_text(vigil_text("\"a"), text, sizeof(text), NULL));
    assert_false(vigil_json_text(vigil_text("\"a\"b\""), text, sizeof(text), NULL));
    assert_false(vigil_json_text(vigil_text("\"\\ud800\""), text, sizeof(text), NULL));
    assert_false(vigil_json_text(vigil_text("1"), text, sizeof(text), NULL));
    assert_true(vigil_json_is(vigil_text("\"b\\u00e4ck\""), "b\xc3\xa4"
                                                            "ck"));
    assert_false(vigil_json_is(vigil_text("\"a\""), "b"));
    assert_false(vigil_json_is(vigil_text("a"), "a"));
}

/* In memory of exactly their size, so that the sanitizer finds a read past their end. */
static void malformed_strings_equal_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = {"\"\\\"",     "\"\\u\"",  "\"\\u00\"", "\"\\ud800\\u\"",
                                        "\"a\\\"",    "\"a\"b\"", "\"",        "\"\n\"",
                                        "\"\\u00zz\""};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        size_t len = strlen(texts[i]);
        char *copy = malloc(len);
        assert_non_null(copy);
        memcpy(copy, texts[i], len);
        vigil_bytes value = vigil_bytes_of(copy, len);
        assert_false(vigil_json_is(value, ""));
        assert_false(vigil_json_is(value, "a\""));
        assert_false(vigil_json_is(value, "a\"b"));
        free(copy);
    }
}

/* "key=value key=value" */
static const char *all(const char *json)
{
    static char text[512];
    vigil_bytes key, value;
    size_t n = 0;
    text[0] = 0;
    vigil_json_iterator i = vigil_json_iterate(vigil_text(json));
    while (vigil_json_next(&i, &key, &value))
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%.*s=%.*s ", (int)key.size,
                              key.size ? (const char *)key.data : "", (int)value.size,
                              (const char *)value.data);
    return text;
}

static void members_and_items_come_in_order(void **state)
{
    (void)state;
    assert_string_equal(all("{\"a\":1,\"b\":{\"c\":[]}}"), "\"a\"=1 \"b\"={\"c\":[]} ");
    assert_string_equal(all("[ 1 , \"x\",{} ]"), "=1 =\"x\" ={} ");
    assert_string_equal(all("{ }"), "");
    assert_string_equal(all("[]"), "");
    assert_string_equal(all("12"), "");
    assert_string_equal(all("[1 2]"), "=1 ");
    assert_string_equal(all("{\"a\" 1}"), "");
    assert_string_equal(all("[1,"), "=1 ");
    assert_string_equal(all("{1:2}"), "");
    assert_string_equal(all("{\"a\":1,[]:2,\"b\":3}"), "\"a\"=1 ");
    assert_string_equal(all(" \n[1]\n"), "=1 ");
    assert_string_equal(all("\t{ \"a\" : 1 }"), "\"a\"=1 ");
    assert_int_equal(vigil_json_type_of(vigil_text(" \r\n\t{")), VIGIL_JSON_OBJECT);
    assert_int_equal(vigil_json_type_of(vigil_text("  ")), VIGIL_JSON_NONE);
}

static void first_of_equal_keys_is_found(void **state)
{
    (void)state;
    vigil_bytes value;
    assert_true(vigil_json_find(vigil_text("{\"a\":1,\"a\":2}"), "a", &value));
    assert_int_equal(*(const char *)value.data, '1');
}

static void member_is_found_by_any_key(void **state)
{
    (void)state;
    vigil_bytes value;
    assert_true(vigil_json_member(vigil_text("{\"a.b[0]\":1}"), vigil_text("a.b[0]"), &value));
    assert_true(vigil_json_member(vigil_text("{\"\":2}"), vigil_text(""), &value));
    assert_false(vigil_json_member(vigil_text("[1]"), vigil_text("0"), &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_find_values),
        cmocka_unit_test(what_does_not_exist_is_not_found),
        cmocka_unit_test(malformed_paths_find_nothing),
        cmocka_unit_test(cut_off_text_has_only_what_is_complete),
        cmocka_unit_test(values_have_types),
        cmocka_unit_test(numbers_are_read),
        cmocka_unit_test(strings_are_decoded),
        cmocka_unit_test(malformed_strings_equal_nothing),
        cmocka_unit_test(members_and_items_come_in_order),
        cmocka_unit_test(member_is_found_by_any_key),
        cmocka_unit_test(first_of_equal_keys_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
