#include "codec/kube_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* celoracle formats compares the texts with Kubernetes'. */

static void every_reason_has_room(void **state)
{
    static const char *const beginnings[] = {"prefix part must be no more than 253 bytes",
                                             "prefix part a lowercase RFC 1123 subdomain must",
                                             "name part must be no more than 63 bytes",
                                             "name part must consist of alphanumeric characters"};
    uint8_t key[512];
    char why[NAME_ERROR_BYTES];
    (void)state;
    memset(key, '-', sizeof(key));
    key[300] = '/';
    assert_false(label_key_valid(slice_of(key, sizeof(key)), why));
    struct slice rest = slice_from_text(why);
    for (size_t i = 0; i < COUNT_OF(beginnings); i++) {
        struct slice reason = name_cut_reason(&rest), beginning = slice_from_text(beginnings[i]);
        assert_true(slice_has_prefix(reason, beginning));
    }
    assert_int_equal(rest.len, 0);
}

static void a_name_without_a_reason_to_refuse_it_is_valid(void **state)
{
    char why[NAME_ERROR_BYTES];
    (void)state;
    assert_true(label_key_valid(SLICE_LITERAL("example.com/App_1"), why));
    assert_true(label_value_valid(SLICE_EMPTY, why));
    assert_true(subdomain_valid(SLICE_LITERAL("1.example.com"), why));
    assert_true(dns_label_valid(SLICE_LITERAL("1-a"), why));
    assert_true(dns_1035_valid(SLICE_LITERAL("a-1"), why));
    assert_false(dns_1035_valid(SLICE_LITERAL("1-a"), why));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_reason_has_room),
        cmocka_unit_test(a_name_without_a_reason_to_refuse_it_is_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
