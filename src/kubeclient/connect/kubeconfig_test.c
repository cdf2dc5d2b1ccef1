#include "kubeclient/connect/kubeconfig.h"

#include "base/buf.h"
#include "base/failing_memory_test.h"
#include "base/temp_dir_test.h"

#include <string.h>
#include <sys/stat.h>

static const char first[] =
    "apiVersion: v1\n"
    "kind: Config\n"
    "current-context: dev\n"
    "clusters:\n"
    "- name: c1\n"
    "  cluster:\n"
    "    server: https://10.0.0.1:6443\n"
    "    certificate-authority-data: Q0E=\n"
    "    tls-server-name: kube\n"
    "    proxy-url: http://proxy:3128\n"
    "    extensions:\n"
    "    - {name: other, extension: {a: 1}}\n"
    "    - name: client.authentication.k8s.io/exec\n"
    "      extension: {audience: x}\n"
    "- name: c2\n"
    "  cluster: {server: 'https://b', certificate-authority: ca.pem,\n"
    "            insecure-skip-tls-verify: true, disable-compression: true}\n"
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
    "- {name: nine, context: {cluster: c1, user: u3}}\n"
    "users:\n"
    "- name: u1\n"
    "  user: {token: t-1, client-certificate: /abs/c.pem, client-key-data: "
    "S0VZ}\n"
    "- name: u2\n"
    "  user: {tokenFile: token, as: bob, as-uid: '7', as-groups: [dev, ops],\n"
    "         as-user-extra: {scopes: [a, b], none: [], 'x/y': [c]}}\n"
    "- {name: u3, user: {username: ann, password: secret}}\n"
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
    assert_true(c.insecure_skip_verify);
    assert_true(c.disable_compression);
    assert_null(c.name_space);
    kubeconfig_fini(&c);
}

static void password_is_read(void **state)
{
    (void)state;
    struct kubeconfig c;
    struct error error;
    assert_int_equal(read_one(first, "nine", &c, &error), ST_OK);
    assert_string_equal(c.user, "ann");
    assert_string_equal(c.password, "secret");
    assert_false(c.disable_compression);
    kubeconfig_fini(&c);
}

static void impersonation_is_read(void **state)
{
    (void)state;
    struct kubeconfig c;
    struct error error;
    assert_int_equal(read_one(first, "two", &c, &error), ST_OK);
    assert_string_equal(c.impersonate.user, "bob");
    assert_string_equal(c.impersonate.uid, "7");
    assert_string_equal(c.impersonate.groups[0], "dev");
    assert_string_equal(c.impersonate.groups[1], "ops");
    assert_null(c.impersonate.groups[2]);
    assert_int_equal(c.impersonate.extra_count, 3);
    assert_string_equal(c.impersonate.extra[0].key, "scopes");
    assert_string_equal(c.impersonate.extra[0].value, "a");
    assert_string_equal(c.impersonate.extra[1].key, "scopes");
    assert_string_equal(c.impersonate.extra[1].value, "b");
    assert_string_equal(c.impersonate.extra[2].key, "x/y");
    assert_string_equal(c.impersonate.extra[2].value, "c");
    kubeconfig_fini(&c);
}

/* As client-go does: only impersonation is kept. */
static void credentials_are_left_out_without_tls(void **state)
{
    (void)state;
    static const char *const servers[] = {"http://a", "a:6443", "HTTPS://a"};
    for (size_t i = 0; i < COUNT_OF(servers); i++) {
        struct kubeconfig c;
        struct error error;
        char text[512];
        snprintf(text, sizeof(text),
                 "{current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}],"
                 " clusters: [{name: c, cluster: {server: '%s'}}],"
                 " users: [{name: u, user: {token: t, tokenFile: f, client-certificate: c,"
                 " client-key: k, as: ann, exec: {apiVersion: v, command: e}}}]}",
                 servers[i]);
        bool secure = servers[i][0] == 'H';
        assert_int_equal(read_one(text, NULL, &c, &error), ST_OK);
        assert_int_equal(c.token != NULL, secure);
        assert_int_equal(c.token_file != NULL, secure);
        assert_int_equal(c.cert.file != NULL, secure);
        assert_int_equal(c.key.file != NULL, secure);
        assert_int_equal(c.exec.command != NULL, secure);
        assert_string_equal(c.impersonate.user, "ann");
        kubeconfig_fini(&c);
    }
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
    assert_true(slice_equal(c.exec.cluster_config, SLICE_LITERAL("{\"audience\":\"x\"}")));
    kubeconfig_fini(&c);
}

#define WITH_EXEC(exec)                                                           \
    "{current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}]," \
    " clusters: [{name: c, cluster: {server: 'https://s'}}],"                     \
    " users: [{name: u, user: {exec: {apiVersion: v1, " exec "}}}]}"
