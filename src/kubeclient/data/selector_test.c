#include "base/macros.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <vigil/kube/selector.h>

static void conditions_are_joined(void **state)
{
    (void)state;
    static const char *const tiers[] = {"a", "b", ""};
    vigil_selector *s = vigil_selector_new();
    assert_string_equal(vigil_selector_text(s), "");
    vigil_selector_equals(s, "app.kubernetes.io/name", "web");
    vigil_selector_not_equals(s, "env", "prod");
    vigil_selector_in(s, "tier", tiers, 3);
    vigil_selector_not_in(s, "x", tiers, 1);
    vigil_selector_exists(s, "owner");
    vigil_selector_absent(s, "old");
    assert_string_equal(vigil_selector_text(s), "app.kubernetes.io/name=web,env!=prod,"
                                                "tier in (a,b,),x notin (a),owner,!old");
    assert_string_equal(vigil_selector_error(s), "");
    vigil_selector_free(s);
}

static void values_of_fields_are_escaped(void **state)
{
    (void)state;
    vigil_selector *s = vigil_field_selector_new();
    vigil_selector_equals(s, "metadata.name", "a,b=c\\d");
    vigil_selector_not_equals(s, "status.phase", "Running");
    assert_string_equal(vigil_selector_text(s),
                        "metadata.name=a\\,b\\=c\\\\d,status.phase!=Running");
    vigil_selector_exists(s, "metadata.name");
    assert_null(vigil_selector_text(s));
    assert_string_equal(vigil_selector_error(s),
                        "a field can only be compared with equals and not_equals");
    vigil_selector_free(s);
}

/* One byte more than a value may have. */
#define LONG "0123456789012345678901234567890123456789012345678901234567890123"

/* Otherwise a value could add a condition of its own. */
static void invalid_labels_make_the_selector_invalid(void **state)
{
    (void)state;
    static const char *const values[] = {"a,b", "a=b", "a b", "-a", "a.", "(a)", LONG};
    static const char *const keys[] = {"",      "a b", "/a",     "a/",   "A.example/a",
                                       "a/b/c", "ä",   "a..b/c", "-a/b", "!a"};
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        vigil_selector *s = vigil_selector_new();
        vigil_selector_equals(s, "k", values[i]);
        vigil_selector_equals(s, "later", "fine");
        assert_null(vigil_selector_text(s));
        assert_true(strlen(vigil_selector_error(s)) > 0);
        vigil_selector_free(s);
    }
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        vigil_selector *s = vigil_selector_new();
        vigil_selector_exists(s, keys[i]);
        assert_null(vigil_selector_text(s));
        vigil_selector_free(s);
    }
    vigil_selector *s = vigil_selector_new();
    vigil_selector_in(s, "k", NULL, 0);
    assert_string_equal(vigil_selector_error(s), "a set of values for \"k\" is empty");
    vigil_selector_free(s);
}

/* A variable that is not set must not select what has an empty value. */
static void missing_keys_and_values_make_the_selector_invalid(void **state)
{
    (void)state;
    static const char *const values[] = {"a", NULL};
    for (int i = 0; i < 6; i++) {
        vigil_selector *s = i < 5 ? vigil_selector_new() : vigil_field_selector_new();
        if (i == 0 || i == 5)
            vigil_selector_equals(s, "app", NULL);
        else if (i == 1)
            vigil_selector_not_equals(s, NULL, "a");
        else if (i == 2)
            vigil_selector_in(s, "app", values, 2);
        else if (i == 3)
            vigil_selector_exists(s, NULL);
        else
            vigil_selector_absent(s, NULL);
        assert_null(vigil_selector_text(s));
        assert_non_null(strstr(vigil_selector_error(s), "a condition has no"));
        vigil_selector_free(s);
    }
}

static void missing_selector_is_an_error(void **state)
{
    (void)state;
    vigil_selector_equals(NULL, "a", "b");
    vigil_selector_exists(NULL, "a");
    assert_null(vigil_selector_text(NULL));
    assert_string_equal(vigil_selector_error(NULL), "out of memory");
    vigil_selector_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conditions_are_joined),
        cmocka_unit_test(values_of_fields_are_escaped),
        cmocka_unit_test(invalid_labels_make_the_selector_invalid),
        cmocka_unit_test(missing_keys_and_values_make_the_selector_invalid),
        cmocka_unit_test(missing_selector_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
