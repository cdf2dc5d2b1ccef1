#include "cmd/ctl/profile/profile.h"

#include "base/options/rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct config {
    const char *endpoints, *ca, *user, *password, *profile;
    int64_t timeout_ns;
};

static const struct option rows[] = {
    FLAG_LIST("endpoints", config, endpoints, "127.0.0.1:2379", "e"),
    FLAG_TEXT("cacert", config, ca, "", "c"),
    FLAG_TEXT("user", config, user, "", "u"),
    FLAG_TEXT("password", config, password, "", "p"),
    FLAG_TEXT("profile", config, profile, "", "p"),
    FLAG_DURATION("command-timeout", config, timeout_ns, "5s", "t"),
};
static const struct option_group group = {"Flags", rows, COUNT_OF(rows)};
static const struct option_group *const groups[] = {&group};
static const struct options_table table = {
    .program = "vigil", .summary = "s", .groups = groups, .group_count = 1};

struct fixture {
    char directory[64], path[128];
    struct arena arena;
    struct config config;
    struct options options;
    struct error error;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    snprintf(f->directory, sizeof(f->directory), "/tmp/vigil-profile-XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    snprintf(f->path, sizeof(f->path), "%s/profiles.yaml", f->directory);
    setenv("VIGIL_PROFILES", f->path, 1);
    setenv("HOME", "/home/user", 1);
    arena_init(&f->arena, NULL, 0, 64 << 20);
    options_init(&f->options, &table, &f->config);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    unlink(f->path);
    rmdir(f->directory);
    arena_fini(&f->arena);
    free(f);
    return 0;
}

static void write_file(struct fixture *f, const char *text, mode_t mode)
{
    FILE *file = fopen(f->path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(f->path, mode), 0);
}

static enum status apply(struct fixture *f, const char *name)
{
    return profile_apply(&f->arena, name, &f->options, &f->error);
}

static void a_profile_sets_what_was_not_given(void **state)
{
    struct fixture *f = *state;
    char *args[] = {"--user=me", NULL};
    int rest;
    write_file(f,
               "dev: {}\nprod:\n  endpoints: [https://a:1, https://b:2]\n  cacert: ca.pem\n"
               "  user: root\n  command-timeout: 7s\n",
               0644);
    assert_int_equal(options_parse_args(&f->options, 1, args, &rest, &f->error), ST_OK);
    assert_int_equal(apply(f, "prod"), ST_OK);
    assert_string_equal(f->config.endpoints, "https://a:1,https://b:2");
    assert_string_equal(f->config.user, "me");
    assert_int_equal(f->config.timeout_ns, INT64_C(7000000000));
    char ca[160];
    snprintf(ca, sizeof(ca), "%s/ca.pem", f->directory);
    assert_string_equal(f->config.ca, ca);
    assert_int_equal(options_source(&f->options, "endpoints"), OPTION_FROM_FILE);
}

static void paths_begin_at_the_home_directory(void **state)
{
    struct fixture *f = *state;
    write_file(f, "a: {cacert: ~/ca.pem}\nb: {cacert: /etc/ca.pem}\n", 0644);
    assert_int_equal(apply(f, "a"), ST_OK);
    assert_string_equal(f->config.ca, "/home/user/ca.pem");
    options_init(&f->options, &table, &f->config);
    assert_int_equal(apply(f, "b"), ST_OK);
    assert_string_equal(f->config.ca, "/etc/ca.pem");
}

static void secrets_must_be_readable_by_their_owner_only(void **state)
{
    static const char *const texts[] = {"p: {password: x}\n", "p: {user: 'root:x'}\n"};
    struct fixture *f = *state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        for (unsigned bit = 1; bit < 0100; bit <<= 1) {
            write_file(f, texts[i], (mode_t)(0600 | bit));
            assert_int_equal(apply(f, "p"), ST_INVALID);
            assert_non_null(strstr(f->error.text, "chmod 600"));
        }
        write_file(f, texts[i], 0600);
        assert_int_equal(apply(f, "p"), ST_OK);
    }
    write_file(f, "p: {user: root, password: ''}\n", 0644);
    assert_int_equal(apply(f, "p"), ST_OK);
}

static void assert_refused(struct fixture *f, const char *text, const char *expected)
{
    write_file(f, text, 0600);
    options_init(&f->options, &table, &f->config);
    assert_int_not_equal(apply(f, "p"), ST_OK);
    if (!strstr(f->error.text, expected))
        fail_msg("%s", f->error.text);
}

static void mistakes_are_named(void **state)
{
    struct fixture *f = *state;
    assert_refused(f, "q: {}\nr: {}\n", "there is no profile \"p\" in");
    assert_refused(f, "q: {}\nr: {}\n", "which has: q, r");
    assert_refused(f, "", "which has: none");
    assert_refused(f, "p: {endpoint: x}\n", "there is no flag --endpoint; did you mean endpoints");
    assert_refused(f, "p: {profile: q}\n", "there is no flag --profile");
    assert_refused(f, "p: {command-timeout: soon}\n", "p: ");
    assert_refused(f, "p: {endpoints: {a: b}}\n", "must be a text or a list");
    assert_refused(f, "p: {endpoints: [[a]]}\n", "must be a text or a list");
    assert_refused(f, "p: text\n", "p must have flags below it");
    assert_refused(f, "[p]\n", "begins with the name of one");
    assert_refused(f, "p: [\n", "profiles.yaml: ");
    unlink(f->path);
    assert_int_equal(apply(f, "p"), ST_NOT_FOUND);
    assert_non_null(strstr(f->error.text, "does not exist"));
}

static void only_a_regular_file_of_bounded_size_is_read(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(mkfifo(f->path, 0600), 0);
    assert_int_equal(apply(f, "p"), ST_INVALID);
    unlink(f->path);
    char *text = malloc(PROFILE_FILE_BYTES_MAX + 2);
    memset(text, '#', PROFILE_FILE_BYTES_MAX + 1);
    text[PROFILE_FILE_BYTES_MAX + 1] = '\0';
    write_file(f, text, 0600);
    assert_int_equal(apply(f, "p"), ST_LIMIT);
    text[PROFILE_FILE_BYTES_MAX] = '\0';
    write_file(f, text, 0600);
    assert_int_equal(apply(f, "p"), ST_NOT_FOUND);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_profile_sets_what_was_not_given, setup, teardown),
        cmocka_unit_test_setup_teardown(paths_begin_at_the_home_directory, setup, teardown),
        cmocka_unit_test_setup_teardown(secrets_must_be_readable_by_their_owner_only, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(mistakes_are_named, setup, teardown),
        cmocka_unit_test_setup_teardown(only_a_regular_file_of_bounded_size_is_read, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
