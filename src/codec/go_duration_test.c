#include "codec/go_duration.h"

#include "base/macros.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void durations_of_go_are_valid(void **state)
{
    static const char *const texts[] = {"0",
                                        "0s",
                                        "-5s",
                                        "+5s",
                                        "1h30m",
                                        "1.5s",
                                        ".5s",
                                        "1.s",
                                        "3ns4us5\u00b5s6\u03bcs7ms",
                                        "9223372036854775807ns",
                                        "-9223372036854775808ns",
                                        "2562047h47m16.854775807s",
                                        "0.3333333333333333333333333h",
                                        "0.00000000000000000000000000000000000001s"};
    char why[GO_DURATION_WHY_BYTES];
    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        if (!go_duration_check(slice_from_text(texts[i]), why))
            fail_msg("%s: %s", texts[i], why);
}

static void durations_are_counted_in_nanoseconds(void **state)
{
    static const struct {
        const char *text;
        int64_t ns;
    } rows[] = {{"0", 0},
                {"-1.5s", -1500000000},
                {"1h1m1s1ms1us1ns", 3661001001001},
                {"-9223372036854775808ns", INT64_MIN},
                {"2562047h47m16.854775807s", INT64_MAX}};
    int64_t ns;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_true(go_duration_read(slice_from_text(rows[i].text), &ns));
        assert_int_equal(ns, rows[i].ns);
    }
    assert_false(go_duration_read(SLICE_LITERAL("2562047h47m16.854775808s"), &ns));
}

static void what_go_refuses_is_refused_in_its_words(void **state)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "time: invalid duration \"\""},
        {"-", "time: invalid duration \"-\""},
        {"invalid", "time: invalid duration \"invalid\""},
        {"s", "time: invalid duration \"s\""},
        {".s", "time: invalid duration \".s\""},
        {" 5s", "time: invalid duration \" 5s\""},
        {"5", "time: missing unit in duration \"5\""},
        {"1s2", "time: missing unit in duration \"1s2\""},
        {"5x", "time: unknown unit \"x\" in duration \"5x\""},
        {"1s-1s", "time: unknown unit \"s-\" in duration \"1s-1s\""},
        {"9223372036854775808ns", "time: invalid duration \"9223372036854775808ns\""},
        {"2562048h", "time: invalid duration \"2562048h\""},
        {"9223372036s1h", "time: invalid duration \"9223372036s1h\""},
        {"99999999999999999999999s", "time: invalid duration \"99999999999999999999999s\""},
        {"\"\\\n\u00e9", "time: invalid duration \"\\\"\\\\\\x0a\\xc3\\xa9\""},
    };
    char why[GO_DURATION_WHY_BYTES];
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_false(go_duration_check(slice_from_text(rows[i].text), why));
        assert_string_equal(why, rows[i].why);
    }
}

static void a_long_text_is_cut(void **state)
{
    char why[GO_DURATION_WHY_BYTES], text[4096];
    (void)state;
    memset(text, 0xff, sizeof(text));
    assert_false(go_duration_check(slice_of(text, sizeof(text)), why));
    assert_true(strlen(why) < sizeof(why) - 1);
    memset(text, '1', sizeof(text) / 2);
    assert_false(go_duration_check(slice_of(text, sizeof(text)), why));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_of_go_are_valid),
        cmocka_unit_test(durations_are_counted_in_nanoseconds),
        cmocka_unit_test(what_go_refuses_is_refused_in_its_words),
        cmocka_unit_test(a_long_text_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
