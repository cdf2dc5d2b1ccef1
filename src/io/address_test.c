#include "io/address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void expect_text(const char *host, uint16_t port, const char *expected)
{
    struct address address;
    char text[ADDRESS_TEXT_BYTES];
    assert_int_equal(address_from_host(slice_from_text(host), port, &address), ST_OK);
    address_format(&address, text);
    assert_string_equal(text, expected);
    assert_int_equal(address_port(&address), port);
    assert_false(address_is_path(&address));
}

static void numeric_hosts_and_localhost_are_addresses(void **state)
{
    (void)state;
    expect_text("127.0.0.1", 2379, "127.0.0.1:2379");
    expect_text("localhost", 0, "127.0.0.1:0");
    expect_text("::1", 65535, "[::1]:65535");
    expect_text("0.0.0.0", 1, "0.0.0.0:1");
}

static void host_names_and_malformed_texts_are_refused(void **state)
{
    (void)state;
    const char *const bad[] = {"", "example.org", "1.2.3", "1.2.3.4.5", "[::1]", "::1::2"};
    struct address address;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_int_equal(address_from_host(slice_from_text(bad[i]), 1, &address), ST_INVALID);
    assert_int_equal(address_from_host(slice_of("127.0.0.1\0x", 11), 1, &address), ST_INVALID);
    char longer[200] = {[0 ... 198] = '1'};
    assert_int_equal(address_from_host(slice_from_text(longer), 1, &address), ST_INVALID);
}

static void paths_up_to_the_system_limit_are_accepted(void **state)
{
    (void)state;
    struct address address;
    char text[ADDRESS_TEXT_BYTES];
    assert_int_equal(address_from_path(SLICE_LITERAL("/tmp/x.sock"), &address), ST_OK);
    address_format(&address, text);
    assert_string_equal(text, "/tmp/x.sock");
    assert_true(address_is_path(&address));
    assert_int_equal(address_port(&address), 0);

    char path[109] = {[0 ... 107] = 'p'};
    assert_int_equal(address_from_path(slice_of(path, 107), &address), ST_OK);
    assert_int_equal(address_from_path(slice_of(path, 108), &address), ST_INVALID);
    assert_int_equal(address_from_path(SLICE_EMPTY, &address), ST_INVALID);
    assert_int_equal(address_from_path(slice_of("a\0b", 3), &address), ST_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numeric_hosts_and_localhost_are_addresses),
        cmocka_unit_test(host_names_and_malformed_texts_are_refused),
        cmocka_unit_test(paths_up_to_the_system_limit_are_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
