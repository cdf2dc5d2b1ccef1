#include "cmd/serve/config/log_rotation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct log_rotation rotation;
static bool compress;
static struct error error;

static enum status read_config(const char *json)
{
    return log_rotation_read(json, "stderr,/var/log/v.log", &rotation, &compress, &error);
}

static void etcds_default_begins_a_file_at_100_mb(void **state)
{
    (void)state;
    assert_int_equal(read_config("{\"maxsize\": 100, \"maxage\": 0, \"maxbackups\": 0, "
                                 "\"localtime\": false, \"compress\": false}"),
                     ST_OK);
    assert_true(rotation.file_bytes_max == 100 << 20);
    assert_true(!rotation.backups_max && !rotation.age_days_max && !rotation.local_time);
    assert_int_equal(read_config("{}"), ST_OK);
    assert_true(rotation.file_bytes_max == 100 << 20);
}

static void every_key_is_read(void **state)
{
    (void)state;
    assert_int_equal(read_config("{\"MaxSize\":1,\"maxage\":2,\"maxbackups\":3,\"localtime\":true,"
                                 "\"compress\":true,\"other\":{\"a\":[1]}}"),
                     ST_OK);
    assert_true(rotation.file_bytes_max == 1 << 20);
    assert_int_equal(rotation.age_days_max, 2);
    assert_int_equal(rotation.backups_max, 3);
    assert_true(rotation.local_time && compress);
}

static void mistakes_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "{\"maxsize\":\"1\"}",
        "{\"maxsize\":1.5}",
        "{\"maxsize\":-1}",
        "{\"maxsize\":99999999999}",
        "{\"compress\":1}",
        "{} x",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_int_equal(read_config(bad[i]), ST_INVALID);
        assert_non_null(strstr(error.text, "log rotation config"));
    }
}

static void there_must_be_one_file(void **state)
{
    (void)state;
    assert_int_equal(log_rotation_read("{}", "default", &rotation, &compress, &error), ST_INVALID);
    assert_int_equal(log_rotation_read("{}", "/a,/b", &rotation, &compress, &error), ST_INVALID);
    assert_non_null(strstr(error.text, "requires a single file path"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(etcds_default_begins_a_file_at_100_mb),
        cmocka_unit_test(every_key_is_read),
        cmocka_unit_test(mistakes_are_refused),
        cmocka_unit_test(there_must_be_one_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
