/* Writes the response of an exchange: status line, fields, chunks. */
#include "wire/http/http1/chunk.h"
#include "wire/http/http1/endpoint_private.h"

#include <stdio.h>

enum {
    HEAD_BYTES = 512
}; /* approximate size of the head of a response without the handler's fields */

void http1_die(struct http1_endpoint *e, const char *reason)
{
    http1_move(e, HTTP1_LEAVING);
    e->reason = reason;
    e->last = true;
    http_exchange_stop(&e->exchange);
    account_buf_fini(e->hooks.account, &e->out);
    e->out_sent = 0;
    if (!e->inside) /* otherwise some of it may be in use, and is dropped afterwards */
        account_buf_fini(e->hooks.account, &e->in);
}

static void notify(struct http1_endpoint *e)
{
    if (!e->inside && e->hooks.on_output)
        e->hooks.on_output(e->hooks.owner);
}

enum status http1_put(struct http1_endpoint *e, struct slice bytes)
{
    bool was_empty = e->out.len == 0;
    if (e->out_sent > e->out.len / 2) { /* reuse the space of sent bytes first */
        buf_consume(&e->out, e->out_sent);
        e->out_sent = 0;
    }
    if (http_exchange_append(&e->exchange, &e->out, bytes) != ST_OK) {
        http1_die(e, "out of memory");
        notify(e);
        return ST_NOMEM;
    }
    if (was_empty) {
        e->since_ns = e->now_ns;
        notify(e);
    }
    return ST_OK;
}

static enum status put_framing(struct http1_endpoint *e, const size_t *length)
{
    char line[64];
    if (length) {
        int n = snprintf(line, sizeof(line), "Content-Length: %zu\r\n", *length);
        TRY(http1_put(e, slice_of(line, (size_t)n)));
    } else if (e->chunked) {
        TRY(http1_put(e, SLICE_LITERAL("Transfer-Encoding: chunked\r\n")));
    }
    if (e->last)
        return http1_put(e, SLICE_LITERAL("Connection: close\r\n"));
    /* HTTP/1.0 closes by default, and the client asked to keep the connection. */
    if (e->exchange.opening->request.minor == 0)
        return http1_put(e, SLICE_LITERAL("Connection: keep-alive\r\n"));
    return ST_OK;
}

static enum status put_status(struct http1_endpoint *e, unsigned status)
{
    char line[160];
    int n = snprintf(line, sizeof(line), "HTTP/1.1 %u %s\r\n", status, http_status_text(status));
    return http1_put(e, slice_of(line, (size_t)n));
}

static enum status begin(struct http_exchange *x, unsigned status, struct slice type,
                         const size_t *length)
{
    struct http1_endpoint *e = http1_endpoint_of(x);
    /* The rest of the body is too long to be read and dropped. Unread, it would be taken for the
     * next request. */
    e->last = e->last || e->closes_if_refused;
    bool bare = status == 204 || status == 304;
    bool streams = !length && !bare;
    e->chunked = streams && x->opening->request.minor == 1;
    if (streams && !e->chunked)
        e->last = true; /* the end of the connection marks the end of the body */
    TRY(put_status(e, status));
    if (type.len) {
        TRY(http1_put(e, SLICE_LITERAL("Content-Type: ")));
        TRY(http1_put(e, type));
        TRY(http1_put(e, SLICE_LITERAL("\r\n")));
    }
    TRY(put_framing(e, length));
    TRY(http1_put(e, buf_slice(&x->opening->fields)));
    return http1_put(e, SLICE_LITERAL("\r\n"));
}

static enum status upgrade(struct http_exchange *x)
{
    struct http1_endpoint *e = http1_endpoint_of(x);
    e->last = true;
    e->chunked = false;
    http1_move(e, HTTP1_RAW);
    TRY(put_status(e, 101));
    TRY(http1_put(e, buf_slice(&x->opening->fields)));
    return http1_put(e, SLICE_LITERAL("\r\n"));
}

static enum status reserve(struct http_exchange *x, size_t bytes)
{
    struct http1_endpoint *e = http1_endpoint_of(x);
    return account_reserve(x->account, &e->out, HEAD_BYTES + x->opening->fields.len + bytes);
}

static enum status put_chunk(struct http_exchange *x, struct slice bytes)
{
    struct http1_endpoint *e = http1_endpoint_of(x);
    if (!e->chunked)
        return http1_put(e, bytes);
    char size[24];
    int n = snprintf(size, sizeof(size), "%zx\r\n", bytes.len);
    TRY(http1_put(e, slice_of(size, (size_t)n)));
    TRY(http1_put(e, bytes));
    return http1_put(e, SLICE_LITERAL("\r\n"));
}

static void end(struct http_exchange *x)
{
    struct http1_endpoint *e = http1_endpoint_of(x);
    if (e->chunked && !x->bodiless && http1_put(e, SLICE_LITERAL("0\r\n\r\n")) != ST_OK)
        return;
    /* Nothing is left to be written that would wake the connection. */
    if (http1_queued(e) == 0)
        notify(e);
}

static void abort_answer(struct http_exchange *x)
{
    struct http1_endpoint *e = http1_endpoint_of(x);
    http1_die(e, "the answer was aborted");
    notify(e);
}

static void wake(struct http_exchange *x)
{
    notify(http1_endpoint_of(x));
}

static void withhold(struct http_exchange *x)
{
    struct http1_endpoint *e = http1_endpoint_of(x);
    e->since_ns = e->now_ns; /* the time in which the client had to wait is not its own */
    http1_offer_continue(e);
    notify(e);
}

static int64_t now(const struct http_exchange *x)
{
    return http1_endpoint_of(x)->now_ns;
}

static struct wire_peer peer(const struct http_exchange *x)
{
    return http1_endpoint_of(x)->hooks.peer;
}

const struct http_exchange_ops http1_exchange_ops = {
    .authorized = wake,
    .begin = begin,
    .reserve = reserve,
    .write = put_chunk,
    .end = end,
    .abort = abort_answer,
    .wake = wake,
    .needs_peer = wake,
    .withhold = withhold,
    .upgrade = upgrade,
    .now = now,
    .peer = peer,
};

static size_t take_queued(struct http1_endpoint *e, uint8_t *dst, size_t room)
{
    size_t n = size_min(room, http1_queued(e));
    if (n == 0)
        return 0;
    slice_copy(dst, slice_of(e->out.ptr + e->out_sent, n));
    e->out_sent += n;
    if (e->out_sent == e->out.len) {
        account_buf_fini(e->hooks.account, &e->out);
        e->out_sent = 0;
    }
    return n;
}

/* One chunk directly from the source. */
static size_t take_pulled(struct http1_endpoint *e, uint8_t *dst, size_t room)
{
    if (!http_exchange_flows(&e->exchange) || room < HTTP1_PULL_ROOM_MIN)
        return 0;
    if (!e->chunked)
        return http_exchange_fill(&e->exchange, dst, room);
    size_t most = size_min(room - HTTP1_CHUNK_FRAME_BYTES, HTTP1_CHUNK_BYTES_MAX);
    size_t n = http_exchange_fill(&e->exchange, dst + HTTP1_CHUNK_HEAD_BYTES, most);
    return n ? http1_chunk_close(dst, n) : 0;
}

size_t http1_take(struct http1_endpoint *e, uint8_t *dst, size_t room)
{
    size_t len = 0, before;
    do {
        before = len;
        len += take_queued(e, dst + len, room - len);
        if (http1_queued(e) == 0)
            len += take_pulled(e, dst + len, room - len);
    } while ((len > before || http1_queued(e)) && len < room);
    return len;
}
