#include "base/options/options.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

struct config {
    const char *name;
    const char *urls;
    bool gateway;
    int64_t txn_ops;
    uint64_t quota;
    int64_t interval_ns;
    int log_format;
    const char *hidden;
    const char *prefixes;
};

#define ROW(flag, type, usual, text, field)                               \
    .name = flag, .kind = OPTION_##type, .fallback = usual, .help = text, \
    .offset = offsetof(struct config, field)

static const struct option member[] = {
    {ROW("name", TEXT, "default", "Human-readable name for this member.", name)},
    {ROW("listen-client-urls", LIST, "http://localhost:2379",
         "List of URLs to listen on for client traffic. This help is long enough to be broken into "
         "more than one line.",
         urls)},
    {ROW("enable-grpc-gateway", BOOL, "true", "Enable the gateway.", gateway)},
};
static const struct option limits[] = {
    {ROW("max-txn-ops", INT, "128", "Operations in a transaction.", txn_ops), .min = 1,
     .max = 1000000},
    {ROW("quota-backend-bytes", SIZE, "0", "Size at which writing stops.", quota)},
    {ROW("watch-progress-notify-interval", DURATION, "10m", "Time between notifications.",
         interval_ns)},
};
static const struct option logging[] = {
    {ROW("log-format", ENUM, "json", ".leading dot - and dash.", log_format),
     .choices = "json|console"},
    {ROW("secret-switch", TEXT, "", NULL, hidden)},
};
static const struct option others[] = {
    {.name = "heartbeat-interval",
     .kind = OPTION_INT,
     .fallback = "100",
     .ignored = "there are no peers",
     .offset = OPTION_NOWHERE},
    {.name = "vv", .kind = OPTION_ANY, .fallback = "", .ignored = "gone", .offset = OPTION_NOWHERE},
    {.name = "max-ops", .alias_of = "max-txn-ops"},
    {ROW("prefix", LIST, "", NULL, prefixes), .repeats = true, .secret = true},
};

static const struct option_group groups[] = {
    {"Member", member, COUNT_OF(member)},
    {"Limits", limits, COUNT_OF(limits)},
    {"Logging", logging, COUNT_OF(logging)},
    {"Others", others, COUNT_OF(others)},
};
static const struct option_group *const group_list[] = {&groups[0], &groups[1], &groups[2],
                                                        &groups[3]};
static const struct options_table table = {
    .program = "vigil serve",
    .summary = "Serves keys.",
    .groups = group_list,
    .group_count = COUNT_OF(group_list),
};

struct parsed {
    struct config config;
    struct options options;
    struct error error;
    enum status status;
    int rest;
};

/* Words separated by single spaces. */
static struct parsed parse(const char *line)
{
    static char words[512];
    static char *args[32];
    int count = 0;
    struct parsed p = {0};
    snprintf(words, sizeof(words), "%s", line);
    for (char *at = words; *at;) {
        args[count++] = at;
        at += strcspn(at, " ");
        if (*at)
            *at++ = 0;
    }
    options_init(&p.options, &table, &p.config);
    p.status = options_parse_args(&p.options, count, args, &p.rest, &p.error);
    p.options.config = NULL; /* the copy is at another address */
    return p;
}

static void defaults_come_from_the_table(void **state)
{
    (void)state;
    struct parsed p = parse("");
    assert_int_equal(p.status, ST_OK);
    assert_string_equal(p.config.name, "default");
    assert_true(p.config.gateway);
    assert_int_equal(p.config.txn_ops, 128);
    assert_int_equal(p.config.quota, 0);
    assert_int_equal(p.config.interval_ns, 600 * NS_PER_S);
    assert_int_equal(p.config.log_format, 0);
    assert_int_equal(options_source(&p.options, "name"), OPTION_FROM_DEFAULT);
}

