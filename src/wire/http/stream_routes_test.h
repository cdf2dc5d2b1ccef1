/* For tests and fuzzers: routes that take the body of a request as it arrives, and one that
 * upgrades the connection. */
#ifndef VIGIL_WIRE_HTTP_STREAM_ROUTES_TEST_H
#define VIGIL_WIRE_HTTP_STREAM_ROUTES_TEST_H

#include "base/buf.h"
#include "wire/http/routes.h"

#include <stdlib.h>

struct test_stream_site {
    size_t requests, ends;
    /* What a handler of /take does in on_request. */
    bool withholds;
    unsigned answers; /* with this status; 0: not at all */
    bool begins;      /* begins an answer that is pulled */
    /* Everything that arrives is given back, and so is its end; or the end comes after this many
     * bytes. */
    bool echoes;
    size_t echoes_max; /* 0: all */
    /* The latest exchange, and what is known of its request. */
    struct http_exchange *latest; /* NULL when it has ended */
    bool runs, begun;             /* on_request was called; its answer has begun */
    bool has_body, upgrade;
    struct buf got;   /* the bytes that arrived; at most 1 MiB is kept */
    size_t got_bytes; /* their number */
    size_t got_ends;  /* how often the end was passed */
    /* What the latest gives: bytes of give, then its end. */
    struct http_source source;
    struct buf give;
    size_t given;
    bool gives_end;
};

static inline struct test_stream_site *test_stream_site_of(struct http_source *source)
{
    return CONTAINER_OF(source, struct test_stream_site, source);
}

static inline enum http_fill test_stream_fill(struct http_source *source, uint8_t *dst, size_t room,
                                              size_t *ret_len)
{
    struct test_stream_site *site = test_stream_site_of(source);
    *ret_len = size_min(room, site->give.len - site->given);
    slice_copy(dst, slice_sub(buf_slice(&site->give), site->given, *ret_len));
    site->given += *ret_len;
    if (site->given < site->give.len)
        return HTTP_FILL_MORE;
    return site->gives_end ? HTTP_FILL_DONE : HTTP_FILL_PARKED;
}

/* "/late": the client is admitted later. */
static inline void test_stream_authorize(struct http_exchange *x, void *service,
                                         const struct http_request *request)
{
    struct test_stream_site *site = service;
    (void)request;
    site->requests++;
    site->latest = x;
    site->runs = site->begun = false;
    site->got.len = site->got_bytes = site->got_ends = 0;
}

static inline void test_stream_note(struct test_stream_site *site, struct http_exchange *x,
                                    const struct http_request *request)
{
    site->requests += !slice_equal(request->path, SLICE_LITERAL("/late")); /* was counted */
    site->latest = x;
    site->runs = true;
    site->begun = false;
    site->has_body = request->has_body;
    site->upgrade = request->upgrade;
    site->got.len = site->got_bytes = site->got_ends = 0;
    site->give.len = site->given = 0;
    site->gives_end = false;
    site->source.fill = test_stream_fill;
    assert(request->body.len == 0);
}

/* "/take". */
static inline void test_stream_take(struct http_exchange *x, void *service,
                                    const struct http_request *request)
{
    struct test_stream_site *site = service;
    test_stream_note(site, x, request);
    if (site->withholds)
        http_withhold(x, true);
    site->begun = site->answers || site->begins;
    if (site->answers)
        http_respond(x, site->answers, SLICE_EMPTY, SLICE_LITERAL("early"));
    else if (site->begins) {
        http_begin(x, 200, SLICE_EMPTY);
        http_set_source(x, &site->source);
    }
}

/* "/raw": upgrades the connection, if the request asks for it. */
static inline void test_stream_raw(struct http_exchange *x, void *service,
                                   const struct http_request *request)
{
    struct test_stream_site *site = service;
    test_stream_note(site, x, request);
    site->begun = true;
    if (!request->upgrade) {
        http_respond(x, 426, SLICE_EMPTY, SLICE_LITERAL("upgrade!"));
        return;
    }
    if (http_add_field(x, SLICE_LITERAL("Connection"), SLICE_LITERAL("Upgrade")) != ST_OK ||
        http_add_field(x, SLICE_LITERAL("Upgrade"), SLICE_LITERAL("test/1")) != ST_OK) {
        http_abort(x);
        return;
    }
    http_upgrade(x);
    http_set_source(x, &site->source);
}

/* More to send: bytes, or the end. */
static inline void test_stream_give(struct test_stream_site *site, struct slice bytes)
{
    if (!site->latest || buf_append(&site->give, bytes) != ST_OK)
        return;
    site->gives_end = bytes.len == 0;
    http_wake(site->latest);
}

static inline void test_stream_body(struct http_exchange *x, void *service, struct slice bytes)
{
    struct test_stream_site *site = service;
    if (x != site->latest) /* another stream of HTTP/2 */
        return;
    assert(site->has_body || site->upgrade);
    assert(site->got_ends == 0);
    site->got_ends += bytes.len == 0;
    site->got_bytes += bytes.len;
    if (site->got.len + bytes.len <= 1024 * 1024 && buf_append(&site->got, bytes) != ST_OK)
        http_abort(x);
    bool enough = site->echoes_max && site->got_bytes >= site->echoes_max;
    if (site->echoes && !site->gives_end)
        test_stream_give(site, bytes);
    if (site->echoes && enough && !site->gives_end)
        test_stream_give(site, SLICE_EMPTY);
}

static inline void test_stream_end(struct http_exchange *x, void *service)
{
    struct test_stream_site *site = service;
    site->ends++;
    if (site->latest == x)
        site->latest = NULL;
}

static inline void test_stream_site_fini(struct test_stream_site *site)
{
    assert(!site->latest && site->requests == site->ends);
    buf_fini(&site->got);
    buf_fini(&site->give);
}

static const struct http_route test_stream_routes[] = {
    {.path = "/take",
     .on_request = test_stream_take,
     .on_body = test_stream_body,
     .on_end = test_stream_end},
    {.path = "/late",
     .authorize = test_stream_authorize,
     .on_request = test_stream_take,
     .on_body = test_stream_body,
     .on_end = test_stream_end},
    {.path = "/raw",
     .on_request = test_stream_raw,
     .on_body = test_stream_body,
     .on_end = test_stream_end},
};

#endif
