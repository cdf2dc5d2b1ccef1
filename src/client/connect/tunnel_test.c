/* The handshake with a proxy: what is sent, every cut of what is received, refusals, memory. */
#include "client/connect/tunnel.h"

#include "base/buf.h"
#include "base/failing_memory_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* A dialogue: what the client sends, then what the proxy answers, … */
struct dialogue {
    const char *proxy, *server;
    struct slice sent[3], answers[3];
};

#define BYTES(text)                               \
    {                                             \
        (const uint8_t *)(text), sizeof(text) - 1 \
    }

static const struct dialogue dialogues[] = {
    {"http://p",
     "https://kube.test:6443",
     {BYTES("CONNECT kube.test:6443 HTTP/1.1\r\nHost: kube.test:6443\r\n\r\n")},
     {BYTES("HTTP/1.0 200 Connection established\r\n\r\n")}},
    {"http://u:p@p",
     "https://[::1]:1",
     {BYTES("CONNECT [::1]:1 HTTP/1.1\r\nHost: [::1]:1\r\nProxy-Authorization: Basic "
            "dTpw\r\n\r\n")},
     {BYTES("HTTP/1.1 204 Fine\r\nA: b\r\nContent-Length: 5\r\n\r\n")}},
    {"socks5://p",
     "https://kube.test:6443",
     {BYTES("\5\1\0"), BYTES("\5\1\0\3\11kube.test\x19\x2b")},
     {BYTES("\5\0"), BYTES("\5\0\0\1\12\0\0\1\0\1")}},
    {"socks5://u:pw@p",
     "https://10.0.0.7:443",
     {BYTES("\5\2\0\2"), BYTES("\1\1u\2pw"), BYTES("\5\1\0\1\12\0\0\7\1\xbb")},
     {BYTES("\5\2"), BYTES("\1\0"), BYTES("\5\0\0\3\4host\0\1")}},
    {"socks5://u:pw@p", /* and needs no user */
     "https://[fe80::1]:443",
     {BYTES("\5\2\0\2"), BYTES("\5\1\0\4\xfe\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\1\1\xbb")},
     {BYTES("\5\0"), BYTES("\5\0\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\1")}},
};

static struct proxy proxy;
static struct endpoint server;

static void parse(const struct dialogue *d)
{
    struct error error;
    assert_int_equal(proxy_parse(slice_from_text(d->proxy), &proxy, &error), ST_OK);
    assert_int_equal(endpoint_parse(slice_from_text(d->server), &server, &error), ST_OK);
}

static void expect_output(struct tunnel *t, struct slice expected, size_t step)
{
    for (size_t at = 0; at < expected.len;) {
        uint8_t room[512];
        assert_true(tunnel_wants_write(t));
        size_t n = tunnel_fill(t, room, step);
        assert_true(n > 0 && n <= expected.len - at);
        assert_memory_equal(room, expected.ptr + at, n);
        at += n;
    }
    assert_false(tunnel_wants_write(t));
    tunnel_check(t);
}

/* The answer and three more bytes arrive in pieces of this size. */
static enum status feed(struct tunnel *t, struct slice answer, size_t step, size_t *ret_used,
                        struct error *error)
{
    enum status status = ST_AGAIN;
    size_t at = 0;
    for (; at < answer.len && status == ST_AGAIN; at += step) {
        size_t n = size_min(step, answer.len - at);
        size_t used = SIZE_MAX;
        status = tunnel_feed(t, slice_sub(answer, at, n), &used, error);
        if (status == ST_AGAIN)
            tunnel_check(t);
        *ret_used = status == ST_OK ? at + used : answer.len;
    }
    return status;
}

static void dialogues_end_open(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(dialogues); i++) {
        const struct dialogue *d = &dialogues[i];
        parse(d);
        for (size_t step = 1; step < 60; step++) {
            struct tunnel *t;
            struct error error;
            size_t used, last = d->sent[2].len ? 2 : d->sent[1].len ? 1 : 0;
            assert_int_equal(tunnel_new(&proxy, &server, &t), ST_OK);
            for (size_t n = 0; n < last; n++) {
                expect_output(t, d->sent[n], step);
                assert_int_equal(feed(t, d->answers[n], step, &used, &error), ST_AGAIN);
            }
            expect_output(t, d->sent[last], step);
            AUTO(buf_fini) struct buf answer = {0};
            assert_int_equal(buf_append(&answer, d->answers[last]), ST_OK);
            assert_int_equal(buf_append(&answer, SLICE_LITERAL("xyz")), ST_OK);
            assert_int_equal(feed(t, buf_slice(&answer), step, &used, &error), ST_OK);
            assert_int_equal(used, d->answers[last].len);
            tunnel_free(t);
        }
    }
}

