/* Which clients are admitted: their certificates, authorities, names and revocations; and files
 * that change while the server runs. */
#include "net/tls/pair_test.h"

#include <fcntl.h>
#include <sys/stat.h>

static void pair_use(struct pair *p, const struct test_identity *identity)
{
    assert_int_equal(SSL_CTX_use_certificate(p->ctx, identity->certificate), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(p->ctx, identity->key), 1);
}

/* Connects with that identity (NULL: none) and sends something. True: it was answered. */
static bool is_let_in(struct world *w, const struct test_identity *identity, int version)
{
    struct pair p;
    pair_init(&p, w);
    SSL_CTX_set_max_proto_version(p.ctx, version);
    if (identity)
        pair_use(&p, identity);
    pair_dial(&p);
    pair_run(&p, ROOM);
    if (SSL_is_init_finished(p.client) && !p.over) {
        client_say(&p, "e x");
        pair_run(&p, ROOM);
    }
    bool answered = client_heard(&p, "e x");
    assert_int_equal(answered, !p.over);
    pair_fini(&p);
    return answered;
}

static void require_certificates(struct world *w)
{
    w->options.trusted_ca_file = w->certs.ca_file; /* sufficient, as in etcd */
}

static void clients_are_admitted_by_their_certificates(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    require_certificates(&w);
    w.options.crl_file = w.certs.crl_file;
    test_write_crl(&w.certs, 0x1234ab, false);
    world_begin(&w);
    struct test_identity other_ca =
        test_identity_make(TEST_WISH(.common_name = "ca", .authority = true), NULL);
    struct {
        struct test_wish wish;
        const struct test_identity *issuer;
        const char *reason; /* NULL: admitted */
    } rows[] = {
        {TEST_WISH(.common_name = "good", .usage = "clientAuth"), &w.certs.ca, NULL},
        {TEST_WISH(.common_name = "no usage"), &w.certs.ca, NULL},
        {TEST_WISH(.common_name = "unknown"), &other_ca,
         "tls: failed to verify certificate: x509: certificate signed by unknown authority"},
        {TEST_WISH(.common_name = "self"), NULL,
         "tls: failed to verify certificate: x509: certificate signed by unknown authority"},
        {TEST_WISH(.common_name = "late", .begin_s = -9 * TEST_DAY_S, .end_s = -1), &w.certs.ca,
         "tls: failed to verify certificate: x509: certificate has expired or is not yet valid"},
        {TEST_WISH(.common_name = "early", .begin_s = 600), &w.certs.ca,
         "tls: failed to verify certificate: x509: certificate has expired or is not yet valid"},
        {TEST_WISH(.common_name = "server", .usage = "serverAuth"), &w.certs.ca,
         "tls: failed to verify certificate: x509: certificate specifies an incompatible key "
         "usage"},
        {TEST_WISH(.common_name = "revoked", .serial = 0x1234ab,
                   .names = "DNS:a.example,DNS:b.example,IP:10.0.0.1"),
         &w.certs.ca, "transport: certificate serial 1234ab revoked"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct test_identity client = test_identity_make(rows[i].wish, rows[i].issuer);
        for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
            w.rejections = 0;
            assert_int_equal(is_let_in(&w, &client, version), rows[i].reason == NULL);
            assert_int_equal(w.rejections, rows[i].reason != NULL);
            if (rows[i].reason)
                assert_string_equal(w.reason, rows[i].reason);
        }
        test_identity_free(&client);
    }
    assert_string_equal(w.dns_names, "a.example,b.example");
    assert_string_equal(w.ip_addresses, "10.0.0.1");
    assert_string_equal(w.server_name, "localhost");
    assert_false(is_let_in(&w, NULL, TLS1_3_VERSION));
    assert_string_equal(w.reason, "tls: client didn't provide a certificate");
    test_identity_free(&other_ca);
    world_fini(&w);
}

