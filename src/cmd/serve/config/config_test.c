#include "cmd/serve/config/config.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct fixture {
    struct options options;
    struct serve_options values;
    struct serve_config config;
    struct error error;
};

/* Parses flags up to NULL. as_etcd is a bool. */
static enum status read_flags(struct fixture *f, int as_etcd, ...)
{
    char *args[32];
    int count = 0, rest;
    va_list list;
    va_start(list, as_etcd);
    while ((args[count] = va_arg(list, char *)))
        count++;
    va_end(list);
    *f = (struct fixture){0};
    options_init(&f->options, as_etcd ? &serve_etcd_table : &serve_table, &f->values);
    enum status status = options_parse_args(&f->options, count, args, &rest, &f->error);
    assert_int_equal(status, ST_OK);
    assert_int_equal(rest, count);
    serve_options_note_given(&f->options, &f->values);
    return serve_config_init(&f->config, &f->values, as_etcd, &f->error);
}

static void assert_refused(enum status status, const struct fixture *f, const char *part)
{
    assert_int_equal(status, ST_INVALID);
    if (!strstr(f->error.text, part))
        fail_msg("\"%s\" says nothing of \"%s\"", f->error.text, part);
}

static void defaults_are_etcds_single_node(void **state)
{
    (void)state;
    struct fixture f;
    assert_int_equal(read_flags(&f, 0, NULL), ST_OK);
    const struct server_config *server = &f.config.server;
    assert_true(f.config.member_id == UINT64_C(0x8e9e05c52164694d));
    assert_true(f.config.cluster_id == UINT64_C(0xcdf818194e3a8c32));
    assert_string_equal(server->engine.data_dir, "vigil.data");
    assert_string_equal(server->etcd.version, "3.7.0");
    assert_string_equal(server->etcd.cluster_version, "3.7.0");
    assert_int_equal(server->etcd.txn_ops_max, 128);
    assert_int_equal(server->etcd.request_bytes_max, 1536 * 1024);
    assert_int_equal(server->wire.grpc.receive_bytes_max, 2 * 1024 * 1024);
    assert_int_equal(server->engine.quota_bytes, INT64_C(2) << 30);
    assert_int_equal(server->compaction_retention, 0);
    assert_int_equal(server->listen_count, 2);
    assert_int_equal(server->roles[1], SERVER_KUBE);
    assert_true(server->kube_optional);
    assert_true(slice_is(server->etcd.client_urls[0], "http://localhost:2379"));
    serve_config_fini(&f.config);
}

/* The shortest TTL is the same as in etcd: one and a half election timeouts. */
static void the_shortest_lease_follows_the_election_timeout(void **state)
{
    (void)state;
    static const struct {
        char *election, *heartbeat;
        int64_t seconds;
    } rows[] = {
        {"--election-timeout=1000", "--heartbeat-interval=100", 2},
        {"--election-timeout=100", "--heartbeat-interval=20", 1},
        {"--election-timeout=5000", "--heartbeat-interval=500", 8},
        {"--election-timeout=0", "--heartbeat-interval=0", 0}, /* the default */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct fixture f;
        assert_int_equal(read_flags(&f, 0, rows[i].election, rows[i].heartbeat, NULL), ST_OK);
        assert_int_equal(f.config.server.engine.lease_ttl_min_s, rows[i].seconds);
        serve_config_fini(&f.config);
    }
}

/* A limit that is changed in its layer must be changed in the table of flags too. */
static void defaults_of_the_flags_are_those_of_the_layers(void **state)
{
    (void)state;
    struct fixture f;
    struct wire_limits wire = WIRE_LIMITS_DEFAULT;
    struct net_options net = NET_OPTIONS_DEFAULT;
    assert_int_equal(read_flags(&f, 0, NULL), ST_OK);
#define SAME(field) assert_true(f.config.server.wire.field == wire.field)
    SAME(h2.streams_max);
    SAME(h2.header_list_bytes);
    SAME(h2.header_fields_max);
    SAME(h2.reset_burst);
    SAME(h2.reset_per_s);
    SAME(h2.settings_burst);
    SAME(h2.stream_window);
    SAME(h2.connection_window);
    SAME(h2.ping_strikes);
    SAME(h2.ping_interval_ns);
    SAME(h2.ping_idle_ns);
    SAME(h2.keepalive_ns);
    SAME(h2.keepalive_timeout_ns);
    SAME(grpc.receive_bytes_max);
    SAME(grpc.arena_bytes_max);
    SAME(grpc.queued_bytes_soft);
    SAME(grpc.message_ns);
    SAME(http.message_ns);
    SAME(grpc.stall_ns);
    SAME(http1.head_bytes_max);
    SAME(http1.head_ns);
    SAME(http1.idle_ns);
    SAME(http.stall_ns);
    SAME(handshake_ns);
    assert_true(f.config.server.net.connections_max == net.connections_max);
    assert_true(f.config.server.net.stall_ns == net.stall_ns);
    assert_true(f.config.server.net.drain_ns == net.drain_ns);
    serve_config_fini(&f.config);
}

