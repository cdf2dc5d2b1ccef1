#include "kubeclient/connect/kubeconfig.h"

#include "base/failing_memory_test.h"
#include "base/temp_dir_test.h"

#include <string.h>
#include <sys/stat.h>

static const char first[] = "apiVersion: v1\n"
                            "kind: Config\n"
                            "current-context: dev\n"
                            "clusters:\n"
                            "- name: c1\n"
                            "  cluster:\n"
                            "    server: https://10.0.0.1:6443\n"
                            "    certificate-authority-data: Q0E=\n"
                            "    tls-server-name: kube\n"
                            "    proxy-url: http://proxy:3128\n"
                            "- name: c2\n"
                            "  cluster: {server: 'https://b', certificate-authority: ca.pem,\n"
                            "            insecure-skip-tls-verify: true}\n"
                            "- name: c3\n"
                            "  cluster: {}\n"
                            "contexts:\n"
                            "- {name: dev, context: {cluster: c1, user: u1, namespace: team}}\n"
                            "- {name: two, context: {cluster: c2, user: u2}}\n"
                            "- {name: three, context: {cluster: c3}}\n"
                            "- {name: four, context: {cluster: none}}\n"
                            "- {name: five, context: {cluster: c1, user: none}}\n"
                            "- {name: six, context: {cluster: c1, user: old}}\n"
                            "- {name: seven, context: {cluster: c1, user: plugin}}\n"
                            "- {name: eight, context: {}}\n"
                            "users:\n"
                            "- name: u1\n"
                            "  user: {token: t-1, client-certificate: /abs/c.pem, client-key-data: "
                            "S0VZ}\n"
                            "- name: u2\n"
                            "  user: {tokenFile: token, username: ann, password: secret, as: bob}\n"
                            "- {name: old, user: {auth-provider: {name: gcp}}}\n"
                            "- name: plugin\n"
                            "  user:\n"
                            "    exec:\n"
                            "      apiVersion: client.authentication.k8s.io/v1\n"
                            "      command: aws\n"
                            "      args: [eks, get-token]\n"
                            "      env: [{name: A, value: '1'}, {name: B}]\n"
                            "      installHint: install it\n"
                            "      provideClusterInfo: true\n";

static enum status read_one(const char *text, const char *context, struct kubeconfig *config,
                            struct error *error)
{
    struct kubeconfig_file file = {"/home/ann/.kube/config", slice_from_text(text)};
    return kubeconfig_read(&file, 1, context, config, error);
}

static void expect_error(const char *text, const char *context, const char *wanted)
{
    struct kubeconfig config;
    struct error error = {0};
    assert_int_not_equal(read_one(text, context, &config, &error), ST_OK);
    if (!strstr(error.text, wanted))
        assert_string_equal(error.text, wanted);
}

static void current_context_is_read(void **state)
{
    (void)state;
    struct kubeconfig c;
    struct error error;
    assert_int_equal(read_one(first, NULL, &c, &error), ST_OK);
    assert_string_equal(c.context, "dev");
    assert_string_equal(c.server, "https://10.0.0.1:6443");
    assert_string_equal(c.name_space, "team");
    assert_string_equal(c.tls_server_name, "kube");
    assert_string_equal(c.proxy_url, "http://proxy:3128");
    assert_true(slice_equal(c.ca.data, SLICE_LITERAL("CA")));
    assert_null(c.ca.file);
    assert_string_equal(c.cert.file, "/abs/c.pem");
    assert_true(slice_equal(c.key.data, SLICE_LITERAL("KEY")));
    assert_string_equal(c.token, "t-1");
    assert_false(c.insecure_skip_verify);
    assert_null(c.exec.command);
    kubeconfig_fini(&c);
}

