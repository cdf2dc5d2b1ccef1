#include "cmd/serve/config/config_tier.h"

#include "base/temp_dir_test.h"
#include "cmd/serve/config/config.h"
#include "cmd/serve/config/config_upstream.h"
#include "cmd/serve/config/memory.h"

#include <string.h>

#include <cmocka.h>

enum { ARGS_MAX = 16, TEXT_BYTES = 1024 };

struct fixture {
    char dir[TEMP_DIR_BYTES];
    char kubeconfig[TEMP_DIR_BYTES + 100]; /* its path */
    char flag[TEMP_DIR_BYTES + 200];       /* --upstream-kubeconfig with it */
    struct options options;
    struct serve_options values;
    struct serve_config config;
    struct error error;
};

static struct fixture f;

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

static void write_kubeconfig(const char *cluster, const char *user)
{
    char text[TEXT_BYTES];
    snprintf(text, sizeof(text),
             "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
             "clusters: [{name: c, cluster: {%s}}, {name: d, cluster: {server: \"https://d:2\"}}]\n"
             "users: [{name: u, user: {%s}}]\n"
             "contexts: [{name: c, context: {cluster: c, user: u}},\n"
             "           {name: other, context: {cluster: d, user: u}}]\n",
             cluster, user);
    write_file(f.kubeconfig, text);
}

static void write_usual_kubeconfig(void)
{
    write_kubeconfig("server: \"https://127.0.0.1:6443\"", "token: the-token");
}

static int setup(void **state)
{
    (void)state;
    f = (struct fixture){0};
    temp_dir_make_fast("tier", f.dir);
    snprintf(f.kubeconfig, sizeof(f.kubeconfig), "%s/kubeconfig", f.dir);
    snprintf(f.flag, sizeof(f.flag), "--upstream-kubeconfig=%s", f.kubeconfig);
    write_usual_kubeconfig();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    temp_dir_remove(f.dir);
    return 0;
}

/* The flags, as the server reads them: against each other, and then their values. */
static enum status read_args(int count, char *const *args, bool as_etcd)
{
    int rest;
    options_init(&f.options, as_etcd ? &serve_etcd_table : &serve_table, &f.values);
    assert_int_equal(options_parse_args(&f.options, count, args, &rest, &f.error), ST_OK);
    assert_int_equal(rest, count);
    serve_options_note_given(&f.options, &f.values);
    if (config_tier_is_wanted(&f.values))
        TRY(config_tier_check_flags(&f.options, as_etcd, &f.error));
    else
        TRY(config_upstream_check_flags(&f.options, *f.values.upstream_endpoints, &f.error));
    return serve_config_init(&f.config, &f.values, as_etcd, &f.error);
}

static enum status read_list(bool in_front, char *first, va_list list)
{
    char *args[ARGS_MAX] = {f.flag};
    int count = in_front;
    for (char *arg = first; arg; arg = va_arg(list, char *))
        args[count++] = arg;
    return read_args(count, args, false);
}

/* In front of a kube-apiserver, with these further flags up to NULL. */
static enum status read_flags(char *first, ...)
{
    va_list list;
    va_start(list, first);
    enum status status = read_list(true, first, list);
    va_end(list);
    return status;
}

/* These flags alone. */
static enum status read_only(char *first, ...)
{
    va_list list;
    va_start(list, first);
    enum status status = read_list(false, first, list);
    va_end(list);
    return status;
}

static void assert_refused(enum status status, const char *part)
{
    assert_int_equal(status, ST_INVALID);
    if (!strstr(f.error.text, part))
        fail_msg("\"%s\" says nothing of \"%s\"", f.error.text, part);
}

static void assert_accepted(enum status status)
{
    if (status != ST_OK)
        fail_msg("%s", f.error.text);
    serve_config_fini(&f.config);
}

/* -- What is set -- */