static void data_directory_is_named_as_etcd_names_it(void **state)
{
    (void)state;
    struct fixture f;
    assert_int_equal(read_flags(&f, 1, "--name", "n1", NULL), ST_OK);
    assert_string_equal(f.config.server.engine.data_dir, "n1.etcd");
    serve_config_fini(&f.config);
    assert_int_equal(read_flags(&f, 1, "--data-dir=/x", NULL), ST_OK);
    assert_string_equal(f.config.server.engine.data_dir, "/x");
    serve_config_fini(&f.config);
}

static void reported_version_can_be_changed(void **state)
{
    (void)state;
    struct fixture f;
    assert_int_equal(read_flags(&f, 0, "--emulate-version=3.6.12", NULL), ST_OK);
    assert_string_equal(f.config.server.etcd.version, "3.6.12");
    assert_string_equal(f.config.server.etcd.cluster_version, "3.6.0");
    serve_config_fini(&f.config);
    static const char *const before[] = {"3.8.0-alpha.0", "3.7.1-rc", "3.7.0-rc.1+git.5",
                                         "3.7.0+x"};
    for (size_t i = 0; i < COUNT_OF(before); i++) {
        assert_int_equal(read_flags(&f, 0, "--emulate-version", before[i], NULL), ST_OK);
        assert_string_equal(f.config.server.etcd.version, before[i]);
        assert_string_equal(f.config.server.etcd.cluster_version, i ? "3.7.0" : "3.8.0");
        serve_config_fini(&f.config);
    }
}

static void member_comes_from_the_initial_cluster(void **state)
{
    (void)state;
    struct fixture f;
    assert_int_equal(
        read_flags(&f, 0, "--name=a", "--initial-cluster", "a=http://h:1,a=http://h:2", NULL),
        ST_OK);
    assert_int_equal(f.config.server.etcd.peer_url_count, 2);
    assert_true(slice_is(f.config.server.etcd.peer_urls[1], "http://h:2"));
    serve_config_fini(&f.config);
}

static void invalid_flags_are_explained(void **state)
{
    (void)state;
    struct fixture f;
    assert_refused(read_flags(&f, 0, "--initial-cluster=a=http://h:1,b=http://h:2", NULL), &f,
                   "one node");
    assert_refused(read_flags(&f, 0, "--initial-cluster=http://h:1", NULL), &f, "NAME=URL");
    assert_refused(read_flags(&f, 0, "--emulate-version=4.0.0", NULL), &f, "4.0.0");
    assert_refused(read_flags(&f, 0, "--emulate-version=3.7", NULL), &f, "3.7");
    assert_refused(read_flags(&f, 0, "--emulate-version=3.7.1-", NULL), &f, "3.7.1-");
    assert_refused(read_flags(&f, 0, "--emulate-version=3.7.1-rc..1", NULL), &f, "3.7.1-rc..1");
    assert_refused(read_flags(&f, 0, "--emulate-version=3.7.1-rc 1", NULL), &f, "3.7.1-rc 1");
    assert_refused(read_flags(&f, 0, "--emulate-version=3.7.1rc", NULL), &f, "3.7.1rc");
    char long_version[128] = "--emulate-version=3.7.1-";
    memset(long_version + strlen(long_version), 'a', 70);
    assert_refused(read_flags(&f, 0, long_version, NULL), &f, "3.7.1-aaa");
    assert_refused(read_flags(&f, 0, "--emulate-version=3.1234.0", NULL), &f, "3.1234.0");
    assert_refused(read_flags(&f, 0, "--listen-client-urls=localhost:1", NULL), &f,
                   "--listen-client-urls");
    assert_refused(read_flags(&f, 0, "--listen-client-urls=", NULL), &f, "at least one URL");
    assert_refused(read_flags(&f, 0, "--advertise-client-urls=ftp://x:1", NULL), &f,
                   "--advertise-client-urls");
}

