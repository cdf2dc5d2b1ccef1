#include "cmd/ctl/find.h"

#include "cmd/ctl/help.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { ARGS_MAX = 16 };

static struct ctl_found find(const char *line, enum ctl_style style)
{
    static char copy[256];
    char *args[ARGS_MAX];
    int count = 0;
    snprintf(copy, sizeof(copy), "%s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        args[count++] = word;
    return ctl_find(count, args, style);
}

static const char *path_of(const char *line, enum ctl_style style)
{
    const struct ctl_command *command = find(line, style).command;
    return command ? command->path : "";
}

static void flags_and_their_values_are_not_commands(void **state)
{
    (void)state;
    assert_string_equal(path_of("get a", CTL_VIGIL), "get");
    assert_string_equal(path_of("--endpoints put get a", CTL_VIGIL), "get");
    assert_string_equal(path_of("--endpoints=put get a", CTL_VIGIL), "get");
    assert_string_equal(path_of("-w json --hex get a", CTL_VIGIL), "get");
    assert_string_equal(path_of("lease --hex grant 5", CTL_VIGIL), "lease grant");
    assert_string_equal(path_of("-- get a", CTL_VIGIL), "");
    assert_string_equal(path_of("", CTL_VIGIL), "");
}

static void places_of_the_name_are_known(void **state)
{
    (void)state;
    struct ctl_found found = find("--hex lease -w json grant 5", CTL_VIGIL);
    assert_int_equal(found.name_at[0], 1);
    assert_int_equal(found.name_at[1], 4);
    found = find("get put", CTL_VIGIL);
    assert_int_equal(found.name_at[0], 0);
    assert_int_equal(found.name_at[1], -1);
}

static void beginning_of_a_name_is_enough_for_etcdctl_if_it_is_unique(void **state)
{
    (void)state;
    assert_string_equal(path_of("ge a", CTL_ETCDCTL_3_7), "get");
    assert_string_equal(path_of("lea gr 5", CTL_ETCDCTL_3_7), "lease grant");
    assert_string_equal(path_of("l x", CTL_ETCDCTL_3_7), ""); /* lease, lock */
    assert_string_equal(path_of("ge a", CTL_VIGIL), "");
}

static void commands_of_vigil_are_unknown_to_etcdctl(void **state)
{
    (void)state;
    assert_string_equal(path_of("tree", CTL_VIGIL), "tree");
    assert_string_equal(path_of("tree", CTL_ETCDCTL_3_7), "");
    assert_string_equal(path_of("downgrade cancel", CTL_ETCDCTL_3_7), "downgrade cancel");
    assert_string_equal(path_of("downgrade cancel", CTL_ETCDCTL_3_4), "");
    assert_string_equal(path_of("version", CTL_ETCDCTL_3_7), "version");
    assert_string_equal(path_of("version", CTL_VIGIL), "");
}

static void family_alone_is_known(void **state)
{
    (void)state;
    assert_string_equal(find("lease", CTL_VIGIL).family, "lease");
    assert_null(find("lease bogus", CTL_VIGIL).command);
    char *alone[] = {"lease"}, *both[] = {"snapshot", "save"}, *none[] = {"serve"};
    assert_int_equal(ctl_has(1, alone), 1);
    assert_int_equal(ctl_has(2, both), 2);
    assert_int_equal(ctl_has(1, none), 0);
}

/* Help and manual pages are made from the rows. */
static void every_command_is_complete(void **state)
{
    (void)state;
    const struct ctl_command *command;
    for (size_t i = 0; (command = ctl_command_at(i)); i++) {
        assert_non_null(command->run);
        assert_non_null(command->words);
        assert_true(command->summary && command->summary[strlen(command->summary) - 1] != '.');
        assert_int_equal(!command->flags, !command->flag_count);
        assert_true(!command->flag_count || command->flags_bytes);
        for (size_t f = 0; f < command->flag_count; f++)
            assert_true(command->flags[f].help || command->flags[f].ignored ||
                        command->flags[f].alias_of);
    }
}

static void pages_are_named_once(void **state)
{
    (void)state;
    char name[64], before[64] = "";
    size_t count = 0;
    for (; ctl_man_page(count, name, sizeof(name)), *name; count++) {
        assert_string_not_equal(name, before);
        assert_null(strchr(name, ' '));
        snprintf(before, sizeof(before), "%s", name);
    }
    assert_true(count > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_and_their_values_are_not_commands),
        cmocka_unit_test(places_of_the_name_are_known),
        cmocka_unit_test(beginning_of_a_name_is_enough_for_etcdctl_if_it_is_unique),
        cmocka_unit_test(commands_of_vigil_are_unknown_to_etcdctl),
        cmocka_unit_test(family_alone_is_known),
        cmocka_unit_test(every_command_is_complete),
        cmocka_unit_test(pages_are_named_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
