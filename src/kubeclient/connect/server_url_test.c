/* The URL of a server. */
#include "kubeclient/connect/server_url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void expect(const char *text, bool tls_configured, const char *endpoint, const char *prefix,
                   bool secure)
{
    struct server_url url;
    struct error error;
    if (server_url_parse(text, tls_configured, &url, &error) != ST_OK)
        fail_msg("%s: %s", text, error.text);
    assert_string_equal(url.endpoint.text, endpoint);
    assert_int_equal(url.endpoint.security, secure ? ENDPOINT_TLS : ENDPOINT_PLAIN);
    assert_true(slice_equal(url.prefix, slice_from_text(prefix)));
}

static void urls_are_understood(void **state)
{
    (void)state;
    expect("https://10.0.0.1:6443", false, "10.0.0.1:6443", "", true);
    expect("https://10.0.0.1:6443/", false, "10.0.0.1:6443", "", true);
    expect("HTTPS://kube.example.com", false, "kube.example.com:443", "", true);
    expect("http://localhost", true, "localhost:80", "", false);
    expect("https://[fd00::1]:6443", false, "[fd00::1]:6443", "", true);
    expect("https://[fd00::1]", false, "[fd00::1]:443", "", true);
    expect(" https://a.b/k8s/clusters/c-1/ ", false, "a.b:443", "/k8s/clusters/c-1", true);
    expect("https://a.b//", false, "a.b:443", "", true);
    expect("10.0.0.1:6443", true, "10.0.0.1:6443", "", true);
    expect("10.0.0.1:8080", false, "10.0.0.1:8080", "", false);
    expect("localhost", false, "localhost:80", "", false);
    expect("unix:///run/kube.sock", false, "/run/kube.sock", "", false);
}

static void wrong_urls_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "has no host"},
        {"https://", "has no host"},
        {"https:///path", "has no host"},
        {"ftp://a.b", "must begin with https:// or http://"},
        {"https://user:secret@a.b", "has a user"},
        {"ftp://user:secret@a.b", "must begin with https:// or http://"},
        {"https://a.b/x?y=z", "has a path that cannot be used"},
        {"https://a.b/x y", "has a path that cannot be used"},
        {"https://a.b/\n", "has a path that cannot be used"},
        {"https://a b", "not a host name"},
        {"https://a.b:port", "host:port"},
        {"https://a.b:99999", "host:port"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct server_url url;
        struct error error = {0};
        assert_int_equal(server_url_parse(rows[i].text, false, &url, &error), ST_INVALID);
        if (!strstr(error.text, rows[i].why))
            fail_msg("%s: %s", rows[i].text, error.text);
        assert_null(strstr(error.text, "secret"));
    }
}

static void long_hosts_are_refused(void **state)
{
    (void)state;
    char text[2000] = "https://";
    for (size_t len = 8; len < sizeof(text) - 1; len++) {
        struct server_url url;
        struct error error;
        text[len] = 'a';
        enum status status = server_url_parse(text, false, &url, &error);
        assert_int_equal(status, len - 7 < ENDPOINT_HOST_BYTES ? ST_OK : ST_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_are_understood),
        cmocka_unit_test(wrong_urls_are_refused),
        cmocka_unit_test(long_hosts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
