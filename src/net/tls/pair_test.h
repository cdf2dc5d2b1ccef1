/* TLS without sockets, for tests: a server side of net/tls/tls.h, and OpenSSL's client over memory.
 */
#ifndef VIGIL_NET_TLS_PAIR_TEST_H
#define VIGIL_NET_TLS_PAIR_TEST_H

#include "io/address.h"
#include "net/echo_fixture_test.h"
#include "net/tls/certs_test.h"
#include "net/tls/server_context.h"
#include "net/tls/tls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

enum { ROOM = 64 * 1024 };

/* What a kind needs, and what was reported about refused clients. */
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

/* One connection: the server side, and a client of OpenSSL. */
struct pair {
    struct world *w;
    void *server;
    unsigned woken;
    SSL_CTX *ctx;
    SSL *client;
    BIO *to_client, *from_client; /* owned by the client */
    struct buf encrypted;         /* bytes of the client that the server has not received yet */
    struct buf received;          /* what the client decrypted */
    bool over;                    /* the server wants to close */
};

static inline void on_rejection(void *ctx, const struct tls_rejection *rejection)
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

static inline void on_reload(void *ctx)
{
    ((struct world *)ctx)->reloads++;
}

static inline void on_failure(void *ctx, const char *why)
{
    struct world *w = ctx;
    w->failures++;
    snprintf(w->failure, sizeof(w->failure), "%s", why);
}

static inline void world_init(struct world *w)
{
    *w = (struct world){.now = NS_PER_S, .echo.handshake_ns = 10 * NS_PER_S};
    test_certs_init(&w->certs);
    w->options = TLS_OPTIONS_NONE;
    w->options.cert_file = w->certs.cert_file;
    w->options.key_file = w->certs.key_file;
    w->tls.limits = NET_TLS_LIMITS_DEFAULT;
}

/* The source of a listener with these options. */
static inline enum status listener_source_new(const struct tls_options *options,
                                              struct tls_source_hooks hooks,
                                              struct tls_source **ret_source, struct error *error)
{
    struct tls_recipe recipe;
    TRY(tls_server_recipe(options, &recipe, error));
    return tls_source_new(&recipe, hooks, ret_source, error);
}

static inline void world_begin(struct world *w)
{
    struct error error;
    struct tls_source_hooks hooks = {on_reload, on_failure, w};
    if (listener_source_new(&w->options, hooks, &w->source, &error) != ST_OK)
        fail_msg("%s", error.text);
    w->inner = echo_kind(&w->echo);
    w->tls.inner = &w->inner;
    w->tls.source = w->source;
    w->tls.on_rejection = on_rejection;
    w->tls.ctx = w;
    w->kind = net_tls_kind(&w->tls);
    assert_int_equal(w->kind.shard_new(w->kind.ctx, NULL, &w->shared), ST_OK);
}

static inline void world_fini(struct world *w)
{
    w->kind.shard_free(w->shared);
    tls_source_free(w->source);
    test_certs_fini(&w->certs);
}

static inline void on_output(void *owner)
{
    ((struct pair *)owner)->woken++;
}

static inline void peer_address(void *owner, char *text)
{
    (void)owner;
    snprintf(text, ADDRESS_TEXT_BYTES, "192.0.2.1:1234");
}

static inline void pair_init(struct pair *p, struct world *w)
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

static inline void pair_dial(struct pair *p)
{
    p->client = SSL_new(p->ctx);
    p->to_client = BIO_new(BIO_s_mem());
    p->from_client = BIO_new(BIO_s_mem());
    SSL_set_bio(p->client, p->to_client, p->from_client);
    SSL_set_connect_state(p->client);
    SSL_set_tlsext_host_name(p->client, "localhost");
}

static inline void pair_fini(struct pair *p)
{
    p->w->kind.ops->free(p->server);
    SSL_free(p->client);
    SSL_CTX_free(p->ctx);
    buf_fini(&p->encrypted);
    buf_fini(&p->received);
    ERR_clear_error();
}

/* What net/connection.c does after each event. */
static inline void server_flush(struct pair *p)
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

static inline void server_feed(struct pair *p, struct slice bytes)
{
    p->w->kind.ops->feed(p->server, bytes, p->w->now);
    server_flush(p);
}

static inline void client_turn(struct pair *p)
{
    uint8_t bytes[4096];
    ERR_clear_error();
    if (!SSL_is_init_finished(p->client))
        SSL_do_handshake(p->client);
    for (int n; (n = SSL_read(p->client, bytes, sizeof(bytes))) > 0;)
        assert_int_equal(buf_append(&p->received, slice_of(bytes, (size_t)n)), ST_OK);
    for (int n; (n = BIO_read(p->from_client, bytes, sizeof(bytes))) > 0;)
        assert_int_equal(buf_append(&p->encrypted, slice_of(bytes, (size_t)n)), ST_OK);
}

/* Exchanges bytes until nothing is left; the client's bytes arrive in pieces of at most this size.
 */
static inline void pair_run(struct pair *p, size_t piece)
{
    for (int quiet = 0; quiet < 2;) {
        client_turn(p);
        server_flush(p);
        quiet = p->encrypted.len || BIO_pending(p->to_client) ? 0 : quiet + 1;
        for (size_t at = 0; at < p->encrypted.len;) {
            if (!p->w->kind.ops->wants_read(p->server)) {
                server_flush(p);
                if (!p->w->kind.ops->wants_read(p->server))
                    break;
            }
            size_t n = size_min(piece, p->encrypted.len - at);
            server_feed(p, slice_of(p->encrypted.ptr + at, n));
            at += n;
        }
        buf_reset(&p->encrypted, SIZE_MAX);
    }
}

static inline void client_say(struct pair *p, const char *frame)
{
    uint8_t bytes[256];
    size_t len = strlen(frame);
    echo_put_number(bytes, (uint32_t)len);
    slice_copy(bytes + 4, slice_of(frame, len));
    assert_int_equal(SSL_write(p->client, bytes, (int)len + 4), len + 4);
}

static inline bool client_heard(const struct pair *p, const char *frame)
{
    size_t len = strlen(frame);
    return p->received.len >= len && memmem(p->received.ptr, p->received.len, frame, len);
}

static inline void connect_pair(struct pair *p, struct world *w)
{
    pair_init(p, w);
    pair_dial(p);
    pair_run(p, ROOM);
}

#endif
