#include "net/tls/client.h"

#include "base/clock.h"
#include "net/tls/bytes.h"
#include "net/tls/client_private.h"
#include "net/tls/names.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>

#define TO(state) (1u << TLS_CLIENT_##state)

static const unsigned moves[] = {
    [TLS_CLIENT_SHAKING] = TO(OPEN) | TO(FAILED),
    [TLS_CLIENT_OPEN] = TO(ENDED) | TO(FAILED),
    [TLS_CLIENT_ENDED] = 0,
    [TLS_CLIENT_FAILED] = 0,
};

/* When open and idle, it holds the SSL, but no buffer. */
struct tls_client {
    enum tls_client_state state;
    enum status status; /* failed: why */
    enum tls_client_protocol protocol;
    bool output_ended;           /* our close notification was written */
    SSL *ssl;                    /* owned */
    struct tls_context *context; /* a reference */
    char *host;                  /* owned; without brackets and without a dot at the end */
    char *reason;                /* owned; why it failed, NULL without memory */
    struct tls_peer peer;
    struct tls_bytes bytes;
    struct tls_client_limits limits;
    int64_t handshake_at_ns; /* deadline of the handshake */
};

static void move(struct tls_client *c, enum tls_client_state next)
{
    assert(moves[c->state] & (1u << next));
    c->state = next;
}

/* -- failures -- */

static void fail(struct tls_client *c, enum status status, const char *reason)
{
    move(c, TLS_CLIENT_FAILED);
    c->status = status;
    c->reason = strdup(reason);
    c->bytes.in = SLICE_EMPTY;
}

static bool lacked_memory(const struct tls_client *c)
{
    return c->bytes.no_memory || ERR_GET_REASON(ERR_peek_error()) == ERR_R_MALLOC_FAILURE ||
           (c->peer.refused && !c->peer.reason);
}

static void fail_by_openssl(struct tls_client *c)
{
    char reason[TLS_REASON_BYTES];
    bool no_memory = lacked_memory(c);
    tls_reason_format(c->ssl, &c->peer, reason);
    if (no_memory)
        fail(c, ST_NOMEM, "out of memory");
    else
        fail(c, ST_CLOSED, reason);
}

/* -- the handshake -- */

static struct slice selected_protocol(const SSL *ssl)
{
    const unsigned char *name;
    unsigned len;
    SSL_get0_alpn_selected(ssl, &name, &len);
    return slice_of(name, len);
}

/* A server of HTTP/1.1 need not select anything. */
static bool speaks(const SSL *ssl, enum tls_client_protocol protocol)
{
    struct slice selected = selected_protocol(ssl);
    if (slice_equal(selected, SLICE_LITERAL("h2")))
        return protocol != TLS_CLIENT_HTTP1;
    return protocol != TLS_CLIENT_HTTP2 &&
           (selected.len == 0 || slice_equal(selected, SLICE_LITERAL("http/1.1")));
}

/* The context offers HTTP/2. */
static bool offer(SSL *ssl, enum tls_client_protocol protocol)
{
    static const unsigned char both[] = "\x02h2\x08http/1.1";
    unsigned skipped = protocol == TLS_CLIENT_HTTP1 ? 3 : 0;
    return protocol == TLS_CLIENT_HTTP2 ||
           SSL_set_alpn_protos(ssl, both + skipped, (unsigned)sizeof(both) - 1 - skipped) ==
               0; /* 0 is success here */
}

static void shake(struct tls_client *c)
{
    ERR_clear_error();
    int result = SSL_do_handshake(c->ssl);
    if (result != 1 && SSL_get_error(c->ssl, result) != SSL_ERROR_WANT_READ) {
        fail_by_openssl(c);
    } else if (c->bytes.taken > c->limits.handshake_bytes) {
        fail(c, ST_CLOSED, "tls: handshake message too long");
    } else if (result == 1 && !speaks(c->ssl, c->protocol)) {
        fail(c, ST_CLOSED,
             c->protocol == TLS_CLIENT_HTTP2
                 ? "tls: the server does not support HTTP/2: it did not select \"h2\""
                 : "tls: the server does not support HTTP/1.1");
    } else if (result == 1) {
        c->peer.messages = 0;
        move(c, TLS_CLIENT_OPEN);
    }
}