static void paths_are_relative_to_the_file(void **state)
{
    (void)state;
    struct kubeconfig c;
    struct error error;
    assert_int_equal(read_one(first, "two", &c, &error), ST_OK);
    assert_string_equal(c.ca.file, "/home/ann/.kube/ca.pem");
    assert_string_equal(c.token_file, "/home/ann/.kube/token");
    assert_string_equal(c.user, "ann");
    assert_string_equal(c.password, "secret");
    assert_string_equal(c.impersonate, "bob");
    assert_true(c.insecure_skip_verify);
    assert_null(c.name_space);
    kubeconfig_fini(&c);
}

static void plugin_is_read(void **state)
{
    (void)state;
    struct kubeconfig c;
    struct error error;
    assert_int_equal(read_one(first, "seven", &c, &error), ST_OK);
    assert_string_equal(c.exec.command, "aws");
    assert_string_equal(c.exec.api_version, "client.authentication.k8s.io/v1");
    assert_string_equal(c.exec.args[0], "eks");
    assert_string_equal(c.exec.args[1], "get-token");
    assert_null(c.exec.args[2]);
    assert_string_equal(c.exec.env[0], "A=1");
    assert_string_equal(c.exec.env[1], "B=");
    assert_null(c.exec.env[2]);
    assert_string_equal(c.exec.install_hint, "install it");
    assert_true(c.exec.wants_cluster_info);
    kubeconfig_fini(&c);
}

#define WITH_EXEC(exec)                                                           \
    "{current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}]," \
    " clusters: [{name: c, cluster: {server: s}}],"                               \
    " users: [{name: u, user: {exec: {apiVersion: v1, " exec "}}}]}"

/* As kubectl does: a command with a slash is a path, others are searched for. */
static void plugin_may_be_beside_the_file(void **state)
{
    (void)state;
    struct kubeconfig c;
    struct error error;
    assert_int_equal(read_one(WITH_EXEC("command: bin/get-token"), NULL, &c, &error), ST_OK);
    assert_string_equal(c.exec.command, "/home/ann/.kube/bin/get-token");
    kubeconfig_fini(&c);
    assert_int_equal(read_one(WITH_EXEC("command: /usr/bin/x"), NULL, &c, &error), ST_OK);
    assert_string_equal(c.exec.command, "/usr/bin/x");
    kubeconfig_fini(&c);
}

static void errors_name_the_file_and_the_place(void **state)
{
    (void)state;
    expect_error(WITH_EXEC("command: a, args: [b, 1]"), NULL, "an argument of exec is not a");
    expect_error(WITH_EXEC("command: a, args: [\"b\\0c\"]"), NULL, "an argument of exec is not a");
    expect_error(first, "none", "/home/ann/.kube/config: there is no context \"none\"");
    expect_error(first, "three", "cluster \"c3\" has no server");
    expect_error(first, "four", "there is no cluster \"none\"");
    expect_error(first, "five", "there is no user \"none\"");
    expect_error(first, "six", "auth-provider");
    expect_error(first, "eight", "context \"eight\" has no cluster");
    expect_error("{}", NULL, "there is no current-context");
    expect_error("[1]", NULL, "not a kubeconfig file");
    expect_error("a: b: c", NULL, "/home/ann/.kube/config: ");
    expect_error("{current-context: 1}", NULL, "\"current-context\" must be a string");
    expect_error("{current-context: x, contexts: [{name: x, context: {cluster: c}}],"
                 " clusters: [{name: c, cluster: {server: s, certificate-authority-data: '?'}}]}",
                 NULL, "\"certificate-authority-data\" is not base64");
    expect_error("{current-context: x, contexts: 7}", NULL, "there is no context \"x\"");
}

/* Of two with the same name the first one counts. */
static void several_files_are_one(void **state)
{
    (void)state;
    struct kubeconfig c;
    struct error error;
    struct kubeconfig_file files[] = {
        {"/a/config", SLICE_LITERAL("{contexts: [{name: dev, context: {cluster: c2, user: own}}],"
                                    " users: [{name: own, user: {tokenFile: t}}]}")},
        {"/b/config", slice_from_text(first)},
    };
    assert_int_equal(kubeconfig_read(files, 2, NULL, &c, &error), ST_OK);
    assert_string_equal(c.context, "dev"); /* which only the second file names */
    assert_string_equal(c.server, "https://b");
    assert_string_equal(c.ca.file, "/b/ca.pem");
    assert_string_equal(c.token_file, "/a/t");
    kubeconfig_fini(&c);
}