static void every_form_of_a_flag_is_accepted(void **state)
{
    (void)state;
    struct parsed p = parse("-name a --max-txn-ops=5 --enable-grpc-gateway=false "
                            "-quota-backend-bytes=8GiB --watch-progress-notify-interval 1m30s "
                            "--log-format console --name b -- --name c");
    assert_int_equal(p.status, ST_OK);
    assert_string_equal(p.config.name, "b");
    assert_int_equal(p.config.txn_ops, 5);
    assert_false(p.config.gateway);
    assert_int_equal(p.config.quota, UINT64_C(8) << 30);
    assert_int_equal(p.config.interval_ns, 90 * NS_PER_S);
    assert_int_equal(p.config.log_format, 1);
    assert_int_equal(p.rest, 12);
    assert_int_equal(options_source(&p.options, "name"), OPTION_FROM_FLAG);
}

static void bool_takes_no_separate_value(void **state)
{
    (void)state;
    struct parsed p = parse("--enable-grpc-gateway false");
    assert_int_equal(p.status, ST_OK);
    assert_true(p.config.gateway);
    assert_int_equal(p.rest, 1);
}

static void mistakes_are_explained_in_a_sentence(void **state)
{
    (void)state;
    const struct {
        const char *line, *text;
    } cases[] = {
        {"--nmae x", "flag provided but not defined: -nmae (did you mean --name?)"},
        {"--listen-client-url=x",
         "flag provided but not defined: -listen-client-url (did you mean --listen-client-urls?)"},
        {"--utterly-different",
         "flag provided but not defined: -utterly-different (see vigil serve --help for all of "
         "them)"},
        {"--secret-swich", "flag provided but not defined: -secret-swich (see vigil serve --help "
                           "for all of them)"},
        {"--name", "flag needs an argument: -name"},
        {"--max-txn-ops many", "invalid value \"many\" for flag -max-txn-ops: expected a number"},
        {"--max-txn-ops=0", "invalid value \"0\" for flag -max-txn-ops: must be from 1 to 1000000"},
        {"--enable-grpc-gateway=maybe",
         "invalid value \"maybe\" for flag -enable-grpc-gateway: expected true or false"},
        {"--log-format=xml", "invalid value \"xml\" for flag -log-format: expected json|console"},
        {"--watch-progress-notify-interval 10",
         "invalid value \"10\" for flag -watch-progress-notify-interval: expected a duration, "
         "like 10s, 1m30s or 100ms"},
        {"---name x", "bad flag syntax: ---name"},
        {"--=x", "bad flag syntax: --=x"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct parsed p = parse(cases[i].line);
        assert_int_equal(p.status, ST_INVALID);
        assert_string_equal(p.error.text, cases[i].text);
    }
    assert_int_equal(parse("--help").status, ST_END);
    assert_int_equal(parse("-h").status, ST_END);
}

static char notices[512];

static void note(void *ctx, enum option_notice notice, const char *variable, const char *value)
{
    (void)ctx;
    const char *const names[] = {"used", "shadowed", "unknown"};
    size_t len = strlen(notices);
    snprintf(notices + len, sizeof(notices) - len, "%s %s=%s;", names[notice], variable, value);
}

static void environment_sets_what_flags_do_not(void **state)
{
    (void)state;
    char *args[] = {"--name", "flag"};
    char *variables[] = {"ETCD_NAME=shadowed",
                         "ETCD_MAX_TXN_OPS=7",
                         "VIGIL_MAX_TXN_OPS=9",
                         "ETCD_LISTEN_CLIENT_URLS=",
                         "ETCD_NO_SUCH=1",
                         "ETCDCTL_API=3",
                         "PATH=/bin",
                         "ETCD_name=x",
                         NULL};
    struct config config;
    struct options options;
    struct error error;
    int rest;
    options_init(&options, &table, &config);
    assert_int_equal(options_parse_args(&options, 2, args, &rest, &error), ST_OK);
    notices[0] = 0;
    struct option_listener listener = {.fn = note};
    assert_int_equal(options_parse_environment(&options, variables, listener, &error), ST_OK);
    assert_string_equal(config.name, "flag");
    assert_int_equal(config.txn_ops, 9);
    assert_string_equal(config.urls, "http://localhost:2379");
    assert_int_equal(options_source(&options, "max-txn-ops"), OPTION_FROM_ENVIRONMENT);
    assert_string_equal(notices,
                        "used VIGIL_MAX_TXN_OPS=9;shadowed ETCD_NAME=shadowed;"
                        "shadowed ETCD_MAX_TXN_OPS=7;unknown ETCD_NO_SUCH=1;unknown ETCD_name=x;");

    char *bad[] = {"ETCD_QUOTA_BACKEND_BYTES=lots", NULL};
    assert_int_equal(options_parse_environment(&options, bad, listener, &error), ST_INVALID);
    assert_string_equal(error.text, "invalid value \"lots\" for ETCD_QUOTA_BACKEND_BYTES: expected "
                                    "a number of bytes, like 1048576 or 64MiB");
}

static void settings_can_be_set_by_name(void **state)
{
    (void)state;
    struct config config;
    struct options options;
    struct error error;
    options_init(&options, &table, &config);
    assert_int_equal(options_set(&options, "max-txn-ops", "3", OPTION_FROM_FLAG, &error), ST_OK);
    assert_int_equal(config.txn_ops, 3);
    assert_int_equal(options_set(&options, "nothing", "3", OPTION_FROM_FLAG, &error), ST_NOT_FOUND);
    assert_int_equal(options_set(&options, "max-txn-ops", "x", OPTION_FROM_FLAG, &error),
                     ST_INVALID);
}

static char *written(int what)
{
    char *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);
    if (what == 0)
        options_write_help(&table, to);
    else
        options_write_man(&table, "vigil 0.1", "2026-11-15", to);
    fclose(to);
    return text;
}