static void kubernetes_is_served_to_this_machine_unless_clients_are_known(void **state)
{
    (void)state;
    struct fixture f;
    assert_int_equal(read_flags(&f, 1, NULL), ST_OK);
    assert_int_equal(f.config.server.listen_count, 1);
    assert_false(f.config.server.kube_wanted);
    serve_config_fini(&f.config);
    assert_int_equal(read_flags(&f, 0, "--listen-kube-urls=", NULL), ST_OK);
    assert_int_equal(f.config.server.listen_count, 1);
    serve_config_fini(&f.config);
    assert_int_equal(read_flags(&f, 1, "--listen-kube-urls=http://[::1]:1", NULL), ST_OK);
    assert_true(f.config.server.kube_wanted);
    assert_false(f.config.server.kube_optional);
    serve_config_fini(&f.config);

    assert_refused(read_flags(&f, 0, "--listen-kube-urls=http://0.0.0.0:1", NULL), &f,
                   "let everyone in");
    assert_refused(read_flags(&f, 0, "--listen-kube-urls=https://10.0.0.1:1", "--auto-tls", NULL),
                   &f, "let everyone in");
    assert_int_equal(read_flags(&f, 0, "--listen-kube-urls=https://10.0.0.1:1", "--cert-file=a",
                                "--key-file=b", "--trusted-ca-file=c", "--client-cert-auth", NULL),
                     ST_OK);
    serve_config_fini(&f.config);
}

static void assert_withheld(const char *reason, char *flag, char *other, char *third)
{
    struct fixture f;
    if (!other)
        assert_int_equal(read_flags(&f, 0, flag, NULL), ST_OK);
    else
        assert_int_equal(read_flags(&f, 0, flag, other, third, "--key-file=k", NULL), ST_OK);
    assert_string_equal(f.config.kube_withheld ? f.config.kube_withheld : "", reason);
    assert_int_equal(f.config.server.kube_wanted, !*reason);
    serve_config_fini(&f.config);
}

/* A client that the client URLs refuse must not get in through a default listener. */
static void kubernetes_with_rules_is_served_to_other_machines(void **state)
{
    (void)state;
    struct fixture f;
    const char *url = "--listen-kube-urls=https://10.0.0.1:1";
    assert_int_equal(read_flags(&f, 0, url, "--auto-tls", "--kube-authorization-mode=RBAC", NULL),
                     ST_OK);
    assert_int_equal(f.config.server.kube.authorization, KUBE_AUTHORIZATION_RBAC);
    serve_config_fini(&f.config);
    assert_refused(read_flags(&f, 0, "--listen-kube-urls=http://10.0.0.1:1",
                              "--kube-authorization-mode=RBAC", NULL),
                   &f, "everyone");
}

static void keys_of_service_accounts_need_an_issuer(void **state)
{
    (void)state;
    struct fixture f;
    assert_refused(read_flags(&f, 0, "--kube-service-account-key-file=/nowhere", NULL), &f,
                   "--kube-service-account-issuer");
    enum status status = read_flags(&f, 0, "--kube-service-account-key-file=/nowhere",
                                    "--kube-service-account-issuer=https://a/", NULL);
    assert_int_not_equal(status, ST_OK);
    assert_non_null(strstr(f.error.text, "/nowhere"));
}

static void kubernetes_is_served_by_default_only_with_open_client_urls(void **state)
{
    (void)state;
    assert_withheld("", "--listen-client-urls=http://127.0.0.1:1,http://[::1]:2", NULL, NULL);
    assert_withheld("", "--listen-metrics-urls=http://0.0.0.0:1", NULL, NULL);
    assert_withheld("a client URL is not on loopback", "--listen-client-urls=http://0.0.0.0:1",
                    NULL, NULL);
    assert_withheld("a client URL is a Unix socket", "--listen-client-urls=unix://x", NULL, NULL);
    assert_withheld("a client URL uses TLS",
                    "--listen-client-urls=http://127.0.0.1:1,https://127.0.0.1:2", "--cert-file=c",
                    "--name=a");
    assert_withheld("a client URL uses TLS", "--listen-client-http-urls=https://127.0.0.1:2",
                    "--cert-file=c", "--name=a");
    assert_withheld("clients need a certificate", "--client-cert-auth", "--cert-file=c",
                    "--trusted-ca-file=a");
    assert_withheld("clients need a certificate", "--trusted-ca-file=a", "--cert-file=c",
                    "--name=a");
}

