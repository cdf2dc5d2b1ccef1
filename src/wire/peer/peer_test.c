#include "wire/peer/peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static void write_text(void *owner, char *text)
{
    snprintf(text, WIRE_ADDRESS_BYTES, "%s", (const char *)owner);
}

static uint64_t key(const char *text)
{
    void *owner = (void *)(uintptr_t)text;
    return wire_peer_key((struct wire_peer){.address = write_text, .owner = owner});
}

static void key_depends_on_the_address_and_not_on_the_port(void **state)
{
    (void)state;
    assert_int_equal(key("127.0.0.1:2379"), key("127.0.0.1:40000"));
    assert_int_not_equal(key("127.0.0.1:2379"), key("127.0.0.2:2379"));
    assert_int_equal(key("[::1]:2379"), key("[::1]:40000"));
    assert_int_equal(key("[::ffff:127.0.0.1]:1"), key("127.0.0.1:2"));
}

static void key_of_ipv6_depends_on_the_network_of_64_bits(void **state)
{
    (void)state;
    assert_int_equal(key("[2001:db8:0:1::1]:1"), key("[2001:db8:0:1:ffff::2]:1"));
    assert_int_not_equal(key("[2001:db8:0:1::1]:1"), key("[2001:db8:0:2::1]:1"));
    assert_int_not_equal(key("[::1]:1"), key("127.0.0.1:1"));
}

static void key_without_an_address_is_unique_to_the_connection(void **state)
{
    (void)state;
    static const char one[] = "@", other[] = "@";
    assert_int_equal(key(one), key(one));
    assert_int_not_equal(key(one), key(other));
    int connection;
    struct wire_peer unknown = {.owner = &connection};
    assert_int_equal(wire_peer_key(unknown), wire_peer_key(unknown));
    assert_int_not_equal(wire_peer_key(unknown), key("127.0.0.1:1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(key_depends_on_the_address_and_not_on_the_port),
        cmocka_unit_test(key_of_ipv6_depends_on_the_network_of_64_bits),
        cmocka_unit_test(key_without_an_address_is_unique_to_the_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
