/* The client's side of TLS, against our listeners and against an OpenSSL server over memory. */
#include "base/failing_memory_test.h"
#include "net/tls/client_link_test.h"

/* A link with a world of its own. */
static int set_up(void **state)
{
    static struct world w;
    static struct link l;
    world_init(&w);
    world_begin(&w);
    link_init(&l, &w);
    *state = &l;
    return 0;
}

static int tear_down(void **state)
{
    struct link *l = *state;
    link_fini(l);
    world_fini(l->w);
    return 0;
}

/* -- successful handshakes -- */

static void bytes_arrive_for_every_split(void **state)
{
    struct link *l = *state;
    for (size_t piece = 1; piece <= 5000; piece = piece < 20 ? piece + 1 : piece * 3) {
        link_to_listener(l, "localhost");
        assert_int_equal(tls_client_state(l->client), TLS_CLIENT_SHAKING);
        link_run(l, piece);
        assert_string_equal(failure(l), "");
        assert_int_equal(tls_client_state(l->client), TLS_CLIENT_OPEN);
        assert_true(tls_client_timeout(l->client) == CLOCK_NEVER);
        say_frame(l, "e hello");
        link_run(l, piece);
        assert_true(heard(l, "e hello"));
        link_close(l);
    }
}

static void long_input_and_output_arrive_in_order(void **state)
{
    struct link *l = *state;
    link_to_listener(l, "localhost");
    link_run(l, ROOM);
    static uint8_t frame[4 + ECHO_FRAME_MAX], room[ROOM];
    echo_put_number(frame, ECHO_FRAME_MAX);
    for (size_t i = 4; i < sizeof(frame); i++)
        frame[i] = i == 4 ? 'e' : echo_pattern(i);
    for (size_t at = 0; at < sizeof(frame);) {
        size_t n = size_min(tls_client_plain_room(l->client, sizeof(room)), sizeof(frame) - at);
        size_t sealed = tls_client_fill(l->client, slice_of(frame + at, n), room, sizeof(room));
        assert_true(sealed > n);
        assert_false(tls_client_wants_write(l->client)); /* plain_room: everything fits */
        add(&l->to_server, room, sealed);
        at += n;
    }
    link_run(l, ROOM);
    assert_int_equal(l->received.len, sizeof(frame));
    assert_memory_equal(l->received.ptr, frame, sizeof(frame));
}

static void output_without_room_waits(void **state)
{
    struct link *l = *state;
    link_to_listener(l, "localhost");
    link_run(l, ROOM);
    uint8_t frame[] = {0, 0, 0, 3, 'e', 'o', 'k'}, byte;
    assert_int_equal(tls_client_plain_room(l->client, 1), 0);
    for (size_t n = tls_client_fill(l->client, slice_of(frame, sizeof(frame)), &byte, 1); n;
         n = tls_client_fill(l->client, SLICE_EMPTY, &byte, 1))
        add(&l->to_server, &byte, n);
    link_run(l, 1);
    assert_true(heard(l, "eok"));
}

/* -- the server's certificate -- */

#define X509_FAULT "tls: failed to verify certificate: x509: "

