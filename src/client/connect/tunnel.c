#include "client/connect/tunnel.h"

#include "base/buf.h"
#include "wire/http/http1/parser.h"

#include <arpa/inet.h>
#include <stdlib.h>

enum tunnel_state {
    TUNNEL_GREETING,
    TUNNEL_AUTHENTICATING,
    TUNNEL_REQUESTING,
    TUNNEL_OPEN,
};

#define TO(state) (1u << TUNNEL_##state)

/* Drawn in tunnel.h. */
static const uint8_t moves[] = {
    [TUNNEL_GREETING] = TO(AUTHENTICATING) | TO(REQUESTING),
    [TUNNEL_AUTHENTICATING] = TO(REQUESTING),
    [TUNNEL_REQUESTING] = TO(OPEN),
    [TUNNEL_OPEN] = 0,
};

/* The constants of SOCKS5: RFC 1928 and 1929. */
enum {
    SOCKS_VERSION = 5,
    SOCKS_NO_AUTHENTICATION = 0,
    SOCKS_PASSWORD = 2,
    SOCKS_PASSWORD_VERSION = 1,
    SOCKS_CONNECT = 1,
    SOCKS_IPV4 = 1,
    SOCKS_NAME = 3,
    SOCKS_IPV6 = 4,
};

struct tunnel {
    enum tunnel_state state;
    const struct proxy *proxy; /* borrowed */
    struct endpoint server;
    struct buf out; /* bytes before sent were sent */
    size_t sent;
    struct buf in; /* an incomplete response */
    size_t head_seen;
};

/* -- HTTP -- */

