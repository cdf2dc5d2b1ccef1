#include "etcd/service/downgrade.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static enum status check(const char *wanted)
{
    char target[DOWNGRADE_TARGET_BYTES] = "";
    enum status status = downgrade_check(slice_from_text(wanted), "3.7.0", target);
    assert_string_equal(target, status == ST_OK ? "3.6.0" : "");
    return status;
}

static void only_the_minor_version_before_is_allowed(void **state)
{
    (void)state;
    static const char *const good[] = {"3.6",       "3.6.0",       "3.6.9",  "3.06",
                                       "3.6.0-rc",  "3.6.1+build", "3.6.0-", "3.6.0-rc.1+b-2",
                                       "03.6.0000", "3.6.0+b-c.d", "3.6.0+"};
    static const char *const other[] = {"3.7", "3.5", "3.8.0", "4.6", "2.6.0", "3.0", "0.0.0"};
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_int_equal(check(good[i]), ST_OK);
    for (size_t i = 0; i < COUNT_OF(other); i++)
        assert_int_equal(check(other[i]), ST_INVALID_DOWNGRADE_TARGET_VERSION);
}

static void invalid_versions_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "x",
                                      "4",
                                      "v3.6",
                                      "3.",
                                      ".6",
                                      "3.6.",
                                      "3.6.0.0",
                                      "3.6-rc",
                                      "3.6.0-r_c",
                                      "3.6.0+*",
                                      "3..0",
                                      " 3.6",
                                      "3.6 ",
                                      "-3.6.0",
                                      "3.6.x",
                                      "3.99999999999999999999.0",
                                      "+3.6.0",
                                      "3.6+b"};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_int_equal(check(bad[i]), ST_WRONG_DOWNGRADE_VERSION_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_minor_version_before_is_allowed),
        cmocka_unit_test(invalid_versions_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
