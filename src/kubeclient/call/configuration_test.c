/* Which configuration a client uses. */
#include "kubeclient/call/configuration.h"

#include "base/failing_memory_test.h"
#include "base/temp_dir_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

struct test_files {
    char directory[64];
    char one[128], two[128], account[128];
    struct configuration_environment environment;
};

static void write_file(const char *path, const char *format, const char *argument)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, format, argument);
    fclose(file);
}

static const char kubeconfig[] =
    "{\"current-context\":\"c\",\"contexts\":[{\"name\":\"c\",\"context\":{\"cluster\":\"k\","
    "\"user\":\"u\",\"namespace\":\"ns\"}}],\"clusters\":[{\"name\":\"k\",\"cluster\":{\"server\":"
    "\"https://%s:6443\",\"certificate-authority\":\"ca.pem\"}}],\"users\":[{\"name\":\"u\","
    "\"user\":{\"token\":\"file-token\",\"as\":\"jane\"}}]}";

/* A kubeconfig in the home directory, another one, and a service account. */
static void files_init(struct test_files *f)
{
    char path[200];
    *f = (struct test_files){0};
    temp_dir_make("configuration", f->directory);
    snprintf(path, sizeof(path), "%s/.kube", f->directory);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(f->one, sizeof(f->one), "%s/.kube/config", f->directory);
    write_file(f->one, kubeconfig, "home");
    snprintf(f->two, sizeof(f->two), "%s/other", f->directory);
    write_file(f->two, kubeconfig, "other");
    snprintf(path, sizeof(path), "%s/token", f->directory);
    write_file(path, "%s", "pod-token");
    snprintf(path, sizeof(path), "%s/namespace", f->directory);
    write_file(path, "%s", "pods");
    f->environment = (struct configuration_environment){.service_account = f->directory};
}

static void files_fini(struct test_files *f)
{
    temp_dir_remove(f->directory);
}

static void expect_server(const struct test_files *f, const vigil_kube_options *options,
                          const char *server)
{
    struct kubeconfig config;
    struct server_url url;
    struct error error = {0};
    if (configuration_choose(options, &f->environment, &config, &url, &error) != ST_OK)
        fail_msg("%s", error.text);
    assert_string_equal(config.server, server);
    kubeconfig_fini(&config);
}

static void first_source_that_is_given_is_used(void **state)
{
    (void)state;
    struct test_files f;
    struct error error = {0};
    struct kubeconfig config;
    struct server_url url;
    vigil_kube_options options = {.size = sizeof(options)};
    files_init(&f);
    assert_int_equal(configuration_choose(&options, &f.environment, &config, &url, &error),
                     ST_NOT_FOUND);
    assert_non_null(strstr(error.text, "no server is given"));
    f.environment.service_host = "10.0.0.1";
    f.environment.service_port = "443";
    expect_server(&f, &options, "https://10.0.0.1:443");
    f.environment.kubeconfig = "/nonexistent:/also-nonexistent";
    expect_server(&f, &options, "https://10.0.0.1:443");
    f.environment.kubeconfig = "";
    f.environment.home = f.directory;
    expect_server(&f, &options, "https://home:6443");
    f.environment.kubeconfig = f.two;
    expect_server(&f, &options, "https://other:6443");
    options.in_cluster = 1;
    expect_server(&f, &options, "https://10.0.0.1:443");
    options.kubeconfig = f.one;
    expect_server(&f, &options, "https://home:6443");
    options.server = "http://a.b";
    expect_server(&f, &options, "http://a.b");
    options = (vigil_kube_options){.size = sizeof(options), .kubeconfig = "/nonexistent"};
    assert_int_equal(configuration_choose(&options, &f.environment, &config, &url, &error),
                     ST_NOT_FOUND);
    options = (vigil_kube_options){.size = sizeof(options), .context = "unknown"};
    assert_int_equal(configuration_choose(&options, &f.environment, &config, &url, &error),
                     ST_NOT_FOUND);
    files_fini(&f);
}

