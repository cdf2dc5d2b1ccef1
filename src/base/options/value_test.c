#include "base/options/value.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void bools_are_parsed_as_in_go(void **state)
{
    (void)state;
    const char *const yes[] = {"1", "t", "T", "true", "TRUE", "True"};
    const char *const no[] = {"0", "f", "F", "false", "FALSE", "False"};
    const char *const bad[] = {"", "yes", "tRUE", "2", " true"};
    bool value = false;
    for (size_t i = 0; i < COUNT_OF(yes); i++) {
        assert_int_equal(option_value_bool(yes[i], &value), ST_OK);
        assert_true(value);
        assert_int_equal(option_value_bool(no[i], &value), ST_OK);
        assert_false(value);
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_int_equal(option_value_bool(bad[i], &value), ST_INVALID);
}

static void integers_are_parsed_as_in_go(void **state)
{
    (void)state;
    const struct {
        const char *text;
        int64_t value;
    } good[] = {
        {"0", 0},
        {"-1", -1},
        {"+7", 7},
        {"128", 128},
        {"0x10", 16},
        {"-0x10", -16},
        {"0b101", 5},
        {"0o17", 15},
        {"017", 15},
        {"1_000", 1000},
        {"00", 0},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
    };
    const char *const bad[] = {"",
                               "-",
                               "x",
                               "1x",
                               "0x",
                               "1__0",
                               "_1",
                               "1_",
                               "08",
                               "1.5",
                               "9223372036854775808",
                               "-9223372036854775809",
                               " 1"};
    int64_t value;
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        if (option_value_int(good[i].text, &value) != ST_OK)
            fail_msg("%s", good[i].text);
        assert_int_equal(value, good[i].value);
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        if (option_value_int(bad[i], &value) == ST_OK)
            fail_msg("%s was taken", bad[i]);
}

static void sizes_may_have_suffixes(void **state)
{
    (void)state;
    const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"0", 0},
        {"1572864", 1572864},
        {"1K", 1024},
        {"2KB", 2048},
        {"64MiB", 64 << 20},
        {"2g", UINT64_C(2) << 30},
        {"1T", UINT64_C(1) << 40},
        {"0x10", 16},
    };
    const char *const bad[] = {"", "-1", "K", "1.5M", "1X", "1KiBs", "9000000T", "1 K"};
    uint64_t bytes;
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        if (option_value_size(good[i].text, &bytes) != ST_OK)
            fail_msg("%s", good[i].text);
        assert_int_equal(bytes, good[i].bytes);
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        if (option_value_size(bad[i], &bytes) == ST_OK)
            fail_msg("%s was taken", bad[i]);
}

static void durations_are_parsed_and_printed_as_in_go(void **state)
{
    (void)state;
    const struct {
        const char *text;
        int64_t ns;
        const char *formatted;
    } good[] = {
        {"0", 0, "0s"},
        {"10s", 10 * NS_PER_S, "10s"},
        {"1m30s", 90 * NS_PER_S, "1m30s"},
        {"100ms", 100 * NS_PER_MS, "100ms"},
        {"1.5h", 5400 * NS_PER_S, "1h30m0s"},
        {".5s", NS_PER_S / 2, "500ms"},
        {"5.s", 5 * NS_PER_S, "5s"},
        {"-1m", -60 * NS_PER_S, "-1m0s"},
        {"+1us", 1000, "1\u00b5s"},
        {"1\u00b5s", 1000, "1\u00b5s"},
        {"1.5ms", 1500000, "1.5ms"},
        {"1h1ns", 3600 * NS_PER_S + 1, "1h0m0.000000001s"},
        {"2562047h47m16.854775807s", INT64_MAX, "2562047h47m16.854775807s"},
        {"100ns", 100, "100ns"},
    };
    const char *const bad[] = {"", "-", "1", "s", ".s", "1x", "1s1", "1 s", "3000000h", "1d"};
    int64_t ns;
    char text[OPTION_DURATION_BYTES];
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        if (option_value_duration(good[i].text, &ns) != ST_OK)
            fail_msg("%s", good[i].text);
        assert_int_equal(ns, good[i].ns);
        option_format_duration(ns, text);
        assert_string_equal(text, good[i].formatted);
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        if (option_value_duration(bad[i], &ns) == ST_OK)
            fail_msg("%s was taken", bad[i]);
}

static void lists_are_split_at_commas(void **state)
{
    (void)state;
    const char *rest = "http://a:1, http://b:2 ,c";
    struct slice item;
    assert_true(option_list_next(&rest, &item));
    assert_true(slice_equal(item, SLICE_LITERAL("http://a:1")));
    assert_true(option_list_next(&rest, &item));
    assert_true(slice_equal(item, SLICE_LITERAL("http://b:2")));
    assert_true(option_list_next(&rest, &item));
    assert_true(slice_equal(item, SLICE_LITERAL("c")));
    assert_false(option_list_next(&rest, &item));
    rest = " ";
    assert_false(option_list_next(&rest, &item));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bools_are_parsed_as_in_go),
        cmocka_unit_test(integers_are_parsed_as_in_go),
        cmocka_unit_test(sizes_may_have_suffixes),
        cmocka_unit_test(durations_are_parsed_and_printed_as_in_go),
        cmocka_unit_test(lists_are_split_at_commas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
