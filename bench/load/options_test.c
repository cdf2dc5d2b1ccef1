#include "load/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static enum status read_one(const char *flag, const char *value, struct bench_options *options,
                            struct error *error)
{
    char a[64], b[64];
    snprintf(a, sizeof(a), "%s", flag);
    snprintf(b, sizeof(b), "%s", value ? value : "");
    char *argv[] = {a, b};
    return bench_options_read(value ? 2 : 1, argv, options, error);
}

static void flags_are_read_in_both_forms(void **state)
{
    (void)state;
    struct bench_options options = {.pipeline = 7};
    struct error error;
    assert_int_equal(read_one("--connections", "12", &options, &error), ST_OK);
    assert_int_equal(read_one("--value-size=300", NULL, &options, &error), ST_OK);
    assert_int_equal(read_one("--json", NULL, &options, &error), ST_OK);
    assert_int_equal(read_one("--duration", "1.5s", &options, &error), ST_OK);
    assert_int_equal(read_one("--warmup", "250ms", &options, &error), ST_OK);
    assert_int_equal(options.connections, 12);
    assert_int_equal(options.value_bytes, 300);
    assert_true(options.json);
    assert_int_equal(options.duration_ns, 1500000000);
    assert_int_equal(options.warmup_ns, 250000000);
    assert_int_equal(options.pipeline, 7);
}

static void flags_of_watches_are_read(void **state)
{
    (void)state;
    struct bench_options options = {.streams = 1};
    struct error error;
    assert_int_equal(read_one("--streams", "0", &options, &error), ST_OK);
    assert_int_equal(read_one("--watchers", "1000000", &options, &error), ST_OK);
    assert_int_equal(read_one("--from", "9223372036854775807", &options, &error), ST_OK);
    assert_int_equal(read_one("--again", NULL, &options, &error), ST_OK);
    assert_int_equal(read_one("--await-events", NULL, &options, &error), ST_OK);
    assert_int_equal(options.streams, 0);
    assert_int_equal(options.watchers, 1000000);
    assert_int_equal(options.from, INT64_MAX);
    assert_true(options.again && options.await_events);

    char flag[] = "--watch-keys=own";
    char *argv[] = {flag};
    assert_int_equal(bench_options_read(1, argv, &options, &error), ST_OK);
    assert_int_equal(options.watch_keys, 2);
}

static void invalid_options_are_refused_by_name(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"put", NULL},
        {"--nothing", "1"},
        {"--connections", "0"},
        {"--connections", "1000000"},
        {"--connections", "-1"},
        {"--connections", "12x"},
        {"--watchers", "0"},
        {"--from", "9223372036854775808"},
        {"--connections", NULL},
        {"--value-size", "70000"},
        {"--duration", "5"},
        {"--duration", "5h"},
        {"--duration", "-1s"},
        {"--duration", "nans"},
        {"--duration", "100000m"},
        {"--total", "99999999999999999999999"},
        {"--json=yes", NULL},
        {"--keys", "sorted"},
        {"--keys", ""},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct bench_options options = {0};
        struct error error = {0};
        assert_int_equal(read_one(bad[i][0], bad[i][1], &options, &error), ST_INVALID);
        assert_true(strlen(error.text) > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_are_read_in_both_forms),
        cmocka_unit_test(flags_of_watches_are_read),
        cmocka_unit_test(invalid_options_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
