/* TLS as bytes in and bytes out: an OpenSSL client over memory, the echo protocol inside. */
#include "net/tls.h"

#include "net/echo_fixture.h"
#include "net/tls_certs_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

enum { ROOM = 64 * 1024 };

/* What a kind needs, and what was told about those it turned away. */
struct world {
    struct test_certs certs;
    struct tls_options options;
    struct tls_source *source;
    struct echo_settings echo;
    struct protocol_kind inner, kind;
    struct net_tls tls;
    void *shared;
    int64_t now;
    unsigned rejections, reloads, failures;
    bool left;
    char reason[256], address[64], server_name[64], dns_names[128], ip_addresses[128], failure[512];
};

/* One connection: the server's end, and a client of OpenSSL's. */
struct pair {
    struct world *w;
    void *server;
    unsigned woken;
    SSL_CTX *ctx;
    SSL *client;
    BIO *to_client, *from_client; /* owned by the client */
    struct buf sealed;            /* the client's bytes that the server did not get yet */
    struct buf received;          /* what the client opened */
    bool over;                    /* the server wants to close */
};

static void on_rejection(void *ctx, const struct tls_rejection *rejection)
{
    struct world *w = ctx;
    w->rejections++;
    w->left = rejection->left;
    snprintf(w->reason, sizeof(w->reason), "%s", rejection->reason);
    snprintf(w->address, sizeof(w->address), "%s", rejection->remote_address);
    snprintf(w->server_name, sizeof(w->server_name), "%s", rejection->server_name);
    snprintf(w->dns_names, sizeof(w->dns_names), "%s",
             rejection->dns_names ? rejection->dns_names : "-");
    snprintf(w->ip_addresses, sizeof(w->ip_addresses), "%s",
             rejection->ip_addresses ? rejection->ip_addresses : "-");
}

static void on_reload(void *ctx)
{
    ((struct world *)ctx)->reloads++;
}

static void on_failure(void *ctx, const char *why)
{
    struct world *w = ctx;
    w->failures++;
    snprintf(w->failure, sizeof(w->failure), "%s", why);
}

static void world_init(struct world *w)
{
    *w = (struct world){.now = NS_PER_S, .echo.handshake_ns = 10 * NS_PER_S};
    test_certs_init(&w->certs);
    w->options = TLS_OPTIONS_NONE;
    w->options.cert_file = w->certs.cert_file;
    w->options.key_file = w->certs.key_file;
    w->tls.limits = NET_TLS_LIMITS_DEFAULT;
}

static void world_begin(struct world *w)
{
    struct error error;
    struct tls_source_hooks hooks = {on_reload, on_failure, w};
    if (tls_source_new(&w->options, hooks, &w->source, &error) != ST_OK)
        fail_msg("%s", error.text);
    w->inner = echo_kind(&w->echo);
    w->tls.inner = &w->inner;
    w->tls.source = w->source;
    w->tls.on_rejection = on_rejection;
    w->tls.ctx = w;
    w->kind = net_tls_kind(&w->tls);
    assert_int_equal(w->kind.shard_new(w->kind.ctx, NULL, &w->shared), ST_OK);
}

static void world_fini(struct world *w)
{
    w->kind.shard_free(w->shared);
    tls_source_free(w->source);
    test_certs_fini(&w->certs);
}

static void on_output(void *owner)
{
    ((struct pair *)owner)->woken++;
}

static void peer_address(void *owner, char *text)
{
    (void)owner;
    strcpy(text, "192.0.2.1:1234");
}