#define UPSTREAM "--upstream-endpoints=http://a:1"

/* Its watches come from the mirror, so all of its keys must be mirrored. */
static void kubernetes_needs_its_prefix_in_front_of_a_cluster(void **state)
{
    (void)state;
    static const struct {
        char *prefixes;
        bool served;
    } rows[] = {
        {"--upstream-prefix=/a/,/registry/", true}, {"--upstream-prefix=/", true},
        {"--upstream-prefix=/a/", false},           {"--upstream-prefix=/registry/pods/", false},
        {"--upstream-reads=mirror", true}, /* everything is mirrored */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct fixture f;
        assert_int_equal(read_flags(&f, 0, UPSTREAM, rows[i].prefixes, NULL), ST_OK);
        assert_int_equal(f.config.server.kube_wanted, rows[i].served);
        assert_int_equal(f.config.server.kube.compaction_s, 300);
        serve_config_fini(&f.config);
        assert_int_equal(read_flags(&f, 0, UPSTREAM, rows[i].prefixes, "--listen-kube-urls=", NULL),
                         ST_OK);
        assert_false(f.config.server.kube_wanted);
        serve_config_fini(&f.config);
        enum status status = read_flags(&f, 0, UPSTREAM, rows[i].prefixes,
                                        "--listen-kube-urls=http://127.0.0.1:1", NULL);
        if (rows[i].served) {
            assert_int_equal(status, ST_OK);
            serve_config_fini(&f.config);
        } else {
            assert_refused(status, &f, "--upstream-prefix=/registry/");
        }
    }
}

static void kubernetes_refuses_clients_that_the_client_urls_refuse(void **state)
{
    (void)state;
    struct fixture f;
    assert_refused(read_flags(&f, 0, "--listen-kube-urls=http://127.0.0.1:1", "--cert-file=c",
                              "--key-file=k", "--trusted-ca-file=a", "--client-cert-auth", NULL),
                   &f, "let every user of this machine in");
    assert_refused(read_flags(&f, 0, "--listen-kube-urls=http://127.0.0.1:1", "--cert-file=c",
                              "--key-file=k", "--trusted-ca-file=a", NULL),
                   &f, "let every user of this machine in");
    assert_refused(read_flags(&f, 0, "--listen-kube-urls=http://127.0.0.1:1",
                              "--listen-client-urls=unix://x", NULL),
                   &f, "let every user of this machine in");
    assert_refused(read_flags(&f, 0, "--listen-kube-urls=https://127.0.0.1:1", "--auto-tls",
                              "--listen-client-urls=unix://x", NULL),
                   &f, "let every user of this machine in");
    assert_int_equal(read_flags(&f, 0, "--listen-kube-urls=https://127.0.0.1:1", "--cert-file=c",
                                "--key-file=k", "--trusted-ca-file=a", "--client-cert-auth", NULL),
                     ST_OK);
    assert_true(f.config.server.kube_wanted);
    serve_config_fini(&f.config);
    assert_int_equal(
        read_flags(&f, 0, "--listen-kube-urls=unix://k", "--listen-client-urls=unix://x", NULL),
        ST_OK);
    serve_config_fini(&f.config);
}

/* Requests from any web page, which etcd accepts, are refused on loopback unless a flag allows
 * them. */