static void the_defaults_serve_a_fenced_mirror_on_loopback(void **state)
{
    (void)state;
    assert_int_equal(read_flags(NULL), ST_OK);
    const struct tier_options *tier = &f.config.tier.options;
    assert_string_equal(f.config.tier.server, "https://127.0.0.1:6443");
    assert_ptr_equal(tier->client, &f.config.tier.client);
    assert_string_equal(tier->client->kubeconfig, f.kubeconfig);
    assert_false(tier->client->in_cluster);
    assert_null(tier->client->context);
    assert_int_equal(tier->client->calls_per_second, 0);
    assert_int_equal(tier->reads, TIER_READS_FENCE);
    assert_int_equal(tier->rights_ttl_ns, INT64_C(10000000000));
    assert_int_equal(tier->collection_bytes_max, UINT64_C(4) << 30);
    assert_int_equal(tier->mirror_bytes_max, memory_bytes_here() / 2);
    assert_int_equal(tier->history_bytes_max, UINT64_C(256) << 20);
    assert_int_equal(tier->idle_ns, INT64_C(600000000000));
    assert_int_equal(tier->history_ns, INT64_C(300000000000));
    assert_int_equal(tier->resource_count, 0);
    const struct server_config *server = &f.config.server;
    assert_int_equal(server->listen_count, 1);
    assert_int_equal(server->roles[0], SERVER_KUBE);
    assert_true(slice_is(f.config.listen_texts[0], SERVE_KUBE_URL_DEFAULT));
    assert_int_equal(f.config.client_count, 0);
    assert_false(server->kube_optional); /* an address in use ends the start */
    assert_false(server->kube_wanted);
    assert_false(server->clustered);
    assert_false(server->makes_account_key);
    assert_string_equal(server->engine.data_dir, "vigil.tier");
    serve_config_fini(&f.config);
}

static void every_setting_reaches_the_tier(void **state)
{
    (void)state;
    assert_int_equal(read_flags("--upstream-context=other", "--upstream-resources=pods,nodes",
                                "--upstream-resources=deployments.apps", "--upstream-reads=cached",
                                "--upstream-rights-ttl=3s", "--upstream-resource-bytes=0",
                                "--upstream-mirror-bytes=5368709120", "--kube-history-bytes=0",
                                "--upstream-idle=1h", "--upstream-qps=20", "--kube-history=7m",
                                "--listen-metrics-urls=http://0.0.0.0:9000", NULL),
                     ST_OK);
    const struct tier_options *tier = &f.config.tier.options;
    assert_string_equal(f.config.tier.server, "https://d:2");
    assert_string_equal(tier->client->context, "other");
    assert_int_equal(tier->resource_count, 3);
    assert_true(slice_is(tier->resources[0], "pods"));
    assert_true(slice_is(tier->resources[1], "nodes"));
    assert_true(slice_is(tier->resources[2], "deployments.apps"));
    assert_int_equal(tier->reads, TIER_READS_CACHED);
    assert_int_equal(tier->rights_ttl_ns, INT64_C(3000000000));
    assert_int_equal(tier->collection_bytes_max, 0);
    assert_int_equal(tier->mirror_bytes_max, UINT64_C(5) << 30);
    assert_int_equal(tier->history_bytes_max, 0);
    assert_int_equal(tier->idle_ns, INT64_C(3600000000000));
    assert_int_equal(tier->history_ns, INT64_C(420000000000));
    assert_int_equal(tier->calls_per_second, 20);
    assert_int_equal(f.config.server.listen_count, 2);
    serve_config_fini(&f.config);
    assert_int_equal(read_flags("--upstream-reads=forward", NULL), ST_OK);
    assert_int_equal(tier->reads, TIER_READS_FORWARD);
    serve_config_fini(&f.config);
}

/* The tier impersonates the user that a certificate names: only authorities of users may be given.
 */
static void certificates_of_clients_are_those_of_users(void **state)
{
    (void)state;
    char *url = "--listen-kube-urls=https://0.0.0.0:6444";
    assert_int_equal(
        read_flags(url, "--cert-file=c", "--key-file=k", "--kube-client-ca-file=ca", NULL), ST_OK);
    const struct tls_options *tls = &f.config.server.tls.options;
    assert_string_equal(tls->trusted_ca_file, "ca");
    assert_true(tls->client_cert_optional);
    serve_config_fini(&f.config);
    assert_refused(read_flags(url, "--cert-file=c", "--key-file=k", "--trusted-ca-file=ca", NULL),
                   "use --kube-client-ca-file");
    assert_refused(read_flags(url, "--cert-file=c", "--key-file=k", "--client-cert-auth", NULL),
                   "certificates are optional");
}

/* -- Flags that have no effect, or contradict each other -- */

static void flags_without_effect_are_refused(void **state)
{
    (void)state;
    static char *const flags[] = {
        "--listen-client-urls=http://localhost:1",
        "--advertise-client-urls=http://a:1",
        "--kube-token-file=t",
        "--kube-authorization-mode=RBAC",
        "--kube-bootstrap=false",
        "--quota-backend-bytes=1",
        "--auto-compaction-retention=1",
        "--auth-token=simple",
        "--max-request-bytes=1",
        "--cors=*",
        "--enable-v2",
        "--name=x",
        "--upstream-endpoints=http://a:1",
        "--upstream-prefix=/a",
        "--upstream-user=a:b",
        "--wal-dir=x", /* ignored elsewhere */
        "--experimental-corrupt-check-time=1h",
    };
    for (size_t i = 0; i < COUNT_OF(flags); i++) {
        char name[100];
        const char *canonical = strstr(flags[i], "experimental") ? "--corrupt-check-time" : NULL;
        snprintf(name, sizeof(name), "%.*s cannot be used in front of a kube-apiserver",
                 (int)strcspn(flags[i], "="), flags[i]);
        if (canonical)
            snprintf(name, sizeof(name), "%s cannot be used", canonical);
        assert_refused(read_flags(flags[i], NULL), name);
    }
}

