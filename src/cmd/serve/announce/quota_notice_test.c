#include "cmd/serve/announce/quota_notice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void assert_text(uint64_t bytes, const char *expected)
{
    char text[BYTES_TEXT_BYTES];
    bytes_format(bytes, text);
    assert_string_equal(text, expected);
}

static void sizes_are_written_as_etcd_writes_them(void **state)
{
    (void)state;
    assert_text(0, "0 B");
    assert_text(9, "9 B");
    assert_text(53248, "53 kB");
    assert_text(1500, "1.5 kB");
    assert_text(UINT64_C(2) << 30, "2.1 GB");
    assert_text(UINT64_C(8) << 30, "8.6 GB");
    assert_text(UINT64_C(16) << 30, "17 GB");
    assert_text(UINT64_MAX, "18 EB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_written_as_etcd_writes_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