static void pair_init(struct pair *p, struct world *w)
{
    *p = (struct pair){.w = w};
    struct protocol_hooks hooks = {
        .on_output = on_output, .peer_address = peer_address, .owner = p};
    assert_int_equal(w->kind.open(w->shared, hooks, w->now, &p->server), ST_OK);
    p->ctx = SSL_CTX_new(TLS_client_method());
    X509_STORE_add_cert(SSL_CTX_get_cert_store(p->ctx), w->certs.ca.certificate);
    SSL_CTX_set_verify(p->ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_alpn_protos(p->ctx, (const unsigned char *)"\x02h2", 3);
}

static void pair_dial(struct pair *p)
{
    p->client = SSL_new(p->ctx);
    p->to_client = BIO_new(BIO_s_mem());
    p->from_client = BIO_new(BIO_s_mem());
    SSL_set_bio(p->client, p->to_client, p->from_client);
    SSL_set_connect_state(p->client);
    SSL_set_tlsext_host_name(p->client, "localhost");
}

static void pair_fini(struct pair *p)
{
    p->w->kind.ops->free(p->server);
    SSL_free(p->client);
    SSL_CTX_free(p->ctx);
    buf_fini(&p->sealed);
    buf_fini(&p->received);
    ERR_clear_error();
}

/* What the connection of net/ does after each event. */
static void server_flush(struct pair *p)
{
    static uint8_t room[ROOM];
    const struct protocol_ops *ops = p->w->kind.ops;
    while (ops->wants_write(p->server)) {
        size_t n = ops->fill(p->server, room, sizeof(room), p->w->now);
        if (n == 0)
            break;
        if (p->client)
            assert_int_equal(BIO_write(p->to_client, room, (int)n), n);
        else
            assert_int_equal(buf_append(&p->received, slice_of(room, n)), ST_OK);
    }
    p->over = ops->should_close(p->server);
}

static void server_feed(struct pair *p, struct slice bytes)
{
    p->w->kind.ops->feed(p->server, bytes, p->w->now);
    server_flush(p);
}

static void client_turn(struct pair *p)
{
    uint8_t bytes[4096];
    ERR_clear_error();
    if (!SSL_is_init_finished(p->client))
        SSL_do_handshake(p->client);
    for (int n; (n = SSL_read(p->client, bytes, sizeof(bytes))) > 0;)
        assert_int_equal(buf_append(&p->received, slice_of(bytes, (size_t)n)), ST_OK);
    for (int n; (n = BIO_read(p->from_client, bytes, sizeof(bytes))) > 0;)
        assert_int_equal(buf_append(&p->sealed, slice_of(bytes, (size_t)n)), ST_OK);
}

/* Lets both talk until nothing moves; the client's bytes arrive in pieces of at most so many. */
static void pair_run(struct pair *p, size_t piece)
{
    for (int quiet = 0; quiet < 2;) {
        client_turn(p);
        server_flush(p);
        quiet = p->sealed.len || BIO_pending(p->to_client) ? 0 : quiet + 1;
        for (size_t at = 0; at < p->sealed.len;) {
            if (!p->w->kind.ops->wants_read(p->server)) {
                server_flush(p);
                if (!p->w->kind.ops->wants_read(p->server))
                    break;
            }
            size_t n = size_min(piece, p->sealed.len - at);
            server_feed(p, slice_of(p->sealed.ptr + at, n));
            at += n;
        }
        buf_reset(&p->sealed, SIZE_MAX);
    }
}

static void client_say(struct pair *p, const char *frame)
{
    uint8_t bytes[256];
    size_t len = strlen(frame);
    echo_put_number(bytes, (uint32_t)len);
    memcpy(bytes + 4, frame, len);
    assert_int_equal(SSL_write(p->client, bytes, (int)len + 4), len + 4);
}

static bool client_heard(const struct pair *p, const char *frame)
{
    size_t len = strlen(frame);
    return p->received.len >= len && memmem(p->received.ptr, p->received.len, frame, len);
}

static void connect_pair(struct pair *p, struct world *w)
{
    pair_init(p, w);
    pair_dial(p);
    pair_run(p, ROOM);
}

/* -- good handshakes -- */

static void echo_is_heard_whatever_the_pieces(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_begin(&w);
    for (size_t piece = 1; piece <= 700; piece = piece < 40 ? piece + 1 : piece * 2) {
        struct pair p;
        pair_init(&p, &w);
        pair_dial(&p);
        pair_run(&p, piece);
        assert_true(SSL_is_init_finished(p.client));
        assert_string_equal(SSL_get_version(p.client), "TLSv1.3");
        client_say(&p, "e hello");
        pair_run(&p, piece);
        assert_true(client_heard(&p, "e hello"));
        assert_false(p.over);
        pair_fini(&p);
    }
    assert_int_equal(w.rejections, 0);
    world_fini(&w);
}

static void tls_1_2_works_with_every_cipher_we_offer(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_begin(&w);
    static const char *const ciphers[] = {
        "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384",
        "ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA"};
    for (size_t i = 0; i < COUNT_OF(ciphers); i++) {
        struct pair p;
        pair_init(&p, &w);
        SSL_CTX_set_max_proto_version(p.ctx, TLS1_2_VERSION);
        SSL_CTX_set_cipher_list(p.ctx, ciphers[i]);
        pair_dial(&p);
        pair_run(&p, ROOM);
        client_say(&p, "g\xff\xff"); /* too short a number: nothing */
        client_say(&p, "e hello");
        pair_run(&p, ROOM);
        assert_true(client_heard(&p, "e hello"));
        assert_string_equal(SSL_get_cipher_name(p.client), ciphers[i]);
        pair_fini(&p);
    }
    world_fini(&w);
}

static void much_output_comes_in_order_and_leaves_no_buffer(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_begin(&w);
    struct pair p;
    connect_pair(&p, &w);
    const uint32_t count = 3000000;
    uint8_t frame[9] = {0, 0, 0, 5, 'g'};
    echo_put_number(frame + 5, count);
    SSL_write(p.client, frame, sizeof(frame));
    pair_run(&p, ROOM);
    assert_int_equal(p.received.len, count);
    for (uint32_t i = 0; i < count; i++)
        if (p.received.ptr[i] != echo_pattern(i))
            fail_msg("byte %u is wrong", i);
    pair_fini(&p);
    world_fini(&w);
}

static void large_input_reaches_the_inner_protocol(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_begin(&w);
    struct pair p;
    connect_pair(&p, &w);
    static uint8_t frame[4 + ECHO_FRAME_MAX];
    echo_put_number(frame, ECHO_FRAME_MAX);
    frame[4] = 'e';
    for (int i = 0; i < 5; i++)
        assert_int_equal(SSL_write(p.client, frame, sizeof(frame)), sizeof(frame));
    pair_run(&p, ROOM);
    assert_int_equal(p.received.len, 5 * sizeof(frame));
    pair_fini(&p);
    world_fini(&w);
}

static void protocols_are_negotiated(void **state)
{
    (void)state;
    static const struct {
        const char *offered;
        const char *chosen; /* NULL: refused */
    } rows[] = {
        {"\x02h2", "h2"},
        {"\x08http/1.1", "http/1.1"},
        {"\x08http/1.1\x02h2", "h2"},
        {"\x02h3\x08http/1.1", "http/1.1"},
        {"\x06spdy/3", NULL},
    };
    struct world w;
    world_init(&w);
    world_begin(&w);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct pair p;
        pair_init(&p, &w);
        SSL_CTX_set_alpn_protos(p.ctx, (const unsigned char *)rows[i].offered,
                                (unsigned)strlen(rows[i].offered));
        pair_dial(&p);
        pair_run(&p, ROOM);
        const unsigned char *chosen;
        unsigned len;
        SSL_get0_alpn_selected(p.client, &chosen, &len);
        if (rows[i].chosen)
            assert_true(slice_equal(slice_of(chosen, len), slice_from_text(rows[i].chosen)));
        else
            assert_string_equal(w.reason,
                                "tls: client requested unsupported application protocols");
        pair_fini(&p);
    }
    assert_int_equal(w.rejections, 1);
    world_fini(&w);
}