/* -- input -- */

/* Decrypts as many records as fit. Returns why it stopped. */
static int read_records(struct tls_client *c, uint8_t *dst, size_t room, size_t *ret_len)
{
    size_t have = 0, n;
    int result = 1;
    ERR_clear_error();
    while (have < room && result == 1) {
        result = SSL_read_ex(c->ssl, dst + have, room - have, &n);
        have += result == 1 ? n : 0;
    }
    *ret_len = have;
    return result == 1 ? SSL_ERROR_NONE : SSL_get_error(c->ssl, result);
}

static size_t decrypt(struct tls_client *c, uint8_t *dst, size_t room)
{
    size_t len;
    int result = read_records(c, dst, room, &len);
    if (len)
        c->peer.messages = 0;
    if (c->peer.renegotiates)
        fail(c, ST_CLOSED, "tls: no renegotiation");
    else if (c->peer.messages > c->limits.idle_messages_max)
        fail(c, ST_CLOSED, "tls: too many non-advancing records");
    else if (result == SSL_ERROR_ZERO_RETURN)
        move(c, TLS_CLIENT_ENDED);
    else if (result != SSL_ERROR_WANT_READ && result != SSL_ERROR_NONE)
        fail_by_openssl(c);
    return len;
}

void tls_client_feed(struct tls_client *c, struct slice bytes)
{
    assert(c->bytes.in.len == 0);
    c->bytes.in = bytes;
}

size_t tls_client_read(struct tls_client *c, uint8_t *dst, size_t room)
{
    assert(room > 0);
    if (c->state == TLS_CLIENT_SHAKING && c->bytes.in.len)
        shake(c);
    size_t len = c->state == TLS_CLIENT_OPEN ? decrypt(c, dst, room) : 0;
    if (len == 0)
        c->bytes.in = SLICE_EMPTY;
    return len;
}

void tls_client_feed_end(struct tls_client *c)
{
    if (c->state == TLS_CLIENT_SHAKING)
        fail(c, ST_CLOSED, "EOF");
    else if (c->state == TLS_CLIENT_OPEN)
        move(c, TLS_CLIENT_ENDED);
}

/* -- output -- */

bool tls_client_wants_write(const struct tls_client *c)
{
    return c->bytes.out.len > 0;
}

/* A server that has sent its last byte may still receive. */
static bool can_write(const struct tls_client *c)
{
    return (c->state == TLS_CLIENT_OPEN || c->state == TLS_CLIENT_ENDED) && !c->output_ended;
}

size_t tls_client_plain_room(const struct tls_client *c, size_t room)
{
    if (!can_write(c) || c->bytes.out.len >= room)
        return 0;
    return tls_bytes_plain_room(room - c->bytes.out.len);
}

size_t tls_client_fill(struct tls_client *c, struct slice plain, uint8_t *dst, size_t room)
{
    assert(plain.len == 0 || can_write(c));
    tls_bytes_begin_fill(&c->bytes, dst, room);
    if (plain.len) {
        size_t written;
        ERR_clear_error();
        if (SSL_write_ex(c->ssl, plain.ptr, plain.len, &written) != 1)
            fail_by_openssl(c);
        else
            assert(written == plain.len);
    }
    return tls_bytes_end_fill(&c->bytes, dst);
}

void tls_client_end_output(struct tls_client *c)
{
    if (!can_write(c))
        return;
    (void)SSL_shutdown(c->ssl); /* we do not wait for the server's notification */
    ERR_clear_error();
    c->output_ended = true;
}

void tls_client_shutdown(struct tls_client *c)
{
    if (c->state != TLS_CLIENT_OPEN)
        return;
    tls_client_end_output(c);
    move(c, TLS_CLIENT_ENDED);
}

/* -- time -- */

int64_t tls_client_timeout(const struct tls_client *c)
{
    return c->state == TLS_CLIENT_SHAKING ? c->handshake_at_ns : CLOCK_NEVER;
}

