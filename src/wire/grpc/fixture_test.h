/* For tests of calls: one connection to a server with the methods of services_test.h. */
#ifndef VIGIL_WIRE_GRPC_FIXTURE_TEST_H
#define VIGIL_WIRE_GRPC_FIXTURE_TEST_H

#include "wire/grpc/requests_test.h"
#include "wire/grpc/services_test.h"
#include "wire/memory_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct fixture {
    struct wire_limits limits;
    struct grpc_services *services;
    struct wire_server *server;
    struct wire_connection *connection;
    struct test_service service;
    struct test_memory memory; /* unlimited, unless the test sets a limit before it feeds */
    struct buf in, out;
    int64_t now;
    int64_t (*fresh_ns)(void *owner); /* NULL: the time of the turn */
    size_t outputs;
};

static inline void on_output(void *owner)
{
    ((struct fixture *)owner)->outputs++;
}

static inline int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    f->limits = WIRE_LIMITS_DEFAULT;
    f->now = H2_SECOND_NS;
    assert_int_equal(grpc_services_new(&f->services), ST_OK);
    assert_int_equal(
        grpc_services_add(f->services, test_methods, COUNT_OF(test_methods), &f->service), ST_OK);
    test_hello(&f->in);
    *state = f;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;
    wire_connection_free(f->connection);
    wire_server_free(f->server);
    grpc_services_free(f->services);
    test_memory_fini(&f->memory);
    buf_fini(&f->in);
    buf_fini(&f->out);
    free(f);
    return 0;
}

static inline void feed(struct fixture *f)
{
    if (!f->server) {
        struct wire_hooks hooks = {
            .on_output = on_output,
            .owner = f,
            .fresh_ns = f->fresh_ns,
            .account = f->memory.account,
        };
        assert_int_equal(wire_server_new(f->services, NULL, &f->limits, &f->server), ST_OK);
        assert_int_equal(wire_connection_new(f->server, hooks, f->now, &f->connection), ST_OK);
    }
    wire_connection_feed(f->connection, buf_slice(&f->in), f->now);
    f->in.len = 0;
    wire_connection_check(f->connection);
}

static inline void drain(struct fixture *f)
{
    static uint8_t room[64 * 1024];
    while (wire_connection_wants_write(f->connection)) {
        size_t n = wire_connection_fill(f->connection, room, sizeof(room), f->now);
        if (n == 0)
            break;
        test_put(&f->out, slice_of(room, n));
    }
    wire_connection_check(f->connection);
}

static inline void exchange(struct fixture *f)
{
    feed(f);
    drain(f);
}

/* Whether the nth HEADERS of a stream contains the text. Our header blocks are not Huffman-coded.
 */
static inline bool header_holds(struct fixture *f, uint32_t id, size_t nth, const char *text)
{
    struct h2_frame frame;
    struct slice payload;
    if (!test_find(buf_slice(&f->out), H2_HEADERS, id, nth, &frame, &payload))
        return false;
    return memmem(payload.ptr, payload.len, text, strlen(text)) != NULL;
}

/* The status that a call ended with, from its last HEADERS; -1: it has not ended. */
static inline int status_of(struct fixture *f, uint32_t id)
{
    struct h2_frame frame;
    struct slice payload;
    size_t count = test_count(buf_slice(&f->out), H2_HEADERS, id);
    if (count == 0 || !test_find(buf_slice(&f->out), H2_HEADERS, id, count - 1, &frame, &payload) ||
        !(frame.flags & H2_FLAG_END_STREAM))
        return -1;
    const uint8_t *at = memmem(payload.ptr, payload.len, "grpc-status", 11);
    if (!at)
        return -1;
    return at[11] == 2 ? (at[12] - '0') * 10 + at[13] - '0' : at[12] - '0';
}

static inline void assert_ended(struct fixture *f, uint32_t id, enum grpc_code code,
                                const char *text)
{
    assert_int_equal(status_of(f, id), code);
    size_t last = test_count(buf_slice(&f->out), H2_HEADERS, id) - 1;
    if (!header_holds(f, id, last, text))
        print_error("missing: %s\n", text);
    assert_true(header_holds(f, id, last, text));
}

#define EXTRA(...) ((const char *const[]){__VA_ARGS__, NULL})
#define BODY(text)                                \
    {                                             \
        (const uint8_t *)(text), sizeof(text) - 1 \
    }

struct guard_test {
    size_t asked;
    size_t refused_after; /* this many messages are admitted */
};

static inline enum status guard_admit(void *ctx, struct grpc_call *call, const struct grpc_row *row)
{
    struct guard_test *g = ctx;
    assert_true(slice_equal(row->path, grpc_call_path(call)));
    assert_int_equal(g->asked > 0, grpc_call_caller(call) != NULL);
    grpc_call_set_caller(call, g);
    return g->asked++ < g->refused_after ? ST_OK : ST_PERMISSION_DENIED;
}

enum { LIMIT = 1 << 20 };
#define REFUSAL "clients hold too much memory, see --max-client-bytes"

/* How many of the calls up to this id ended with the refusal, and how many have not ended. */
static inline size_t refused(struct fixture *f, uint32_t last_id, size_t *ret_open)
{
    size_t count = 0;
    *ret_open = 0;
    for (uint32_t id = 1; id <= last_id; id += 2) {
        int code = status_of(f, id);
        *ret_open += code == -1 && test_error(buf_slice(&f->out), id) == -1;
        count += code == GRPC_RESOURCE_EXHAUSTED;
        if (code == GRPC_RESOURCE_EXHAUSTED)
            assert_ended(f, id, GRPC_RESOURCE_EXHAUSTED, REFUSAL);
    }
    return count;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* A whole message with the compressed flag. */
static inline void packed_message(struct buf *to, uint32_t id, uint8_t flags, struct slice packed)
{
    AUTO(buf_fini) struct buf framed = {0};
    uint8_t prefix[GRPC_PREFIX_BYTES];
    grpc_prefix_write(prefix, (uint32_t)packed.len);
    prefix[0] = 1;
    test_put(&framed, slice_of(prefix, sizeof(prefix)));
    test_put(&framed, packed);
    test_frame(to, H2_DATA, flags, id, buf_slice(&framed));
}

#endif
