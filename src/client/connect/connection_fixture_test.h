/* For tests of connections: an owner that records what its hooks report, requests, and a server
 * that follows a script. */
#ifndef VIGIL_CLIENT_CONNECT_CONNECTION_FIXTURE_TEST_H
#define VIGIL_CLIENT_CONNECT_CONNECTION_FIXTURE_TEST_H

#include "base/buf.h"
#include "client/connect/connection.h"
#include "client/names/dns_table_test.h"
#include "client/names/resolver.h"
#include "simulated/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { TEST_REQUESTS_MAX = 64 };

/* POST /echo; the response is collected. */
struct test_request {
    struct h2_stream stream;
    struct test_owner *owner;
    size_t body, sent; /* bytes of the request */
    size_t received;   /* bytes of the response that are right */
    bool wrong, ended;
    unsigned status, closed;
};

enum test_moment { TEST_NEVER, TEST_ON_OPEN, TEST_ON_DRAINING, TEST_ON_CLOSED, TEST_ON_DATA };

/* Owns one connection. */
struct test_owner {
    struct connection *connection;
    unsigned opened, draining, rooms, closed;
    enum status status;
    char text[1024], goaway[64];
    enum h2_error goaway_code;
    enum test_moment frees_at;
    unsigned requests_on_open; /* started in on_open */
    size_t body;
    struct test_request requests[TEST_REQUESTS_MAX];
    size_t count;
};

static inline uint8_t test_byte(size_t i)
{
    return (uint8_t)(i * 13 + i / 251);
}

static inline void owner_frees(struct test_owner *o, enum test_moment moment)
{
    if (o->frees_at != moment || !o->connection)
        return;
    struct connection *c = o->connection;
    o->connection = NULL;
    connection_free(c);
}

/* -- requests -- */

static inline void request_headers(struct h2_stream *stream, struct h2_headers *headers, bool ended)
{
    struct test_request *r = (struct test_request *)stream;
    if (!r->status)
        r->status = headers->status;
    r->ended |= ended;
}

static inline void request_data_arrived(struct h2_stream *stream, struct slice bytes)
{
    struct test_request *r = (struct test_request *)stream;
    for (size_t i = 0; i < bytes.len; i++)
        r->wrong |= bytes.ptr[i] != test_byte(r->received++);
    h2_stream_consumed(stream, bytes.len);
    owner_frees(r->owner, TEST_ON_DATA);
}

static inline void request_closed(struct h2_stream *stream, enum h2_error code)
{
    struct test_request *r = (struct test_request *)stream;
    r->closed++;
    r->ended |= stream->ended_by == H2_ENDED_COMPLETE && code == H2_NO_ERROR;
}

static inline size_t request_head(struct h2_stream *stream, uint8_t *dst, size_t room)
{
    (void)stream;
    struct slice block = SLICE_LITERAL("\x83\x86\x04\x05/echo\x01\x01x");
    if (room < block.len)
        return 0;
    slice_copy(dst, block);
    return block.len;
}

static inline enum h2_fill request_body(struct h2_stream *stream, uint8_t *dst, size_t room,
                                        size_t *ret_len)
{
    struct test_request *r = (struct test_request *)stream;
    size_t n = size_min(room, r->body - r->sent);
    for (size_t i = 0; i < n; i++)
        dst[i] = test_byte(r->sent + i);
    r->sent += n;
    *ret_len = n;
    return r->sent == r->body ? H2_FILL_END : H2_FILL_MORE;
}

static inline enum status owner_request(struct test_owner *o)
{
    static const struct h2_stream_ops ops = {
        .on_headers = request_headers,
        .on_data = request_data_arrived,
        .on_close = request_closed,
        .head = request_head,
        .data = request_body,
    };
    assert_true(o->count < TEST_REQUESTS_MAX);
    struct test_request *r = &o->requests[o->count];
    *r = (struct test_request){.stream.ops = &ops, .owner = o, .body = o->body};
    TRY(h2_session_open(connection_session(o->connection), &r->stream));
    o->count++;
    return ST_OK;
}

static inline size_t owner_closed_requests(const struct test_owner *o)
{
    size_t n = 0;
    for (size_t i = 0; i < o->count; i++) {
        assert_true(o->requests[i].closed <= 1);
        assert_false(o->requests[i].wrong);
        n += o->requests[i].closed;
    }
    return n;
}

static inline size_t owner_answers(const struct test_owner *o)
{
    size_t n = 0;
    for (size_t i = 0; i < o->count; i++)
        n += o->requests[i].ended && o->requests[i].status == 200 &&
             o->requests[i].received == o->body;
    return n;
}

/* -- hooks -- */

static inline void owner_opened(void *owner)
{
    struct test_owner *o = owner;
    assert_int_equal(o->opened++, 0);
    assert_int_equal(connection_state(o->connection), CONNECTION_OPEN);
    for (unsigned i = 0; i < o->requests_on_open; i++)
        if (owner_request(o) != ST_OK)
            break; /* without memory, or the server has gone already */
    owner_frees(o, TEST_ON_OPEN);
}

static inline void owner_draining(void *owner, enum h2_error code, const char *text)
{
    struct test_owner *o = owner;
    assert_int_equal(o->opened, 1);
    assert_int_equal(o->draining++, 0);
    o->goaway_code = code;
    snprintf(o->goaway, sizeof(o->goaway), "%s", text);
    owner_frees(o, TEST_ON_DRAINING);
}

static inline void owner_room(void *owner)
{
    ((struct test_owner *)owner)->rooms++;
}

