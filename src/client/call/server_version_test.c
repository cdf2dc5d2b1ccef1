#include "client/call/server_version.h"

#include "base/macros.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void only_newer_servers_have_progress(void **state)
{
    (void)state;
    static const char *const with[] = {"3.4.31",     "3.5.13", "3.5.21", "3.6.0",
                                       "3.7.0-rc.0", "3.10.1", "4.0.0"};
    static const char *const without[] = {"3.4.30", "3.4.0", "3.5.0", "3.5.12", "3.3.99",
                                          "2.9.9",  "",      "3",     "3.6",    "x.y.z"};
    for (size_t i = 0; i < COUNT_OF(with); i++)
        assert_true(server_version_has_progress(slice_from_text(with[i])));
    for (size_t i = 0; i < COUNT_OF(without); i++)
        assert_false(server_version_has_progress(slice_from_text(without[i])));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_newer_servers_have_progress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
