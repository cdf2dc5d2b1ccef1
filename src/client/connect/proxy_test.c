#include "client/connect/proxy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static enum status parse(const char *url, struct proxy *proxy, struct error *error)
{
    /* In memory of its own, so that reading beyond it is noticed. */
    struct slice text = slice_from_text(url);
    uint8_t *copy = malloc(text.len + 1);
    assert_non_null(copy);
    slice_copy(copy, text);
    enum status status = proxy_parse(slice_of(copy, text.len), proxy, error);
    free(copy);
    return status;
}

static void urls_are_understood(void **state)
{
    (void)state;
    static const struct {
        const char *url;
        enum proxy_kind kind;
        enum endpoint_security security;
        const char *text;
    } rows[] = {
        {"http://proxy", PROXY_HTTP, ENDPOINT_PLAIN, "proxy:80"},
        {"HTTP://proxy:3128", PROXY_HTTP, ENDPOINT_PLAIN, "proxy:3128"},
        {"http://proxy:3128/", PROXY_HTTP, ENDPOINT_PLAIN, "proxy:3128"},
        {"http://proxy:3128/path?a=b@c#d", PROXY_HTTP, ENDPOINT_PLAIN, "proxy:3128"},
        {"http://[::1]", PROXY_HTTP, ENDPOINT_PLAIN, "[::1]:80"},
        {"http://[::1]:8080", PROXY_HTTP, ENDPOINT_PLAIN, "[::1]:8080"},
        {"https://proxy.example.com", PROXY_HTTP, ENDPOINT_TLS, "proxy.example.com:443"},
        {"socks5://10.0.0.1", PROXY_SOCKS5, ENDPOINT_PLAIN, "10.0.0.1:1080"},
        {"socks5h://proxy:1", PROXY_SOCKS5, ENDPOINT_PLAIN, "proxy:1"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct proxy proxy;
        struct error error;
        assert_int_equal(parse(rows[i].url, &proxy, &error), ST_OK);
        assert_int_equal(proxy.kind, rows[i].kind);
        assert_int_equal(proxy.endpoint.security, rows[i].security);
        assert_string_equal(proxy.endpoint.text, rows[i].text);
        assert_false(proxy.has_user);
        assert_string_equal(proxy.authorization, "");
    }
}

static void users_are_decoded(void **state)
{
    (void)state;
    static const struct {
        const char *url, *user, *password, *authorization;
    } rows[] = {
        {"http://u:p@proxy", "u", "p", "Basic dTpw"},
        {"http://u@proxy", "u", "", "Basic dTo="},
        {"http://:p@proxy", "", "p", "Basic OnA="},
        {"http://@proxy", "", "", "Basic Og=="},
        {"http://a%40b:c%3ad%2f@proxy", "a@b", "c:d/", "Basic YUBiOmM6ZC8="},
        {"http://a:b:c@proxy", "a", "b:c", "Basic YTpiOmM="},
        {"socks5://a@b:c@proxy", "a@b", "c", "Basic YUBiOmM="},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct proxy proxy;
        struct error error;
        assert_int_equal(parse(rows[i].url, &proxy, &error), ST_OK);
        assert_true(proxy.has_user);
        assert_string_equal(proxy.user, rows[i].user);
        assert_string_equal(proxy.password, rows[i].password);
        assert_string_equal(proxy.authorization, rows[i].authorization);
    }
}

static void malformed_urls_are_refused(void **state)
{
    (void)state;
    static const char *const urls[] = {
        "",
        "proxy",
        "proxy:3128",
        "ftp://proxy",
        "http:/proxy",
        "http://",
        "http://u:p@",
        "http://proxy:port",
        "http://proxy:",
        "http://proxy:65536",
        "http://a b",
        "http://u%zz@proxy",
        "http://u:%0@proxy",
        "http://%00@proxy",
        "socks4://proxy",
        "http://u:secret@ho st",
    };
    for (size_t i = 0; i < COUNT_OF(urls); i++) {
        struct proxy proxy;
        struct error error = {0};
        if (parse(urls[i], &proxy, &error) != ST_INVALID)
            fail_msg("%s", urls[i]);
        assert_true(*error.text);
        assert_null(strstr(error.text, "secret"));
    }
}

/* As long as it may be, and one byte longer. */
static void users_and_hosts_have_a_limit(void **state)
{
    (void)state;
    for (size_t len = PROXY_USER_BYTES - 1; len <= PROXY_USER_BYTES; len++) {
        char name[PROXY_USER_BYTES + 1], url[4 * PROXY_USER_BYTES];
        struct proxy proxy;
        struct error error;
        memset(name, 'x', len);
        name[len] = 0;
        enum status expected = len < PROXY_USER_BYTES ? ST_OK : ST_INVALID;
        snprintf(url, sizeof(url), "http://%s:%s@proxy", name, name);
        assert_int_equal(parse(url, &proxy, &error), expected);
        snprintf(url, sizeof(url), "http://a:%s@proxy", name);
        assert_int_equal(parse(url, &proxy, &error), expected);
    }
    char url[2000] = "http://";
    memset(url + 7, 'h', sizeof(url) - 8);
    struct proxy proxy;
    struct error error;
    assert_int_equal(parse(url, &proxy, &error), ST_INVALID);
    memset(url + 7, '%', sizeof(url) - 8);
    url[sizeof(url) - 3] = '@';
    url[sizeof(url) - 2] = 'h';
    assert_int_equal(parse(url, &proxy, &error), ST_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_are_understood),
        cmocka_unit_test(users_are_decoded),
        cmocka_unit_test(malformed_urls_are_refused),
        cmocka_unit_test(users_and_hosts_have_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