static void certificates_of_an_intermediate_are_admitted_with_it(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    require_certificates(&w);
    w.options.crl_file = w.certs.crl_file;
    test_write_crl(&w.certs, 99, true);
    world_begin(&w);
    for (long serial = 98; serial <= 99; serial++) {
        struct test_identity between = test_identity_make(
            TEST_WISH(.common_name = "between", .authority = true, .serial = serial), &w.certs.ca);
        struct test_identity client =
            test_identity_make(TEST_WISH(.common_name = "c", .serial = 5), &between);
        struct pair p;
        pair_init(&p, &w);
        pair_use(&p, &client);
        assert_int_equal(SSL_CTX_add1_chain_cert(p.ctx, between.certificate), 1);
        pair_dial(&p);
        pair_run(&p, ROOM);
        assert_int_equal(p.over, serial == 99);
        pair_fini(&p);
        assert_false(
            serial == 98 &&
            is_let_in(&w, &client, TLS1_3_VERSION)); /* without the intermediate certificate */
        test_identity_free(&client);
        test_identity_free(&between);
    }
    assert_string_equal(w.reason, "transport: certificate serial 63 revoked");
    world_fini(&w);
}

/* As in Go, every certificate in the file is trusted, also one that another one signed. */
static void intermediate_authority_may_be_the_trusted_one(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    struct test_identity between =
        test_identity_make(TEST_WISH(.common_name = "between", .authority = true), &w.certs.ca);
    struct test_identity client = test_identity_make(TEST_WISH(.common_name = "c"), &between);
    struct test_identity other = test_identity_make(TEST_WISH(.common_name = "c"), &w.certs.ca);
    test_write_certificate(w.certs.ca_file, between.certificate);
    require_certificates(&w);
    world_begin(&w);
    assert_true(is_let_in(&w, &client, TLS1_3_VERSION));
    assert_false(is_let_in(&w, &other, TLS1_3_VERSION));
    test_identity_free(&client);
    test_identity_free(&other);
    test_identity_free(&between);
    world_fini(&w);
}