static void write_file(const char *dir, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void files_are_loaded(void **state)
{
    (void)state;
    char dir[TEMP_DIR_BYTES], paths[512];
    struct kubeconfig c;
    struct error error;
    temp_dir_make("kubeconfig", dir);
    write_file(dir, "config", first);
    snprintf(paths, sizeof(paths), "%s/none::%s/config", dir, dir);
    assert_int_equal(kubeconfig_load(paths, NULL, &c, &error), ST_OK);
    assert_string_equal(c.server, "https://10.0.0.1:6443");
    kubeconfig_fini(&c);
    snprintf(paths, sizeof(paths), "%s/none", dir);
    assert_int_equal(kubeconfig_load(paths, NULL, &c, &error), ST_NOT_FOUND);
    assert_non_null(strstr(error.text, "/none: No such file"));
    snprintf(paths, sizeof(paths), "%s/none:%s/neither", dir, dir);
    assert_int_equal(kubeconfig_load(paths, NULL, &c, &error), ST_NOT_FOUND);
    assert_int_equal(kubeconfig_load(dir, NULL, &c, &error), ST_IO); /* a directory */
    temp_dir_remove(dir);
}

static void service_account_of_a_pod_is_used(void **state)
{
    (void)state;
    char dir[TEMP_DIR_BYTES];
    struct kubeconfig c;
    struct error error;
    temp_dir_make("account", dir);
    assert_int_equal(kubeconfig_in_cluster("10.0.0.1", "443", dir, &c, &error), ST_NOT_FOUND);
    assert_non_null(strstr(error.text, "/token: No such file"));
    write_file(dir, "token", "t");
    assert_int_equal(kubeconfig_in_cluster("10.0.0.1", "443", dir, &c, &error), ST_OK);
    assert_null(c.name_space);
    kubeconfig_fini(&c);
    write_file(dir, "namespace", "team \n");
    assert_int_equal(kubeconfig_in_cluster("10.0.0.1", "443", dir, &c, &error), ST_OK);
    assert_string_equal(c.server, "https://10.0.0.1:443");
    assert_string_equal(c.name_space, "team");
    assert_non_null(strstr(c.token_file, "/token"));
    assert_non_null(strstr(c.ca.file, "/ca.crt"));
    kubeconfig_fini(&c);
    assert_int_equal(kubeconfig_in_cluster("fd00::1", "443", dir, &c, &error), ST_OK);
    assert_string_equal(c.server, "https://[fd00::1]:443");
    kubeconfig_fini(&c);
    assert_int_equal(kubeconfig_in_cluster(NULL, "443", dir, &c, &error), ST_NOT_FOUND);
    temp_dir_remove(dir);
}

static void missing_memory_is_reported(void **state)
{
    (void)state;
    for (size_t at = 1;; at++) {
        struct kubeconfig c;
        struct error error = {0};
        memory_fail_at = at;
        enum status status = read_one(first, "seven", &c, &error);
        bool failed = memory_fail_at == 0;
        memory_fail_at = 0;
        if (status == ST_OK)
            kubeconfig_fini(&c);
        if (!failed) {
            assert_int_equal(status, ST_OK);
            break;
        }
        if (status != ST_OK)
            assert_string_equal(error.text, "out of memory");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(current_context_is_read),
        cmocka_unit_test(paths_are_relative_to_the_file),
        cmocka_unit_test(plugin_is_read),
        cmocka_unit_test(plugin_may_be_beside_the_file),
        cmocka_unit_test(errors_name_the_file_and_the_place),
        cmocka_unit_test(several_files_are_one),
        cmocka_unit_test(files_are_loaded),
        cmocka_unit_test(service_account_of_a_pod_is_used),
        cmocka_unit_test(missing_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
