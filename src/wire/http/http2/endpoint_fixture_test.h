/* For tests: a connection of HTTP/2 to a server, and what its client sends and gets. */
#ifndef VIGIL_WIRE_HTTP_HTTP2_ENDPOINT_FIXTURE_TEST_H
#define VIGIL_WIRE_HTTP_HTTP2_ENDPOINT_FIXTURE_TEST_H

#include "wire/connection.h"
#include "wire/h2/client_test.h"
#include "wire/h2/hpack.h"
#include "wire/http/routes_test.h"
#include "wire/http/stream_routes_test.h"
#include "wire/memory_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)

struct fixture {
    struct wire_limits limits;
    struct grpc_services *services;
    struct http_routes *routes;
    struct wire_server *server;
    struct wire_connection *connection;
    struct test_site site;
    struct test_stream_site stream;
    struct test_memory memory; /* unlimited, unless the test sets a limit before it feeds */
    struct buf in, out;
    struct hpack_decoder hpack; /* for the heads of answers */
    int64_t now;
    size_t outputs;
};

static inline void on_output(void *owner)
{
    ((struct fixture *)owner)->outputs++;
}

static inline int fixture_setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    f->limits = WIRE_LIMITS_DEFAULT;
    f->now = SECOND;
    hpack_decoder_init(&f->hpack);
    assert_int_equal(grpc_services_new(&f->services), ST_OK);
    assert_int_equal(http_routes_new(&f->routes), ST_OK);
    test_hello(&f->in);
    *state = f;
    return 0;
}

static inline int fixture_teardown(void **state)
{
    struct fixture *f = *state;
    wire_connection_free(f->connection);
    wire_server_free(f->server);
    grpc_services_free(f->services);
    http_routes_free(f->routes);
    test_memory_fini(&f->memory);
    hpack_decoder_fini(&f->hpack);
    assert_int_equal(f->site.requests, f->site.ends);
    test_stream_site_fini(&f->stream);
    buf_fini(&f->in);
    buf_fini(&f->out);
    free(f);
    return 0;
}

static inline void feed(struct fixture *f)
{
    if (!f->server) {
        struct wire_hooks hooks = {
            .on_output = on_output, .owner = f, .account = f->memory.account};
        assert_int_equal(wire_server_new(f->services, f->routes, &f->limits, &f->server), ST_OK);
        assert_int_equal(wire_connection_new(f->server, hooks, f->now, &f->connection), ST_OK);
    }
    wire_connection_feed(f->connection, buf_slice(&f->in), f->now);
    f->in.len = 0;
    wire_connection_check(f->connection);
}

static inline void drain(struct fixture *f)
{
    uint8_t room[WIRE_FILL_ROOM_MIN];
    while (wire_connection_wants_write(f->connection)) {
        size_t n = wire_connection_fill(f->connection, room, sizeof(room), f->now);
        test_put(&f->out, slice_of(room, n));
    }
    wire_connection_check(f->connection);
}

static inline void pump(struct fixture *f)
{
    feed(f);
    drain(f);
}

/* Sends the head of a request; more: further fields as name, value, …, NULL. */
static inline void ask(struct fixture *f, uint32_t id, bool ends, const char *method,
                       const char *path, const char *const *more)
{
    uint8_t block[4096], *end = block;
    const char *const fixed[] = {":method", method,       ":scheme", "http", ":path",
                                 path,      ":authority", "x:1",     NULL};
    for (size_t i = 0; fixed[i]; i += 2)
        end = hpack_put_literal(end, slice_from_text(fixed[i]), slice_from_text(fixed[i + 1]));
    for (size_t i = 0; more && more[i]; i += 2)
        end = hpack_put_literal(end, slice_from_text(more[i]), slice_from_text(more[i + 1]));
    test_headers(&f->in, id, ends ? H2_FLAG_END_STREAM : 0, slice_of(block, (size_t)(end - block)));
}

static inline void get(struct fixture *f, uint32_t id, const char *path)
{
    ask(f, id, true, "GET", path, NULL);
}

/* The value of a field of the stream's answer, in its own buffer; "" if absent. */
static inline const char *answer_field(struct fixture *f, uint32_t id, const char *name)
{
    static char text[256];
    struct h2_frame frame;
    struct slice block, value = SLICE_EMPTY;
    struct hpack_limits limits = {16384, 100};
    assert_true(test_find(buf_slice(&f->out), H2_HEADERS, id, 0, &frame, &block));
    AUTO(h2_headers_unrefp) struct h2_headers *headers = NULL;
    assert_int_equal(hpack_decode(&f->hpack, block, true, &limits, &headers), ST_OK);
    (void)h2_headers_get(headers, slice_from_text(name), &value);
    snprintf(text, sizeof(text), "%.*s", SLICE_ARGS(value));
    return text;
}

static inline const char *answer_body(struct fixture *f, uint32_t id)
{
    static char text[512];
    struct h2_frame frame;
    struct slice payload, bytes = buf_slice(&f->out);
    size_t len = 0;
    while (test_next(&bytes, &frame, &payload)) {
        if (frame.type != H2_DATA || frame.stream_id != id)
            continue;
        size_t n = size_min(payload.len, sizeof(text) - 1 - len);
        slice_copy((uint8_t *)text + len, slice_sub(payload, 0, n));
        len += n;
    }
    text[len] = '\0';
    return text;
}

/* Whether the last frame of the stream has END_STREAM. */
static inline bool answer_ended(struct fixture *f, uint32_t id)
{
    struct h2_frame frame;
    struct slice payload, bytes = buf_slice(&f->out);
    bool ended = false;
    while (test_next(&bytes, &frame, &payload)) {
        if (frame.stream_id != id || (frame.type != H2_DATA && frame.type != H2_HEADERS))
            continue;
        assert_false(ended);
        ended = frame.flags & H2_FLAG_END_STREAM;
    }
    return ended;
}

static inline void expect_answer(struct fixture *f, uint32_t id, const char *status,
                                 const char *body)
{
    assert_string_equal(answer_field(f, id, ":status"), status);
    assert_string_equal(answer_body(f, id), body);
    assert_true(answer_ended(f, id));
}

static inline void window_of_all(struct fixture *f, uint32_t bytes)
{
    test_setting(&f->in, H2_SETTING_INITIAL_WINDOW_SIZE, bytes);
    test_window(&f->in, 0, bytes);
}

#endif