static void browser_pages_are_refused_except_under_the_name_etcd(void **state)
{
    (void)state;
    struct fixture f;
    assert_int_equal(read_flags(&f, 0, NULL), ST_OK);
    assert_true(f.config.server.guards_pages);
    assert_false(f.config.server.etcd.origins_given || f.config.server.etcd.hosts_given);
    serve_config_fini(&f.config);
    assert_int_equal(read_flags(&f, 0, "--cors=*", NULL), ST_OK);
    assert_true(f.config.server.etcd.origins_given);
    assert_false(f.config.server.etcd.hosts_given);
    serve_config_fini(&f.config);
    assert_int_equal(read_flags(&f, 0, "--host-whitelist=*", NULL), ST_OK);
    assert_false(f.config.server.etcd.origins_given);
    assert_true(f.config.server.etcd.hosts_given);
    serve_config_fini(&f.config);
    assert_int_equal(read_flags(&f, 1, NULL), ST_OK);
    assert_false(f.config.server.guards_pages);
    serve_config_fini(&f.config);
}

static void http_and_metrics_urls_are_added_to_client_urls(void **state)
{
    (void)state;
    struct fixture f;
    assert_int_equal(read_flags(&f, 0, "--listen-client-urls=http://127.0.0.1:1",
                                "--listen-metrics-urls=http://127.0.0.1:2", NULL),
                     ST_OK);
    assert_int_equal(f.config.server.listen_count, 3);
    assert_int_equal(f.config.server.roles[0], SERVER_CLIENTS);
    assert_int_equal(f.config.server.roles[1], SERVER_METRICS);
    serve_config_fini(&f.config);

    assert_int_equal(read_flags(&f, 0, "--listen-client-urls=http://127.0.0.1:1,http://127.0.0.1:2",
                                "--listen-client-http-urls=http://127.0.0.1:3",
                                "--cors=http://a:1,http://b:2", "--host-whitelist=x", NULL),
                     ST_OK);
    assert_int_equal(f.config.server.listen_count, 4);
    assert_int_equal(f.config.client_count, 2);
    assert_int_equal(f.config.server.roles[1], SERVER_GRPC);
    assert_int_equal(f.config.server.roles[2], SERVER_HTTP);
    assert_int_equal(f.config.server.etcd.origin_count, 2);
    assert_true(slice_is(f.config.server.etcd.hosts[0], "x"));
    serve_config_fini(&f.config);

    assert_refused(read_flags(&f, 0, "--cors=http://a", NULL), &f, "--cors");
    assert_refused(read_flags(&f, 0, "--listen-metrics-urls=nowhere", NULL), &f,
                   "--listen-metrics-urls");
    assert_refused(read_flags(&f, 0, "--listen-metrics-urls=https://127.0.0.1:2", NULL), &f,
                   "must be provided for metrics secure url");
}

static void every_limit_reaches_its_layer(void **state)
{
    (void)state;
    struct fixture f;
    assert_int_equal(read_flags(&f, 0, "--max-connections=7", "--max-concurrent-streams=8",
                                "--max-header-bytes=2048", "--max-client-bytes=8M",
                                "--handshake-timeout=3s", "--response-stall-timeout=4s",
                                "--reset-burst=5", "--reset-rate=6", "--ping-strikes=9",
                                "--grpc-keepalive-min-time=10s", "--io-threads=3",
                                "--segment-bytes=8M", "--checkpoint-bytes=9M",
                                "--max-request-bytes=4096", "--shutdown-timeout=11s", NULL),
                     ST_OK);
    const struct server_config *server = &f.config.server;
    assert_int_equal(server->net.connections_max, 7);
    assert_int_equal(server->wire.h2.streams_max, 8);
    assert_int_equal(server->wire.h2.header_list_bytes, 2048);
    assert_int_equal(server->client_bytes_max, 8 << 20);
    assert_int_equal(server->wire.handshake_ns, 3 * NS_PER_S);
    assert_int_equal(server->wire.grpc.stall_ns, 4 * NS_PER_S);
    assert_int_equal(server->wire.http.stall_ns, 4 * NS_PER_S);
    assert_int_equal(server->net.stall_ns, 4 * NS_PER_S);
    assert_int_equal(server->wire.h2.reset_burst, 5);
    assert_int_equal(server->wire.h2.reset_per_s, 6);
    assert_int_equal(server->wire.h2.ping_strikes, 9);
    assert_int_equal(server->wire.h2.ping_interval_ns, 10 * NS_PER_S);
    assert_int_equal(server->net.shards, 3);
    assert_int_equal(server->net.drain_ns, 11 * NS_PER_S);
    assert_int_equal(server->engine.segment_bytes_max, 8 << 20);
    assert_int_equal(server->engine.checkpoint_bytes, 9 << 20);
    assert_int_equal(server->wire.grpc.receive_bytes_max, 4096 + 512 * 1024);
    serve_config_fini(&f.config);
}

