#include "cmd/ctl/suggest.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* The names, separated by spaces. */
static void check(const char *word, enum ctl_style style, const char *expected)
{
    struct slice names[CTL_SUGGESTIONS_MAX];
    char text[512] = "";
    size_t count = ctl_suggest(word, style, names);
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(text);
        snprintf(text + len, sizeof(text) - len, "%s%.*s", i ? " " : "", SLICE_ARGS(names[i]));
    }
    assert_string_equal(text, expected);
}

static void two_changes_or_a_beginning_suffice(void **state)
{
    (void)state;
    assert_true(ctl_resembles("gte", SLICE_LITERAL("get")));
    assert_true(ctl_resembles("GET", SLICE_LITERAL("get")));
    assert_true(ctl_resembles("snap", SLICE_LITERAL("snapshot")));
    assert_false(ctl_resembles("snapx", SLICE_LITERAL("snapshot")));
    assert_false(ctl_resembles("delete", SLICE_LITERAL("del")));
}

static void names_are_in_the_order_of_etcdctl(void **state)
{
    (void)state;
    check("set", CTL_ETCDCTL_3_7, "get put del user");
    check("e", CTL_ETCDCTL_3_7, "get del endpoint elect");
    check("xyzzy", CTL_ETCDCTL_3_7, "");
    check("optoins", CTL_ETCDCTL_3_7, "options");
    check("optoins", CTL_ETCDCTL_3_4, "");
    check("downgrad", CTL_ETCDCTL_3_4, "");
}

static void words_of_other_programs_are_understood(void **state)
{
    (void)state;
    check("ls", CTL_VIGIL, "tree get --prefix --keys-only");
    check("ls", CTL_ETCDCTL_3_7, "");
    check("LS", CTL_VIGIL, "tree get --prefix --keys-only");
    check("status", CTL_ETCDCTL_3_7, "");
}

static void families_are_named_once(void **state)
{
    (void)state;
    check("leas", CTL_VIGIL, "lease");
    check("leas", CTL_ETCDCTL_3_7, "lease");
    check("dif", CTL_VIGIL, "del diff");
    check("dif", CTL_ETCDCTL_3_7, "del");
}

static void long_word_resembles_nothing(void **state)
{
    (void)state;
    char word[4096];
    memset(word, 'g', sizeof(word) - 1);
    word[sizeof(word) - 1] = 0;
    check(word, CTL_VIGIL, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_changes_or_a_beginning_suffice),
        cmocka_unit_test(names_are_in_the_order_of_etcdctl),
        cmocka_unit_test(words_of_other_programs_are_understood),
        cmocka_unit_test(families_are_named_once),
        cmocka_unit_test(long_word_resembles_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
