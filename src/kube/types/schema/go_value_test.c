/* The error texts are those of a real kube-apiserver: tests/kube/same_writes_test.py. */
#include "kube/types/schema/go_value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void times_are_read_as_go_reads_them(void **state)
{
    static const struct {
        const char *text, *why; /* NULL: it is valid */
        bool micro;
    } cases[] = {
        {"2026-11-15T06:00:00Z", NULL, false},
        {"2026-11-15T06:00:00.123456789123Z", NULL, false},
        {"2026-11-15T6:00:00+24:60", NULL, false},
        {"2024-02-29T23:59:59-01:30", NULL, false},
        {"2026-11-15T06:00:00.000000+01:00", NULL, true},
        {"bad",
         "parsing time \"bad\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"bad\" as \"2006\"",
         false},
        {"", "parsing time \"\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"\" as \"2006\"",
         false},
        {"2026-11-15T06:00:00Z",
         "parsing time \"2026-11-15T06:00:00Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot "
         "parse \"Z\" as \".000000\"",
         true},
        {"2026-11-15T06:00:00.000000",
         "parsing time \"2026-11-15T06:00:00.000000\" as \"2006-01-02T15:04:05.000000Z07:00\": "
         "cannot parse \"\" as \"Z07:00\"",
         true},
        {"2026-11-15 06:00:00Z",
         "parsing time \"2026-11-15 06:00:00Z\" as \"2006-01-02T15:04:05Z07:00\": cannot parse "
         "\" 06:00:00Z\" as \"T\"",
         false},
        {"2026-13-15T06:00:00Z", "parsing time \"2026-13-15T06:00:00Z\": month out of range",
         false},
        {"2026-02-29T06:00:00Z", "parsing time \"2026-02-29T06:00:00Z\": day out of range", false},
        {"2026-01-01T24:00:00Z", "parsing time \"2026-01-01T24:00:00Z\": hour out of range", false},
        {"2026-01-01T00:00:00Zz", "parsing time \"2026-01-01T00:00:00Zz\": extra text: \"z\"",
         false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct error error = {0};
        enum status status = go_time_check(slice_from_text(cases[i].text), cases[i].micro, &error);
        assert_int_equal(status, cases[i].why ? ST_INVALID : ST_OK);
        if (cases[i].why)
            assert_string_equal(error.text, cases[i].why);
    }
}

static void quantities_are_read_as_go_reads_them(void **state)
{
    static const char *const good[] = {
        "0",    "1",   " 1 ", "+1", "-.5",  "1.",     "1Ki",
        "100m", "5e3", "5E3", "1E", "1e-3", "1e1000", "99999999999999999999E"};
    static const char *const wrong[] = {"", "bad!", "1.5.2", "1Q", "1 2", "true"};
    static const char *const suffix[] = {"1e", "--1", "1KiKi", "1mm", "1k5", "1e+", "e", "1i"};
    struct error error = {0};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_int_equal(go_quantity_check(slice_from_text(good[i]), &error), ST_OK);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_int_equal(go_quantity_check(slice_from_text(wrong[i]), &error), ST_INVALID);
        assert_non_null(strstr(error.text, "quantities must match the regular expression"));
    }
    for (size_t i = 0; i < COUNT_OF(suffix); i++) {
        assert_int_equal(go_quantity_check(slice_from_text(suffix[i]), &error), ST_INVALID);
        assert_string_equal(error.text, "unable to parse quantity's suffix");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_read_as_go_reads_them),
        cmocka_unit_test(quantities_are_read_as_go_reads_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