static inline void owner_was_closed(void *owner, const struct error *error)
{
    struct test_owner *o = owner;
    assert_int_equal(o->closed++, 0);
    assert_int_equal(connection_state(o->connection), CONNECTION_CLOSED);
    assert_int_equal(owner_closed_requests(o), o->count);
    o->status = error->status;
    snprintf(o->text, sizeof(o->text), "%s", error->text);
    owner_frees(o, TEST_ON_CLOSED);
}

static inline enum status owner_connect(struct test_owner *o, struct connector *connector,
                                        const struct endpoint *endpoint)
{
    struct connection_hooks hooks = {
        .on_open = owner_opened,
        .on_draining = owner_draining,
        .on_room = owner_room,
        .on_closed = owner_was_closed,
        .owner = o,
    };
    enum status status = connection_new(connector, endpoint, SESSION_HTTP2, hooks, &o->connection);
    assert_int_equal(o->opened + o->closed, 0); /* never from within */
    return status;
}

static inline void owner_fini(struct test_owner *o)
{
    connection_free(o->connection);
    o->connection = NULL;
    assert_int_equal(owner_closed_requests(o), o->count);
}

static inline struct endpoint endpoint_of(const char *text)
{
    struct endpoint endpoint;
    struct error error;
    if (endpoint_parse(slice_from_text(text), &endpoint, &error) != ST_OK)
        fail_msg("%s", error.text);
    return endpoint;
}

/* -- a server that follows a script -- */

enum script_end { SCRIPT_STAYS, SCRIPT_ENDS, SCRIPT_BREAKS };

/* Accepts connections one after the other. The second part of the script is sent once a request has
 * arrived. */
struct script_server {
    struct network *network;
    struct loop *loop;
    struct listener listener;
    struct io_watch listener_watch, watch;
    struct socket socket;
    struct slice first, second;
    size_t cut; /* after this many bytes the end comes */
    enum script_end end;
    size_t sent;
    unsigned accepted;
    struct buf received;
    bool over;
};

static inline void script_close(struct script_server *s)
{
    if (!s->socket.ops)
        return;
    loop_unwatch(s->loop, &s->watch);
    socket_close(&s->socket);
    s->over = true;
}

static inline bool script_has_request(const struct script_server *s)
{
    return s->received.len && memmem(s->received.ptr, s->received.len, "/echo", 5);
}

/* The part of the script that may be sent now. */
static inline struct slice script_rest(const struct script_server *s)
{
    if (s->sent >= s->cut)
        return SLICE_EMPTY;
    size_t room = s->cut - s->sent;
    if (s->sent < s->first.len)
        return slice_sub(s->first, s->sent, size_min(room, s->first.len - s->sent));
    size_t at = s->sent - s->first.len;
    if (!script_has_request(s) || at >= s->second.len)
        return SLICE_EMPTY;
    return slice_sub(s->second, at, size_min(room, s->second.len - at));
}

static inline void script_step(struct script_server *s)
{
    size_t n;
    uint8_t bytes[4096];
    enum status status;
    while ((status = socket_read(&s->socket, bytes, sizeof(bytes), &n)) == ST_OK)
        dns_must(buf_append(&s->received, slice_of(bytes, n)) == ST_OK);
    for (struct slice rest; status == ST_AGAIN && (rest = script_rest(s)).len;) {
        if ((status = socket_write(&s->socket, rest, &n)) == ST_OK) {
            s->sent += n;
            status = ST_AGAIN;
        } else if (status == ST_AGAIN) {
            break;
        }
    }
    bool done = s->sent >= s->cut && s->end != SCRIPT_STAYS;
    if (status == ST_AGAIN && !done) {
        unsigned events = IO_READ | (script_rest(s).len ? IO_WRITE : 0u);
        assert_int_equal(loop_watch(s->loop, &s->watch, events), ST_OK);
        return;
    }
    if (done && s->end == SCRIPT_BREAKS && s->socket.world)
        sim_reset(&s->socket);
    script_close(s);
}

static inline void script_ready(struct io_watch *watch, unsigned ready)
{
    (void)ready;
    script_step(CONTAINER_OF(watch, struct script_server, watch));
}

static inline void script_accept(struct io_watch *watch, unsigned ready)
{
    (void)ready;
    struct script_server *s = CONTAINER_OF(watch, struct script_server, listener_watch);
    script_close(s);
    if (listener_accept(&s->listener, &s->socket) != ST_OK)
        return;
    s->accepted++;
    s->sent = 0;
    buf_reset(&s->received, SIZE_MAX);
    s->watch = (struct io_watch){.handle = s->socket.handle, .fn = script_ready};
    script_step(s);
}

static inline void script_listen(struct script_server *s, struct network *network,
                                 struct loop *loop, const struct address *address)
{
    struct error error;
    *s = (struct script_server){.network = network, .loop = loop, .cut = SIZE_MAX};
    if (network_listen(network, address, &s->listener, &error) != ST_OK)
        fail_msg("%s", error.text);
    s->listener_watch = (struct io_watch){.handle = s->listener.handle, .fn = script_accept};
    assert_int_equal(loop_watch(loop, &s->listener_watch, IO_READ), ST_OK);
}

static inline void script_fini(struct script_server *s)
{
    script_close(s);
    loop_unwatch(s->loop, &s->listener_watch);
    listener_close(&s->listener);
    buf_fini(&s->received);
}

static inline struct endpoint script_endpoint(const struct script_server *s)
{
    char address[ADDRESS_TEXT_BYTES], text[ADDRESS_TEXT_BYTES + 16];
    address_format(&s->listener.address, address);
    snprintf(text, sizeof(text), "%s://%s", address_is_path(&s->listener.address) ? "unix" : "http",
             address);
    return endpoint_of(text);
}

#endif