#define WITH_USER(user)                                                           \
    "{current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}]," \
    " clusters: [{name: c, cluster: {server: 'https://s'}}],"                     \
    " users: [{name: u, user: {" user "}}]}"

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
    expect_error(WITH_EXEC("command: a, args: [b, 1]"), NULL, "\"args\" must be a list of");
    expect_error(WITH_EXEC("command: a, args: [\"b\\0c\"]"), NULL, "\"args\" must be a list of");
    expect_error(WITH_EXEC("command: a, interactiveMode: Always"), NULL,
                 "the exec plugin a needs a terminal");
    expect_error(WITH_EXEC("command: a, interactiveMode: no"), NULL, "\"interactiveMode\" must be");
    expect_error(WITH_EXEC("command: a, interactiveMode: Never!"), NULL,
                 "unknown interactiveMode \"Never!\"");
    expect_error(WITH_USER("token: t, username: ann"), NULL, "both a token and a username");
    expect_error(WITH_USER("tokenFile: t, password: p"), NULL, "both a token and a username");
    expect_error(WITH_USER("client-certificate: c"), NULL, "without a client key");
    expect_error(WITH_USER("as-uid: a"), NULL, "but not \"as\"");
    expect_error(WITH_USER("as-groups: [a]"), NULL, "but not \"as\"");
    expect_error(WITH_USER("as-user-extra: {a: [b]}"), NULL, "but not \"as\"");
    expect_error(WITH_USER("as: a, as-user-extra: {key: [1]}"), NULL, "\"key\" must be a list of");
    expect_error(WITH_USER("as: a, as-user-extra: {\"a\\0b\": [c]}"), NULL, "contains a zero byte");
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

/* The first of two entries with the same name counts. */
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

static void read_context(void *context)
{
    struct kubeconfig c;
    struct error error = {0};
    bool may_fail = memory_fail_at != 0;
    enum status status = read_one(first, context, &c, &error);
    if (status == ST_OK)
        kubeconfig_fini(&c);
    else
        assert_string_equal(error.text, "out of memory");
    assert_true(status == ST_OK || (may_fail && status == ST_NOMEM));
}

static void missing_memory_is_reported(void **state)
{
    (void)state;
    assert_true(each_allocation_fails(read_context, "seven") > 1);
    assert_true(each_allocation_fails(read_context, "two") > 1);
}

/* -- All users -- */

static enum status load_users(const char *text, struct kubeconfig_users *users, struct error *error)
{
    char dir[TEMP_DIR_BYTES], path[TEMP_DIR_BYTES + 8];
    temp_dir_make_fast("users", dir);
    snprintf(path, sizeof(path), "%s/config", dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    enum status status = kubeconfig_users_load(path, users, error);
    temp_dir_remove(dir);
    return status;
}

static void users_are_listed_without_clusters(void **state)
{
    (void)state;
    struct kubeconfig_users users;
    struct error error;
    assert_int_equal(load_users("users:\n"
                                "- {name: '*', user: {token: t-1, as: bob}}\n"
                                "- {name: a.b.svc, user: {username: u, password: p}}\n"
                                "- {name: c, user: {tokenFile: t, client-certificate-data: QQ==, "
                                "client-key: k}}\n"
                                "contexts: [{name: x, context: {user: c}}]\n"
                                "current-context: x\n",
                                &users, &error),
                     ST_OK);
    assert_int_equal(users.count, 3);
    assert_string_equal(users.current, "c");
    assert_string_equal(users.items[0].name, "*");
    assert_string_equal(users.items[0].config.token, "t-1");
    assert_string_equal(users.items[0].config.impersonate.user, "bob");
    assert_null(users.items[1].config.token);
    assert_null(users.items[1].config.impersonate.user);
    assert_string_equal(users.items[1].config.password, "p");
    assert_true(slice_is(users.items[2].config.cert.data, "A"));
    assert_non_null(strstr(users.items[2].config.key.file, "/k"));
    assert_non_null(strstr(users.items[2].config.token_file, "/t"));
    kubeconfig_users_fini(&users);
    assert_int_equal(load_users("{}", &users, &error), ST_OK);
    assert_int_equal(users.count, 0);
    assert_null(users.current);
    kubeconfig_users_fini(&users);
    assert_int_equal(load_users("current-context: none", &users, &error), ST_OK);
    assert_null(users.current);
    kubeconfig_users_fini(&users);
}

static void users_that_cannot_be_read_are_refused(void **state)
{
    (void)state;
    struct kubeconfig_users users;
    struct error error;
    AUTO(buf_fini) struct buf many = {0};
    assert_int_equal(load_users("users: [{user: {token: t}}]", &users, &error), ST_MALFORMED);
    assert_non_null(strstr(error.text, "a user has no name"));
    assert_int_equal(
        load_users("users: [{name: a, user: {token: t, username: u}}]", &users, &error),
        ST_MALFORMED);
    assert_int_equal(kubeconfig_users_load("/nowhere", &users, &error), ST_NOT_FOUND);
    assert_int_equal(buf_append_text(&many, "users:\n"), ST_OK);
    for (int i = 0; i <= KUBECONFIG_USERS_MAX; i++)
        assert_int_equal(buf_append_text(&many, "- {name: a}\n"), ST_OK);
    assert_int_equal(buf_append(&many, slice_of("", 1)), ST_OK);
    assert_int_equal(load_users((const char *)many.ptr, &users, &error), ST_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(users_are_listed_without_clusters),
        cmocka_unit_test(users_that_cannot_be_read_are_refused),
        cmocka_unit_test(current_context_is_read),
        cmocka_unit_test(paths_are_relative_to_the_file),
        cmocka_unit_test(password_is_read),
        cmocka_unit_test(impersonation_is_read),
        cmocka_unit_test(credentials_are_left_out_without_tls),
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