static void help_is_grouped_and_wrapped(void **state)
{
    (void)state;
    char *text = written(0);
    assert_non_null(strstr(text, "Usage:\n  vigil serve [flags]\n\nMember:\n  --name 'default'\n"
                                 "      Human-readable name for this member.\n"));
    assert_non_null(strstr(text, "\nLimits:\n  --max-txn-ops '128'\n"));
    assert_non_null(strstr(text, "  --log-format 'json' (json|console)\n"));
    assert_null(strstr(text, "secret-switch"));
    for (char *line = text; *line; line += strcspn(line, "\n") + 1)
        assert_true(strcspn(line, "\n") <= 80);
    free(text);
}

static void man_page_escapes_roff_characters(void **state)
{
    (void)state;
    char *text = written(1);
    assert_non_null(strstr(text, ".TH \"vigil-serve\" 8 \"2026-11-15\" \"vigil 0.1\"\n"));
    assert_non_null(strstr(text, ".SS Limits\n"));
    assert_non_null(strstr(text, ".BI \\-\\-max\\-txn\\-ops \" \\(aq128\\(aq\"\n"));
    assert_non_null(strstr(text, "\n\\&.leading dot \\- and dash.\nOne of: json|console."));
    assert_null(strstr(text, "secret"));
    free(text);
}

static void note_notice(void *ctx, enum option_notice notice, const char *variable,
                        const char *value)
{
    (void)variable;
    (void)value;
    *(unsigned *)ctx |= 1u << notice;
}

/* Once before the logger exists, and once to log. */
static void environment_may_be_read_twice(void **state)
{
    (void)state;
    struct config config;
    struct options options;
    struct error error;
    char *variables[] = {"ETCD_NAME=x", NULL};
    unsigned told = 0;
    struct option_listener listener = {.fn = note_notice, .ctx = &told}, nobody = {0};
    options_init(&options, &table, &config);
    assert_int_equal(options_parse_environment(&options, variables, nobody, &error), ST_OK);
    assert_int_equal(options_parse_environment(&options, variables, listener, &error), ST_OK);
    assert_int_equal(told, 1u << OPTION_ENV_USED);
}

