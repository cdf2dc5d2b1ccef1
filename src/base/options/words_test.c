#include "base/options/words.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct config {
    bool all, listen;
    int64_t limit;
    const char *format, *list;
};

#define OFFSET(field) offsetof(struct config, field)

static const struct option rows[] = {
    {.name = "all", .letter = 'a', .kind = OPTION_BOOL, .fallback = "false", .offset = OFFSET(all)},
    {.name = "listen",
     .letter = 'l',
     .kind = OPTION_BOOL,
     .fallback = "false",
     .offset = OFFSET(listen)},
    {.name = "limit", .kind = OPTION_INT, .fallback = "0", .offset = OFFSET(limit)},
    {.name = "write-out",
     .letter = 'w',
     .kind = OPTION_TEXT,
     .fallback = "simple",
     .offset = OFFSET(format)},
    {.name = "list", .kind = OPTION_LIST, .fallback = "", .repeats = true, .offset = OFFSET(list)},
};
static const struct option_group group = {"Flags", rows, COUNT_OF(rows)};
static const struct option_group *const groups[] = {&group};
static const struct options_table table = {
    .program = "p", .summary = "s", .groups = groups, .group_count = 1};

enum { ARGS_MAX = 16 };

struct run {
    struct config config;
    struct options options;
    const char *memory[ARGS_MAX];
    struct option_words words;
    struct error error;
};

/* Arguments are separated by spaces; "_" is an empty one. */
static enum status parse(struct run *run, const char *line)
{
    static char copy[256];
    char *args[ARGS_MAX];
    int count = 0;
    snprintf(copy, sizeof(copy), "%s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        args[count++] = strcmp(word, "_") == 0 ? "" : word;
    memset(run, 0, sizeof(*run));
    run->words.words = run->memory;
    options_init(&run->options, &table, &run->config);
    return options_parse_words(&run->options, count, args, &run->words, &run->error);
}

static void flags_stand_anywhere(void **state)
{
    (void)state;
    struct run run;
    assert_int_equal(parse(&run, "get --limit 5 key -w json end --all"), ST_OK);
    assert_int_equal(run.words.count, 3);
    assert_string_equal(run.memory[0], "get");
    assert_string_equal(run.memory[2], "end");
    assert_int_equal(run.words.dash, SIZE_MAX);
    assert_int_equal(run.config.limit, 5);
    assert_string_equal(run.config.format, "json");
    assert_true(run.config.all);
}

static void letters_have_values_in_three_forms(void **state)
{
    (void)state;
    struct run run;
    static const char *const lines[] = {"-w json", "-wjson", "-w=json", "-aw json", "-alwjson"};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        assert_int_equal(parse(&run, lines[i]), ST_OK);
        assert_string_equal(run.config.format, "json");
        assert_int_equal(run.config.all, i >= 3);
        assert_int_equal(run.words.count, 0);
    }
}

static void everything_after_two_dashes_is_a_word(void **state)
{
    (void)state;
    struct run run;
    assert_int_equal(parse(&run, "key -- -5 --all -- x"), ST_OK);
    assert_int_equal(run.words.count, 5);
    assert_int_equal(run.words.dash, 1);
    assert_string_equal(run.memory[1], "-5");
    assert_string_equal(run.memory[3], "--");
    assert_false(run.config.all);
    assert_int_equal(parse(&run, "- _"), ST_OK);
    assert_int_equal(run.words.count, 2);
    assert_string_equal(run.memory[0], "-");
}

static void values_may_be_negative_empty_or_repeated(void **state)
{
    (void)state;
    struct run run;
    assert_int_equal(parse(&run, "--limit -5"), ST_OK);
    assert_int_equal(run.config.limit, -5);
    assert_int_equal(parse(&run, "--write-out _"), ST_OK);
    assert_string_equal(run.config.format, "");
    assert_int_equal(parse(&run, "--write-out="), ST_OK);
    assert_string_equal(run.config.format, "");
    assert_int_equal(parse(&run, "--list a --list=b,c --list d"), ST_OK);
    assert_string_equal(run.config.list, "a,b,c,d");
    assert_int_equal(parse(&run, "--all=false"), ST_OK);
    assert_false(run.config.all);
}