/* A flag that is added to the table is refused until it is known to work. */
static void all_flags_but_those_that_work_are_refused(void **state)
{
    (void)state;
    const struct option *row;
    size_t accepted = 0, refused = 0;
    options_init(&f.options, &serve_table, &f.values);
    f.values.upstream_kubeconfig = f.kubeconfig;
    for (size_t i = 0; (row = options_row(&serve_table, i)); i++) {
        if (row->alias_of || strcmp(row->name, "upstream-context") == 0)
            continue;
        memset(f.options.source, OPTION_FROM_DEFAULT, sizeof(f.options.source));
        f.options.source[i] = OPTION_FROM_FILE;
        enum status status = config_tier_check_flags(&f.options, false, &f.error);
        accepted += status == ST_OK;
        refused += status != ST_OK;
        if (status != ST_OK)
            assert_refused(status, row->name);
        bool is_kube = strncmp(row->name, "kube-", 5) == 0;
        if (is_kube && strncmp(row->name, "kube-history", 12) != 0)
            assert_int_equal(status == ST_OK, strcmp(row->name, "kube-client-ca-file") == 0);
        assert_false(status == ST_OK && row->ignored);
    }
    assert_in_range(accepted, 50, 60);
    assert_true(refused > 100);
}

static void one_server_is_in_front_of_one_other(void **state)
{
    (void)state;
    assert_refused(read_flags("--upstream-in-cluster", NULL), "exclude each other");
    assert_refused(read_only("--upstream-in-cluster", "--upstream-context=c", NULL),
                   "--upstream-context needs --upstream-kubeconfig");
    assert_refused(read_only("--upstream-in-cluster", "--upstream-kubeconfig=", NULL),
                   "--upstream-kubeconfig is empty");
    assert_refused(read_only("--upstream-kubeconfig=", NULL), "--upstream-kubeconfig is empty");
    assert_accepted(read_only("--upstream-in-cluster=false", NULL)); /* a store of its own */
    char *as_etcd[] = {f.flag};
    assert_refused(read_args(1, as_etcd, true), "under the name etcd");
}

static void settings_of_the_tier_need_a_kube_apiserver(void **state)
{
    (void)state;
    static char *const flags[] = {"--upstream-context=c",      "--upstream-resources=pods",
                                  "--upstream-rights-ttl=1s",  "--upstream-resource-bytes=1",
                                  "--upstream-mirror-bytes=1", "--upstream-idle=1h",
                                  "--upstream-qps=1"};
    for (size_t i = 0; i < COUNT_OF(flags); i++) {
        assert_refused(read_only(flags[i], NULL),
                       " needs --upstream-kubeconfig or --upstream-in-cluster");
        assert_refused(read_only("--upstream-endpoints=http://a:1", flags[i], NULL),
                       " cannot be used with --upstream-endpoints");
    }
    assert_refused(read_only("--upstream-reads=forward", NULL),
                   "--upstream-reads needs --upstream-endpoints, --upstream-kubeconfig or");
}

static void each_mode_has_its_own_reads(void **state)
{
    (void)state;
    char *cluster = "--upstream-endpoints=http://a:1";
    assert_refused(read_flags("--upstream-reads=mirror", NULL), "fence, forward or cached");
    assert_refused(read_only(cluster, "--upstream-reads=fence", NULL), "mirror or forward");
    assert_refused(read_only(cluster, "--upstream-reads=cached", NULL), "mirror or forward");
    assert_accepted(read_flags("--upstream-reads=fence", NULL));
    assert_accepted(read_flags("--upstream-reads=auto", NULL));
    assert_accepted(read_only(cluster, "--upstream-reads=auto", NULL));
    assert_accepted(read_only(cluster, "--upstream-reads=mirror", NULL));
}

static void limits_are_checked(void **state)
{
    (void)state;
    assert_refused(read_flags("--kube-history=0", NULL), "must keep changes");
    char resources[1024];
    int len = snprintf(resources, sizeof(resources), "--upstream-resources=pods");
    for (int i = 1; i < 256; i++)
        len += snprintf(resources + len, sizeof(resources) - (size_t)len, ",a");
    assert_accepted(read_flags(resources, NULL));
    snprintf(resources + len, sizeof(resources) - (size_t)len, ",a");
    assert_refused(read_flags(resources, NULL), "at most 256");
}