void tls_client_tick(struct tls_client *c, int64_t now_ns)
{
    if (c->state == TLS_CLIENT_SHAKING && now_ns >= c->handshake_at_ns)
        fail(c, ST_TIMEOUT, "TLS handshake timeout");
}

/* -- life -- */

/* Without brackets, without a zone, and without a dot at the end. NULL: no memory. */
static char *clean_host(const char *host)
{
    size_t len = strlen(host);
    if (len >= 2 && host[0] == '[' && host[len - 1] == ']') {
        host++;
        len -= 2;
    }
    const char *zone = memchr(host, '%', len);
    if (zone)
        len = (size_t)(zone - host);
    if (len > 1 && host[len - 1] == '.')
        len--;
    char *clean = malloc(len + 1);
    if (clean) {
        memcpy(clean, host, len);
        clean[len] = 0;
    }
    return clean;
}

/* An IP address is not sent (RFC 6066), and neither is an empty name. */
static bool set_server_name(struct tls_client *c)
{
    if (!*c->host || tls_host_is_ip(slice_from_text(c->host)))
        return true;
    return SSL_set_tlsext_host_name(c->ssl, c->host) == 1;
}

enum status tls_client_new(struct tls_client_source *source, const char *host,
                           enum tls_client_protocol protocol,
                           const struct tls_client_limits *limits, int64_t now_ns,
                           struct tls_client **ret_client, struct error *error)
{
    AUTO(tls_client_freep) struct tls_client *c = calloc(1, sizeof(*c));
    if (!c || !(c->host = clean_host(host)))
        return error_no_memory(error);
    if (strlen(c->host) > TLSEXT_MAXLEN_host_name)
        return error_set(error, ST_INVALID, "the name of the server is longer than %d bytes",
                         TLSEXT_MAXLEN_host_name);
    c->protocol = protocol;
    c->limits = *limits;
    c->handshake_at_ns = clock_add(now_ns, limits->handshake_ns);
    c->peer.host = c->host;
    c->context = tls_source_get(source->source);
    c->ssl = tls_context_connect(c->context, &c->peer);
    if (!c->ssl || !tls_bytes_attach(&c->bytes, source->method, c->ssl) || !set_server_name(c) ||
        !offer(c->ssl, protocol))
        return error_no_memory(error);
    shake(c);
    if (c->state == TLS_CLIENT_FAILED)
        return error_set(error, c->status, "%s", c->reason ? c->reason : "out of memory");
    *ret_client = TAKE(c);
    return ST_OK;
}

void tls_client_free(struct tls_client *c)
{
    if (!c)
        return;
    SSL_free(c->ssl);
    ERR_clear_error();
    tls_context_unref(c->context);
    tls_peer_fini(&c->peer);
    tls_bytes_fini(&c->bytes);
    free(c->host);
    free(c->reason);
    free(c);
}

enum tls_client_state tls_client_state(const struct tls_client *c)
{
    return c->state;
}

bool tls_client_selected_http2(const struct tls_client *c)
{
    return slice_equal(selected_protocol(c->ssl), SLICE_LITERAL("h2"));
}

enum status tls_client_reason(const struct tls_client *c, const char **ret_text)
{
    assert(c->state == TLS_CLIENT_FAILED);
    *ret_text = c->reason ? c->reason : "out of memory";
    return c->status;
}

void tls_client_check(const struct tls_client *c)
{
    assert((unsigned)c->state < COUNT_OF(moves));
    assert(!c->bytes.dst && !c->bytes.room); /* only within tls_client_fill */
    assert((c->state == TLS_CLIENT_FAILED) == (c->status != ST_OK));
    assert(c->state == TLS_CLIENT_FAILED || !c->reason);
    assert(c->bytes.in.len == 0 || c->state <= TLS_CLIENT_OPEN);
    assert(c->ssl && c->context && c->host);
    if (c->state == TLS_CLIENT_OPEN)
        assert(SSL_is_init_finished(c->ssl));
}
