#include "kube/policy/range.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct kube_range parse(const char *text)
{
    struct kube_range range;
    struct error error;
    assert_int_equal(kube_range_parse(slice_from_text(text), &range, &error), ST_OK);
    return range;
}

static void expect_at(const struct kube_range *range, uint64_t number, const char *expected)
{
    char text[KUBE_ADDRESS_TEXT_BYTES];
    struct kube_address address = kube_range_at(range, number);
    kube_address_format(&address, text);
    assert_string_equal(text, expected);
    assert_true(kube_range_has(range, &address));
}

static void addresses_are_numbered_without_network_and_broadcast(void **state)
{
    (void)state;
    struct kube_range range = parse("10.0.0.7/24");
    char text[KUBE_RANGE_TEXT_BYTES];
    kube_range_format(&range, text);
    assert_string_equal(text, "10.0.0.0/24");
    assert_int_equal(range.size, 254);
    expect_at(&range, 0, "10.0.0.1");
    expect_at(&range, 253, "10.0.0.254");
    range = parse("10.96.0.0/12");
    expect_at(&range, range.size - 1, "10.111.255.254");
}

static void ranges_of_version_6_have_all_but_the_first(void **state)
{
    (void)state;
    struct kube_range range = parse("fd00:1234::/126");
    assert_int_equal(range.size, 3);
    expect_at(&range, 0, "fd00:1234::1");
    expect_at(&range, 2, "fd00:1234::3");
    range = parse("fd00::/64"); /* larger than what is numbered */
    expect_at(&range, range.size - 1, "fd00::ffff:ffff");
}

static void other_addresses_do_not_belong(void **state)
{
    static const char *const others[] = {"10.0.0.0", "10.0.0.255", "10.0.1.1", "9.255.255.255",
                                         "::1"};
    (void)state;
    struct kube_range range = parse("10.0.0.0/24");
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        struct kube_address address;
        assert_true(kube_address_parse(slice_from_text(others[i]), &address));
        assert_false(kube_range_has(&range, &address));
    }
}

static void malformed_ranges_are_refused(void **state)
{
    static const char *const wrong[] = {"",
                                        "10.0.0.0",
                                        "10.0.0.0/",
                                        "10.0.0.0/33",
                                        "10.0/24",
                                        "::/129",
                                        "10.0.0.0/31",
                                        "10.0.0.0/-1",
                                        "a/24",
                                        "10.0.0.0/x",
                                        "fd00::1/128",
                                        "10.0.0.0/0024",
                                        "10.0.0.256/24"};
    (void)state;
    struct kube_range range;
    struct error error;
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_int_equal(kube_range_parse(slice_from_text(wrong[i]), &range, &error), ST_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_numbered_without_network_and_broadcast),
        cmocka_unit_test(ranges_of_version_6_have_all_but_the_first),
        cmocka_unit_test(other_addresses_do_not_belong),
        cmocka_unit_test(malformed_ranges_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
