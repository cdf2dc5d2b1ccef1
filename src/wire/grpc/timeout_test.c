#include "wire/grpc/timeout.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct row {
    const char *text;
    enum grpc_timeout_fault fault;
    int64_t ns;
};

static void timeouts_are_parsed_as_in_grpc_go(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"1n", GRPC_TIMEOUT_FINE, 1},
        {"1u", GRPC_TIMEOUT_FINE, 1000},
        {"300m", GRPC_TIMEOUT_FINE, 300000000},
        {"5S", GRPC_TIMEOUT_FINE, 5000000000},
        {"2M", GRPC_TIMEOUT_FINE, 120000000000},
        {"0H", GRPC_TIMEOUT_FINE, 0},
        {"99999999H", GRPC_TIMEOUT_FINE, INT64_MAX},
        {"", GRPC_TIMEOUT_SHORT, 0},
        {"S", GRPC_TIMEOUT_SHORT, 0},
        {"123456789S", GRPC_TIMEOUT_LONG, 0},
        {"5s", GRPC_TIMEOUT_UNIT, 0},
        {"-5S", GRPC_TIMEOUT_DIGITS, 0},
        {"5 S", GRPC_TIMEOUT_DIGITS, 0},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        int64_t ns = -1;
        assert_int_equal(grpc_timeout_parse(slice_from_text(rows[i].text), &ns), rows[i].fault);
        if (rows[i].fault == GRPC_TIMEOUT_FINE)
            assert_int_equal(ns, rows[i].ns);
    }
}

/* At most eight digits, never shorter than what is left, and by less than one unit longer. */
static void timeouts_are_written_so_that_a_server_reads_them(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"0n", GRPC_TIMEOUT_FINE, 0},
        {"0n", GRPC_TIMEOUT_FINE, -5},
        {"1n", GRPC_TIMEOUT_FINE, 1},
        {"99999999n", GRPC_TIMEOUT_FINE, 99999999},
        {"100000u", GRPC_TIMEOUT_FINE, 100000000},
        {"100001u", GRPC_TIMEOUT_FINE, 100000001},
        {"5000000u", GRPC_TIMEOUT_FINE, 5000000000},
        {"100000m", GRPC_TIMEOUT_FINE, 100000000000},
        {"99999999m", GRPC_TIMEOUT_FINE, 99999999000000},
        {"100000S", GRPC_TIMEOUT_FINE, 100000000000000},
        {"2562048H", GRPC_TIMEOUT_FINE, INT64_MAX},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        uint8_t text[GRPC_TIMEOUT_BYTES];
        struct slice written = slice_of(text, grpc_timeout_write(rows[i].ns, text));
        int64_t ns = -1;
        assert_true(slice_equal(written, slice_from_text(rows[i].text)));
        assert_int_equal(grpc_timeout_parse(written, &ns), GRPC_TIMEOUT_FINE);
        assert_true(ns >= rows[i].ns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timeouts_are_written_so_that_a_server_reads_them),
        cmocka_unit_test(timeouts_are_parsed_as_in_grpc_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
