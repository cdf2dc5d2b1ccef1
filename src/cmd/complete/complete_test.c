/* What can be completed without a server; tests/live/completion_test.py has the rest. */
#include "cmd/complete/complete.h"

#include "cmd/completion_script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct option serve_rows[] = {
    {.name = "log-level",
     .kind = OPTION_ENUM,
     .fallback = "info",
     .help = "Which. More.",
     .choices = "debug|info",
     .offset = OPTION_NOWHERE},
    {.name = "data-dir",
     .kind = OPTION_TEXT,
     .fallback = "",
     .help = "Where",
     .offset = OPTION_NOWHERE},
    {.name = "upstream-kubeconfig",
     .kind = OPTION_TEXT,
     .fallback = "",
     .help = "Which",
     .offset = OPTION_NOWHERE},
    {.name = "hidden", .kind = OPTION_BOOL, .fallback = "false", .offset = OPTION_NOWHERE},
};
static const struct option_group serve_group = {"All", serve_rows, COUNT_OF(serve_rows)};
static const struct option_group *const serve_groups[] = {&serve_group};
static const struct options_table serve = {
    .program = "vigil serve", .groups = serve_groups, .group_count = 1};
static const struct complete_command other_rows[] = {
    {"serve", "Serves", &serve, NULL},
    {"import", "Imports", NULL, "FILE"},
    {"snapshot", "Restores", NULL, "restore|status"},
    {"help", "Shows this", NULL, NULL},
};
static struct complete_commands others = {other_rows, COUNT_OF(other_rows), CTL_VIGIL};

/* The words are separated by "|". */
static void check(const char *line, const char *expected)
{
    char words[256], *args[16], *text = NULL, *rest = words;
    size_t len = 0;
    int count = 0;
    snprintf(words, sizeof(words), "%s", line);
    while (rest)
        args[count++] = strsep(&rest, "|");
    FILE *to = open_memstream(&text, &len);
    complete_write(&others, count, args, to);
    fclose(to);
    assert_string_equal(text, expected);
    free(text);
}

static void commands_and_their_families(void **state)
{
    (void)state;
    check("serv", "serve\tServes\n:\n");
    check("pu", "put\tPuts the given key into the store\n:\n");
    check("leas", "lease\n:\n");
    check("lease|gr", "grant\tCreates a lease that lasts this many seconds\n:\n");
    check("--hex|lease|gr", "grant\tCreates a lease that lasts this many seconds\n:\n");
    check("--endpoints|a|lease|gr", "grant\tCreates a lease that lasts this many seconds\n:\n");
    check("snapshot|re", "restore\n:\n");
    check("snapshot|sa", "save\tWrites the whole store of one server into a file\n:\n");
    check("help|serv", "serve\tServes\n:\n");
    check("help|lease|gr", "grant\tCreates a lease that lasts this many seconds\n:\n");
    check("nothing|", ":\n");
    check("nothing", ":\n");
}

static void flags_with_the_first_sentence_of_their_help(void **state)
{
    (void)state;
    check("serve|--lo", "--log-level\tWhich\n:\n");
    check("serve|--hi", ":\n");
    check("serve|--hel", "--help\tShows the flags\n:\n");
    check("get|--keys", "--keys-only\tWithout values\n:\n");
    check("--pro",
          "--profile\tEndpoints, certificates and user of this name in the file of profiles\n"
          ":\n");
    check("get|--|--keys", ":\n");
}

static void values_of_flags(void **state)
{
    (void)state;
    check("serve|--log-level|", "debug\ninfo\n:\n");
    check("serve|--log-level=d", "--log-level=debug\n:\n");
    check("serve|--data-dir|", ":f\n");
    check("serve|--data-dir=/t", ":f\n");
    check("serve|--upstream-kubeconfig|", ":f\n");
    check("get|-w|js", "json\njsonl\n:\n");
    check("get|--write-out=js", "--write-out=json\n--write-out=jsonl\n:\n");
    check("get|--cacert|", ":f\n");
    check("get|--limit|", ":\n");
    check("get|--prefix=f", "--prefix=false\n:\n");
    check("get|--unknown|", ":\n");
}

static void words_by_their_place(void **state)
{
    (void)state;
    check("import|", ":f\n");
    check("snapshot|save|", ":f\n");
    check("snapshot|restore|", ":f\n");
    check("role|grant-permission|r|re", "read\nreadwrite\n:\n");
    check("role|grant-permission|--prefix|r|re", "read\nreadwrite\n:\n");
    check("put|k|", ":\n");
}

/* No server listens there, and a user without a password would be asked for one. */
static void without_a_server_there_is_silence(void **state)
{
    (void)state;
    check("--endpoints|127.0.0.1:1|get|", ":\n");
    check("--endpoints|not an address|get|", ":\n");
    check("--user|root|get|", ":\n");
    check("get|--no-such-flag|", ":\n");
    check("--cacert|/none|get|", ":\n");
}

static void etcdctl_has_its_own_commands_and_flags(void **state)
{
    (void)state;
    others.style = CTL_ETCDCTL_3_7;
    check("tre", ":\n");
    check("mov", "move-leader\tHands the leadership of the cluster over to another member\n:\n");
    check("--prof", ":\n");
    check("-w|json", "json\n:\n");
    check("get|--str", "--stream\tReceive the answer in parts, for very many keys\n:\n");
    others.style = CTL_ETCDCTL_3_4;
    check("get|--str", ":\n");
    others.style = CTL_VIGIL;
    check("-w|json", "json\njsonl\n:\n");
}

static void scripts_for_three_shells(void **state)
{
    (void)state;
    static const char *const shells[] = {"bash", "zsh", "fish"};
    for (size_t i = 0; i < COUNT_OF(shells); i++) {
        char *text = NULL;
        size_t len = 0;
        FILE *to = open_memstream(&text, &len);
        assert_true(completion_script_write(shells[i], "vigil", to));
        fclose(to);
        assert_non_null(strstr(text, "__complete"));
        free(text);
        to = open_memstream(&text, &len);
        assert_true(completion_script_write(shells[i], "etcdctl", to));
        fclose(to);
        assert_null(strstr(text, "vigil"));
        assert_non_null(strstr(text, "etcdctl"));
        free(text);
    }
    assert_false(completion_script_write("tcsh", "vigil", stdout));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_and_their_families),
        cmocka_unit_test(flags_with_the_first_sentence_of_their_help),
        cmocka_unit_test(values_of_flags),
        cmocka_unit_test(words_by_their_place),
        cmocka_unit_test(without_a_server_there_is_silence),
        cmocka_unit_test(etcdctl_has_its_own_commands_and_flags),
        cmocka_unit_test(scripts_for_three_shells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
