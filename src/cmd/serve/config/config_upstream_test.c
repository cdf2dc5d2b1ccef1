#include "cmd/serve/config/config_upstream.h"

#include "base/temp_dir_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { ARGS_MAX = 16 };

struct fixture {
    struct options options;
    struct serve_options values;
    struct mirror_options cluster;
    struct arena arena;
    struct error error;
};

static struct fixture f;

static int setup(void **state)
{
    (void)state;
    f = (struct fixture){0};
    arena_init(&f.arena, NULL, 0, 1 << 20);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_fini(&f.arena);
    return 0;
}

/* The flags, as the server reads them: against each other, and then their values. */
static enum status read_args(int count, char *const *args)
{
    int rest;
    f.cluster = (struct mirror_options){0};
    options_init(&f.options, &serve_table, &f.values);
    assert_int_equal(options_parse_args(&f.options, count, args, &rest, &f.error), ST_OK);
    assert_int_equal(rest, count);
    TRY(config_upstream_check_flags(&f.options, *f.values.upstream_endpoints, &f.error));
    return config_upstream_set(&f.cluster, &f.arena, &f.values, &f.error);
}

/* In front of a cluster, with these further flags up to NULL. */
static enum status read_flags(char *first, ...)
{
    char *args[ARGS_MAX] = {"--upstream-endpoints=http://a:2379,http://b:2379"};
    int count = 1;
    va_list list;
    va_start(list, first);
    for (char *arg = first; arg; arg = va_arg(list, char *))
        args[count++] = arg;
    va_end(list);
    return read_args(count, args);
}

static void assert_refused(enum status status, const char *part)
{
    assert_int_equal(status, ST_INVALID);
    if (!strstr(f.error.text, part))
        fail_msg("\"%s\" says nothing of \"%s\"", f.error.text, part);
}

static void everything_is_mirrored_by_default(void **state)
{
    (void)state;
    assert_int_equal(read_flags(NULL), ST_OK);
    assert_string_equal(f.cluster.upstream.endpoints, "http://a:2379,http://b:2379");
    assert_null(f.cluster.upstream.user);
    assert_int_equal(f.cluster.prefix_count, 0);
    assert_int_equal(f.cluster.reads, MIRROR_READS_MIRROR);
    assert_int_equal(f.cluster.lag_max_revisions, 10000);
}

static void without_endpoints_nothing_is_set(void **state)
{
    (void)state;
    assert_int_equal(read_args(0, NULL), ST_OK);
    assert_null(f.cluster.upstream.endpoints);
    char *prefix[] = {"--upstream-prefix=/a"};
    assert_refused(read_args(1, prefix), "--upstream-prefix needs --upstream-endpoints");
    char *empty[] = {"--upstream-endpoints="};
    assert_refused(read_args(1, empty), "--upstream-endpoints is empty");
}

static void flags_become_options(void **state)
{
    (void)state;
    assert_int_equal(read_flags("--upstream-prefix=/a/,/b/", "--upstream-prefix=/c/",
                                "--upstream-reads=forward", "--upstream-max-lag=7",
                                "--upstream-cacert=ca", "--upstream-cert=c", "--upstream-key=k",
                                "--upstream-server-name=s", "--upstream-insecure-skip-tls-verify",
                                NULL),
                     ST_OK);
    assert_int_equal(f.cluster.prefix_count, 3);
    assert_true(slice_is(f.cluster.prefixes[2], "/c/"));
    assert_int_equal(f.cluster.reads, MIRROR_READS_FORWARD);
    assert_int_equal(f.cluster.lag_max_revisions, 7);
    const struct upstream_options *upstream = &f.cluster.upstream;
    assert_string_equal(upstream->ca_file, "ca");
    assert_string_equal(upstream->cert_file, "c");
    assert_string_equal(upstream->key_file, "k");
    assert_string_equal(upstream->server_name, "s");
    assert_true(upstream->insecure_skip_verify);
    assert_refused(read_flags("--upstream-cert=c", NULL), "given together");
    assert_refused(read_flags("--upstream-key=k", NULL), "given together");
}

static void password_is_in_the_flag_or_in_a_file(void **state)
{
    (void)state;
    char dir[TEMP_DIR_BYTES], file[TEMP_DIR_BYTES + 64], path[TEMP_DIR_BYTES + 16];
    temp_dir_make("upstream", dir);
    snprintf(path, sizeof(path), "%s/password", dir);
    snprintf(file, sizeof(file), "--upstream-password-file=%s", path);
    FILE *to = fopen(path, "w");
    fputs("se:cret\r\nrest\n", to);
    fclose(to);

    assert_int_equal(read_flags("--upstream-user=root:a:b", NULL), ST_OK);
    assert_string_equal(f.cluster.upstream.user, "root");
    assert_string_equal(f.cluster.upstream.password, "a:b");
    assert_int_equal(read_flags("--upstream-user=root", file, NULL), ST_OK);
    assert_string_equal(f.cluster.upstream.user, "root");
    assert_string_equal(f.cluster.upstream.password, "se:cret");
    assert_refused(read_flags("--upstream-user=root", NULL), "needs a password");
    assert_refused(read_flags("--upstream-user=root:a", file, NULL), "has a password already");
    assert_refused(read_flags(file, NULL), "needs --upstream-user");
    fclose(fopen(path, "w"));
    assert_refused(read_flags("--upstream-user=root", file, NULL), "is empty");
    temp_dir_remove(dir);
}

