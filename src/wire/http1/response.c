/* The answering half of an exchange. */
#include "wire/http1/state.h"

#include <stdio.h>

struct reason_row {
    unsigned status;
    const char *text;
};

static const struct reason_row reasons[] = {
    {100, "Continue"},
    {200, "OK"},
    {201, "Created"},
    {204, "No Content"},
    {301, "Moved Permanently"},
    {304, "Not Modified"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {413, "Request Entity Too Large"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Entity"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
};

static const char *reason_of(unsigned status)
{
    for (size_t i = 0; i < COUNT_OF(reasons); i++) {
        if (reasons[i].status == status)
            return reasons[i].text;
    }
    return "Unknown";
}

/* The answer is broken off: the peer sees the connection end without its proper end. */
void http1_die(struct http1_endpoint *e, const char *reason)
{
    e->reading = HTTP1_LEAVING;
    e->reason = reason;
    e->last = true;
    e->exchange.complete = true;
    buf_fini(&e->out);
    e->out_sent = 0;
}

static void notify(struct http1_endpoint *e)
{
    if (!e->inside && e->on_output)
        e->on_output(e->owner);
}

enum status http1_put(struct http1_endpoint *e, struct slice bytes)
{
    bool was_empty = e->out.len == 0;
    if (e->out_sent > e->out.len / 2) { /* what is gone makes room first */
        buf_consume(&e->out, e->out_sent);
        e->out_sent = 0;
    }
    if (e->out.len - e->out_sent + bytes.len > e->limits->queued_bytes_max) {
        http1_die(e, "too many response bytes queued");
        notify(e);
        return ST_LIMIT;
    }
    if (buf_append(&e->out, bytes) != ST_OK) {
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

void http1_exchange_set_user(struct http1_exchange *exchange, void *user)
{
    exchange->user = user;
}

void *http1_exchange_user(const struct http1_exchange *exchange)
{
    return exchange->user;
}

static bool is_clean(struct slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < ' ' && s.ptr[i] != '\t')
            return false;
    }
    return true;
}

enum status http1_add_field(struct http1_exchange *exchange, struct slice name, struct slice value)
{
    assert(!exchange->begun);
    if (!is_clean(name) || !is_clean(value))
        return ST_INVALID;
    return buf_append_format(&exchange->extra_fields, "%.*s: %.*s\r\n", SLICE_ARGS(name),
                             SLICE_ARGS(value));
}

/* Status line and fields. length is left out when it is not known beforehand. */
static enum status put_head(struct http1_exchange *x, unsigned status, struct slice type,
                            const size_t *length)
{
    struct http1_endpoint *e = http1_endpoint_of(x);
    char line[160];
    int n = snprintf(line, sizeof(line), "HTTP/1.1 %u %s\r\n", status, reason_of(status));
    TRY(http1_put(e, slice_of(line, (size_t)n)));
    if (type.len) {
        TRY(http1_put(e, SLICE_LITERAL("Content-Type: ")));
        TRY(http1_put(e, type));
        TRY(http1_put(e, SLICE_LITERAL("\r\n")));
    }
    if (length) {
        n = snprintf(line, sizeof(line), "Content-Length: %zu\r\n", *length);
        TRY(http1_put(e, slice_of(line, (size_t)n)));
    } else if (x->chunked) {
        TRY(http1_put(e, SLICE_LITERAL("Transfer-Encoding: chunked\r\n")));
    }
    if (e->last)
        TRY(http1_put(e, SLICE_LITERAL("Connection: close\r\n")));
    else if (x->request.minor_version == 0)
        TRY(http1_put(e, SLICE_LITERAL("Connection: keep-alive\r\n")));
    TRY(http1_put(e, buf_slice(&x->extra_fields)));
    return http1_put(e, SLICE_LITERAL("\r\n"));
}

void http1_respond(struct http1_exchange *x, unsigned status, struct slice content_type,
                   struct slice body)
{
    if (x->complete)
        return;
    assert(!x->begun);
    x->begun = true;
    bool bare = status == 204 || status == 304;
    if (put_head(x, status, content_type, bare ? NULL : &body.len) != ST_OK)
        return;
    if (!bare && !x->bodiless && http1_put(http1_endpoint_of(x), body) != ST_OK)
        return;
    x->complete = true;
}

void http1_begin(struct http1_exchange *x, unsigned status, struct slice content_type)
{
    if (x->complete)
        return;
    assert(!x->begun);
    x->begun = true;
    x->chunked = x->request.minor_version == 1;
    if (!x->chunked)
        http1_endpoint_of(x)->last = true; /* its end is the end of the connection */
    if (put_head(x, status, content_type, NULL) != ST_OK)
        return;
}

enum status http1_write(struct http1_exchange *x, struct slice bytes)
{
    struct http1_endpoint *e = http1_endpoint_of(x);
    if (x->complete)
        return ST_CLOSED;
    assert(x->begun);
    if (bytes.len == 0 || x->bodiless)
        return ST_OK;
    if (!x->chunked)
        return http1_put(e, bytes);
    char size[24];
    int n = snprintf(size, sizeof(size), "%zx\r\n", bytes.len);
    TRY(http1_put(e, slice_of(size, (size_t)n)));
    TRY(http1_put(e, bytes));
    return http1_put(e, SLICE_LITERAL("\r\n"));
}

void http1_end(struct http1_exchange *x)
{
    if (x->complete)
        return;
    assert(x->begun);
    if (x->chunked && !x->bodiless &&
        http1_put(http1_endpoint_of(x), SLICE_LITERAL("0\r\n\r\n")) != ST_OK)
        return;
    x->complete = true;
    notify(http1_endpoint_of(x));
}

size_t http1_queued_bytes(const struct http1_exchange *exchange)
{
    const struct http1_endpoint *e =
        CONTAINER_OF((struct http1_exchange *)(uintptr_t)exchange, struct http1_endpoint, exchange);
    return e->out.len - e->out_sent;
}

void http1_answer_plain(struct http1_endpoint *e, unsigned status, bool last)
{
    char text[96];
    struct http1_exchange *x = &e->exchange;
    e->last = e->last || last;
    int n = status == 404 ? snprintf(text, sizeof(text), "404 page not found\n")
                          : snprintf(text, sizeof(text), "%u %s", status, reason_of(status));
    if (status == 404 && http1_add_field(x, SLICE_LITERAL("X-Content-Type-Options"),
                                         SLICE_LITERAL("nosniff")) != ST_OK) {
        http1_die(e, "out of memory");
        return;
    }
    http1_respond(x, status, SLICE_LITERAL("text/plain; charset=utf-8"), slice_of(text, (size_t)n));
}
