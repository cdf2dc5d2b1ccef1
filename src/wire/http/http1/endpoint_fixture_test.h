/*
 * For tests of an HTTP/1.1 connection: one with the routes of wire/http/routes_test.h, what it is
 * fed, and what it writes. Each program includes this in one file.
 */
#ifndef VIGIL_WIRE_HTTP_HTTP1_ENDPOINT_FIXTURE_TEST_H
#define VIGIL_WIRE_HTTP_HTTP1_ENDPOINT_FIXTURE_TEST_H

#include "wire/http/http1/endpoint.h"

#include "base/buf.h"
#include "wire/http/routes_test.h"
#include "wire/memory_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)
#define HOST "Host: x\r\n"

struct fixture {
    struct http_limits http;
    struct http1_limits limits;
    struct http1_server server;
    struct http_routes *routes;
    struct http1_endpoint *endpoint;
    struct test_site site;
    struct test_memory memory; /* unlimited, unless the test sets a limit */
    struct buf out;
    int64_t now;
    size_t outputs;
};

static inline void on_output(void *owner)
{
    ((struct fixture *)owner)->outputs++;
}

static inline void restart(struct fixture *f)
{
    struct http_hooks hooks = {.on_output = on_output, .owner = f, .account = f->memory.account};
    http1_endpoint_free(f->endpoint);
    f->out.len = 0;
    assert_int_equal(http1_endpoint_new(&f->server, hooks, f->now, &f->endpoint), ST_OK);
}

static inline int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    f->limits = HTTP1_LIMITS_DEFAULT;
    f->http = HTTP_LIMITS_DEFAULT;
    f->now = SECOND;
    assert_int_equal(http_routes_new(&f->routes), ST_OK);
    assert_int_equal(http_routes_add(f->routes, test_routes, COUNT_OF(test_routes), &f->site),
                     ST_OK);
    f->server = (struct http1_server){f->routes, &f->http, &f->limits};
    restart(f);
    *state = f;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;
    http1_endpoint_free(f->endpoint);
    assert_int_equal(f->site.requests, f->site.ends);
    http_routes_free(f->routes);
    test_memory_fini(&f->memory);
    buf_fini(&f->out);
    free(f);
    return 0;
}

static inline void drain(struct fixture *f)
{
    uint8_t room[1000];
    while (http1_endpoint_wants_write(f->endpoint)) {
        size_t n = http1_endpoint_fill(f->endpoint, room, sizeof(room), f->now);
        assert_int_equal(buf_append(&f->out, slice_of(room, n)), ST_OK);
        if (n == 0)
            break;
    }
    http1_endpoint_check(f->endpoint);
}

static inline void feed(struct fixture *f, const char *text)
{
    http1_endpoint_feed(f->endpoint, slice_from_text(text), f->now);
    http1_endpoint_check(f->endpoint);
}

static inline void exchange(struct fixture *f, const char *text)
{
    feed(f, text);
    drain(f);
}

static inline const char *out_text(struct fixture *f)
{
    assert_int_equal(buf_append(&f->out, slice_of("", 1)), ST_OK);
    f->out.len--;
    return (const char *)f->out.ptr;
}

static inline size_t count_of(struct fixture *f, const char *text)
{
    size_t n = 0;
    for (const char *at = out_text(f); (at = strstr(at, text)); at++)
        n++;
    return n;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