/* The messages are those of etcd. */
static void flags_of_tls_are_checked_as_etcd_does(void **state)
{
    (void)state;
    static const struct {
        const char *flag, *other, *text;
    } rows[] = {
        {"--tls-min-version=TLS1.3", "--tls-max-version=TLS1.2",
         "min version (TLS1.3) is greater than max version (TLS1.2)"},
        {"--tls-min-version=TLS1.1", "--name=a",
         "unexpected TLS version \"TLS1.1\" (must be one of: TLS1.2, TLS1.3)"},
        {"--tls-max-version=1.3", "--name=a", "unexpected TLS version \"1.3\""},
        {"--cipher-suites=TLS_X", "--name=a", "unexpected TLS cipher suite \"TLS_X\""},
        {"--cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "--tls-min-version=TLS1.3",
         "cipher suites cannot be configured when only TLS1.3 is enabled"},
        {"--cert-file=/c", "--name=a",
         "KeyFile and CertFile must both be present[key: , cert: /c]"},
        {"--client-cert-allowed-cn=a", "--client-cert-allowed-hostname=b", "mutually exclusive"},
        {"--listen-client-urls=https://127.0.0.1:1", "--name=a",
         "TLS key/cert (--cert-file, --key-file) must be provided for client url "
         "https://127.0.0.1:1 with HTTPS scheme"},
        {"--listen-client-urls=http://127.0.0.1:2,unixs://x", "--name=a", "client url unixs://x"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct fixture f;
        assert_refused(read_flags(&f, 0, rows[i].flag, rows[i].other, NULL), &f, rows[i].text);
    }
    struct fixture f;
    assert_int_equal(read_flags(&f, 0, "--listen-client-urls=https://127.0.0.1:1", "--auto-tls",
                                "--max-tls-handshakes=5", "--max-tls-handshake-bytes=8K",
                                "--handshake-timeout=3s", NULL),
                     ST_OK);
    const struct net_tls_limits *limits = &f.config.server.tls.limits;
    assert_int_equal(limits->handshakes_max, 5);
    assert_int_equal(limits->handshake_bytes, 8192);
    assert_int_equal(limits->handshake_ns, 3 * NS_PER_S);
    serve_config_fini(&f.config);
}

/* A row has a field for its value or says why it needs none; aliases name existing flags. */
static void every_flag_has_an_effect_or_says_why_not(void **state)
{
    (void)state;
    const struct option *row;
    for (size_t i = 0; (row = options_row(&serve_table, i)); i++) {
        if (row->alias_of)
            continue;
        if (row->offset == OPTION_NOWHERE)
            assert_non_null(row->ignored);
        else
            assert_non_null(row->help);
        assert_true(!row->refused || row->ignored);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_etcds_single_node),
        cmocka_unit_test(the_shortest_lease_follows_the_election_timeout),
        cmocka_unit_test(defaults_of_the_flags_are_those_of_the_layers),
        cmocka_unit_test(data_directory_is_named_as_etcd_names_it),
        cmocka_unit_test(reported_version_can_be_changed),
        cmocka_unit_test(member_comes_from_the_initial_cluster),
        cmocka_unit_test(invalid_flags_are_explained),
        cmocka_unit_test(kubernetes_is_served_to_this_machine_unless_clients_are_known),
        cmocka_unit_test(kubernetes_with_rules_is_served_to_other_machines),
        cmocka_unit_test(keys_of_service_accounts_need_an_issuer),
        cmocka_unit_test(kubernetes_is_served_by_default_only_with_open_client_urls),
        cmocka_unit_test(kubernetes_needs_its_prefix_in_front_of_a_cluster),
        cmocka_unit_test(kubernetes_refuses_clients_that_the_client_urls_refuse),
        cmocka_unit_test(browser_pages_are_refused_except_under_the_name_etcd),
        cmocka_unit_test(http_and_metrics_urls_are_added_to_client_urls),
        cmocka_unit_test(every_limit_reaches_its_layer),
        cmocka_unit_test(flags_of_tls_are_checked_as_etcd_does),
        cmocka_unit_test(every_flag_has_an_effect_or_says_why_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
