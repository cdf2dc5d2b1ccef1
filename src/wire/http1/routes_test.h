/* For tests and fuzzers: a few routes. */
#ifndef VIGIL_WIRE_HTTP1_ROUTES_TEST_H
#define VIGIL_WIRE_HTTP1_ROUTES_TEST_H

#include "wire/http1/handler.h"

struct test_site {
    size_t requests, ends;
    struct http1_exchange *later; /* the latest of /later that has not ended */
    size_t big_bytes;             /* what /big answers with */
};

static inline void test_health(struct http1_exchange *exchange, void *service,
                               const struct http1_request *request)
{
    (void)request;
    ((struct test_site *)service)->requests++;
    http1_respond(exchange, 200, SLICE_LITERAL("application/json"),
                  SLICE_LITERAL("{\"health\":\"true\"}"));
}

static inline void test_chunks(struct http1_exchange *exchange, void *service,
                               const struct http1_request *request)
{
    ((struct test_site *)service)->requests++;
    http1_begin(exchange, 200, SLICE_LITERAL("text/plain"));
    if (http1_write(exchange, SLICE_LITERAL("<")) == ST_OK &&
        http1_write(exchange, request->body) == ST_OK &&
        http1_write(exchange, SLICE_LITERAL(">")) == ST_OK)
        http1_end(exchange);
}

static inline void test_later(struct http1_exchange *exchange, void *service,
                              const struct http1_request *request)
{
    struct test_site *site = service;
    (void)request;
    site->requests++;
    site->later = exchange;
}

static inline void test_big(struct http1_exchange *exchange, void *service,
                            const struct http1_request *request)
{
    struct test_site *site = service;
    static const uint8_t block[4096];
    (void)request;
    site->requests++;
    http1_begin(exchange, 200, SLICE_EMPTY);
    for (size_t n = 0; n < site->big_bytes; n += sizeof(block)) {
        if (http1_write(exchange, slice_of(block, sizeof(block))) != ST_OK)
            return;
    }
    http1_end(exchange);
}

static inline void test_site_end(struct http1_exchange *exchange, void *service)
{
    struct test_site *site = service;
    site->ends++;
    if (site->later == exchange)
        site->later = NULL;
}

static const struct http1_route test_routes[] = {
    {"/health", test_health, test_site_end},
    {"/chunks/", test_chunks, test_site_end},
    {"/later", test_later, test_site_end},
    {"/big", test_big, test_site_end},
};

#endif