static void prefixes_are_limited(void **state)
{
    (void)state;
    char text[1024];
    int length = snprintf(text, sizeof text, "--upstream-prefix=a");
    for (int i = 1; i < 64; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, ",a");
    assert_int_equal(read_flags(text, NULL), ST_OK);
    assert_int_equal(f.cluster.prefix_count, 64);
    snprintf(text + length, sizeof text - (size_t)length, ",a");
    assert_refused(read_flags(text, NULL), "at most 64");
}

static void flags_of_a_server_that_stores_data_are_refused_or_ignored(void **state)
{
    (void)state;
    assert_refused(read_flags("--enable-v2", NULL), "--enable-v2 cannot be used");
    assert_refused(read_flags("--auto-compaction-retention=1h", NULL), "compacts itself");
    assert_refused(read_flags("--kube-history-bytes=9", NULL), "use --kube-history");
    assert_refused(read_flags("--quota-backend-bytes=1", NULL), "set it on the members");
    assert_refused(read_flags("--initial-cluster=a=http://a:2380", NULL), "not a member");
    assert_int_equal(read_flags("--max-learners=3", "--bcrypt-cost=4", NULL), ST_OK);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

/* -- Variables and addresses -- */

static enum status read_variables(char *const *variables, char *flag)
{
    int rest;
    options_init(&f.options, &serve_table, &f.values);
    assert_int_equal(options_parse_args(&f.options, flag ? 1 : 0, &flag, &rest, &f.error), ST_OK);
    assert_int_equal(
        options_parse_environment(&f.options, variables, (struct option_listener){0}, &f.error),
        ST_OK);
    return config_upstream_check_variables(&f.options, variables, &f.error);
}

static void an_empty_variable_is_refused(void **state)
{
    (void)state;
    char *const empty[] = {"HOME=/", "VIGIL_UPSTREAM_ENDPOINTS=", NULL};
    char *const other[] = {"ETCD_UPSTREAM_ENDPOINTS=", NULL};
    char *const both[] = {"ETCD_UPSTREAM_ENDPOINTS=", "VIGIL_UPSTREAM_ENDPOINTS=http://a:1", NULL};
    char *const none[] = {
        "VIGIL_UPSTREAM_ENDPOINT=", "UPSTREAM_ENDPOINTS=", "VIGIL_UPSTREAM_USER=", NULL};
    assert_int_equal(read_variables(empty, NULL), ST_INVALID);
    assert_non_null(strstr(f.error.text, "--upstream-endpoints is empty"));
    assert_int_equal(read_variables(other, NULL), ST_INVALID);
    assert_int_equal(read_variables(both, NULL), ST_OK);
    assert_int_equal(read_variables(none, NULL), ST_OK);
    assert_int_equal(read_variables(empty, "--upstream-endpoints=http://a:1"), ST_OK);
    assert_int_equal(config_upstream_check_variables(&f.options, NULL, &f.error), ST_OK);
}

static enum status check_address(const char *endpoints, const char *listen)
{
    struct url url;
    struct error error;
    assert_int_equal(url_parse(slice_from_text(listen), &url, &error), ST_OK);
    return config_upstream_check_addresses("upstream-endpoints", endpoints, &url, 1, &f.error);
}

static void an_endpoint_is_not_the_server_itself(void **state)
{
    (void)state;
    static const char *const own[][2] = {
        {"http://127.0.0.1:2379", "http://127.0.0.1:2379"},
        {"http://10.0.0.1:2379,https://localhost:2379", "http://127.0.0.1:2379"},
        {"127.0.0.1:2379", "http://0.0.0.0:2379"},
        {"http://[::1]:2379", "https://[::]:2379"},
        {"unix:///run/v.sock", "unix:///run/v.sock"},
    };
    static const char *const others[][2] = {
        {"http://127.0.0.1:2379", "http://127.0.0.1:2380"},
        {"http://10.0.0.1:2379", "http://10.0.0.2:2379"},
        {"http://10.0.0.1:2379", "http://0.0.0.0:2379"}, /* perhaps another machine */
        {"http://etcd-0:2379,http://etcd-1:2379", "http://0.0.0.0:2379"},
        {"unix:///run/e.sock", "unix:///run/v.sock"},
        {"", "http://127.0.0.1:2379"},
    };
    for (size_t i = 0; i < COUNT_OF(own); i++) {
        assert_int_equal(check_address(own[i][0], own[i][1]), ST_INVALID);
        assert_non_null(strstr(f.error.text, "this server itself"));
    }
    for (size_t i = 0; i < COUNT_OF(others); i++)
        assert_int_equal(check_address(others[i][0], others[i][1]), ST_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(everything_is_mirrored_by_default),
        TEST(an_empty_variable_is_refused),
        TEST(an_endpoint_is_not_the_server_itself),
        TEST(without_endpoints_nothing_is_set),
        TEST(flags_become_options),
        TEST(password_is_in_the_flag_or_in_a_file),
        TEST(prefixes_are_limited),
        TEST(flags_of_a_server_that_stores_data_are_refused_or_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
