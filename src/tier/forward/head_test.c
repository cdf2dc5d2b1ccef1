#include "tier/forward/head.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define FIELD(name, value)                        \
    {                                             \
        SLICE_LITERAL(name), SLICE_LITERAL(value) \
    }

static const char *address;

static void peer_address(void *owner, char *text)
{
    (void)owner;
    snprintf(text, WIRE_ADDRESS_BYTES, "%s", address);
}

static struct http_request request_of(const char *target, const struct http_field *fields,
                                      size_t count)
{
    struct http_request request = {
        .method = SLICE_LITERAL("GET"),
        .target = slice_from_text(target),
        .path = slice_from_text(target),
        .fields = fields,
        .field_count = count,
        .peer = {peer_address, NULL},
    };
    struct slice rest = request.target;
    request.path = slice_cut(&rest, '?');
    request.query = rest;
    address = "192.0.2.7:1234";
    return request;
}

/* What is sent on, as text; the target comes first. NULL: the status is in *ret_status. */
static const char *sent(const struct http_request *request, const struct tier_head_options *options,
                        struct tier_head *head, enum status *ret_status)
{
    static char text[4096];
    struct arena arena;
    arena_init(&arena, NULL, 0, 1 << 20);
    *ret_status = tier_head_make(&arena, request, options, head);
    size_t at = 0;
    if (*ret_status == ST_OK)
        at = (size_t)snprintf(text, sizeof(text), "%.*s\n", SLICE_ARGS(head->target));
    for (size_t i = 0; *ret_status == ST_OK && i < head->field_count; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%.*s: %.*s\n",
                               SLICE_ARGS(head->fields[i].name), SLICE_ARGS(head->fields[i].value));
    arena_fini(&arena);
    return *ret_status == ST_OK ? text : NULL;
}

static void fields_of_the_connection_and_names_of_users_are_left_out(void **state)
{
    static const struct http_field fields[] = {
        FIELD(":path", "/x"),
        FIELD("Host", "tier"),
        FIELD("Authorization", "Bearer t"),
        FIELD("Impersonate-User", "jane"),
        FIELD("impersonate-extra-scopes", "a"),
        FIELD("Accept", "application/json"),
        FIELD("Connection", "close, X-Hop ,,Te"),
        FIELD("connection", "X-Other"),
        FIELD("x-hop", "1"),
        FIELD("X-OTHER", "1"),
        FIELD("Keep-Alive", "timeout=5"),
        FIELD("Proxy-Connection", "close"),
        FIELD("Proxy-Authorization", "Basic x"),
        FIELD("TE", "trailers"),
        FIELD("Trailer", "X-T"),
        FIELD("Transfer-Encoding", "chunked"),
        FIELD("Upgrade", "h2c"),
        FIELD("Content-Length", "7"),
        FIELD("Expect", "100-continue"),
        FIELD("X-Remote-User", "admin"),
        FIELD("x-remote-group", "system:masters"),
        FIELD("X-Remote-Extra-Scopes", "all"),
        FIELD("X-Remote-Uid", "0"),
        FIELD("X-Remote", "kept"),
        FIELD("Accept", "text/plain"),
    };
    static const struct http_field add[] = {FIELD("Authorization", "Bearer own")};
    struct tier_head_options options = {.path_prefix = SLICE_LITERAL("/p")};
    struct http_request request = request_of("/api/v1?x=%20y", fields, COUNT_OF(fields));
    struct tier_head head;
    enum status status;
    (void)state;
    assert_string_equal(sent(&request, &options, &head, &status), "/p/api/v1?x=%20y\n"
                                                                  "Authorization: Bearer t\n"
                                                                  "Impersonate-User: jane\n"
                                                                  "impersonate-extra-scopes: a\n"
                                                                  "Accept: application/json\n"
                                                                  "X-Remote: kept\n"
                                                                  "Accept: text/plain\n"
                                                                  "X-Forwarded-For: 192.0.2.7\n");
    assert_true(head.has_body);
    assert_int_equal(head.body_bytes, 7);
    assert_int_equal(head.upgrade.len, 0);
    options.drop_credentials = true;
    options.add = add;
    options.add_count = 1;
    options.path_prefix = SLICE_EMPTY;
    assert_string_equal(sent(&request, &options, &head, &status), "/api/v1?x=%20y\n"
                                                                  "Accept: application/json\n"
                                                                  "X-Remote: kept\n"
                                                                  "Accept: text/plain\n"
                                                                  "Authorization: Bearer own\n"
                                                                  "X-Forwarded-For: 192.0.2.7\n");
}