/* -- ends -- */

static void each_side_may_say_good_bye_first(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_begin(&w);
    struct pair p;
    connect_pair(&p, &w);
    client_say(&p, "q bye");
    pair_run(&p, ROOM);
    assert_true(client_heard(&p, "q bye"));
    assert_true(p.over);
    assert_int_equal(SSL_get_shutdown(p.client), SSL_RECEIVED_SHUTDOWN);
    pair_fini(&p);

    connect_pair(&p, &w);
    client_say(&p, "h under way");
    SSL_shutdown(p.client);
    pair_run(&p, ROOM);
    assert_true(p.over); /* the echo protocol ends when its peer leaves */
    assert_string_equal(w.kind.ops->reason(p.server), "the peer left");
    assert_int_equal(SSL_get_shutdown(p.client), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    pair_fini(&p);

    connect_pair(&p, &w); /* cut off without a farewell */
    client_say(&p, "h under way");
    pair_run(&p, ROOM);
    w.kind.ops->feed_end(p.server, w.now);
    server_flush(&p);
    assert_true(p.over);
    pair_fini(&p);
    assert_int_equal(w.rejections, 0);
    world_fini(&w);
}

static void shutdown_passes_through(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_begin(&w);
    struct pair p;
    connect_pair(&p, &w);
    w.kind.ops->shutdown(p.server, w.now);
    pair_run(&p, ROOM);
    assert_true(p.over);
    assert_int_equal(SSL_get_shutdown(p.client), SSL_RECEIVED_SHUTDOWN);
    pair_fini(&p);
    pair_init(&p, &w);
    w.kind.ops->shutdown(p.server, w.now);
    server_flush(&p);
    assert_true(p.over);
    pair_fini(&p);
    assert_int_equal(w.rejections, 0);
    world_fini(&w);
}

/* -- limits -- */

static void silence_and_half_a_handshake_end_in_time(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_begin(&w);
    for (int bytes = 0; bytes <= 200; bytes += 100) {
        struct pair p;
        pair_init(&p, &w);
        pair_dial(&p);
        client_turn(&p);
        server_feed(&p, slice_of(p.sealed.ptr, (size_t)bytes));
        assert_int_equal(w.kind.ops->timeout(p.server), w.now + 10 * NS_PER_S);
        w.now += 10 * NS_PER_S - 1;
        w.kind.ops->tick(p.server, w.now);
        assert_false(p.over);
        w.now += 1;
        w.kind.ops->tick(p.server, w.now);
        server_flush(&p);
        assert_true(p.over);
        assert_string_equal(w.reason, "tls: handshake not finished in time: i/o timeout");
        assert_string_equal(w.address, "192.0.2.1:1234");
        assert_false(w.left);
        pair_fini(&p);
    }
    assert_int_equal(w.rejections, 3);
    world_fini(&w);
}

static void client_that_leaves_in_the_middle_is_told_apart(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_begin(&w);
    struct pair p;
    pair_init(&p, &w);
    w.kind.ops->feed_end(p.server, w.now);
    assert_true(w.left);
    assert_string_equal(w.reason, "EOF");
    pair_fini(&p);
    world_fini(&w);
}

static void handshake_of_too_many_bytes_is_refused(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.tls.limits.handshake_bytes = 300;
    world_begin(&w);
    struct pair p;
    pair_init(&p, &w);
    uint8_t record[5 + 301] = {0x16, 3, 1, 0x40, 0, 1, 0, 0x3f, 0xf0};
    server_feed(&p, slice_of(record, 300));
    assert_false(p.over);
    server_feed(&p, slice_of(record + 300, 2));
    assert_true(p.over);
    assert_string_equal(w.reason, "tls: handshake message too long");
    pair_fini(&p);
    world_fini(&w);
}

static void handshakes_past_the_limit_wait_for_a_place(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.tls.limits.handshakes_max = 2;
    world_begin(&w);
    struct pair p[5];
    for (int i = 0; i < 5; i++) {
        pair_init(&p[i], &w);
        pair_dial(&p[i]);
        client_turn(&p[i]);
        server_feed(&p[i], buf_slice(&p[i].sealed));
        buf_reset(&p[i].sealed, SIZE_MAX);
        assert_int_equal(BIO_pending(p[i].to_client) > 0, i < 2);
        assert_int_equal(w.kind.ops->wants_read(p[i].server), i < 2);
    }
    pair_run(&p[0], ROOM); /* is done, which lets the third go on */
    assert_true(SSL_is_init_finished(p[0].client));
    assert_int_equal(p[2].woken, 1);
    assert_int_equal(p[3].woken, 0);
    pair_run(&p[2], ROOM);
    assert_true(SSL_is_init_finished(p[2].client));
    w.now += 10 * NS_PER_S; /* the second stands still, the fourth waited too long, the fifth not */
    w.kind.ops->tick(p[3].server, w.now);
    server_flush(&p[3]);
    assert_true(p[3].over);
    for (int i = 0; i < 5; i++)
        if (i != 4)
            pair_fini(&p[i]);
    assert_int_equal(p[4].woken, 1);
    pair_run(&p[4], ROOM);
    client_say(&p[4], "e at last");
    pair_run(&p[4], ROOM);
    assert_true(client_heard(&p[4], "e at last"));
    pair_fini(&p[4]);
    world_fini(&w);
}

static void first_bytes_of_those_that_wait_are_limited(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.tls.limits.handshakes_max = 1;
    w.tls.limits.waiting_bytes_max = 1000;
    world_begin(&w);
    struct pair p[4];
    uint8_t hello[400] = {0x16, 3, 1, 0x3f, 0xff};
    for (int i = 0; i < 4; i++) {
        pair_init(&p[i], &w);
        server_feed(&p[i], slice_of(hello, sizeof(hello)));
        assert_int_equal(p[i].over, i == 3);
    }
    assert_string_equal(w.reason, "too many TLS handshakes at the same time");
    for (int i = 0; i < 4; i++)
        pair_fini(&p[i]);
    world_fini(&w);
}

static void key_updates_without_data_end_the_connection(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_begin(&w);
    struct pair p;
    connect_pair(&p, &w);
    for (int i = 0; i < 1000 && !p.over; i++) { /* with data between them: as many as one likes */
        assert_int_equal(SSL_key_update(p.client, SSL_KEY_UPDATE_REQUESTED), 1);
        client_say(&p, "e x");
        pair_run(&p, ROOM);
    }
    assert_false(p.over);
    int updates = 0;
    for (; updates < 100 && !p.over; updates++) {
        assert_int_equal(SSL_key_update(p.client, SSL_KEY_UPDATE_REQUESTED), 1);
        SSL_do_handshake(p.client);
        pair_run(&p, ROOM);
    }
    assert_true(p.over);
    assert_in_range(updates, 4, 40);
    assert_string_equal(w.kind.ops->reason(p.server), "tls: too many non-advancing records");
    pair_fini(&p);
    world_fini(&w);
}

static void renegotiation_ends_the_connection(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_begin(&w);
    struct pair p;
    pair_init(&p, &w);
    SSL_CTX_set_max_proto_version(p.ctx, TLS1_2_VERSION);
    pair_dial(&p);
    pair_run(&p, ROOM);
    client_say(&p, "e x");
    pair_run(&p, ROOM);
    assert_int_equal(SSL_renegotiate(p.client), 1);
    SSL_do_handshake(p.client);
    pair_run(&p, ROOM);
    assert_true(p.over);
    assert_string_equal(w.kind.ops->reason(p.server), "tls: no renegotiation");
    pair_fini(&p);
    world_fini(&w);
}

static void nothing_is_resumed(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_begin(&w);
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        struct pair p, again;
        pair_init(&p, &w);
        SSL_CTX_set_max_proto_version(p.ctx, version);
        pair_dial(&p);
        pair_run(&p, ROOM);
        client_say(&p, "e x");
        pair_run(&p, ROOM);
        SSL_SESSION *session = SSL_get1_session(p.client);
        assert_false(SSL_SESSION_has_ticket(session));
        pair_init(&again, &w);
        SSL_CTX_set_max_proto_version(again.ctx, version);
        pair_dial(&again);
        SSL_set_session(again.client, session);
        pair_run(&again, ROOM);
        assert_true(SSL_is_init_finished(again.client));
        assert_false(SSL_session_reused(again.client));
        SSL_SESSION_free(session);
        pair_fini(&p);
        pair_fini(&again);
    }
    world_fini(&w);
}

