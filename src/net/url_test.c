#include "net/url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void urls_are_parsed_as_in_etcd(void **state)
{
    (void)state;
    const struct {
        const char *text, *formatted;
        bool secure, path;
    } rows[] = {
        {"http://127.0.0.1:2379", "http://127.0.0.1:2379", false, false},
        {"  http://localhost:2379 ", "http://127.0.0.1:2379", false, false},
        {"https://[::1]:2379", "https://[::1]:2379", true, false},
        {"http://0.0.0.0:0", "http://0.0.0.0:0", false, false},
        {"unix:///run/x.sock", "unix:///run/x.sock", false, true},
        {"unix://localhost:m1", "unix://localhost:m1", false, true},
        {"unixs://localhost:m1/x", "unixs://localhost:m1/x", true, true},
        {"unix:localhost:20000", "unix://localhost:20000", false, true},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct url url;
        struct error error = {0};
        if (url_parse(slice_from_text(rows[i].text), &url, &error) != ST_OK)
            fail_msg("%s: %s", rows[i].text, error.text);
        char text[URL_TEXT_BYTES];
        url_format(&url, text);
        assert_string_equal(text, rows[i].formatted);
        assert_int_equal(url.secure, rows[i].secure);
        assert_int_equal(address_is_path(&url.address), rows[i].path);
    }
}

static void errors_contain_the_malformed_url(void **state)
{
    (void)state;
    const struct {
        const char *text, *error;
    } rows[] = {
        {"", "URL scheme must be http, https, unix, or unixs: "},
        {"127.0.0.1:2379", "URL scheme must be http, https, unix, or unixs: 127.0.0.1:2379"},
        {"ftp://x:1", "URL scheme must be http, https, unix, or unixs: ftp://x:1"},
        {"http://", "URL address does not have the form \"host:port\": http://"},
        {"http://127.0.0.1", "URL address does not have the form \"host:port\": http://127.0.0.1"},
        {"http://::1:2379", "URL address does not have the form \"host:port\": http://::1:2379"},
        {"http://1.2.3.4:x", "URL address does not have the form \"host:port\": http://1.2.3.4:x"},
        {"http://1.2.3.4:65536",
         "URL address does not have the form \"host:port\": http://1.2.3.4:65536"},
        {"http://1.2.3.4:1/v3", "URL must not contain a path: http://1.2.3.4:1/v3"},
        {"http://example.org:1", "expected IP in URL for binding (http://example.org:1)"},
        {"http://:2379", "expected IP in URL for binding (http://:2379)"},
        {"unix://", "not a path for a Unix socket: unix://"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct url url;
        struct error error = {0};
        assert_int_equal(url_parse(slice_from_text(rows[i].text), &url, &error), ST_INVALID);
        assert_string_equal(error.text, rows[i].error);
    }
}

static void advertised_urls_may_have_host_names(void **state)
{
    (void)state;
    struct error error;
    struct url url;
    struct slice named = SLICE_LITERAL("http://node-1.example:2379");
    assert_int_equal(url_check(named, &error), ST_OK);
    assert_int_equal(url_parse(named, &url, &error), ST_INVALID);
    assert_int_equal(url_check(SLICE_LITERAL("http://127.0.0.1:2379"), &error), ST_OK);
    assert_int_equal(url_check(SLICE_LITERAL("unix:///run/x"), &error), ST_OK);
    assert_int_equal(url_check(SLICE_LITERAL("http://node-1.example"), &error), ST_INVALID);
    assert_int_equal(url_check(SLICE_LITERAL("http://:2379"), &error), ST_OK);
    assert_int_equal(url_check(SLICE_LITERAL("ftp://x:1"), &error), ST_INVALID);
    assert_int_equal(url_check(SLICE_LITERAL("http://a b:1"), &error), ST_INVALID);
    assert_int_equal(url_check(SLICE_LITERAL("http://a%20b:1"), &error), ST_INVALID);
    assert_int_equal(url_check(SLICE_LITERAL("http://x\0y:1"), &error), ST_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(advertised_urls_may_have_host_names),
        cmocka_unit_test(urls_are_parsed_as_in_etcd),
        cmocka_unit_test(errors_contain_the_malformed_url),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
