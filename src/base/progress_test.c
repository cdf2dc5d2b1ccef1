#include "base/progress.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TEN_SECONDS (10 * NS_PER_S)

static void line_is(const struct progress *progress, uint64_t done, uint64_t all, size_t columns,
                    const char *expected)
{
    char text[PROGRESS_TEXT_BYTES];
    size_t len = progress_text(progress, done, all, TEN_SECONDS, columns, text);
    assert_string_equal(text, expected);
    assert_int_equal(len, strlen(expected));
}

static void bar_has_rate_and_remaining_time(void **state)
{
    (void)state;
    struct progress bytes = {.what = "snapshot"};
    line_is(&bytes, 50000000, 200000000, 80,
            "snapshot         [#######.......................]  25 %  5.0 MB/s, 30 s left");
    struct progress keys = {.what = "load", .unit = "keys"};
    line_is(&keys, 1000, 1000, 80,
            "load             [##############################] 100 %  100/s, 0 s left");
}

static void amount_stands_alone_when_the_whole_is_unknown(void **state)
{
    (void)state;
    struct progress keys = {.what = "mirror", .unit = "keys"};
    line_is(&keys, 128000, 0, 80, "mirror           128000 keys  12800/s");
    struct progress bytes = {.what = "mirror"};
    line_is(&bytes, 0, 0, 80, "mirror           0 B");
}

static void time_has_no_rate(void **state)
{
    (void)state;
    struct progress seconds = {.what = "check perf", .unit = ""};
    line_is(&seconds, 10, 60, 80,
            "check perf       [#####.........................]  17 %  50 s left");
}

static void what_was_done_before_does_not_count_for_the_rate(void **state)
{
    (void)state;
    struct progress keys = {.what = "keys", .unit = "keys", .begun_at = 500};
    line_is(&keys, 600, 1000, 80,
            "keys             [##################............]  60 %  10/s, 40 s left");
}

static void line_fits_into_the_terminal(void **state)
{
    (void)state;
    struct progress bytes = {.what = "snapshot"};
    line_is(&bytes, 50, 100, 20, "snapshot         [#");
}

static void more_than_the_whole_is_full(void **state)
{
    (void)state;
    struct progress keys = {.what = "x", .unit = "keys"};
    line_is(&keys, 300, 200, 80,
            "x                [##############################] 100 %  30/s, 0 s left");
}

static void nothing_is_written_where_there_is_no_terminal(void **state)
{
    (void)state;
    FILE *to = tmpfile();
    struct progress progress;
    progress_init(&progress, to, "snapshot", NULL);
    progress_show(&progress, 1, 2);
    progress_end(&progress);
    assert_int_equal(ftell(to), 0);
    fclose(to);
}

static void sizes_are_those_of_etcdctl(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } rows[] = {{0, "0 B"},         {9, "9 B"},          {10, "10 B"},
                {999, "999 B"},     {1000, "1.0 kB"},    {20480, "20 kB"},
                {9950000, "10 MB"}, {9940000, "9.9 MB"}, {2147483648, "2.1 GB"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[32];
        progress_bytes_text(rows[i].bytes, text);
        assert_string_equal(text, rows[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bar_has_rate_and_remaining_time),
        cmocka_unit_test(amount_stands_alone_when_the_whole_is_unknown),
        cmocka_unit_test(time_has_no_rate),
        cmocka_unit_test(what_was_done_before_does_not_count_for_the_rate),
        cmocka_unit_test(line_fits_into_the_terminal),
        cmocka_unit_test(more_than_the_whole_is_full),
        cmocka_unit_test(nothing_is_written_where_there_is_no_terminal),
        cmocka_unit_test(sizes_are_those_of_etcdctl),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