static enum status put_connect(struct tunnel *t)
{
    const char *host = t->server.text, *authorization = t->proxy->authorization;
    TRY(buf_append_format(&t->out, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n", host, host));
    if (*authorization)
        TRY(buf_append_format(&t->out, "Proxy-Authorization: %s\r\n", authorization));
    return buf_append(&t->out, SLICE_LITERAL("\r\n"));
}

/* The first bytes of `in`; *ret_len: how long the response is. */
static enum status read_response(struct tunnel *t, size_t *ret_len, struct error *error)
{
    size_t len = http1_head_length(buf_slice(&t->in), &t->head_seen);
    if ((len ? len : t->in.len) > TUNNEL_HEAD_BYTES_MAX)
        return error_set(error, ST_CLOSED, "the proxy's response exceeds the limit");
    if (len == 0)
        return ST_AGAIN;
    *ret_len = len;
    struct http1_response response;
    const char *fault = http1_response_parse(slice_of(t->in.ptr, len), HTTP1_FIELDS_MAX, &response);
    if (fault)
        return error_set(error, ST_CLOSED, "the proxy does not speak HTTP: %s", fault);
    if (response.status / 100 != 2)
        return error_set(error, ST_CLOSED, "the proxy answered CONNECT with status %u%s",
                         response.status,
                         response.status == 407 ? ": it requires a user and a password" : "");
    STATE_MOVE(t->state, moves, TUNNEL_OPEN);
    return ST_OK;
}

/* -- SOCKS5 -- */

static enum status put_bytes(struct tunnel *t, const void *bytes, size_t len)
{
    return buf_append(&t->out, slice_of(bytes, len));
}

static enum status put_byte(struct tunnel *t, size_t byte)
{
    uint8_t value = (uint8_t)byte;
    assert(byte <= UINT8_MAX);
    return put_bytes(t, &value, 1);
}

static enum status put_text(struct tunnel *t, const char *text)
{
    TRY(put_byte(t, strlen(text)));
    return put_bytes(t, text, strlen(text));
}

static enum status put_request(struct tunnel *t)
{
    static const uint8_t head[] = {SOCKS_VERSION, SOCKS_CONNECT, 0};
    uint8_t address[16];
    TRY(put_bytes(t, head, sizeof(head)));
    /* A name is sent as it is, so that the proxy looks it up: it may be known only there. */
    if (inet_pton(AF_INET, t->server.host, address) == 1) {
        TRY(put_byte(t, SOCKS_IPV4));
        TRY(put_bytes(t, address, 4));
    } else if (inet_pton(AF_INET6, t->server.host, address) == 1) {
        TRY(put_byte(t, SOCKS_IPV6));
        TRY(put_bytes(t, address, 16));
    } else {
        TRY(put_byte(t, SOCKS_NAME));
        TRY(put_text(t, t->server.host));
    }
    TRY(put_byte(t, t->server.port >> 8));
    return put_byte(t, t->server.port & 0xff);
}

static const char *socks_reason(uint8_t code)
{
    static const char *const reasons[] = {
        "",
        "general failure of the proxy",
        "the connection is not allowed",
        "network unreachable",
        "host unreachable",
        "connection refused",
        "TTL expired",
        "command not supported",
        "address type not supported",
    };
    return code < COUNT_OF(reasons) ? reasons[code] : "unknown error";
}

/* The length of the response that this state waits for; 0: more bytes are needed to know it. */
static size_t socks_length(const struct tunnel *t)
{
    if (t->state != TUNNEL_REQUESTING)
        return 2;
    if (t->in.len < 5)
        return 0;
    size_t address = t->in.ptr[3] == SOCKS_NAME   ? 1u + t->in.ptr[4]
                     : t->in.ptr[3] == SOCKS_IPV6 ? 16
                                                  : 4;
    return 4 + address + 2;
}

static enum status judge_socks(struct tunnel *t, struct error *error)
{
    const uint8_t *in = t->in.ptr;
    uint8_t version = t->state == TUNNEL_AUTHENTICATING ? SOCKS_PASSWORD_VERSION : SOCKS_VERSION;
    if (in[0] != version)
        return error_set(error, ST_CLOSED, "the proxy does not speak SOCKS5");
    if (t->state == TUNNEL_GREETING) {
        /* The proxy has chosen one of the methods of authentication that the greeting offered. */
        enum status status;
        if (in[1] == SOCKS_PASSWORD && t->proxy->has_user) {
            STATE_MOVE(t->state, moves, TUNNEL_AUTHENTICATING);
            status = put_byte(t, SOCKS_PASSWORD_VERSION);
            if (status == ST_OK)
                status = put_text(t, t->proxy->user);
            if (status == ST_OK)
                status = put_text(t, t->proxy->password);
        } else if (in[1] == SOCKS_NO_AUTHENTICATION) {
            STATE_MOVE(t->state, moves, TUNNEL_REQUESTING);
            status = put_request(t);
        } else {
            return error_set(error, ST_CLOSED, "the proxy requires another kind of authentication");
        }
        return status == ST_OK ? ST_OK : error_no_memory(error);
    }
    if (t->state == TUNNEL_REQUESTING) {
        /* The proxy has connected to the server, or says why it cannot. */
        if (in[1] != 0)
            return error_set(error, ST_CLOSED, "the proxy answered: %s", socks_reason(in[1]));
        if (in[3] != SOCKS_IPV4 && in[3] != SOCKS_NAME && in[3] != SOCKS_IPV6)
            return error_set(error, ST_CLOSED, "the proxy does not speak SOCKS5");
        STATE_MOVE(t->state, moves, TUNNEL_OPEN);
        return ST_OK;
    }
    /* The proxy has checked the user and the password. */
    if (in[1] != 0)
        return error_set(error, ST_CLOSED, "the proxy refused the user or the password");
    STATE_MOVE(t->state, moves, TUNNEL_REQUESTING);
    return put_request(t) == ST_OK ? ST_OK : error_no_memory(error);
}

/* One response after the other; those before the last are removed from `in`. */
static enum status read_socks(struct tunnel *t, size_t *ret_len, struct error *error)
{
    for (;;) {
        size_t len = socks_length(t);
        if (len == 0 || t->in.len < len)
            return ST_AGAIN;
        TRY(judge_socks(t, error));
        *ret_len = len;
        if (t->state == TUNNEL_OPEN)
            return ST_OK;
        buf_consume(&t->in, len);
    }
}

/* -- Both -- */

enum status tunnel_new(const struct proxy *proxy, const struct endpoint *server,
                       struct tunnel **ret_tunnel)
{
    AUTO(tunnel_freep) struct tunnel *t = calloc(1, sizeof(*t));
    if (!t)
        return ST_NOMEM;
    t->proxy = proxy;
    t->server = *server;
    if (proxy->kind == PROXY_SOCKS5) {
        /* The proxy chooses one of the offered methods. A password is offered only if there is one.
         */
        static const uint8_t greeting[] = {SOCKS_VERSION, 2, SOCKS_NO_AUTHENTICATION,
                                           SOCKS_PASSWORD};
        static const uint8_t without_user[] = {SOCKS_VERSION, 1, SOCKS_NO_AUTHENTICATION};
        t->state = TUNNEL_GREETING;
        TRY(proxy->has_user ? put_bytes(t, greeting, sizeof(greeting))
                            : put_bytes(t, without_user, sizeof(without_user)));
    } else {
        t->state = TUNNEL_REQUESTING;
        TRY(put_connect(t));
    }
    *ret_tunnel = TAKE(t);
    return ST_OK;
}

void tunnel_free(struct tunnel *t)
{
    if (!t)
        return;
    buf_fini(&t->out);
    buf_fini(&t->in);
    free(t);
}

bool tunnel_wants_write(const struct tunnel *t)
{
    return t->sent < t->out.len;
}

size_t tunnel_fill(struct tunnel *t, uint8_t *dst, size_t room)
{
    size_t n = size_min(room, t->out.len - t->sent);
    slice_copy(dst, slice_of(t->out.ptr + t->sent, n));
    t->sent += n;
    return n;
}

enum status tunnel_feed(struct tunnel *t, struct slice bytes, size_t *ret_used, struct error *error)
{
    size_t len = 0;
    assert(t->state != TUNNEL_OPEN);
    if (buf_append(&t->in, bytes) != ST_OK)
        return error_no_memory(error);
    enum status status =
        t->proxy->kind == PROXY_SOCKS5 ? read_socks(t, &len, error) : read_response(t, &len, error);
    if (status == ST_OK)
        *ret_used = bytes.len - (t->in.len - len);
    return status;
}

void tunnel_check(const struct tunnel *t)
{
    assert((unsigned)t->state < COUNT_OF(moves));
    assert(t->sent <= t->out.len);
    assert(t->state == TUNNEL_OPEN || t->in.len <= TUNNEL_HEAD_BYTES_MAX);
    assert(t->proxy->kind == PROXY_SOCKS5 || t->state >= TUNNEL_REQUESTING);
}
