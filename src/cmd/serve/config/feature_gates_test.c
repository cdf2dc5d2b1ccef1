#include "cmd/serve/config/feature_gates.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct feature_gate gates[FEATURE_GATES];

static bool enabled(const char *name)
{
    for (size_t i = 0; i < FEATURE_GATES; i++)
        if (strcmp(gates[i].name, name) == 0)
            return gates[i].enabled;
    fail_msg("no gate %s", name);
    return false;
}

static void gates_have_etcds_defaults_and_can_be_changed(void **state)
{
    (void)state;
    struct error error;
    assert_int_equal(feature_gates_read("", gates, &error), ST_OK);
    assert_true(enabled("FastLeaseKeepAlive"));
    assert_false(enabled("InitialCorruptCheck"));
    assert_int_equal(
        feature_gates_read("InitialCorruptCheck=true, FastLeaseKeepAlive = false,", gates, &error),
        ST_OK);
    assert_false(enabled("FastLeaseKeepAlive"));
    assert_true(enabled("InitialCorruptCheck"));
}

static void named_gates_override_all_gates_of_a_stage(void **state)
{
    (void)state;
    struct error error;
    assert_int_equal(feature_gates_read("LeaseCheckpoint=false,AllAlpha=true", gates, &error),
                     ST_OK);
    assert_true(enabled("PriorityRequest"));
    assert_false(enabled("LeaseCheckpoint"));
}

static void mistakes_are_named_as_etcd_names_them(void **state)
{
    (void)state;
    struct error error;
    assert_int_equal(feature_gates_read("Foo=true", gates, &error), ST_INVALID);
    assert_string_equal(error.text, "unrecognized feature gate: Foo");
    assert_int_equal(feature_gates_read("LeaseCheckpoint", gates, &error), ST_INVALID);
    assert_string_equal(error.text, "missing bool value for LeaseCheckpoint");
    assert_int_equal(feature_gates_read("LeaseCheckpoint=trueish", gates, &error), ST_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gates_have_etcds_defaults_and_can_be_changed),
        cmocka_unit_test(named_gates_override_all_gates_of_a_stage),
        cmocka_unit_test(mistakes_are_named_as_etcd_names_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