static void options_replace_what_a_file_says(void **state)
{
    (void)state;
    struct test_files f;
    struct error error = {0};
    struct kubeconfig config;
    struct server_url url;
    files_init(&f);
    vigil_kube_options options = {.size = sizeof(options), .kubeconfig = f.one};
    assert_int_equal(configuration_choose(&options, &f.environment, &config, &url, &error), ST_OK);
    assert_string_equal(config.token, "file-token");
    assert_string_equal(config.impersonate.user, "jane");
    assert_string_equal(config.name_space, "ns");
    assert_non_null(config.ca.file);
    kubeconfig_fini(&config);

    options.user = "me";
    options.password = "secret";
    options.impersonate = "john";
    options.name_space = "mine";
    options.insecure_skip_verify = 1;
    options.cert_file = "cert.pem";
    options.key_file = "key.pem";
    options.server_name = "name";
    options.proxy_url = "http://proxy";
    assert_int_equal(configuration_choose(&options, &f.environment, &config, &url, &error), ST_OK);
    assert_null(config.token);
    assert_string_equal(config.user, "me");
    assert_string_equal(config.password, "secret");
    assert_string_equal(config.impersonate.user, "john");
    assert_string_equal(config.name_space, "mine");
    assert_null(config.ca.file);
    assert_true(config.insecure_skip_verify);
    assert_string_equal(config.cert.file, "cert.pem");
    assert_string_equal(config.key.file, "key.pem");
    assert_string_equal(config.tls_server_name, "name");
    assert_string_equal(config.proxy_url, "http://proxy");
    kubeconfig_fini(&config);
    files_fini(&f);
}

/* Every credential that the options can have. */
static const vigil_kube_options secrets[] = {
    {.token = "SECRET"},
    {.token_file = "SECRET"},
    {.user = "me", .password = "SECRET"},
    {.cert_file = "SECRET", .key_file = "SECRET"},
};

static void credentials_of_options_need_tls_to_a_server_of_a_kubeconfig(void **state)
{
    (void)state;
    struct test_files f;
    struct kubeconfig config;
    struct server_url url;
    files_init(&f);
    write_file(f.two,
               "{current-context: c, contexts: [{name: c, context: {cluster: k}}],"
               " clusters: [{name: k, cluster: {server: '%s'}}]}",
               "http://10.0.0.1:80");
    for (size_t i = 0; i < COUNT_OF(secrets); i++) {
        struct error error = {0};
        vigil_kube_options options = secrets[i];
        /* In the option, or found as kubectl finds it. */
        options.kubeconfig = f.two;
        assert_int_equal(configuration_choose(&options, &f.environment, &config, &url, &error),
                         ST_INVALID);
        assert_non_null(strstr(error.text, "http://10.0.0.1:80"));
        assert_null(strstr(error.text, "SECRET"));
        options.kubeconfig = NULL;
        f.environment.kubeconfig = f.two;
        assert_int_equal(configuration_choose(&options, &f.environment, &config, &url, &error),
                         ST_INVALID);
        /* The program itself names the server: it is the program's choice. */
        options.server = "http://10.0.0.1:80";
        expect_server(&f, &options, options.server);
        options.server = NULL;
        options.kubeconfig = f.one;
        expect_server(&f, &options, "https://home:6443");
    }
    vigil_kube_options anonymous = {.kubeconfig = f.two, .impersonate = "jane"};
    expect_server(&f, &anonymous, "http://10.0.0.1:80");
    files_fini(&f);
}

static void credentials_of_options_reach_a_server_without_a_scheme_by_tls(void **state)
{
    (void)state;
    struct test_files f;
    struct kubeconfig config;
    struct server_url url;
    struct error error = {0};
    files_init(&f);
    write_file(f.two,
               "{current-context: c, contexts: [{name: c, context: {cluster: k}}],"
               " clusters: [{name: k, cluster: {server: '%s'}}]}",
               "10.0.0.1:6443");
    vigil_kube_options options = {.kubeconfig = f.two, .token = "SECRET"};
    assert_int_equal(configuration_choose(&options, &f.environment, &config, &url, &error),
                     ST_INVALID);
    options.ca_file = "ca.pem";
    assert_int_equal(configuration_choose(&options, &f.environment, &config, &url, &error), ST_OK);
    assert_int_equal(url.endpoint.security, ENDPOINT_TLS);
    kubeconfig_fini(&config);
    files_fini(&f);
}

static void missing_memory_is_reported(void **state)
{
    (void)state;
    struct test_files f;
    files_init(&f);
    vigil_kube_options options = {
        .size = sizeof(options), .kubeconfig = f.one, .token = "t", .ca_file = "ca"};
    enum status status = ST_NOMEM;
    for (size_t at = 1; status != ST_OK; at++) {
        struct kubeconfig config;
        struct server_url url;
        struct error error = {0};
        memory_fail_at = at;
        status = configuration_choose(&options, &f.environment, &config, &url, &error);
        memory_fail_at = 0;
        assert_true(status == ST_OK || status == ST_NOMEM);
        if (status == ST_OK)
            kubeconfig_fini(&config);
    }
    files_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_source_that_is_given_is_used),
        cmocka_unit_test(options_replace_what_a_file_says),
        cmocka_unit_test(credentials_of_options_need_tls_to_a_server_of_a_kubeconfig),
        cmocka_unit_test(credentials_of_options_reach_a_server_without_a_scheme_by_tls),
        cmocka_unit_test(missing_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
