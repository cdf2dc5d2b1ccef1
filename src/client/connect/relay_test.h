/*
 * For tests: a proxy on a simulated network, which connects to the server that its clients name, by
 * CONNECT or SOCKS5, and passes bytes on; or which answers with bytes of the test. Its clients may
 * use TLS.
 */
#ifndef VIGIL_CLIENT_CONNECT_RELAY_TEST_H
#define VIGIL_CLIENT_CONNECT_RELAY_TEST_H

#include "base/buf.h"
#include "base/container/list.h"
#include "base/error.h"
#include "io/loop.h"
#include "io/socket.h"
#include "net/tls/memory_side_test.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { RELAY_SIDE_CLIENT, RELAY_SIDE_SERVER };

struct relay {
    struct network *network;
    struct loop *loop;
    struct listener listener;
    struct io_watch watch;
    struct list pairs;
    /* Set by the test. */
    const char *server;          /* "127.0.0.1": connects there, whatever the client names; NULL: as
                                    the client says */
    const char *authorization;   /* required by CONNECT; NULL: none */
    const char *user, *password; /* required by SOCKS5; NULL: none */
    struct slice answer;         /* instead of its own; empty: its own */
    bool closes;                 /* after that answer */
    SSL_CTX *tls;                /* owned; NULL: without TLS */
    /* For the test. */
    unsigned accepted, tunnels;
    char asked[128];    /* the latest "host:port" that a client named */
    char request[1024]; /* the latest that got the answer of the test */
};

enum relay_state {
    RELAY_READING, /* CONNECT, or the greeting of SOCKS5 */
    RELAY_AUTHENTICATING,
    RELAY_REQUESTED,
    RELAY_OPEN,
    RELAY_DEAD, /* it has answered, and reads no more */
};

struct relay_side {
    struct relay_pair *pair;
    struct socket socket;
    struct io_watch watch;
    struct buf out;
    bool ended; /* it has sent its last byte */
};

struct relay_pair {
    enum relay_state state;
    struct relay *relay;
    struct list in_relay;
    struct buf in; /* before it is open */
    SSL *tls;      /* the client's side; NULL without TLS */
    struct relay_side sides[2];
};

static inline void relay_must(bool ok)
{
    if (!ok)
        abort();
}

/* What TLS has to send. */
static inline void relay_drain_tls(struct relay_pair *p)
{
    uint8_t bytes[4096];
    size_t n;
    while (p->tls && (n = memory_side_drain(p->tls, bytes, sizeof(bytes))) > 0)
        relay_must(buf_append(&p->sides[RELAY_SIDE_CLIENT].out, slice_of(bytes, n)) == ST_OK);
}

static inline void relay_put(struct relay_pair *p, int side, const void *bytes, size_t len)
{
    if (p->tls && side == RELAY_SIDE_CLIENT) {
        memory_side_write(p->tls, bytes, len);
        relay_drain_tls(p);
        return;
    }
    relay_must(buf_append(&p->sides[side].out, slice_of(bytes, len)) == ST_OK);
}

static inline void relay_close(struct relay_pair *p)
{
    for (int i = 0; i < 2; i++) {
        if (p->sides[i].socket.ops) {
            loop_unwatch(p->relay->loop, &p->sides[i].watch);
            socket_close(&p->sides[i].socket);
        }
        buf_fini(&p->sides[i].out);
    }
    buf_fini(&p->in);
    memory_side_free(p->tls);
    list_remove(&p->in_relay);
    free(p);
}

static inline void relay_ready(struct io_watch *watch, unsigned ready);

/* -- What the client asks for -- */

static inline void relay_refuse(struct relay_pair *p, const char *text)
{
    relay_put(p, RELAY_SIDE_CLIENT, text, strlen(text));
    p->state = RELAY_DEAD;
}

static inline void relay_reach(struct relay_pair *p, struct slice host, unsigned port)
{
    struct relay *r = p->relay;
    struct address address;
    struct error error;
    snprintf(r->asked, sizeof(r->asked), "%.*s:%u", SLICE_ARGS(host), port);
    struct slice to = r->server ? slice_from_text(r->server) : host;
    relay_must(address_from_host(to, (uint16_t)port, &address) == ST_OK);
    struct relay_side *side = &p->sides[RELAY_SIDE_SERVER];
    relay_must(network_connect(r->network, &address, &side->socket, &error) == ST_OK);
    side->watch = (struct io_watch){.handle = side->socket.handle, .fn = relay_ready};
    p->state = RELAY_OPEN;
    r->tunnels++;
}