static void server_is_verified_as_go_does(void **state)
{
    (void)state;
    static const struct {
        const char *common_name, *names, *host, *fault; /* fault: "" if it is valid */
    } rows[] = {
        {"server", "DNS:localhost,IP:127.0.0.1", "localhost", ""},
        {"server", "DNS:localhost,IP:127.0.0.1", "LocalHost", ""},
        {"server", "DNS:localhost,IP:127.0.0.1", "localhost.", ""},
        {"server", "DNS:localhost,IP:127.0.0.1", "127.0.0.1", ""},
        {"server", "IP:0:0:0:0:0:0:0:1", "::1", ""},
        {"server", "IP:0:0:0:0:0:0:0:1", "[::1]", ""},
        {"server", "IP:0:0:0:0:0:0:0:1", "::1%lo", ""},
        {"server", "DNS:*.example.com", "a.example.com", ""},
        {"server", "DNS:*.example.com", "example.com",
         "certificate is valid for *.example.com, not example.com"},
        {"server", "DNS:*.example.com", "b.a.example.com",
         "certificate is valid for *.example.com, not b.a.example.com"},
        {"server", "DNS:a,DNS:b", "c", "certificate is valid for a, b, not c"},
        {"server", "DNS:localhost,IP:127.0.0.1", "127.0.0.2",
         "certificate is valid for 127.0.0.1, not 127.0.0.2"},
        {"server", "DNS:localhost", "127.0.0.1",
         "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs"},
        {"server", "IP:127.0.0.1", "x",
         "certificate is not valid for any names, but wanted to match x"},
        {"server", NULL, "server",
         "certificate relies on legacy Common Name field, use SANs instead"},
        {"server", NULL, "x", "certificate is not valid for any names, but wanted to match x"},
        {"server", "DNS:localhost", "server", "certificate is valid for localhost, not server"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct world w;
        struct link l;
        world_with(&w, TEST_WISH(.common_name = rows[i].common_name, .names = rows[i].names,
                                 .usage = "serverAuth"));
        link_init(&l, &w);
        link_to_listener(&l, rows[i].host);
        link_run(&l, ROOM);
        char expected[TLS_REASON_BYTES];
        snprintf(expected, sizeof(expected), "%s%s", *rows[i].fault ? X509_FAULT : "",
                 rows[i].fault);
        assert_string_equal(failure(&l), expected);
        link_fini(&l);
        world_fini(&w);
    }
}

static void expect_fault(struct test_wish wish, const char *host, const char *begin,
                         const char *middle)
{
    struct world w;
    struct link l;
    world_with(&w, wish);
    link_init(&l, &w);
    link_to_listener(&l, host);
    link_run(&l, ROOM);
    if (strncmp(failure(&l), begin, strlen(begin)) != 0 || !strstr(failure(&l), middle))
        fail_msg("%s", failure(&l));
    link_fini(&l);
    world_fini(&w);
}

static void certificate_outside_its_time_is_refused(void **state)
{
    (void)state;
    expect_fault(TEST_WISH(.names = "DNS:localhost", .begin_s = -7200, .end_s = -3600), "localhost",
                 X509_FAULT "certificate has expired or is not yet valid: current time 20",
                 "Z is after 20");
    expect_fault(TEST_WISH(.names = "DNS:localhost", .begin_s = 3600), "localhost",
                 X509_FAULT "certificate has expired or is not yet valid: current time 20",
                 "Z is before 20");
    /* The time comes before the name, as in Go. */
    expect_fault(TEST_WISH(.names = "DNS:localhost", .begin_s = 3600), "other", X509_FAULT,
                 "not yet valid");
}

static void certificate_for_another_use_is_refused(void **state)
{
    (void)state;
    expect_fault(TEST_WISH(.names = "DNS:localhost", .usage = "clientAuth"), "localhost",
                 X509_FAULT "certificate specifies an incompatible key usage", "");
}

static void unknown_authority_is_refused_unless_verification_is_skipped(void **state)
{
    (void)state;
    struct world w, other;
    struct link l;
    world_init(&w);
    world_begin(&w);
    world_init(&other);
    for (int skip = 0; skip < 2; skip++) {
        link_init(&l, &w);
        l.options.ca_file = other.certs.ca_file;
        l.options.insecure_skip_verify = skip;
        link_to_listener(&l, skip ? "any.name" : "localhost");
        link_run(&l, ROOM);
        assert_string_equal(failure(&l),
                            skip ? "" : X509_FAULT "certificate signed by unknown authority");
        link_close(&l);
        /* The name comes before the authority, as in Go. */
        link_to_listener(&l, "other");
        link_run(&l, ROOM);
        assert_string_equal(failure(&l),
                            skip ? "" : X509_FAULT "certificate is valid for localhost, not other");
        link_fini(&l);
    }
    /* Without an authority the system's are used, which do not know ours. */
    link_init(&l, &w);
    l.options.ca_file = "";
    link_to_listener(&l, "localhost");
    link_run(&l, ROOM);
    assert_string_equal(failure(&l), X509_FAULT "certificate signed by unknown authority");
    link_fini(&l);
    test_certs_fini(&other.certs);
    world_fini(&w);
}

/* -- our certificate, and PEM instead of files -- */

struct pem_file {
    char bytes[4096];
    size_t len;
};

static struct slice read_pem(const char *path, struct pem_file *into)
{
    FILE *file = fopen(path, "r");
    test_must(file, path);
    into->len = fread(into->bytes, 1, sizeof(into->bytes), file);
    fclose(file);
    return slice_of(into->bytes, into->len);
}

static void client_certificate_is_sent_from_files_and_from_pem(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.options.trusted_ca_file = w.certs.ca_file; /* clients need a certificate */
    world_begin(&w);
    struct test_identity own =
        test_identity_make(TEST_WISH(.common_name = "client", .usage = "clientAuth"), &w.certs.ca);
    char cert_file[128], key_file[128];
    struct pem_file ca, cert, key;
    snprintf(cert_file, sizeof(cert_file), "%s/client.pem", w.certs.directory);
    snprintf(key_file, sizeof(key_file), "%s/client-key.pem", w.certs.directory);
    test_write_certificate(cert_file, own.certificate);
    test_write_key(key_file, own.key);
    for (int kind = 0; kind < 3; kind++) { /* none, files, PEM */
        struct link l;
        link_init(&l, &w);
        if (kind == 1) {
            l.options.cert_file = cert_file;
            l.options.key_file = key_file;
        } else if (kind == 2) {
            l.options.ca_file = "";
            l.options.ca_pem = read_pem(w.certs.ca_file, &ca);
            l.options.cert_pem = read_pem(cert_file, &cert);
            l.options.key_pem = read_pem(key_file, &key);
        }
        link_to_listener(&l, "localhost");
        memset(&ca, 0, sizeof(ca)); /* everything was copied */
        memset(&cert, 0, sizeof(cert));
        memset(&key, 0, sizeof(key));
        link_run(&l, ROOM);
        assert_string_equal(failure(&l), kind ? "" : "remote error: tls: certificate required");
        assert_int_equal(tls_client_source_stats(l.source).expires_s != 0, kind != 0);
        link_fini(&l);
    }
    unlink(cert_file);
    unlink(key_file);
    test_identity_free(&own);
    world_fini(&w);
}

static void options_that_cannot_work_are_refused(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    struct link l;
    struct tls_source_hooks hooks = {0};
    static const struct {
        size_t field;
        const char *value, *text;
    } rows[] = {
        {offsetof(struct tls_client_options, cert_file), "/x", "must both be present"},
        {offsetof(struct tls_client_options, key_file), "/x", "must both be present"},
        {offsetof(struct tls_client_options, ca_file), "/nowhere/ca", "open /nowhere/ca: No such"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        link_init(&l, &w);
        memcpy((char *)&l.options + rows[i].field, &rows[i].value, sizeof(rows[i].value));
        assert_true(tls_client_source_new(&l.options, hooks, &l.source, &l.error) != ST_OK);
        assert_non_null(strstr(l.error.text, rows[i].text));
    }
    link_init(&l, &w);
    l.options.ca_pem = SLICE_LITERAL("x");
    assert_int_equal(tls_client_source_new(&l.options, hooks, &l.source, &l.error), ST_INVALID);
    assert_non_null(strstr(l.error.text, "as a file and as PEM"));
    l.options.ca_file = "";
    assert_int_equal(tls_client_source_new(&l.options, hooks, &l.source, &l.error), ST_INVALID);
    assert_string_equal(l.error.text, "the authorities (PEM): no certificate in it (PEM)");
    l.options.ca_pem.len = TLS_FILE_BYTES_MAX + 1; /* refused before it is read */
    assert_int_equal(tls_client_source_new(&l.options, hooks, &l.source, &l.error), ST_LIMIT);
    test_certs_fini(&w.certs);
}

static void name_longer_than_dns_allows_is_refused(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    struct link l;
    link_init(&l, &w);
    link_source(&l);
    char host[400];
    memset(host, 'a', sizeof(host));
    host[sizeof(host) - 1] = 0;
    assert_int_equal(
        tls_client_new(l.source, host, TLS_CLIENT_HTTP2, &l.limits, l.now, &l.client, &l.error),
        ST_INVALID);
    link_fini(&l);
    test_certs_fini(&w.certs);
}

/* -- protocols and versions -- */

static void server_without_http2_is_refused(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    struct link l;
    link_init(&l, &w);
    link_to_ssl(&l, ssl_server(&w), "localhost");
    link_run(&l, ROOM);
    assert_string_equal(failure(&l),
                        "tls: the server does not support HTTP/2: it did not select \"h2\"");
    link_fini(&l);
    test_certs_fini(&w.certs);
}

static void http1_needs_no_choice_of_the_server(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    for (int chooses = 0; chooses < 2; chooses++) {
        struct link l;
        link_init(&l, &w);
        l.protocol = TLS_CLIENT_HTTP1;
        link_to_ssl(&l, chooses ? ssl_server_h2(&w) : ssl_server(&w), "localhost");
        link_run(&l, ROOM);
        assert_int_equal(tls_client_state(l.client), chooses ? TLS_CLIENT_FAILED : TLS_CLIENT_OPEN);
        link_fini(&l);
    }
    test_certs_fini(&w.certs);
}

static void server_selects_one_of_both_protocols(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    for (int chooses = 0; chooses < 2; chooses++) {
        struct link l;
        link_init(&l, &w);
        l.protocol = TLS_CLIENT_NEGOTIATED;
        link_to_ssl(&l, chooses ? ssl_server_h2(&w) : ssl_server(&w), "localhost");
        link_run(&l, ROOM);
        assert_int_equal(tls_client_state(l.client), TLS_CLIENT_OPEN);
        assert_int_equal(tls_client_selected_http2(l.client), chooses);
        link_fini(&l);
    }
    test_certs_fini(&w.certs);
}

static void only_names_are_sent_to_the_server(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    static const struct {
        const char *host, *sent;
    } rows[] = {
        {"localhost", "localhost"},
        {"localhost.", "localhost"},
        {"127.0.0.1", NULL},
        {"::1", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct link l;
        link_init(&l, &w);
        l.options.insecure_skip_verify = true;
        link_to_ssl(&l, ssl_server_h2(&w), rows[i].host);
        link_run(&l, ROOM);
        const char *sent = SSL_get_servername(l.ssl_side, TLSEXT_NAMETYPE_host_name);
        assert_true(rows[i].sent ? sent && strcmp(sent, rows[i].sent) == 0 : !sent);
        link_fini(&l);
    }
    test_certs_fini(&w.certs);
}

static void versions_below_the_lowest_are_refused(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.options.max_version = TLS_VERSION_1_2;
    world_begin(&w);
    struct link l;
    link_init(&l, &w);
    link_to_listener(&l, "localhost");
    link_run(&l, ROOM);
    assert_string_equal(failure(&l), "");
    link_fini(&l);
    link_init(&l, &w);
    l.options.min_version = TLS_VERSION_1_3;
    link_to_listener(&l, "localhost");
    link_run(&l, ROOM);
    assert_string_equal(failure(&l), "remote error: tls: protocol version not supported");
    link_fini(&l);
    world_fini(&w);
}

static void bytes_that_are_not_tls_are_refused(void **state)
{
    (void)state;
    static const char *const answers[] = {
        "HTTP/1.1 400 Bad Request\r\n\r\n", "SSH-2.0-OpenSSH_9.2p1\r\n",
        "\0\0\x12\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", /* HTTP/2 without TLS */
    };
    struct world w;
    world_init(&w);
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        struct link l;
        link_init(&l, &w);
        link_dial(&l, "localhost");
        client_receive(&l, slice_of(answers[i], 21));
        assert_string_equal(failure(&l), "tls: first record does not look like a TLS handshake");
        link_fini(&l);
    }
    test_certs_fini(&w.certs);
}

/* -- ends -- */

static void each_side_may_close_first(void **state)
{
    struct link *l = *state;
    link_to_listener(l, "localhost");
    link_run(l, ROOM);
    say_frame(l, "q bye");
    link_run(l, ROOM);
    assert_true(heard(l, "q bye"));
    assert_int_equal(tls_client_state(l->client), TLS_CLIENT_ENDED);
    tls_client_shutdown(l->client); /* no effect any more */
    link_close(l);

    link_to_listener(l, "localhost");
    link_run(l, ROOM);
    say_frame(l, "h under way");
    tls_client_shutdown(l->client);
    assert_int_equal(tls_client_state(l->client), TLS_CLIENT_ENDED);
    assert_int_equal(tls_client_plain_room(l->client, ROOM), 0);
    assert_true(tls_client_wants_write(l->client));
    link_run(l, ROOM);
    assert_string_equal(l->w->kind.ops->reason(l->listener_side), "the peer left");
    link_close(l);

    link_to_listener(l, "localhost"); /* the connection ends without a notification */
    link_run(l, ROOM);
    tls_client_feed_end(l->client);
    assert_int_equal(tls_client_state(l->client), TLS_CLIENT_ENDED);
}

static void each_direction_may_end_alone(void **state)
{
    struct link *l = *state;
    link_to_listener(l, "localhost"); /* the server's first */
    link_run(l, ROOM);
    say_frame(l, "o last");
    link_run(l, ROOM);
    assert_true(heard(l, "o last"));
    assert_int_equal(tls_client_state(l->client), TLS_CLIENT_ENDED);
    say_frame(l, "more");
    link_run(l, ROOM);
    assert_int_equal(l->w->echo.taken, 1);
    tls_client_end_output(l->client);
    tls_client_end_output(l->client); /* no effect any more */
    assert_int_equal(tls_client_plain_room(l->client, ROOM), 0);
    link_run(l, ROOM);
    assert_string_equal(l->w->kind.ops->reason(l->listener_side), "the peer left");
    link_close(l);

    link_to_listener(l, "localhost"); /* the client's first */
    link_run(l, ROOM);
    say_frame(l, "e under way");
    tls_client_end_output(l->client);
    assert_int_equal(tls_client_state(l->client), TLS_CLIENT_OPEN);
    assert_int_equal(tls_client_plain_room(l->client, ROOM), 0);
    link_run(l, 1);
    assert_true(heard(l, "e under way"));
    assert_int_equal(tls_client_state(l->client), TLS_CLIENT_OPEN);
    tls_client_shutdown(l->client);
    assert_false(tls_client_wants_write(l->client)); /* the notification was sent */
}

/* Collects what a listener sends in its handshake. */
static void record_handshake(struct world *w, struct buf *into)
{
    struct link l;
    link_init(&l, w);
    link_to_listener(&l, "localhost");
    client_send(&l, SLICE_EMPTY);
    listener_turn(&l);
    echo_must(buf_append(into, buf_slice(&l.to_client)));
    link_fini(&l);
}

static void end_within_the_handshake_is_a_failure_at_every_byte(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_begin(&w);
    struct buf first = {0};
    record_handshake(&w, &first);
    struct link l;
    link_init(&l, &w);
    for (size_t cut = 0; cut < first.len; cut++) {
        link_to_listener(&l, "localhost");
        client_send(&l, SLICE_EMPTY);
        listener_turn(&l);
        client_receive(&l, slice_of(l.to_client.ptr, size_min(cut, l.to_client.len - 1)));
        tls_client_feed_end(l.client);
        assert_string_equal(failure(&l), "EOF");
        assert_int_equal(tls_client_plain_room(l.client, ROOM), 0);
        link_close(&l);
    }
    link_fini(&l);
    buf_fini(&first);
    world_fini(&w);
}

static void damaged_handshake_is_refused(void **state)
{
    struct link *l = *state;
    for (size_t at = 0; at < 900; at += 7) {
        link_to_listener(l, "localhost");
        client_send(l, SLICE_EMPTY);
        listener_turn(l);
        if (at < l->to_client.len) {
            l->to_client.ptr[at] ^= 0x55;
            client_receive(l, buf_slice(&l->to_client));
            tls_client_feed_end(l->client); /* it may wait for the rest of a longer record */
            assert_int_equal(tls_client_state(l->client), TLS_CLIENT_FAILED);
        }
        link_close(l);
    }
}

/* -- limits -- */

static void handshake_is_limited_in_time_and_bytes(void **state)
{
    struct link *l = *state;
    link_to_listener(l, "localhost");
    int64_t at = tls_client_timeout(l->client);
    assert_int_equal(at, l->now + l->limits.handshake_ns);
    tls_client_tick(l->client, at - 1);
    assert_string_equal(failure(l), "");
    tls_client_tick(l->client, at);
    assert_string_equal(failure(l), "TLS handshake timeout");
    link_close(l);

    l->limits.handshake_bytes = 500; /* a certificate is longer */
    link_to_listener(l, "localhost");
    link_run(l, 100);
    assert_string_equal(failure(l), "tls: handshake message too long");
}

static void key_updates_without_data_are_limited(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    struct link l;
    link_init(&l, &w);
    link_to_ssl(&l, ssl_server_h2(&w), "localhost");
    link_run(&l, ROOM);
    for (unsigned i = 0; i < 3 * l.limits.idle_messages_max; i++) {
        SSL_write(l.ssl_side, "x", 1); /* with data between them there is no limit */
        SSL_key_update(l.ssl_side, SSL_KEY_UPDATE_NOT_REQUESTED);
        SSL_do_handshake(l.ssl_side);
        link_run(&l, ROOM);
    }
    assert_string_equal(failure(&l), "");
    for (unsigned i = 0; i < 3 * l.limits.idle_messages_max; i++) {
        SSL_key_update(l.ssl_side, SSL_KEY_UPDATE_NOT_REQUESTED);
        SSL_do_handshake(l.ssl_side);
    }
    link_run(&l, ROOM);
    assert_string_equal(failure(&l), "tls: too many non-advancing records");
    link_fini(&l);
    test_certs_fini(&w.certs);
}

static void renegotiation_ends_the_connection(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    struct link l;
    link_init(&l, &w);
    SSL_CTX *ctx = ssl_server_h2(&w);
    SSL_CTX_set_max_proto_version(ctx, TLS1_2_VERSION);
    link_to_ssl(&l, ctx, "localhost");
    link_run(&l, ROOM);
    assert_string_equal(failure(&l), "");
    assert_int_equal(SSL_renegotiate(l.ssl_side), 1);
    SSL_do_handshake(l.ssl_side);
    link_run(&l, ROOM);
    assert_string_equal(failure(&l), "tls: no renegotiation");
    link_fini(&l);
    test_certs_fini(&w.certs);
}

/* -- changed files -- */

static void changed_files_are_used_for_the_next_connection(void **state)
{
    (void)state;
    struct world w, other;
    world_init(&w);
    world_begin(&w);
    world_init(&other);
    struct link l;
    link_init(&l, &w);
    char path[128];
    snprintf(path, sizeof(path), "%s/trusted.pem", w.certs.directory);
    test_write_certificate(path, other.certs.ca.certificate);
    l.options.ca_file = path;
    link_to_listener(&l, "localhost");
    link_run(&l, ROOM);
    assert_string_equal(failure(&l), X509_FAULT "certificate signed by unknown authority");
    link_close(&l);

    test_write_certificate(path, w.certs.ca.certificate);
    link_to_listener(&l, "localhost");
    link_run(&l, ROOM);
    assert_string_equal(failure(&l), "");
    assert_int_equal(l.reloads, 1);
    test_write_text(path, "damaged"); /* the old authorities stay in use */
    say_frame(&l, "e still open");
    link_run(&l, ROOM);
    assert_true(heard(&l, "e still open"));
    link_close(&l);
    link_to_listener(&l, "localhost");
    link_run(&l, ROOM);
    assert_string_equal(failure(&l), "");
    assert_int_equal(l.failures, 1);
    link_fini(&l);
    unlink(path);
    test_certs_fini(&other.certs);
    world_fini(&w);
}

/* -- memory -- */

/* A whole life of a client; false: memory was missing, and that is what it reported. */
static bool live(struct world *w, const char *host)
{
    struct link l;
    struct tls_source_hooks hooks = {0};
    bool worked = false;
    link_init(&l, w);
    enum status status = tls_client_source_new(&l.options, hooks, &l.source, &l.error);
    if (status == ST_OK)
        status =
            tls_client_new(l.source, host, TLS_CLIENT_HTTP2, &l.limits, l.now, &l.client, &l.error);
    if (status == ST_OK) {
        memory_exempt = true; /* only the client's allocations fail */
        struct protocol_hooks server = {.on_output = ignore_output, .owner = &l};
        assert_int_equal(w->kind.open(w->shared, server, w->now, &l.listener_side), ST_OK);
        uint8_t room[DRAIN_ROOM], plain[100];
        add(&l.to_server, room, tls_client_fill(l.client, SLICE_EMPTY, room, sizeof(room)));
        listener_turn(&l);
        memory_exempt = false;
        size_t n = 0;
        tls_client_feed(l.client, buf_slice(&l.to_client));
        while (tls_client_read(l.client, plain, sizeof(plain)))
            continue;
        if (tls_client_state(l.client) == TLS_CLIENT_OPEN)
            n = tls_client_fill(l.client, SLICE_LITERAL("\0\0\0\3eok"), room, sizeof(room));
        tls_client_shutdown(l.client);
        tls_client_check(l.client);
        memory_fail_at = 0;
        worked = n > 7;
        const char *text;
        if (tls_client_state(l.client) == TLS_CLIENT_FAILED)
            status = tls_client_reason(l.client, &text);
    }
    memory_fail_at = 0;
    if (!worked)
        assert_true(status == ST_NOMEM || status == ST_CLOSED);
    link_fini(&l);
    return worked;
}

static void each_missing_allocation_is_reported(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_begin(&w);
    for (int wrong = 0; wrong < 2; wrong++) { /* a host that fits, and one that does not */
        const char *host = wrong ? "other" : "localhost";
        memory_allocations = 0;
        assert_int_equal(live(&w, host), !wrong);
        size_t count = memory_allocations;
        assert_true(count > 10);
        for (size_t i = 1; i <= count; i++) {
            memory_fail_at = i;
            (void)live(&w, host);
        }
    }
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bytes_arrive_for_every_split, set_up, tear_down),
        cmocka_unit_test_setup_teardown(long_input_and_output_arrive_in_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(output_without_room_waits, set_up, tear_down),
        cmocka_unit_test(server_is_verified_as_go_does),
        cmocka_unit_test(certificate_outside_its_time_is_refused),
        cmocka_unit_test(certificate_for_another_use_is_refused),
        cmocka_unit_test(unknown_authority_is_refused_unless_verification_is_skipped),
        cmocka_unit_test(client_certificate_is_sent_from_files_and_from_pem),
        cmocka_unit_test(options_that_cannot_work_are_refused),
        cmocka_unit_test(name_longer_than_dns_allows_is_refused),
        cmocka_unit_test(server_without_http2_is_refused),
        cmocka_unit_test(http1_needs_no_choice_of_the_server),
        cmocka_unit_test(server_selects_one_of_both_protocols),
        cmocka_unit_test(only_names_are_sent_to_the_server),
        cmocka_unit_test(versions_below_the_lowest_are_refused),
        cmocka_unit_test(bytes_that_are_not_tls_are_refused),
        cmocka_unit_test_setup_teardown(each_side_may_close_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_direction_may_end_alone, set_up, tear_down),
        cmocka_unit_test(end_within_the_handshake_is_a_failure_at_every_byte),
        cmocka_unit_test_setup_teardown(damaged_handshake_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(handshake_is_limited_in_time_and_bytes, set_up, tear_down),
        cmocka_unit_test(key_updates_without_data_are_limited),
        cmocka_unit_test(renegotiation_ends_the_connection),
        cmocka_unit_test(changed_files_are_used_for_the_next_connection),
        cmocka_unit_test(each_missing_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
