/* A TLS client and its server over memory, for tests: a listener of ours, or OpenSSL's server. */
#ifndef VIGIL_NET_TLS_CLIENT_LINK_TEST_H
#define VIGIL_NET_TLS_CLIENT_LINK_TEST_H

#include "net/tls/client.h"
#include "net/tls/pair_test.h"

enum { DRAIN_ROOM = 20000 };

/* A client, and a server that is either a listener of ours (world) or an SSL of OpenSSL. */
struct link {
    struct world *w;
    void *listener_side;
    SSL *ssl_side;
    BIO *to_ssl, *from_ssl;
    struct tls_client_options options;
    struct tls_client_limits limits;
    enum tls_client_protocol protocol;
    struct tls_client_source *source;
    struct tls_client *client;
    struct error error;
    struct buf to_client, to_server, received;
    unsigned reloads, failures;
    int64_t now;
};

static inline void link_on_reload(void *ctx)
{
    ((struct link *)ctx)->reloads++;
}

static inline void link_on_failure(void *ctx, const char *why)
{
    (void)why;
    ((struct link *)ctx)->failures++;
}

static inline void link_init(struct link *l, struct world *w)
{
    *l = (struct link){
        .w = w, .limits = TLS_CLIENT_LIMITS_DEFAULT, .options = TLS_CLIENT_OPTIONS_NONE};
    l->options.ca_file = w->certs.ca_file;
    l->now = NS_PER_S;
}

static inline void link_source(struct link *l)
{
    struct tls_source_hooks hooks = {link_on_reload, link_on_failure, l};
    if (tls_client_source_new(&l->options, hooks, &l->source, &l->error) != ST_OK)
        fail_msg("%s", l->error.text);
}

static inline void link_dial(struct link *l, const char *host)
{
    if (!l->source)
        link_source(l);
    if (tls_client_new(l->source, host, l->protocol, &l->limits, l->now, &l->client, &l->error) !=
        ST_OK)
        fail_msg("%s", l->error.text);
}

static inline void ignore_output(void *owner)
{
    (void)owner;
}

/* Against a listener of ours with the echo protocol. */
static inline void link_to_listener(struct link *l, const char *host)
{
    struct protocol_hooks hooks = {.on_output = ignore_output, .owner = l};
    assert_int_equal(l->w->kind.open(l->w->shared, hooks, l->w->now, &l->listener_side), ST_OK);
    link_dial(l, host);
}

/* Against OpenSSL's server, whose context is not needed afterwards. */
static inline void link_to_ssl(struct link *l, SSL_CTX *ctx, const char *host)
{
    l->ssl_side = SSL_new(ctx);
    SSL_CTX_free(ctx);
    l->to_ssl = BIO_new(BIO_s_mem());
    l->from_ssl = BIO_new(BIO_s_mem());
    SSL_set_bio(l->ssl_side, l->to_ssl, l->from_ssl);
    SSL_set_accept_state(l->ssl_side);
    link_dial(l, host);
}

static inline void link_close(struct link *l)
{
    tls_client_free(l->client);
    if (l->listener_side)
        l->w->kind.ops->free(l->listener_side);
    SSL_free(l->ssl_side);
    buf_fini(&l->to_client);
    buf_fini(&l->to_server);
    buf_fini(&l->received);
    l->client = NULL;
    l->listener_side = NULL;
    l->ssl_side = NULL;
    ERR_clear_error();
}

static inline void link_fini(struct link *l)
{
    link_close(l);
    tls_client_source_free(l->source);
}

static inline void add(struct buf *buf, const void *bytes, size_t len)
{
    echo_must(buf_append(buf, slice_of(bytes, len)));
}

static inline void listener_turn(struct link *l)
{
    static uint8_t room[ROOM];
    const struct protocol_ops *ops = l->w->kind.ops;
    if (l->to_server.len && ops->wants_read(l->listener_side)) {
        ops->feed(l->listener_side, buf_slice(&l->to_server), l->w->now);
        buf_reset(&l->to_server, SIZE_MAX);
    }
    while (ops->wants_write(l->listener_side)) {
        size_t n = ops->fill(l->listener_side, room, sizeof(room), l->w->now);
        if (n == 0)
            break;
        add(&l->to_client, room, n);
    }
}

