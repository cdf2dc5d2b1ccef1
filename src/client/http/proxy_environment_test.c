/* Proxies of the environment, with the rules of Go. */
#include "client/http/proxy_environment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* Pairs of names and values. */
static const char *const *variables;

static char *get(const char *name)
{
    for (const char *const *at = variables; *at; at += 2)
        if (strcmp(at[0], name) == 0)
            return (char *)(uintptr_t)at[1];
    return NULL;
}

static char *find(const char *server, const char *const *environment)
{
    struct endpoint endpoint;
    struct error error;
    char *url;
    variables = environment;
    assert_int_equal(endpoint_parse(slice_from_text(server), &endpoint, &error), ST_OK);
    assert_int_equal(
        proxy_environment_find(&endpoint, endpoint.security == ENDPOINT_TLS, get, &url), ST_OK);
    return url;
}

static void expect(const char *server, const char *const *environment, const char *expected)
{
    char *url = find(server, environment);
    if (expected)
        assert_string_equal(url, expected);
    else
        assert_null(url);
    free(url);
}

#define ENVIRONMENT(...) ((const char *const[]){__VA_ARGS__, NULL, NULL})

static void variables_name_the_proxy(void **state)
{
    (void)state;
    const char *const *both = ENVIRONMENT("HTTP_PROXY", "http://a", "HTTPS_PROXY", "socks5://b:1");
    expect("https://kube.test:6443", both, "socks5://b:1");
    expect("http://kube.test:80", both, "http://a");
    expect("https://kube.test:6443", ENVIRONMENT("HTTP_PROXY", "http://a"), NULL);
    expect("https://kube.test:6443", ENVIRONMENT("https_proxy", "proxy:3128"), "http://proxy:3128");
    expect("https://kube.test:6443", ENVIRONMENT("HTTPS_PROXY", "", "https_proxy", "c"),
           "http://c");
    expect("unix:///run/kube.sock", ENVIRONMENT("HTTP_PROXY", "http://a"), NULL);
    expect("http://kube.test:80", ENVIRONMENT("HTTP_PROXY", "a", "REQUEST_METHOD", "GET"), NULL);
    expect("https://kube.test:1", ENVIRONMENT("HTTPS_PROXY", "a", "REQUEST_METHOD", "GET"),
           "http://a");
}

static void exemptions_are_those_of_go(void **state)
{
    (void)state;
    static const struct {
        const char *no_proxy, *server;
        bool exempt;
    } rows[] = {
        {"", "https://localhost:1", true},
        {"", "https://127.0.0.1:1", true},
        {"", "https://127.9.9.9:1", true},
        {"", "https://[::1]:1", true},
        {"", "https://kube.test:1", false},
        {"*", "https://kube.test:1", true},
        {" , kube.test ,", "https://kube.test:1", true},
        {"kube.test", "https://KUBE.test:1", true},
        {"kube.test", "https://a.kube.test:1", true},
        {"kube.test", "https://akube.test:1", false},
        {"kube.test", "https://test:1", false},
        {".kube.test", "https://kube.test:1", false},
        {".kube.test", "https://a.kube.test:1", true},
        {"*.kube.test", "https://kube.test:1", false},
        {"*.kube.test", "https://a.kube.test:1", true},
        {"kube.test:1", "https://kube.test:1", true},
        {"kube.test:2", "https://kube.test:1", false},
        {"kube.test:x", "https://kube.test:1", false},
        {":1", "https://kube.test:1", false},
        {"10.0.0.1", "https://10.0.0.1:1", true},
        {"10.0.0.1:1", "https://10.0.0.1:1", true},
        {"10.0.0.1:2", "https://10.0.0.1:1", false},
        {"10.0.0.2", "https://10.0.0.1:1", false},
        {"0.0.1", "https://10.0.0.1:1", false},
        {"10.0.0.0/8", "https://10.200.0.1:1", true},
        {"10.0.0.0/8", "https://11.0.0.1:1", false},
        {"10.0.0.0/0", "https://11.0.0.1:1", true},
        {"10.0.0.0/9", "https://10.128.0.1:1", false},
        {"10.0.0.1/32", "https://10.0.0.1:1", true},
        {"10.0.0.1/33", "https://10.0.0.1:1", false},
        {"10.0.0.1/", "https://10.0.0.1:1", false},
        {"10.0.0.1/9999999999999", "https://10.0.0.1:1", false},
        {"10.0.0.0/8", "https://kube.test:1", false},
        {"fd00::/16", "https://[fd00::7]:1", true},
        {"fd00::/16", "https://[fd01::7]:1", false},
        {"fd00::7", "https://[fd00::7]:1", true},
        {"[fd00::7]:1", "https://[fd00::7]:1", true},
        {"[fd00::7]:2", "https://[fd00::7]:1", false},
        {"[]:1", "https://kube.test:1", false},
        {":", "https://kube.test:1", false},
        {"*.", "https://kube.test:1", false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char *url =
            find(rows[i].server, ENVIRONMENT("HTTPS_PROXY", "p", "NO_PROXY", rows[i].no_proxy));
        if ((url == NULL) != rows[i].exempt)
            fail_msg("NO_PROXY=%s %s", rows[i].no_proxy, rows[i].server);
        free(url);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_name_the_proxy),
        cmocka_unit_test(exemptions_are_those_of_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