static inline void relay_connect(struct relay_pair *p)
{
    char *head = memmem(p->in.ptr, p->in.len, "\r\n\r\n", 4);
    struct slice rest = buf_slice(&p->in);
    if (!head)
        return;
    *head = 0;
    if (p->relay->authorization && !strstr((char *)p->in.ptr, p->relay->authorization)) {
        relay_refuse(p, "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
        return;
    }
    struct slice method = slice_cut(&rest, ' '), host = slice_cut(&rest, ':');
    relay_must(slice_equal(method, SLICE_LITERAL("CONNECT")) && rest.len);
    size_t used = (size_t)((uint8_t *)head - p->in.ptr) + 4;
    relay_must(used == p->in.len); /* the client waits for the answer */
    relay_reach(p, host, (unsigned)strtoul((const char *)rest.ptr, NULL, 10));
    static const char ok[] = "HTTP/1.0 200 Connection established\r\nX: y\r\n\r\n";
    relay_put(p, RELAY_SIDE_CLIENT, ok, sizeof(ok) - 1);
}

static inline void relay_socks_greeting(struct relay_pair *p)
{
    const uint8_t *in = p->in.ptr;
    if (p->in.len < 2 || p->in.len < 2u + in[1])
        return;
    relay_must(p->in.len == 2u + in[1]);
    uint8_t method = p->relay->user ? 2 : 0;
    if (!memchr(in + 2, method, in[1]))
        method = 0xff;
    relay_put(p, RELAY_SIDE_CLIENT, (const uint8_t[]){5, method}, 2);
    p->in.len = 0;
    p->state = method == 0xff ? RELAY_DEAD : method ? RELAY_AUTHENTICATING : RELAY_REQUESTED;
}

static inline void relay_socks_password(struct relay_pair *p)
{
    char expected[600], got[600] = "";
    const uint8_t *in = p->in.ptr;
    if (p->in.len < 2 || p->in.len < 3u + in[1] || p->in.len < 3u + in[1] + in[2 + in[1]])
        return;
    snprintf(expected, sizeof(expected), "%s:%s", p->relay->user, p->relay->password);
    snprintf(got, sizeof(got), "%.*s:%.*s", in[1], in + 2, in[2 + in[1]], in + 3 + in[1]);
    bool right = strcmp(expected, got) == 0;
    relay_put(p, RELAY_SIDE_CLIENT, (const uint8_t[]){1, right ? 0 : 1}, 2);
    p->in.len = 0;
    p->state = right ? RELAY_REQUESTED : RELAY_DEAD;
}

static inline void relay_socks_request(struct relay_pair *p)
{
    char host[INET6_ADDRSTRLEN + 300];
    const uint8_t *in = p->in.ptr;
    if (p->in.len < 5)
        return;
    size_t len = in[3] == 1 ? 4 : in[3] == 4 ? 16 : 1u + in[4];
    if (p->in.len < 4 + len + 2)
        return;
    if (in[3] == 3)
        snprintf(host, sizeof(host), "%.*s", in[4], in + 5);
    else
        inet_ntop(in[3] == 1 ? AF_INET : AF_INET6, in + 4, host, sizeof(host));
    relay_reach(p, slice_from_text(host), (unsigned)in[4 + len] << 8 | in[5 + len]);
    static const uint8_t reply[] = {5, 0, 0, 1, 0, 0, 0, 0, 0, 0};
    relay_put(p, RELAY_SIDE_CLIENT, reply, sizeof(reply));
}

static inline void relay_read(struct relay_pair *p)
{
    if (p->relay->answer.len) {
        if (p->in.ptr[0] != 5 && !memmem(p->in.ptr, p->in.len, "\r\n\r\n", 4))
            return;
        snprintf(p->relay->request, sizeof(p->relay->request), "%.*s", (int)p->in.len,
                 (const char *)p->in.ptr);
        relay_put(p, RELAY_SIDE_CLIENT, p->relay->answer.ptr, p->relay->answer.len);
        p->state = RELAY_DEAD;
    } else if (p->state == RELAY_AUTHENTICATING) {
        relay_socks_password(p);
    } else if (p->state == RELAY_REQUESTED) {
        relay_socks_request(p);
    } else if (p->in.ptr[0] == 5) {
        relay_socks_greeting(p);
    } else {
        relay_connect(p);
    }
}

/* -- Bytes -- */

static inline bool relay_flush(struct relay_side *side)
{
    size_t n;
    while (side->out.len) {
        enum status status = socket_write(&side->socket, buf_slice(&side->out), &n);
        if (status == ST_AGAIN)
            break;
        if (status != ST_OK)
            return false;
        buf_consume(&side->out, n);
    }
    return true;
}

/* Plain bytes. */
static inline void relay_take(struct relay_pair *p, int side, const uint8_t *bytes, size_t n)
{
    if (p->state == RELAY_OPEN) {
        relay_put(p, !side, bytes, n);
    } else if (p->state != RELAY_DEAD) {
        relay_must(buf_append(&p->in, slice_of(bytes, n)) == ST_OK);
        relay_read(p);
    }
}

static inline void relay_take_tls(struct relay_pair *p, const uint8_t *bytes, size_t n)
{
    uint8_t plain[4096];
    size_t len;
    memory_side_feed(p->tls, bytes, n);
    while ((len = memory_side_read(p->tls, plain, sizeof(plain))) > 0)
        relay_take(p, RELAY_SIDE_CLIENT, plain, len);
    relay_drain_tls(p);
}

/* False: the pair is over. */
static inline bool relay_pull(struct relay_pair *p, int side)
{
    uint8_t bytes[4096];
    size_t n;
    enum status status;
    while ((status = socket_read(&p->sides[side].socket, bytes, sizeof(bytes), &n)) == ST_OK) {
        if (p->tls && side == RELAY_SIDE_CLIENT)
            relay_take_tls(p, bytes, n);
        else
            relay_take(p, side, bytes, n);
    }
    p->sides[side].ended = status == ST_END;
    return status == ST_AGAIN || status == ST_END;
}

static inline bool relay_is_over(const struct relay_pair *p)
{
    const struct relay_side *client = &p->sides[RELAY_SIDE_CLIENT];
    const struct relay_side *server = &p->sides[RELAY_SIDE_SERVER];
    if (p->state == RELAY_DEAD)
        return client->ended || (p->relay->closes && !client->out.len);
    return (client->ended && !server->out.len) || (server->ended && !client->out.len);
}

static inline void relay_watch(struct relay_side *side)
{
    unsigned events = (side->ended ? 0u : IO_READ) | (side->out.len ? IO_WRITE : 0u);
    if (!side->socket.ops)
        return;
    if (events)
        relay_must(loop_watch(side->pair->relay->loop, &side->watch, events) == ST_OK);
    else
        loop_unwatch(side->pair->relay->loop, &side->watch);
}

static inline void relay_step(struct relay_pair *p)
{
    bool fine = relay_pull(p, RELAY_SIDE_CLIENT);
    if (fine && p->sides[RELAY_SIDE_SERVER].socket.ops)
        fine = relay_pull(p, RELAY_SIDE_SERVER) && relay_flush(&p->sides[RELAY_SIDE_SERVER]);
    fine = fine && relay_flush(&p->sides[RELAY_SIDE_CLIENT]);
    if (!fine || relay_is_over(p)) {
        relay_close(p);
        return;
    }
    relay_watch(&p->sides[0]);
    relay_watch(&p->sides[1]);
}

static inline void relay_ready(struct io_watch *watch, unsigned ready)
{
    struct relay_side *side = CONTAINER_OF(watch, struct relay_side, watch);
    (void)ready;
    relay_step(side->pair);
}

static inline void relay_accept(struct io_watch *watch, unsigned ready)
{
    struct relay *r = CONTAINER_OF(watch, struct relay, watch);
    struct socket socket;
    (void)ready;
    if (listener_accept(&r->listener, &socket) != ST_OK)
        return;
    struct relay_pair *p = calloc(1, sizeof(*p));
    relay_must(p);
    r->accepted++;
    p->relay = r;
    if (r->tls)
        p->tls = memory_side_new(r->tls);
    for (int i = 0; i < 2; i++)
        p->sides[i].pair = p;
    p->sides[0].socket = socket;
    p->sides[0].watch = (struct io_watch){.handle = socket.handle, .fn = relay_ready};
    list_push_back(&r->pairs, &p->in_relay);
    relay_step(p);
}

/* On a loop of its own. */
static inline void relay_start(struct relay *r, struct network *network)
{
    struct address address;
    struct error error;
    *r = (struct relay){.network = network};
    list_init(&r->pairs);
    relay_must(network_loop_new(network, &r->loop) == ST_OK);
    relay_must(address_from_host(SLICE_LITERAL("127.0.0.1"), 0, &address) == ST_OK);
    relay_must(network_listen(network, &address, &r->listener, &error) == ST_OK);
    r->watch = (struct io_watch){.handle = r->listener.handle, .fn = relay_accept};
    relay_must(loop_watch(r->loop, &r->watch, IO_READ) == ST_OK);
}

static inline void relay_use_tls(struct relay *r, const char *cert_file, const char *key_file)
{
    r->tls = memory_side_context(cert_file, key_file);
}

static inline void relay_stop(struct relay *r)
{
    while (!list_empty(&r->pairs))
        relay_close(LIST_ENTRY(r->pairs.next, struct relay_pair, in_relay));
    loop_unwatch(r->loop, &r->watch);
    listener_close(&r->listener);
    loop_free(r->loop);
    memory_side_context_free(r->tls);
}

/* "scheme://user@127.0.0.1:port", in a buffer of the caller. */
static inline const char *relay_url(const struct relay *r, const char *scheme, const char *user,
                                    char *to, size_t room)
{
    char address[ADDRESS_TEXT_BYTES];
    address_format(&r->listener.address, address);
    snprintf(to, room, "%s://%s%s%s", scheme, user, *user ? "@" : "", address);
    return to;
}

#endif