static void address_of_the_client_is_appended(void **state)
{
    static const struct http_field fields[] = {FIELD("x-forwarded-for", "10.0.0.1"),
                                               FIELD("X-Forwarded-For", "10.0.0.2, 10.0.0.3")};
    static const struct {
        const char *address, *with, *without;
    } rows[] = {
        {"192.0.2.7:1234", "/\nX-Forwarded-For: 10.0.0.1, 10.0.0.2, 10.0.0.3, 192.0.2.7\n",
         "/\nX-Forwarded-For: 192.0.2.7\n"},
        {"[2001:db8::1]:443", "/\nX-Forwarded-For: 10.0.0.1, 10.0.0.2, 10.0.0.3, 2001:db8::1\n",
         "/\nX-Forwarded-For: 2001:db8::1\n"},
        {"@", "/\nX-Forwarded-For: 10.0.0.1, 10.0.0.2, 10.0.0.3\n", "/\n"},
    };
    struct tier_head_options options = {0};
    struct tier_head head;
    enum status status;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct http_request request = request_of("/", fields, 2);
        address = rows[i].address;
        assert_string_equal(sent(&request, &options, &head, &status), rows[i].with);
        request.field_count = 0;
        assert_string_equal(sent(&request, &options, &head, &status), rows[i].without);
    }
}

static void targets_stay_below_the_prefix(void **state)
{
    static const struct {
        const char *target, *sent, *sent_with_prefix; /* NULL: refused */
    } rows[] = {
        {"/api", "/api\n", "/p/api\n"},
        {"http://tier:1/api?x", "/api?x\n", "/p/api?x\n"},
        {"http://tier", NULL, NULL},
        {"*", NULL, NULL},
        {"/a/../b", "/a/../b\n", NULL},
        {"/..", "/..\n", NULL},
        {"/a/..b/...", "/a/..b/...\n", "/p/a/..b/...\n"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        for (int prefix = 0; prefix < 2; prefix++) {
            struct tier_head_options options = {.path_prefix =
                                                    prefix ? SLICE_LITERAL("/p") : SLICE_EMPTY};
            struct http_request request = request_of(rows[i].target, NULL, 0);
            struct tier_head head;
            enum status status;
            const char *expected = prefix ? rows[i].sent_with_prefix : rows[i].sent;
            address = "@";
            const char *text = sent(&request, &options, &head, &status);
            if (expected)
                assert_string_equal(text, expected);
            else
                assert_int_equal(status, ST_INVALID);
        }
    }
    /* The path is decoded. */
    struct tier_head_options options = {.path_prefix = SLICE_LITERAL("/p")};
    struct http_request request = request_of("/a/%2e%2e/b", NULL, 0);
    struct tier_head head;
    enum status status;
    request.path = SLICE_LITERAL("/a/../b");
    assert_null(sent(&request, &options, &head, &status));
}

static void long_lists_of_the_connection_are_refused(void **state)
{
    static char list[514];
    struct http_field fields[] = {FIELD("Connection", ""), FIELD("Accept", "x")};
    struct tier_head_options options = {0};
    struct tier_head head;
    enum status status;
    (void)state;
    memset(list, ',', 513);
    fields[0].value = slice_of(list, 512);
    struct http_request request = request_of("/", fields, 2);
    assert_non_null(sent(&request, &options, &head, &status));
    fields[0].value = slice_of(list, 513);
    assert_null(sent(&request, &options, &head, &status));
    assert_int_equal(status, ST_INVALID);
}

static void lasting_answers_and_upgrades_are_recognised(void **state)
{
    static const struct {
        const char *target;
        bool lasts;
    } rows[] = {{"/pods", false},           {"/pods?watch=true", true}, {"/pods?a=b&watch=1", true},
                {"/pods?watch=0", false},   {"/log?follow=true", true}, {"/log?watch=false", false},
                {"/pods?watchful=1", false}};
    static const struct http_field fields[] = {
        FIELD("Connection", "Upgrade"), FIELD("Upgrade", "SPDY/3.1"),
        FIELD("X-Stream-Protocol-Version", "v4"), FIELD("Content-Length", "0")};
    struct tier_head_options options = {0};
    struct tier_head head;
    enum status status;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct http_request request = request_of(rows[i].target, NULL, 0);
        assert_non_null(sent(&request, &options, &head, &status));
        assert_int_equal(head.lasts, rows[i].lasts);
        assert_false(head.has_body);
    }
    struct http_request request = request_of("/exec", fields, COUNT_OF(fields));
    request.upgrade = true;
    assert_string_equal(sent(&request, &options, &head, &status),
                        "/exec\nX-Stream-Protocol-Version: v4\nX-Forwarded-For: 192.0.2.7\n");
    assert_true(slice_is(head.upgrade, "SPDY/3.1"));
    assert_false(head.has_body);
    request.upgrade = false; /* over HTTP/1.0, for instance */
    assert_non_null(sent(&request, &options, &head, &status));
    assert_int_equal(head.upgrade.len, 0);
    assert_true(head.has_body);
    assert_int_equal(head.body_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_of_the_connection_and_names_of_users_are_left_out),
        cmocka_unit_test(address_of_the_client_is_appended),
        cmocka_unit_test(targets_stay_below_the_prefix),
        cmocka_unit_test(long_lists_of_the_connection_are_refused),
        cmocka_unit_test(lasting_answers_and_upgrades_are_recognised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
