/*
 * TLS with a client that mostly follows the protocol: the input is a list of steps that continue a
 * real handshake, cut it off, change its bytes, insert others, or end it. Each step is a byte for
 * the kind and a byte for the amount. The inner protocol must receive only what the client sent.
 */
#include "cost.h"

#include "net/echo_fixture_test.h"
#include "net/tls/certs_test.h"
#include "net/tls/server_context.h"
#include "net/tls/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

static struct {
    struct test_certs certs;
    struct tls_options options;
    struct tls_source *source;
    struct echo_settings echo;
    struct protocol_kind inner, kind;
    struct net_tls tls;
    SSL_CTX *ctx;
} world;

struct run {
    void *shared, *server;
    SSL *client;
    BIO *in, *out;
    struct buf encrypted; /* in flight to the server */
    int64_t now;
    bool tampered;
};

static void ignore(void *owner)
{
    (void)owner;
}

static void world_make(void)
{
    struct error error;
    test_certs_init(&world.certs);
    world.options = TLS_OPTIONS_NONE;
    world.options.cert_file = world.certs.cert_file;
    world.options.key_file = world.certs.key_file;
    struct tls_recipe recipe;
    test_must(tls_server_recipe(&world.options, &recipe, &error) == ST_OK, "options");
    test_must(tls_source_new(&recipe, (struct tls_source_hooks){0}, &world.source, &error) == ST_OK,
              "source");
    world.echo.handshake_ns = 10 * NS_PER_S;
    world.inner = echo_kind(&world.echo);
    world.tls = (struct net_tls){
        .inner = &world.inner, .source = world.source, .limits = NET_TLS_LIMITS_DEFAULT};
    world.kind = net_tls_kind(&world.tls);
    world.ctx = SSL_CTX_new(TLS_client_method());
    test_certs_fini(&world.certs); /* the files have been read */
}

static void flush(struct run *r)
{
    static uint8_t room[64 * 1024];
    while (world.kind.ops->wants_write(r->server)) {
        size_t n = world.kind.ops->fill(r->server, room, sizeof(room), r->now);
        if (n == 0)
            break;
        BIO_write(r->in, room, (int)n);
    }
}

static void feed(struct run *r, size_t len)
{
    len = size_min(len, r->encrypted.len);
    flush(r);
    if (len == 0 || !world.kind.ops->wants_read(r->server))
        return;
    world.kind.ops->feed(r->server, slice_of(r->encrypted.ptr, len), r->now);
    buf_consume(&r->encrypted, len);
    flush(r);
}

static void client_turn(struct run *r)
{
    uint8_t bytes[4096];
    ERR_clear_error();
    if (!SSL_is_init_finished(r->client))
        SSL_do_handshake(r->client);
    for (int n; (n = SSL_read(r->client, bytes, sizeof(bytes))) > 0;)
        test_must(r->tampered || memchr(bytes, 'x', (size_t)n),
                  "received bytes that were not sent");
    for (int n; (n = BIO_read(r->out, bytes, sizeof(bytes))) > 0;)
        echo_must(buf_append(&r->encrypted, slice_of(bytes, (size_t)n)));
}

static void insert(struct run *r, struct slice junk)
{
    r->tampered = true;
    echo_must(buf_append(&r->encrypted, junk));
}

static void step(struct run *r, unsigned what, unsigned much, struct slice rest)
{
    static const uint8_t frame[] = {0, 0, 0, 3, 'e', 'x', 'x'};
    switch (what % 12) {
    case 0:
        client_turn(r);
        feed(r, SIZE_MAX);
        break;
    case 1:
        feed(r, much);
        break;
    case 2:
        client_turn(r);
        break;
    case 3:
        r->tampered = true;
        if (r->encrypted.len)
            r->encrypted.ptr[much % r->encrypted.len] ^= (uint8_t)(1u << what / 12 % 8);
        break;
    case 4:
        insert(r, slice_sub(rest, 0, size_min(rest.len, much)));
        break;
    case 5:
        r->tampered = true;
        buf_consume(&r->encrypted, size_min(r->encrypted.len, much));
        break;
    case 6:
        r->now += much * NS_PER_S / 8;
        world.kind.ops->tick(r->server, r->now);
        flush(r);
        break;
    case 7:
        world.kind.ops->feed_end(r->server, r->now);
        flush(r);
        break;
    case 8:
        world.kind.ops->shutdown(r->server, r->now);
        flush(r);
        break;
    case 9:
        if (SSL_is_init_finished(r->client))
            SSL_write(r->client, frame, sizeof(frame));
        break;
    case 10:
        if (SSL_version(r->client) == TLS1_3_VERSION && SSL_is_init_finished(r->client))
            SSL_key_update(r->client, SSL_KEY_UPDATE_REQUESTED);
        break;
    default:
        SSL_shutdown(r->client);
    }
}

FUZZ_INPUT()
{
    if (!world.source)
        world_make();
    if (size < 1 || size > 4096)
        return 0;
    struct run r = {.now = NS_PER_S};
    struct protocol_hooks hooks = {.on_output = ignore};
    world.tls.plain_too = data[0] & 1;
    world.tls.limits.handshakes_max = data[0] & 2 ? 0 : 10;
    echo_must(world.kind.shard_new(world.kind.ctx, NULL, &r.shared));
    echo_must(world.kind.open(r.shared, hooks, r.now, &r.server));
    r.client = SSL_new(world.ctx);
    r.in = BIO_new(BIO_s_mem());
    r.out = BIO_new(BIO_s_mem());
    SSL_set_bio(r.client, r.in, r.out);
    SSL_set_connect_state(r.client);
    SSL_set_max_proto_version(r.client, data[0] & 4 ? TLS1_2_VERSION : TLS1_3_VERSION);
    for (size_t at = 1; at + 1 < size; at += 2)
        step(&r, data[at], data[at + 1], slice_of(data + at, size - at));
    (void)world.kind.ops->timeout(r.server);
    (void)world.kind.ops->reason(r.server);
    world.kind.ops->free(r.server);
    world.kind.shard_free(r.shared);
    SSL_free(r.client);
    buf_fini(&r.encrypted);
    ERR_clear_error();
    return 0;
}