static inline void ssl_turn(struct link *l)
{
    uint8_t bytes[4096];
    if (l->to_server.len)
        BIO_write(l->to_ssl, l->to_server.ptr, (int)l->to_server.len);
    buf_reset(&l->to_server, SIZE_MAX);
    ERR_clear_error();
    if (!SSL_is_init_finished(l->ssl_side))
        SSL_do_handshake(l->ssl_side);
    while (SSL_read(l->ssl_side, bytes, sizeof(bytes)) > 0)
        continue;
    for (int n; (n = BIO_read(l->from_ssl, bytes, sizeof(bytes))) > 0;)
        add(&l->to_client, bytes, (size_t)n);
    ERR_clear_error();
}

static inline void client_send(struct link *l, struct slice plain)
{
    uint8_t room[DRAIN_ROOM];
    size_t n = tls_client_fill(l->client, plain, room, sizeof(room));
    add(&l->to_server, room, n);
    tls_client_check(l->client);
}

static inline void client_receive(struct link *l, struct slice bytes)
{
    uint8_t plain[1000];
    tls_client_feed(l->client, bytes);
    for (size_t n; (n = tls_client_read(l->client, plain, sizeof(plain)));)
        add(&l->received, plain, n);
    tls_client_check(l->client);
    while (tls_client_wants_write(l->client))
        client_send(l, SLICE_EMPTY);
}

/* Exchanges bytes until nothing is left; the client gets them in pieces of at most this size. */
static inline void link_run(struct link *l, size_t piece)
{
    while (tls_client_wants_write(l->client))
        client_send(l, SLICE_EMPTY);
    for (int quiet = 0; quiet < 2;) {
        quiet = l->to_server.len || l->to_client.len ? 0 : quiet + 1;
        if (l->listener_side)
            listener_turn(l);
        else if (l->ssl_side)
            ssl_turn(l);
        struct buf bytes = l->to_client;
        l->to_client = (struct buf){0};
        for (size_t at = 0; at < bytes.len; at += piece)
            client_receive(l, slice_of(bytes.ptr + at, size_min(piece, bytes.len - at)));
        buf_fini(&bytes);
    }
}

static inline void say_frame(struct link *l, const char *frame)
{
    uint8_t bytes[256];
    size_t len = strlen(frame);
    echo_put_number(bytes, (uint32_t)len);
    slice_copy(bytes + 4, slice_of(frame, len));
    client_send(l, slice_of(bytes, len + 4));
}

static inline bool heard(const struct link *l, const char *text)
{
    return l->received.len && memmem(l->received.ptr, l->received.len, text, strlen(text));
}

/* Why the client failed; "": it did not. */
static inline const char *failure(const struct link *l)
{
    const char *text = "";
    if (tls_client_state(l->client) != TLS_CLIENT_FAILED)
        return text;
    enum status status = tls_client_reason(l->client, &text);
    assert_int_equal(status, strstr(text, "timeout") ? ST_TIMEOUT : ST_CLOSED);
    return text;
}

/* A listener whose certificate has these properties. */
static inline void world_with(struct world *w, struct test_wish wish)
{
    world_init(w);
    test_identity_free(&w->certs.server);
    w->certs.server = test_identity_make(wish, &w->certs.ca);
    test_certs_write_server(&w->certs);
    world_begin(w);
}

/* OpenSSL's server with the certificate of the world. */
static inline SSL_CTX *ssl_server(const struct world *w)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    SSL_CTX_use_certificate(ctx, w->certs.server.certificate);
    SSL_CTX_use_PrivateKey(ctx, w->certs.server.key);
    return ctx;
}

static inline int select_h2(SSL *ssl, const unsigned char **ret_name, unsigned char *ret_len,
                            const unsigned char *offered, unsigned offered_len, void *ctx)
{
    (void)ssl, (void)offered, (void)offered_len, (void)ctx;
    *ret_name = (const unsigned char *)"h2";
    *ret_len = 2;
    return SSL_TLSEXT_ERR_OK;
}

static inline SSL_CTX *ssl_server_h2(const struct world *w)
{
    SSL_CTX *ctx = ssl_server(w);
    SSL_CTX_set_alpn_select_cb(ctx, select_h2, NULL);
    return ctx;
}

#endif
