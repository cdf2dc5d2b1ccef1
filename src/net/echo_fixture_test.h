/*
 * A small protocol for the tests of net/: frames of a four-byte length (big-endian) and a body,
 * whose first byte says what to answer.
 *
 *     e…    the same frame
 *     g N   N bytes (four bytes, big-endian) of echo_pattern, made as they are pulled, not framed
 *     q…    the same frame, and then the connection ends
 *     h…    nothing: the request never completes
 *     o…    the same frame, and then nothing more; frames that follow are counted
 */
#ifndef VIGIL_NET_ECHO_FIXTURE_TEST_H
#define VIGIL_NET_ECHO_FIXTURE_TEST_H

#include "base/buf.h"
#include "base/clock.h"
#include "net/protocol.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { ECHO_FRAME_MAX = 100000, ECHO_QUEUE_MAX = 256 * 1024 };

struct echo_settings {
    int64_t handshake_ns; /* timeout of the first byte */
    /* Observed on all its connections: bytes made for 'g', and their number when the last bytes
     * were fed and when the last frame was sent back. */
    _Atomic uint64_t made, made_when_fed, made_when_echoed;
    _Atomic uint64_t taken; /* frames that arrived after an 'o' */
};

struct echo {
    struct protocol_hooks hooks;
    struct echo_settings *settings;
    struct buf in, out;
    size_t out_at;
    uint64_t generated, generate; /* 'g' frames: bytes made and requested */
    unsigned hanging;
    int64_t handshake_at;
    bool closing;
    bool output_over; /* an 'o' has arrived */
    const char *reason;
};

static inline uint8_t echo_pattern(uint64_t i)
{
    return (uint8_t)(i * 7 + i / 253);
}

static inline uint32_t echo_number(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static inline void echo_put_number(uint8_t *at, uint32_t n)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(n >> (24 - 8 * i));
}

static inline void echo_must(enum status status)
{
    if (status != ST_OK)
        abort();
}

static inline void echo_end(struct echo *e, const char *reason)
{
    e->closing = true;
    e->reason = reason;
}

static inline void echo_answer(struct echo *e, struct slice frame)
{
    if (e->output_over) {
        e->settings->taken++;
        return;
    }
    switch (frame.len > 4 ? frame.ptr[4] : 0) {
    case 'o':
        echo_must(buf_append(&e->out, frame));
        e->output_over = true;
        break;
    case 'g':
        e->generate += frame.len >= 9 ? echo_number(frame.ptr + 5) : 0;
        break;
    case 'h':
        e->hanging++;
        break;
    case 'q':
        echo_must(buf_append(&e->out, frame));
        echo_end(e, "asked to");
        break;
    default:
        echo_must(buf_append(&e->out, frame));
    }
}

static inline void echo_feed(void *protocol, struct slice bytes, int64_t now_ns)
{
    (void)now_ns;
    struct echo *e = protocol;
    e->handshake_at = CLOCK_NEVER;
    e->settings->made_when_fed = e->settings->made;
    echo_must(buf_append(&e->in, bytes));
    size_t at = 0;
    while (!e->closing && e->in.len - at >= 4) {
        uint32_t len = echo_number(e->in.ptr + at);
        if (len > ECHO_FRAME_MAX)
            echo_end(e, "frame too long");
        else if (e->in.len - at - 4 < len)
            break;
        else
            echo_answer(e, slice_of(e->in.ptr + at, 4 + len));
        at += 4 + (size_t)len;
    }
    if (e->closing)
        buf_fini(&e->in);
    else
        buf_consume(&e->in, at);
    if (e->in.len == 0)
        buf_reset(&e->in, 0);
}

static inline void echo_feed_end(void *protocol, int64_t now_ns)
{
    (void)now_ns;
    struct echo *e = protocol;
    if (e->hanging || e->output_over)
        echo_end(e, "the peer left");
}

static inline size_t echo_queued(const struct echo *e)
{
    return e->out.len - e->out_at;
}

static inline bool echo_wants_read(const void *protocol)
{
    return echo_queued(protocol) < ECHO_QUEUE_MAX;
}

static inline bool echo_wants_write(const void *protocol)
{
    const struct echo *e = protocol;
    return echo_queued(e) > 0 || e->generated < e->generate;
}

static inline size_t echo_fill(void *protocol, uint8_t *dst, size_t room, int64_t now_ns)
{
    (void)now_ns;
    struct echo *e = protocol;
    size_t n = size_min(room, echo_queued(e));
    if (n) {
        memcpy(dst, e->out.ptr + e->out_at, n);
        e->out_at += n;
        e->settings->made_when_echoed = e->settings->made;
    } else {
        for (; n < room && e->generated < e->generate; n++)
            dst[n] = echo_pattern(e->generated++);
        e->settings->made += n;
    }
    if (echo_queued(e) == 0) {
        buf_reset(&e->out, 0);
        e->out_at = 0;
    }
    return n;
}

static inline bool echo_output_ended(const void *protocol)
{
    return ((const struct echo *)protocol)->output_over && !echo_wants_write(protocol);
}

static inline bool echo_should_close(const void *protocol)
{
    return ((const struct echo *)protocol)->closing && !echo_wants_write(protocol);
}

static inline const char *echo_reason(const void *protocol)
{
    const struct echo *e = protocol;
    return e->reason ? e->reason : "";
}

static inline int64_t echo_timeout(const void *protocol)
{
    return ((const struct echo *)protocol)->handshake_at;
}

static inline void echo_tick(void *protocol, int64_t now_ns)
{
    struct echo *e = protocol;
    if (now_ns >= e->handshake_at)
        echo_end(e, "said nothing");
    e->handshake_at = CLOCK_NEVER;
}

static inline void echo_shutdown(void *protocol, int64_t now_ns)
{
    (void)now_ns;
    struct echo *e = protocol;
    if (!e->hanging)
        echo_end(e, "shut down");
}

static inline bool echo_idle(const void *protocol)
{
    const struct echo *e = protocol;
    return e->hanging == 0 && !e->output_over && !echo_wants_write(protocol);
}

static inline void echo_free(void *protocol)
{
    struct echo *e = protocol;
    e->hooks.on_output(e->hooks.owner); /* as a service does in on_end */
    buf_fini(&e->in);
    buf_fini(&e->out);
    free(e);
}

static inline enum status echo_shard_new(void *ctx, struct net_shard *shard, void **ret_shared)
{
    (void)shard;
    *ret_shared = ctx;
    return ST_OK;
}

static inline enum status echo_open(void *shared, struct protocol_hooks hooks, int64_t now_ns,
                                    void **ret_protocol)
{
    struct echo_settings *settings = shared;
    struct echo *e = calloc(1, sizeof(*e));
    if (!e)
        return ST_NOMEM;
    e->hooks = hooks;
    e->settings = settings;
    e->handshake_at = clock_add(now_ns, settings->handshake_ns);
    *ret_protocol = e;
    return ST_OK;
}

static inline struct protocol_kind echo_kind(struct echo_settings *settings)
{
    static const struct protocol_ops ops = {
        .feed = echo_feed,
        .feed_end = echo_feed_end,
        .wants_read = echo_wants_read,
        .wants_write = echo_wants_write,
        .fill = echo_fill,
        .output_ended = echo_output_ended,
        .should_close = echo_should_close,
        .reason = echo_reason,
        .timeout = echo_timeout,
        .tick = echo_tick,
        .shutdown = echo_shutdown,
        .idle = echo_idle,
        .free = echo_free,
    };
    return (struct protocol_kind){
        .ops = &ops, .shard_new = echo_shard_new, .open = echo_open, .ctx = settings};
}

#endif