static void note_value(void *ctx, enum option_notice notice, const char *variable,
                       const char *value)
{
    (void)notice;
    (void)variable;
    snprintf(ctx, 64, "%s", value);
}

static void secret_value_is_used_and_not_told(void **state)
{
    (void)state;
    struct config config;
    struct options options;
    struct error error;
    char *variables[] = {"VIGIL_PREFIX=s3cret", NULL};
    char told[64];
    struct option_listener listener = {.fn = note_value, .ctx = told};
    options_init(&options, &table, &config);
    assert_int_equal(options_parse_environment(&options, variables, listener, &error), ST_OK);
    assert_string_equal(config.prefixes, "s3cret");
    assert_string_equal(told, OPTION_SECRET_SHOWN);
}

static void values_of_a_repeated_flag_are_joined(void **state)
{
    (void)state;
    struct config config;
    struct options options;
    struct error error;
    int rest;
    char *args[] = {"--prefix", "a", "--name=x", "--prefix=b,c", "--prefix", "d"};
    options_init(&options, &table, &config);
    assert_int_equal(options_parse_args(&options, COUNT_OF(args), args, &rest, &error), ST_OK);
    assert_string_equal(config.prefixes, "a,b,c,d");
}

static void repeated_flags_that_are_too_long_are_refused(void **state)
{
    (void)state;
    struct config config;
    struct options options;
    struct error error;
    int rest;
    char value[OPTIONS_JOINED_BYTES - 1] = {0}; /* with a comma and "a" it fits exactly */
    memset(value, 'x', sizeof(value) - 2);
    char *args[] = {"--prefix", "a", "--prefix", value, "--prefix", ""};
    options_init(&options, &table, &config);
    assert_int_equal(options_parse_args(&options, 4, args, &rest, &error), ST_OK);
    options_init(&options, &table, &config);
    assert_int_equal(options_parse_args(&options, 6, args, &rest, &error), ST_INVALID);
    assert_non_null(strstr(error.text, "too long"));
}

static void ignored_flags_are_read_and_dropped(void **state)
{
    (void)state;
    struct parsed p = parse("--heartbeat-interval=7 --vv --vv=whatever --name n");
    assert_int_equal(p.status, ST_OK);
    assert_string_equal(p.config.name, "n");
    assert_int_equal(options_source(&p.options, "heartbeat-interval"), OPTION_FROM_FLAG);
    assert_int_equal(parse("--heartbeat-interval soon").status, ST_INVALID);
}

static void alias_sets_the_same_flag(void **state)
{
    (void)state;
    struct parsed p = parse("--max-ops=7");
    assert_int_equal(p.status, ST_OK);
    assert_int_equal(p.config.txn_ops, 7);
    assert_int_equal(options_source(&p.options, "max-txn-ops"), OPTION_FROM_FLAG);
    assert_int_equal(options_source(&p.options, "max-ops"), OPTION_FROM_FLAG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_come_from_the_table),
        cmocka_unit_test(every_form_of_a_flag_is_accepted),
        cmocka_unit_test(bool_takes_no_separate_value),
        cmocka_unit_test(mistakes_are_explained_in_a_sentence),
        cmocka_unit_test(environment_sets_what_flags_do_not),
        cmocka_unit_test(settings_can_be_set_by_name),
        cmocka_unit_test(help_is_grouped_and_wrapped),
        cmocka_unit_test(man_page_escapes_roff_characters),
        cmocka_unit_test(environment_may_be_read_twice),
        cmocka_unit_test(secret_value_is_used_and_not_told),
        cmocka_unit_test(values_of_a_repeated_flag_are_joined),
        cmocka_unit_test(repeated_flags_that_are_too_long_are_refused),
        cmocka_unit_test(ignored_flags_are_read_and_dropped),
        cmocka_unit_test(alias_sets_the_same_flag),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
