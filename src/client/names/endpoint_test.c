#include "client/names/endpoint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void endpoints_are_parsed_as_clientv3_does(void **state)
{
    (void)state;
    static const struct {
        const char *given, *host, *text;
        unsigned port;
        enum endpoint_security security;
        bool is_path;
    } rows[] = {
        {"http://10.0.0.1:2379", "10.0.0.1", "10.0.0.1:2379", 2379, ENDPOINT_PLAIN, false},
        {"http://10.0.0.1:2379/", "10.0.0.1", "10.0.0.1:2379", 2379, ENDPOINT_PLAIN, false},
        {"https://a.example.com:1", "a.example.com", "a.example.com:1", 1, ENDPOINT_TLS, false},
        {"https://[::1]:2379", "::1", "[::1]:2379", 2379, ENDPOINT_TLS, false},
        {" 10.0.0.1:2379 ", "10.0.0.1", "10.0.0.1:2379", 2379, ENDPOINT_TLS_IF_CONFIGURED, false},
        {"http://:2379", "localhost", "localhost:2379", 2379, ENDPOINT_PLAIN, false},
        {"unix:///run/etcd.sock", "etcd.sock", "/run/etcd.sock", 0, ENDPOINT_PLAIN, true},
        {"unixs:///run/localhost:2379", "localhost", "/run/localhost:2379", 0, ENDPOINT_TLS, true},
        {"unix://localhost:m1", "localhost", "localhost:m1", 0, ENDPOINT_PLAIN, true},
        {"unix:/run/x", "x", "/run/x", 0, ENDPOINT_PLAIN, true},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct endpoint e;
        struct error error;
        if (endpoint_parse(slice_from_text(rows[i].given), &e, &error) != ST_OK)
            fail_msg("%s: %s", rows[i].given, error.text);
        assert_string_equal(e.host, rows[i].host);
        assert_string_equal(e.text, rows[i].text);
        assert_int_equal(e.port, rows[i].port);
        assert_int_equal(e.security, rows[i].security);
        assert_int_equal(e.is_path, rows[i].is_path);
    }
}

static void other_texts_are_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",
        "10.0.0.1", /* no port */
        "http://10.0.0.1",
        "http://10.0.0.1:x",
        "http://10.0.0.1:65536",
        "ftp://10.0.0.1:1",
        "http://10.0.0.1:1/path",
        "10.0.0.1:1/path",
        "http://a b:1",
        "http://::1:2379", /* without brackets */
        "unix://",
        "unix:",
    };
    struct endpoint e;
    struct error error;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (endpoint_parse(slice_from_text(rows[i]), &e, &error) != ST_INVALID)
            fail_msg("accepted: %s", rows[i]);
    char long_name[400] = "http://";
    memset(long_name + 7, 'a', ENDPOINT_HOST_BYTES);
    memcpy(long_name + 7 + ENDPOINT_HOST_BYTES, ":1", 3);
    assert_int_equal(endpoint_parse(slice_from_text(long_name), &e, &error), ST_INVALID);
    assert_int_equal(endpoint_parse(slice_from_text(long_name + 7), &e, &error), ST_INVALID);
    char long_path[400] = "unix:///";
    memset(long_path + 8, 'a', 300);
    assert_int_equal(endpoint_parse(slice_from_text(long_path), &e, &error), ST_INVALID);
    assert_int_equal(endpoint_parse(slice_of("http://a\0b:1", 12), &e, &error), ST_INVALID);
}

static void target_of_srv_records_becomes_an_endpoint(void **state)
{
    (void)state;
    struct endpoint e;
    endpoint_from_target("a.example.com", 2379, true, &e);
    assert_string_equal(e.text, "a.example.com:2379");
    assert_string_equal(e.host, "a.example.com");
    assert_int_equal(e.security, ENDPOINT_TLS);
    endpoint_from_target("b", 1, false, &e);
    assert_int_equal(e.security, ENDPOINT_PLAIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(endpoints_are_parsed_as_clientv3_does),
        cmocka_unit_test(other_texts_are_refused),
        cmocka_unit_test(target_of_srv_records_becomes_an_endpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
