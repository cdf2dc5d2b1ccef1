#include "wire/http/http1/parser.h"

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct http1_head head;

static unsigned parse(const char *text)
{
    return http1_head_parse(slice_from_text(text), 100, &head);
}

static void head_is_found_when_it_arrives_in_pieces(void **state)
{
    (void)state;
    struct slice bytes = SLICE_LITERAL("GET / HTTP/1.1\r\nHost: x\r\n\r\nrest");
    size_t from = 0;
    for (size_t n = 1; n < bytes.len - 4; n++)
        assert_int_equal(http1_head_length(slice_sub(bytes, 0, n), &from), 0);
    assert_int_equal(http1_head_length(bytes, &from), bytes.len - 4);
}

static void request_line_and_fields_are_parsed(void **state)
{
    (void)state;
    assert_int_equal(parse("POST /v3/kv/range?a=1&b HTTP/1.1\r\nHost: x\r\nContent-Length: 12\r\n"
                           "X-Y:\t two words \r\nExpect: 100-continue\r\n\r\n"),
                     0);
    struct http_request *r = &head.request;
    struct slice value;
    assert_true(slice_equal(r->method, SLICE_LITERAL("POST")));
    assert_true(slice_equal(r->path, SLICE_LITERAL("/v3/kv/range")));
    assert_true(slice_equal(r->query, SLICE_LITERAL("a=1&b")));
    assert_true(http_request_get(r, SLICE_LITERAL("x-y"), &value));
    assert_true(slice_equal(value, SLICE_LITERAL("two words")));
    assert_int_equal(head.content_length, 12);
    assert_true(head.expects_continue);
    assert_true(r->keep_alive);
}

static void absolute_url_and_star_are_targets(void **state)
{
    (void)state;
    assert_int_equal(parse("GET http://a:1/b?c HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
    assert_true(slice_equal(head.request.path, SLICE_LITERAL("/b")));
    assert_int_equal(parse("GET http://a HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
    assert_true(slice_equal(head.request.path, SLICE_LITERAL("/")));
    assert_int_equal(parse("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
}

static void connection_is_kept_or_not(void **state)
{
    (void)state;
    assert_int_equal(parse("GET / HTTP/1.0\r\n\r\n"), 0);
    assert_false(head.request.keep_alive);
    assert_int_equal(parse("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"), 0);
    assert_true(head.request.keep_alive);
    assert_int_equal(parse("GET / HTTP/1.1\r\nHost: x\r\nConnection: foo, close\r\n\r\n"), 0);
    assert_false(head.request.keep_alive);
}

struct bad {
    const char *text;
    unsigned status;
};

#define GET "GET / HTTP/1.1\r\nHost: x\r\n"

static void malformed_heads_are_refused(void **state)
{
    (void)state;
    static const struct bad rows[] = {
        {"GET  / HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        {"GET / HTTP/1.1 \r\nHost: x\r\n\r\n", 400},
        {"GET /\r\nHost: x\r\n\r\n", 400},
        {"G(T / HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        {"GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        {"GET x HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        {"GET * HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        {"GET ftp://x/ HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        {"GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505},
        {"GET / HTTP/1.2\r\nHost: x\r\n\r\n", 505},
        {"GET / http/1.1\r\nHost: x\r\n\r\n", 400},
        {"\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n\r\n", 400}, /* no Host */
        {GET "Host: y\r\n\r\n", 400},    /* two */
        {GET "A: b\r\n c\r\n\r\n", 400}, /* folded */
        {GET "A : b\r\n\r\n", 400},      /* space before the colon */
        {GET "A\r\n\r\n", 400},          /* no colon */
        {GET ": b\r\n\r\n", 400},        /* no name */
        {GET "A: b\nC: d\r\n\r\n", 400}, /* bare LF */
        {GET "A: b\rC: d\r\n\r\n", 400}, /* bare CR */
        {GET "A: \x01\r\n\r\n", 400},    /* control byte */
        {GET "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 400},
        {GET "Content-Length: 1, 1\r\n\r\n", 400},
        {GET "Content-Length: +1\r\n\r\n", 400},
        {GET "Content-Length: 0x1\r\n\r\n", 400},
        {GET "Content-Length:\r\n\r\n", 400},
        {GET "Content-Length: 9999999999999999999\r\n\r\n", 400},
        {GET "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {GET "Transfer-Encoding: gzip\r\n\r\n", 501},
        {GET "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
        {GET "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {"GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {GET "Expect: tea\r\n\r\n", 417},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (parse(rows[i].text) != rows[i].status)
            print_error("%s\n", rows[i].text);
        assert_int_equal(parse(rows[i].text), rows[i].status);
    }
}

static void field_101_is_too_many(void **state)
{
    (void)state;
    AUTO(buf_fini) struct buf text = {0};
    assert_int_equal(buf_append_text(&text, GET), ST_OK);
    for (size_t i = 0; i < 99; i++)
        assert_int_equal(buf_append_text(&text, "a: b\r\n"), ST_OK);
    assert_int_equal(buf_append_text(&text, "\r\n"), ST_OK);
    assert_int_equal(http1_head_parse(buf_slice(&text), 100, &head), 0);
    text.len -= 2;
    assert_int_equal(buf_append_text(&text, "a: b\r\n\r\n"), ST_OK);
    assert_int_equal(http1_head_parse(buf_slice(&text), 100, &head), 431);
}

static void chunk_sizes(void **state)
{
    (void)state;
    size_t n;
    assert_true(http1_chunk_size(SLICE_LITERAL("1aF"), &n));
    assert_int_equal(n, 0x1af);
    assert_true(http1_chunk_size(SLICE_LITERAL("0;ext=\"x\""), &n));
    static const char *const bad[] = {"", ";x", "-1", "0x1", " 1", "1 ", "123456789", "1;\n", "g"};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(http1_chunk_size(slice_from_text(bad[i]), &n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(head_is_found_when_it_arrives_in_pieces),
        cmocka_unit_test(request_line_and_fields_are_parsed),
        cmocka_unit_test(absolute_url_and_star_are_targets),
        cmocka_unit_test(connection_is_kept_or_not),
        cmocka_unit_test(malformed_heads_are_refused),
        cmocka_unit_test(field_101_is_too_many),
        cmocka_unit_test(chunk_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