static void refusals_are_explained(void **state)
{
    (void)state;
    static const struct {
        size_t dialogue;
        struct slice answer;
        const char *text;
    } rows[] = {
        {0, BYTES("HTTP/1.1 403 Forbidden\r\n\r\n"), "the proxy answered CONNECT with status 403"},
        {0, BYTES("HTTP/1.1 100 Continue\r\n\r\n"), "the proxy answered CONNECT with status 100"},
        {0, BYTES("HTTP/1.1 407 Proxy Authentication Required\r\nA: b\r\n\r\n"),
         "the proxy answered CONNECT with status 407: it requires a user and a password"},
        {0, BYTES("SSH-2.0-OpenSSH\r\n\r\n"), "the proxy does not speak HTTP"},
        {0, BYTES("\5\1\r\n\r\n"), "the proxy does not speak HTTP"},
        {2, BYTES("HTTP/1.1 400 Bad Request\r\n\r\n"), "the proxy does not speak SOCKS5"},
        {2, BYTES("\4\0"), "the proxy does not speak SOCKS5"},
        {2, BYTES("\5\2"), "the proxy requires another kind of authentication"},
        {2, BYTES("\5\xff"), "the proxy requires another kind of authentication"},
        {2, BYTES("\5\0\4\0\0\1\0\0\0\0\0\0"), "the proxy does not speak SOCKS5"},
        {2, BYTES("\5\0\5\0\0\2\0\0\0\0\0\0"), "the proxy does not speak SOCKS5"},
        {2, BYTES("\5\0\5\1\0\1\0\0\0\0\0\0"), "the proxy answered: general failure of the proxy"},
        {2, BYTES("\5\0\5\5\0\1\0\0\0\0\0\0"), "the proxy answered: connection refused"},
        {2, BYTES("\5\0\5\10\0\1\0\0\0\0\0\0"), "the proxy answered: address type not supported"},
        {2, BYTES("\5\0\5\11\0\1\0\0\0\0\0\0"), "the proxy answered: unknown error"},
        {3, BYTES("\5\2\5\0"), "the proxy does not speak SOCKS5"},
        {3, BYTES("\5\2\1\1"), "the proxy refused the user or the password"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        parse(&dialogues[rows[i].dialogue]);
        for (size_t step = 1; step < 60; step++) {
            struct tunnel *t;
            struct error error = {0};
            size_t used;
            assert_int_equal(tunnel_new(&proxy, &server, &t), ST_OK);
            assert_int_equal(feed(t, rows[i].answer, step, &used, &error), ST_CLOSED);
            if (strncmp(error.text, rows[i].text, strlen(rows[i].text)) != 0)
                fail_msg("%s instead of %s", error.text, rows[i].text);
            tunnel_free(t);
        }
    }
}

static void endless_response_is_refused(void **state)
{
    (void)state;
    static const size_t steps[] = {1, 100, 65536};
    parse(&dialogues[0]);
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        struct tunnel *t;
        struct error error = {0};
        AUTO(buf_fini) struct buf answer = {0};
        size_t used;
        assert_int_equal(buf_append(&answer, SLICE_LITERAL("HTTP/1.1 200 OK\r\n")), ST_OK);
        while (answer.len <= TUNNEL_HEAD_BYTES_MAX)
            assert_int_equal(buf_append(&answer, SLICE_LITERAL("A: b\r\n")), ST_OK);
        assert_int_equal(tunnel_new(&proxy, &server, &t), ST_OK);
        assert_int_equal(feed(t, buf_slice(&answer), steps[i], &used, &error), ST_CLOSED);
        assert_string_equal(error.text, "the proxy's response exceeds the limit");
        tunnel_free(t);
    }
}

static void live(void *ctx)
{
    const struct dialogue *d = ctx;
    AUTO(tunnel_freep) struct tunnel *t = NULL;
    struct error error;
    size_t used;
    enum status status = tunnel_new(&proxy, &server, &t);
    for (size_t n = 0; n < 3 && d->sent[n].len && (status == ST_OK || status == ST_AGAIN); n++)
        status = feed(t, d->answers[n], 7, &used, &error);
    assert_true(status == ST_OK || status == ST_NOMEM);
}

static void missing_memory_is_reported(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(dialogues); i++) {
        struct dialogue d = dialogues[i];
        parse(&d);
        assert_true(each_allocation_fails(live, &d) >= 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dialogues_end_open),
        cmocka_unit_test(refusals_are_explained),
        cmocka_unit_test(endless_response_is_refused),
        cmocka_unit_test(missing_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
