/* For tests and fuzzers of HTTP: a few routes. */
#ifndef VIGIL_WIRE_HTTP_ROUTES_TEST_H
#define VIGIL_WIRE_HTTP_ROUTES_TEST_H

#include "wire/http/routes.h"

struct test_site {
    size_t requests, ends;
    struct http_exchange *later; /* the latest of /later that has not ended */
    size_t big_bytes;            /* what /big answers with */
};

static inline void test_health(struct http_exchange *exchange, void *service,
                               const struct http_request *request)
{
    (void)request;
    ((struct test_site *)service)->requests++;
    http_respond(exchange, 200, SLICE_LITERAL("application/json"),
                 SLICE_LITERAL("{\"health\":\"true\"}"));
}

static inline void test_chunks(struct http_exchange *exchange, void *service,
                               const struct http_request *request)
{
    ((struct test_site *)service)->requests++;
    http_begin(exchange, 200, SLICE_LITERAL("text/plain"));
    if (http_write(exchange, SLICE_LITERAL("<")) == ST_OK &&
        http_write(exchange, request->body) == ST_OK &&
        http_write(exchange, SLICE_LITERAL(">")) == ST_OK)
        http_end(exchange);
}

static inline void test_later(struct http_exchange *exchange, void *service,
                              const struct http_request *request)
{
    struct test_site *site = service;
    (void)request;
    site->requests++;
    site->later = exchange;
}

static inline void test_big(struct http_exchange *exchange, void *service,
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

static inline void test_site_end(struct http_exchange *exchange, void *service)
{
    struct test_site *site = service;
    site->ends++;
    if (site->later == exchange)
        site->later = NULL;
}

static const struct http_route test_routes[] = {
    {.path = "/health", .on_request = test_health, .on_end = test_site_end},
    {.path = "/chunks/", .on_request = test_chunks, .on_end = test_site_end},
    {.path = "/later", .on_request = test_later, .on_end = test_site_end},
    {.path = "/big", .on_request = test_big, .on_end = test_site_end},
};

#endif