/* -- URLs -- */

static void tokens_must_not_be_readable_on_their_way(void **state)
{
    (void)state;
    assert_refused(read_flags("--listen-kube-urls=http://0.0.0.0:8001", NULL), "read on their way");
    assert_refused(read_flags("--listen-kube-urls=http://127.0.0.1:1,http://192.0.2.1:1", NULL),
                   "http://192.0.2.1:1");
    assert_accepted(read_flags("--listen-kube-urls=http://[::1]:8001,unix:///tmp/tier", NULL));
    assert_accepted(read_flags("--listen-kube-urls=https://0.0.0.0:8001", "--auto-tls", NULL));
    assert_refused(read_flags("--listen-kube-urls=https://0.0.0.0:8001", NULL), "TLS key/cert");
    assert_refused(read_flags("--listen-kube-urls=", NULL), "needs at least one URL");
    assert_refused(read_flags("--cert-file=c", "--key-file=k", NULL), "https://");
    assert_refused(read_flags("--kube-client-ca-file=ca", NULL), "https://");
    assert_refused(read_flags("--auto-tls", NULL), "https://");
}

static void the_server_is_not_in_front_of_itself(void **state)
{
    (void)state;
    assert_refused(read_flags("--listen-kube-urls=http://127.0.0.1:6443", NULL),
                   "https://127.0.0.1:6443 is an address of this server itself");
    assert_refused(read_flags("--listen-metrics-urls=http://0.0.0.0:6443", NULL), "this server");
}

/* -- The kubeconfig -- */

static void a_kubeconfig_that_cannot_be_used_ends_the_start(void **state)
{
    (void)state;
    static const struct {
        const char *cluster, *user, *says;
    } rows[] = {
        {"insecure-skip-tls-verify: true", "", "has no server"},
        {"server: \"ftp://a\"", "", "ftp://a"},
        {"server: \"https://a\", certificate-authority: /nowhere.pem", "", "/nowhere.pem"},
        {"server: \"https://a\", certificate-authority-data: aGVsbG8=", "", "no certificate"},
        {"server: \"https://a\"", "client-certificate: /nowhere.pem, client-key: /nowhere.pem",
         "/nowhere.pem"},
        {"server: [", "", "line"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        write_kubeconfig(rows[i].cluster, rows[i].user);
        assert_refused(read_flags(NULL), rows[i].says);
        assert_refused(read_flags(NULL), f.kubeconfig);
    }
    write_usual_kubeconfig();
    assert_refused(read_flags("--upstream-context=nowhere", NULL), "\"nowhere\"");
    assert_int_equal(unlink(f.kubeconfig), 0);
    assert_refused(read_flags(NULL), f.kubeconfig);
    unsetenv("KUBERNETES_SERVICE_HOST");
    assert_refused(read_only("--upstream-in-cluster", NULL), "--upstream-in-cluster: ");
}

/* A variable that a script has not set must not make a store of the server. */
static void an_empty_variable_is_refused(void **state)
{
    (void)state;
    char *empty[] = {"VIGIL_UPSTREAM_KUBECONFIG=", NULL};
    char *other[] = {"VIGIL_UPSTREAM_ENDPOINTS=", NULL};
    assert_accepted(read_only(NULL));
    assert_refused(config_upstream_check_variables(&f.options, empty, &f.error),
                   "the environment variable for --upstream-kubeconfig is empty");
    assert_refused(config_upstream_check_variables(&f.options, other, &f.error),
                   "the environment variable for --upstream-endpoints is empty");
    assert_accepted(read_flags(NULL));
    assert_int_equal(config_upstream_check_variables(&f.options, empty, &f.error), ST_OK);
    assert_int_equal(config_upstream_check_variables(&f.options, other, &f.error), ST_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_defaults_serve_a_fenced_mirror_on_loopback),
        TEST(every_setting_reaches_the_tier),
        TEST(certificates_of_clients_are_those_of_users),
        TEST(flags_without_effect_are_refused),
        TEST(all_flags_but_those_that_work_are_refused),
        TEST(one_server_is_in_front_of_one_other),
        TEST(settings_of_the_tier_need_a_kube_apiserver),
        TEST(each_mode_has_its_own_reads),
        TEST(limits_are_checked),
        TEST(tokens_must_not_be_readable_on_their_way),
        TEST(the_server_is_not_in_front_of_itself),
        TEST(a_kubeconfig_that_cannot_be_used_ends_the_start),
        TEST(an_empty_variable_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