/* -- what is not TLS -- */

static void plain_http_gets_a_sentence_and_other_bytes_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        bool answered;
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", true},
        {"POST /v3/kv/range HTTP/1.1\r\n\r\n", true},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", false},
        {"G", false},
        {"\x80\x2e\x01", false},
        {"SSH-2.0-x\r\n", false},
    };
    struct world w;
    world_init(&w);
    world_begin(&w);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct pair p;
        pair_init(&p, &w);
        server_feed(&p, slice_from_text(rows[i].bytes));
        assert_true(p.over);
        assert_int_equal(client_heard(&p, "400 Bad Request"), rows[i].answered);
        assert_int_equal(p.received.len > 0, rows[i].answered);
        assert_string_equal(w.reason, "tls: first record does not look like a TLS handshake");
        pair_fini(&p);
    }
    world_fini(&w);
}

static void port_for_both_serves_plain_and_tls(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    w.tls.plain_too = true;
    world_begin(&w);
    struct pair p;
    connect_pair(&p, &w);
    client_say(&p, "e sealed");
    pair_run(&p, ROOM);
    assert_true(client_heard(&p, "e sealed"));
    pair_fini(&p);

    pair_init(&p, &w);
    server_feed(&p, slice_of("\0\0\0\6e open", 10));
    assert_true(client_heard(&p, "e open"));
    assert_false(p.over);
    w.kind.ops->feed(p.server, slice_of("\0\0\0\5q bye", 9), w.now);
    server_flush(&p);
    assert_true(client_heard(&p, "q bye"));
    assert_true(p.over);
    pair_fini(&p);
    assert_int_equal(w.rejections, 0);
    world_fini(&w);
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Before, within and after the handshake; whole records of nonsense and single flipped bits. */
static void junk_never_gets_past_the_seal(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_begin(&w);
    uint32_t seed = 1;
    for (int round = 0; round < 400; round++) {
        struct pair p;
        pair_init(&p, &w);
        pair_dial(&p);
        uint32_t turns = next_random(&seed) % 4;
        for (uint32_t i = 0; i < turns; i++) {
            client_turn(&p);
            server_feed(&p, buf_slice(&p.sealed));
            buf_reset(&p.sealed, SIZE_MAX);
        }
        if (SSL_is_init_finished(p.client))
            client_say(&p, "e x");
        client_turn(&p);
        if (p.sealed.len && next_random(&seed) % 2) {
            p.sealed.ptr[next_random(&seed) % p.sealed.len] ^= (uint8_t)(1 << seed % 8);
        } else {
            uint8_t junk[512];
            for (size_t i = 0; i < sizeof(junk); i++)
                junk[i] = (uint8_t)next_random(&seed);
            junk[0] = (uint8_t)(0x14 + next_random(&seed) % 5);
            junk[1] = 3, junk[2] = 3, junk[3] = (uint8_t)(next_random(&seed) % 3);
            assert_int_equal(buf_append(&p.sealed, slice_of(junk, sizeof(junk))), ST_OK);
        }
        for (size_t at = 0; at < p.sealed.len && !p.over; at += 100)
            server_feed(&p, slice_of(p.sealed.ptr + at, size_min(100, p.sealed.len - at)));
        pair_fini(&p);
    }
    world_fini(&w);
}

static void records_longer_than_allowed_are_refused(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_begin(&w);
    struct pair p;
    connect_pair(&p, &w);
    uint8_t record[] = {0x17, 3, 3, 0xff, 0xff, 0, 0, 0};
    server_feed(&p, slice_of(record, sizeof(record)));
    assert_true(p.over);
    pair_fini(&p);
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(echo_is_heard_whatever_the_pieces),
        cmocka_unit_test(tls_1_2_works_with_every_cipher_we_offer),
        cmocka_unit_test(much_output_comes_in_order_and_leaves_no_buffer),
        cmocka_unit_test(large_input_reaches_the_inner_protocol),
        cmocka_unit_test(protocols_are_negotiated),
        cmocka_unit_test(each_side_may_say_good_bye_first),
        cmocka_unit_test(shutdown_passes_through),
        cmocka_unit_test(silence_and_half_a_handshake_end_in_time),
        cmocka_unit_test(client_that_leaves_in_the_middle_is_told_apart),
        cmocka_unit_test(handshake_of_too_many_bytes_is_refused),
        cmocka_unit_test(handshakes_past_the_limit_wait_for_a_place),
        cmocka_unit_test(first_bytes_of_those_that_wait_are_limited),
        cmocka_unit_test(key_updates_without_data_end_the_connection),
        cmocka_unit_test(renegotiation_ends_the_connection),
        cmocka_unit_test(nothing_is_resumed),
        cmocka_unit_test(plain_http_gets_a_sentence_and_other_bytes_nothing),
        cmocka_unit_test(port_for_both_serves_plain_and_tls),
        cmocka_unit_test(junk_never_gets_past_the_seal),
        cmocka_unit_test(records_longer_than_allowed_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
