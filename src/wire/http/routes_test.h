/* For tests and fuzzers of HTTP: a few routes. */
#ifndef VIGIL_WIRE_HTTP_ROUTES_TEST_H
#define VIGIL_WIRE_HTTP_ROUTES_TEST_H

#include "wire/http/routes.h"

#include <stdlib.h>

struct test_site {
    size_t requests, ends;
    struct http_exchange *later; /* the latest exchange of /later that has not ended */
    struct http_exchange *watch; /* the latest of /watch */
    size_t big_bytes;            /* the size of the answers of /big, /pull and /room */
    size_t leaves;               /* exchanges whose on_leave was called */
    bool bulk_pulls;             /* make those answers bulk */
    bool abort_pulls;            /* abort instead of sending the last byte */
};

/* What /pull, /room and /watch still have to send. */
struct test_flow {
    struct http_source source;
    struct http_exchange *exchange;
    struct test_site *site;
    size_t left;
    bool watches;
};

static inline void test_site_health(struct http_exchange *exchange, void *service,
                                    const struct http_request *request)
{
    (void)request;
    ((struct test_site *)service)->requests++;
    http_respond(exchange, 200, SLICE_LITERAL("application/json"),
                 SLICE_LITERAL("{\"health\":\"true\"}"));
}

static inline void test_site_chunks(struct http_exchange *exchange, void *service,
                                    const struct http_request *request)
{
    ((struct test_site *)service)->requests++;
    http_begin(exchange, 200, SLICE_LITERAL("text/plain"));
    if (http_write(exchange, SLICE_LITERAL("<")) == ST_OK &&
        http_write(exchange, request->body) == ST_OK &&
        http_write(exchange, SLICE_LITERAL(">")) == ST_OK)
        http_end(exchange);
}

static inline void test_site_later(struct http_exchange *exchange, void *service,
                                   const struct http_request *request)
{
    struct test_site *site = service;
    (void)request;
    site->requests++;
    site->later = exchange;
}

static inline void test_site_big(struct http_exchange *exchange, void *service,
                                 const struct http_request *request)
{
    struct test_site *site = service;
    static const uint8_t block[4096];
    (void)request;
    site->requests++;
    http_begin(exchange, 200, SLICE_EMPTY);
    for (size_t n = 0; n < site->big_bytes; n += sizeof(block)) {
        if (http_write(exchange, slice_of(block, sizeof(block))) != ST_OK)
            return;
    }
    http_end(exchange);
}

static inline struct test_flow *test_flow_new(struct http_exchange *exchange,
                                              struct test_site *site)
{
    struct test_flow *flow = calloc(1, sizeof(*flow));
    site->requests++;
    if (!flow) {
        http_abort(exchange);
        return NULL;
    }
    flow->exchange = exchange;
    flow->site = site;
    http_exchange_set_user(exchange, flow);
    return flow;
}

static inline enum http_fill test_flow_fill(struct http_source *source, uint8_t *dst, size_t room,
                                            size_t *ret_len)
{
    struct test_flow *flow = CONTAINER_OF(source, struct test_flow, source);
    *ret_len = size_min(room, flow->left);
    memset(dst, 'p', *ret_len);
    flow->left -= *ret_len;
    if (flow->left)
        return HTTP_FILL_MORE;
    if (flow->watches)
        return HTTP_FILL_PARKED;
    if (flow->site->abort_pulls)
        http_abort(flow->exchange);
    return HTTP_FILL_DONE;
}

/* "/pull": big_bytes bytes from a source. */
static inline void test_site_pull(struct http_exchange *exchange, void *service,
                                  const struct http_request *request)
{
    struct test_site *site = service;
    struct test_flow *flow = test_flow_new(exchange, site);
    (void)request;
    if (!flow)
        return;
    flow->left = site->big_bytes;
    flow->source.fill = test_flow_fill;
    if (site->bulk_pulls)
        http_make_bulk(exchange);
    http_begin(exchange, 200, SLICE_EMPTY);
    http_set_source(exchange, &flow->source);
}

static inline void test_site_watch_leave(struct http_exchange *exchange)
{
    struct test_flow *flow = http_exchange_user(exchange);
    flow->site->leaves++;
    http_end(exchange);
}

/* "/watch": nothing until test_site_watch_more. */
static inline void test_site_watch(struct http_exchange *exchange, void *service,
                                   const struct http_request *request)
{
    struct test_site *site = service;
    struct test_flow *flow = test_flow_new(exchange, site);
    (void)request;
    if (!flow)
        return;
    flow->watches = true;
    flow->source.fill = test_flow_fill;
    site->watch = exchange;
    http_begin(exchange, 200, SLICE_EMPTY);
    http_park(exchange, test_site_watch_leave);
    http_set_source(exchange, &flow->source);
}

static inline void test_site_watch_more(struct http_exchange *exchange, size_t bytes)
{
    struct test_flow *flow = http_exchange_user(exchange);
    flow->left += bytes;
    http_wake(exchange);
}

static inline void test_site_end(struct http_exchange *exchange, void *service)
{
    struct test_site *site = service;
    site->ends++;
    if (site->later == exchange)
        site->later = NULL;
    if (site->watch == exchange)
        site->watch = NULL;
    free(http_exchange_user(exchange));
}

static const struct http_route test_routes[] = {
    {.path = "/health", .on_request = test_site_health, .on_end = test_site_end},
    {.path = "/chunks/", .on_request = test_site_chunks, .on_end = test_site_end},
    {.path = "/later", .on_request = test_site_later, .on_end = test_site_end},
    {.path = "/big", .on_request = test_site_big, .on_end = test_site_end},
    {.path = "/pull", .on_request = test_site_pull, .on_end = test_site_end},
    {.path = "/watch", .on_request = test_site_watch, .on_end = test_site_end},
    {.path = "/small",
     .on_request = test_site_chunks,
     .on_end = test_site_end,
     .body_bytes_max = 10},
};

#endif