static void errors_are_those_of_pflag(void **state)
{
    (void)state;
    static const struct {
        const char *line, *text;
    } cases[] = {
        {"--bogus", "unknown flag: --bogus"},
        {"--bogus=1", "unknown flag: --bogus"},
        {"-z", "unknown shorthand flag: 'z' in -z"},
        {"-azb", "unknown shorthand flag: 'z' in -zb"},
        {"--limit", "flag needs an argument: --limit"},
        {"-w", "flag needs an argument: 'w' in -w"},
        {"--=x", "bad flag syntax: --=x"},
        {"---x", "bad flag syntax: ---x"},
        {"--limit x",
         "invalid argument \"x\" for \"--limit\" flag: strconv.ParseInt: parsing \"x\": "
         "invalid syntax"},
        {"--limit 99999999999999999999", "invalid argument \"99999999999999999999\" for "
                                         "\"--limit\" flag: strconv.ParseInt: parsing "
                                         "\"99999999999999999999\": value out of range"},
        {"--all=maybe", "invalid argument \"maybe\" for \"-a, --all\" flag: strconv.ParseBool: "
                        "parsing \"maybe\": invalid syntax"},
    };
    struct run run;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(parse(&run, cases[i].line), ST_INVALID);
        assert_string_equal(run.error.text, cases[i].text);
    }
}

static void help_comes_after_all_flags_were_read(void **state)
{
    (void)state;
    struct run run;
    assert_int_equal(parse(&run, "--help x"), ST_END);
    assert_int_equal(parse(&run, "-h"), ST_END);
    assert_int_equal(parse(&run, "--help --bogus"), ST_INVALID);
}

static void flag_before_a_command_may_have_a_value(void **state)
{
    (void)state;
    assert_true(options_flag_takes_next(&table, "--limit"));
    assert_true(options_flag_takes_next(&table, "-w"));
    assert_true(options_flag_takes_next(&table, "--bogus"));
    assert_false(options_flag_takes_next(&table, "--limit=5"));
    assert_false(options_flag_takes_next(&table, "-wjson"));
    assert_false(options_flag_takes_next(&table, "--all"));
    assert_false(options_flag_takes_next(&table, "-a"));
    assert_false(options_flag_takes_next(&table, "--help"));
    assert_false(options_flag_takes_next(&table, "word"));
}

static void prefixes_of_variables_are_the_tables(void **state)
{
    (void)state;
    static const char *const prefixes[] = {"FIRST_", "SECOND_", NULL};
    struct options_table own = table;
    own.prefixes = prefixes;
    struct config config;
    struct options options;
    struct error error;
    struct option_listener nobody = {0};
    char *variables[] = {"SECOND_LIMIT=2", "FIRST_LIMIT=1", "ETCD_WRITE_OUT=json",
                         "SECOND_ALL=true", NULL};
    options_init(&options, &own, &config);
    assert_int_equal(options_parse_environment(&options, variables, nobody, &error), ST_OK);
    assert_int_equal(config.limit, 1);
    assert_true(config.all);
    assert_string_equal(config.format, "simple");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_stand_anywhere),
        cmocka_unit_test(letters_have_values_in_three_forms),
        cmocka_unit_test(everything_after_two_dashes_is_a_word),
        cmocka_unit_test(values_may_be_negative_empty_or_repeated),
        cmocka_unit_test(errors_are_those_of_pflag),
        cmocka_unit_test(help_comes_after_all_flags_were_read),
        cmocka_unit_test(flag_before_a_command_may_have_a_value),
        cmocka_unit_test(prefixes_of_variables_are_the_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
