/* For tests: calls of a client and the answers to them. */
#ifndef VIGIL_ETCD_PEER_CALLS_TEST_H
#define VIGIL_ETCD_PEER_CALLS_TEST_H

#include "codec/pb/rpc.pb.h"
#include "etcd/peer_frames_test.h"

#include <stdio.h>

/* -- Requests -- */

/* Starts a call; its messages are sent later. */
static inline uint32_t peer_open(struct peer *p, const char *path, struct slice version)
{
    struct slice fields[][2] = {
        {SLICE_LITERAL(":method"), SLICE_LITERAL("POST")},
        {SLICE_LITERAL(":scheme"), SLICE_LITERAL("http")},
        {SLICE_LITERAL(":path"), slice_from_text(path)},
        {SLICE_LITERAL(":authority"), SLICE_LITERAL("x")},
        {SLICE_LITERAL("content-type"), SLICE_LITERAL("application/grpc")},
        {SLICE_LITERAL("te"), SLICE_LITERAL("trailers")},
        {SLICE_LITERAL("client-api-version"), version},
    };
    uint8_t block[2048], *end = block;
    for (size_t i = 0; i < COUNT_OF(fields); i++)
        end = hpack_put_literal(end, fields[i][0], fields[i][1]);
    for (const struct peer_field *f = p->metadata; f && f->name; f++)
        end = hpack_put_literal(end, slice_from_text(f->name), slice_from_text(f->value));
    uint32_t id = p->next_id;
    p->next_id += 2;
    *peer_stream(p, id) = (struct peer_stream){.code = -1};
    peer_feed_frame(p, H2_HEADERS, H2_FLAG_END_HEADERS, id, slice_of(block, (size_t)(end - block)));
    return id;
}

static inline void peer_send(struct peer *p, uint32_t id, struct slice message, bool last)
{
    uint8_t *framed = arena_alloc(&p->arena, GRPC_PREFIX_BYTES + message.len);
    grpc_prefix_write(framed, (uint32_t)message.len);
    slice_copy(framed + GRPC_PREFIX_BYTES, message);
    size_t len = GRPC_PREFIX_BYTES + message.len;
    p->window_used[id / 2] += len;
    for (size_t at = 0, n; at < len; at += n) {
        n = size_min(len - at, H2_FRAME_BYTES_MAX);
        peer_feed_frame(p, H2_DATA, last && at + n == len ? H2_FLAG_END_STREAM : 0, id,
                        slice_of(framed + at, n));
        if (at + n < len)
            peer_pump(p); /* the server may open the window again */
    }
}

static inline void peer_half_close(struct peer *p, uint32_t id)
{
    peer_feed_frame(p, H2_DATA, H2_FLAG_END_STREAM, id, SLICE_EMPTY);
}

static inline uint32_t peer_call_bytes(struct peer *p, const char *path, struct slice version,
                                       struct slice message)
{
    uint32_t id = peer_open(p, path, version);
    peer_send(p, id, message, true);
    return id;
}

static inline uint32_t peer_call(struct peer *p, const char *path, const struct pb_message *type,
                                 const void *message)
{
    size_t size = pb_size(type, message);
    uint8_t *bytes = arena_alloc(&p->arena, size);
    pb_encode(type, message, bytes, size);
    return peer_call_bytes(p, path, SLICE_LITERAL("3.7"), slice_of(bytes, size));
}

/* Decodes the next message of an answer; false at its end. */
static inline bool next_message(struct peer *p, uint32_t id, size_t *at,
                                const struct pb_message *type, void *ret_message)
{
    struct buf *body = &peer_stream(p, id)->body;
    if (*at == body->len)
        return false;
    assert_true(body->len - *at >= GRPC_PREFIX_BYTES);
    size_t len = h2_get32(body->ptr + *at + 1);
    assert_true(body->len - *at - GRPC_PREFIX_BYTES >= len);
    struct slice message = slice_of(body->ptr + *at + GRPC_PREFIX_BYTES, len);
    assert_int_equal(pb_decode(type, message, &p->arena, ret_message), ST_OK);
    *at += GRPC_PREFIX_BYTES + len;
    return true;
}

/* One turn of the shard, which sends what was published. */
static inline void peer_turn(struct peer *p)
{
    engine_shard_turn_begin(p->shard);
    engine_shard_turn_end(p->shard);
    peer_pump(p);
    engine_shard_flushed(p->shard);
    etcd_api_check(p->api);
}

static inline void answer_all(struct peer *p)
{
    peer_pump(p);
    while (fake_step(p->engine))
        peer_pump(p);
}

static inline void peer_put_done(struct engine_op *op)
{
    assert_int_equal(op->status, ST_OK);
}

/* Puts "key-000000" and so on directly into the engine. */
static inline void put_all(struct peer *p, unsigned keys, size_t value_bytes)
{
    uint8_t *value = arena_calloc(&p->arena, 1, value_bytes);
    for (unsigned i = 0; i < keys; i++) {
        char key[16];
        snprintf(key, sizeof(key), "key-%06u", i);
        struct engine_write write = {.op = {.done = peer_put_done, .arena = &p->arena}};
        struct pb_put_request request = {.key = slice_from_text(key),
                                         .value = slice_of(value, value_bytes)};
        engine_put(p->shard, &write, &request);
        while (fake_step(p->engine))
            ;
        engine_write_close(&write);
    }
}

static inline void assert_fails(struct peer *p, uint32_t id, enum grpc_code code, const char *text)
{
    peer_pump(p);
    assert_true(peer_stream(p, id)->ended);
    assert_int_equal(peer_stream(p, id)->body.len, 0);
    assert_string_equal(peer_stream(p, id)->text, text);
    assert_int_equal(peer_stream(p, id)->code, code);
}

/* The answer must have one message and the status OK. */
static inline void assert_answers(struct peer *p, uint32_t id, const struct pb_message *type,
                                  void *ret_message)
{
    size_t at = 0;
    peer_pump(p);
    assert_string_equal(peer_stream(p, id)->text, "");
    assert_int_equal(peer_stream(p, id)->code, GRPC_OK);
    assert_true(next_message(p, id, &at, type, ret_message));
    assert_int_equal(at, peer_stream(p, id)->body.len);
}

#endif