static void only_allowed_names_are_admitted(void **state)
{
    (void)state;
    static const struct {
        const char *cns, *hostnames, *common_name, *names;
        bool in;
    } rows[] = {
        {"", "", NULL, NULL, true},
        {"a", "", "a", NULL, true},
        {"a", "", "b", NULL, false},
        {"a,b", "", "b", NULL, true},
        {"a", "", NULL, NULL, false},
        {"a", "", "x", "DNS:a", false},
        {"a", "", "A", NULL, false},
        {"", "a.b", "a.b", NULL, false},
        {"", "a.b", NULL, "DNS:a.b", true},
        {"", "c,a.b", NULL, "DNS:a.b", true},
        {"", "x.a.b", NULL, "DNS:*.a.b", true},
        {"", "y.x.a.b", NULL, "DNS:*.a.b", false},
        {"", ".b", NULL, "DNS:a.b", false},
        {"", "10.0.0.1", NULL, "IP:10.0.0.1", true},
        {"", "10.0.0.1", NULL, "DNS:10.0.0.1", false},
        {"", "[::1]", NULL, "IP:::1", true},
        {"", "10.0.0.2", NULL, "IP:10.0.0.1", false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct world w;
        world_init(&w);
        require_certificates(&w);
        w.options.allowed_cns = rows[i].cns;
        w.options.allowed_hostnames = rows[i].hostnames;
        world_begin(&w);
        struct test_identity client = test_identity_make(
            TEST_WISH(.common_name = rows[i].common_name, .names = rows[i].names), &w.certs.ca);
        if (is_let_in(&w, &client, TLS1_3_VERSION) != rows[i].in)
            fail_msg("row %zu: %s", i, w.reason);
        if (!rows[i].in)
            assert_string_equal(w.reason, "client certificate authentication failed");
        test_identity_free(&client);
        world_fini(&w);
    }
}

/* -- what the inner protocol learns -- */

static char seen_name[64];
static bool seen_secure;

static enum status spying_open(void *shared, struct protocol_hooks hooks, int64_t now_ns,
                               void **ret_protocol)
{
    snprintf(seen_name, sizeof(seen_name), "%s", hooks.peer_name ? hooks.peer_name : "-");
    seen_secure = hooks.secure;
    return echo_open(shared, hooks, now_ns, ret_protocol);
}

static void inner_protocol_learns_the_common_name(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    require_certificates(&w);
    world_begin(&w);
    w.inner.open = spying_open;
    struct test_identity client =
        test_identity_make(TEST_WISH(.common_name = "j\xc3\xbcrgen"), &w.certs.ca);
    assert_true(is_let_in(&w, &client, TLS1_3_VERSION));
    assert_string_equal(seen_name, "j\xc3\xbcrgen");
    assert_true(seen_secure);
    test_identity_free(&client);
    client = test_identity_make(TEST_WISH(.common_name = NULL), &w.certs.ca);
    assert_true(is_let_in(&w, &client, TLS1_2_VERSION));
    assert_string_equal(seen_name, "-");
    test_identity_free(&client);
    world_fini(&w);

    world_init(&w); /* a certificate that was not requested is ignored */
    w.tls.plain_too = true;
    world_begin(&w);
    w.inner.open = spying_open;
    client = test_identity_make(TEST_WISH(.common_name = "root"), NULL);
    assert_true(is_let_in(&w, &client, TLS1_3_VERSION));
    assert_string_equal(seen_name, "-");
    struct pair p;
    pair_init(&p, &w);
    server_feed(&p, slice_of("\0\0\0\1e", 5));
    assert_false(seen_secure);
    pair_fini(&p);
    test_identity_free(&client);
    world_fini(&w);
}

/* -- versions and ciphers -- */

static void versions_outside_the_range_are_refused(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.options.min_version = TLS_VERSION_1_3;
    world_begin(&w);
    assert_true(is_let_in(&w, NULL, TLS1_3_VERSION));
    assert_false(is_let_in(&w, NULL, TLS1_2_VERSION));
    assert_string_equal(w.reason, "tls: client offered only unsupported versions");
    world_fini(&w);

    world_init(&w);
    w.options.max_version = TLS_VERSION_1_2;
    world_begin(&w);
    struct pair p;
    connect_pair(&p, &w);
    assert_string_equal(SSL_get_version(p.client), "TLSv1.2");
    pair_fini(&p);
    world_fini(&w);
}

static void ciphers_are_chosen_by_the_names_of_go(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.options.cipher_suites =
        "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA,TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305";
    w.options.max_version = TLS_VERSION_1_2;
    world_begin(&w);
    struct pair p;
    connect_pair(&p, &w);
    assert_string_equal(SSL_get_cipher_name(p.client), "ECDHE-ECDSA-AES256-SHA");
    pair_fini(&p);
    pair_init(&p, &w);
    SSL_CTX_set_cipher_list(p.ctx, "ECDHE-ECDSA-AES128-GCM-SHA256");
    pair_dial(&p);
    pair_run(&p, ROOM);
    assert_true(p.over);
    assert_string_equal(w.reason, "tls: no cipher suite supported by both client and server");
    pair_fini(&p);
    world_fini(&w);

    world_init(&w); /* only ciphers of TLS 1.3: TLS 1.2 is not possible */
    w.options.cipher_suites = "TLS_AES_128_GCM_SHA256";
    world_begin(&w);
    assert_true(is_let_in(&w, NULL, TLS1_3_VERSION));
    assert_false(is_let_in(&w, NULL, TLS1_2_VERSION));
    world_fini(&w);
}

/* -- files that change -- */

static bool sees_server(struct world *w, const struct test_identity *expected)
{
    struct pair p;
    connect_pair(&p, w);
    X509 *shown = SSL_get0_peer_certificate(p.client);
    bool same = shown && X509_cmp(shown, expected->certificate) == 0;
    pair_fini(&p);
    return same;
}

static struct test_identity make_server(struct world *w, long serial)
{
    return test_identity_make(TEST_WISH(.common_name = "server", .names = "DNS:localhost",
                                        .usage = "serverAuth", .serial = serial),
                              &w->certs.ca);
}

static void replaced_certificate_is_shown_to_new_connections_only(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_begin(&w);
    struct pair old;
    connect_pair(&old, &w);
    for (long i = 0; i < 5; i++) {
        struct test_identity next = make_server(&w, 100 + i);
        assert_false(sees_server(&w, &next));
        test_write_certificate(w.certs.cert_file, next.certificate);
        assert_false(
            sees_server(&w, &next)); /* the key does not match: the old pair stays in use */
        assert_int_equal(w.failures, i + 1);
        assert_non_null(strstr(w.failure, "tls: private key does not match public key"));
        assert_false(sees_server(&w, &next));
        assert_int_equal(w.failures, i + 1); /* reported once */
        test_write_key(w.certs.key_file, next.key);
        assert_true(sees_server(&w, &next));
        assert_int_equal(w.reloads, i + 1);
        test_identity_free(&next);
    }
    client_say(&old, "e still there");
    pair_run(&old, ROOM);
    assert_true(client_heard(&old, "e still there"));
    pair_fini(&old);
    assert_int_equal(w.rejections, 0);
    world_fini(&w);
}

static void missing_and_damaged_files_leave_the_old_ones_in_use(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    require_certificates(&w);
    world_begin(&w);
    struct test_identity client = test_identity_make(TEST_WISH(.common_name = "c"), &w.certs.ca);
    const char *const files[] = {w.certs.cert_file, w.certs.key_file, w.certs.ca_file};
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        test_write_text(files[i], "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
        assert_true(is_let_in(&w, &client, TLS1_3_VERSION));
        assert_non_null(strstr(w.failure, files[i]));
        test_write_text(files[i], "");
        assert_true(is_let_in(&w, &client, TLS1_3_VERSION));
        assert_int_equal(unlink(files[i]), 0);
        assert_true(is_let_in(&w, &client, TLS1_3_VERSION));
        assert_non_null(strstr(w.failure, "No such file or directory"));
        test_certs_write_server(&w.certs);
        test_write_certificate(w.certs.ca_file, w.certs.ca.certificate);
        assert_true(is_let_in(&w, &client, TLS1_3_VERSION));
    }
    unlink(w.certs.key_file);
    assert_int_equal(mkfifo(w.certs.key_file, 0600), 0); /* opening a pipe must not block */
    assert_true(is_let_in(&w, &client, TLS1_3_VERSION));
    assert_non_null(strstr(w.failure, "not a file"));
    test_identity_free(&client);
    world_fini(&w);
}

static void changed_revocations_are_read_again(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    require_certificates(&w);
    w.options.crl_file = w.certs.crl_file;
    test_write_crl(&w.certs, 1, false);
    world_begin(&w);
    struct test_identity client =
        test_identity_make(TEST_WISH(.common_name = "c", .serial = 77), &w.certs.ca);
    struct pair before;
    pair_init(&before, &w);
    pair_use(&before, &client);
    pair_dial(&before);
    pair_run(&before, ROOM);
    assert_true(is_let_in(&w, &client, TLS1_3_VERSION));
    test_write_crl(&w.certs, 77, false);
    assert_false(is_let_in(&w, &client, TLS1_3_VERSION));
    assert_false(is_let_in(&w, &client, TLS1_2_VERSION));
    test_write_crl(&w.certs, 78, true);
    assert_true(is_let_in(&w, &client, TLS1_3_VERSION));
    client_say(&before, "e still there");
    pair_run(&before, ROOM);
    assert_true(client_heard(&before, "e still there"));
    pair_fini(&before);
    test_identity_free(&client);
    world_fini(&w);
}

/* The same file and length, and often the same time stamp, because the file system's clock is
 * coarse. */
static void changes_faster_than_time_stamps_are_noticed(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.options.crl_file = w.certs.crl_file;
    test_write_crl(&w.certs, 1, false);
    world_begin(&w);
    for (unsigned i = 1; i <= 60; i++) {
        test_write_crl(&w.certs, 1 + (long)i, false);
        tls_context_unref(tls_source_get(w.source));
        assert_int_equal(w.reloads, i);
        tls_context_unref(tls_source_get(w.source));
        assert_int_equal(w.reloads, i); /* read again, but unchanged */
    }
    world_fini(&w);
}

static void replaced_authority_is_used_for_new_connections(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    require_certificates(&w);
    world_begin(&w);
    struct test_identity ca =
        test_identity_make(TEST_WISH(.common_name = "new ca", .authority = true), NULL);
    struct test_identity old = test_identity_make(TEST_WISH(.common_name = "c"), &w.certs.ca);
    struct test_identity new = test_identity_make(TEST_WISH(.common_name = "c"), &ca);
    assert_true(is_let_in(&w, &old, TLS1_3_VERSION));
    assert_false(is_let_in(&w, &new, TLS1_3_VERSION));
    test_write_certificate(w.certs.ca_file, ca.certificate);
    assert_false(is_let_in(&w, &old, TLS1_3_VERSION));
    assert_true(is_let_in(&w, &new, TLS1_3_VERSION));
    test_identity_free(&old);
    test_identity_free(&new);
    test_identity_free(&ca);
    world_fini(&w);
}

static void start_refuses_files_that_cannot_be_used(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    struct error error;
    struct tls_source_hooks hooks = {0};
    struct test_identity other = make_server(&w, 3);
    test_write_key(w.certs.key_file, other.key);
    assert_int_equal(listener_source_new(&w.options, hooks, &w.source, &error), ST_INVALID);
    assert_non_null(strstr(error.text, "tls: private key does not match public key"));
    test_write_text(w.certs.key_file, "nothing");
    assert_int_equal(listener_source_new(&w.options, hooks, &w.source, &error), ST_INVALID);
    assert_non_null(strstr(error.text, "no private key in it (PEM)"));
    w.options.key_file = "/nowhere/key";
    assert_int_equal(listener_source_new(&w.options, hooks, &w.source, &error), ST_NOT_FOUND);
    assert_string_equal(error.text, "open /nowhere/key: No such file or directory");
    w.options.key_file = w.certs.directory;
    assert_int_equal(listener_source_new(&w.options, hooks, &w.source, &error), ST_INVALID);
    w.options.key_file = w.certs.key_file;
    test_certs_write_server(&w.certs);
    w.options.crl_file = w.certs.crl_file;
    test_write_text(w.certs.crl_file, "nothing");
    assert_int_equal(listener_source_new(&w.options, hooks, &w.source, &error), ST_INVALID);
    assert_non_null(strstr(error.text, "not a certificate revocation list"));
    int fd = open(w.certs.crl_file, O_WRONLY);
    assert_int_equal(ftruncate(fd, TLS_FILE_BYTES_MAX + 1), 0);
    close(fd);
    assert_int_equal(listener_source_new(&w.options, hooks, &w.source, &error), ST_LIMIT);
    test_identity_free(&other);
    test_certs_fini(&w.certs);
}

static void key_with_a_password_is_refused_without_prompt(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    struct error error;
    FILE *file = fopen(w.certs.key_file, "w");
    char password[] = "secret";
    assert_int_equal(PEM_write_PrivateKey(file, w.certs.server.key, EVP_aes_128_cbc(),
                                          (unsigned char *)password, 6, NULL, NULL),
                     1);
    fclose(file);
    struct tls_source_hooks hooks = {0};
    assert_int_equal(listener_source_new(&w.options, hooks, &w.source, &error), ST_INVALID);
    assert_non_null(strstr(error.text, "has a password"));
    test_certs_fini(&w.certs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_are_admitted_by_their_certificates),
        cmocka_unit_test(certificates_of_an_intermediate_are_admitted_with_it),
        cmocka_unit_test(intermediate_authority_may_be_the_trusted_one),
        cmocka_unit_test(only_allowed_names_are_admitted),
        cmocka_unit_test(inner_protocol_learns_the_common_name),
        cmocka_unit_test(versions_outside_the_range_are_refused),
        cmocka_unit_test(ciphers_are_chosen_by_the_names_of_go),
        cmocka_unit_test(replaced_certificate_is_shown_to_new_connections_only),
        cmocka_unit_test(missing_and_damaged_files_leave_the_old_ones_in_use),
        cmocka_unit_test(changed_revocations_are_read_again),
        cmocka_unit_test(changes_faster_than_time_stamps_are_noticed),
        cmocka_unit_test(replaced_authority_is_used_for_new_connections),
        cmocka_unit_test(start_refuses_files_that_cannot_be_used),
        cmocka_unit_test(key_with_a_password_is_refused_without_prompt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
