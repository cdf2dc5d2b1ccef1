#include "net/tls/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void suites_have_the_names_of_go(void **state)
{
    (void)state;
    struct tls_suites suites;
    struct error error;
    assert_int_equal(tls_suites_parse("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, "
                                      "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
                                      &suites, &error),
                     ST_OK);
    assert_string_equal(suites.list, "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305");
    assert_string_equal(suites.missing, "");
    assert_int_equal(
        tls_suites_parse("TLS_RSA_WITH_AES_128_CBC_SHA,TLS_AES_128_GCM_SHA256", &suites, &error),
        ST_OK);
    assert_string_equal(suites.list, "AES128-SHA"); /* those of TLS 1.3 cannot be chosen */
    assert_int_equal(tls_suites_parse("tls_rsa_with_aes_128_cbc_sha", &suites, &error), ST_INVALID);
    assert_string_equal(error.text, "unexpected TLS cipher suite \"tls_rsa_with_aes_128_cbc_sha\"");
}

static void default_suites_are_those_of_go(void **state)
{
    (void)state;
    struct tls_suites suites;
    struct error error;
    assert_int_equal(tls_suites_parse("", &suites, &error), ST_OK);
    assert_non_null(strstr(suites.list, "ECDHE-ECDSA-AES128-GCM-SHA256:"));
    assert_null(strstr(suites.list, ":AES128-SHA"));
    assert_true(strlen(suites.list) < sizeof(suites.list) - 1);
}

/* Debian's OpenSSL has neither; if they are listed with others, the others are used. */
static void suites_that_openssl_lacks_are_named(void **state)
{
    (void)state;
    struct tls_suites suites;
    struct error error;
    assert_int_equal(
        tls_suites_parse("TLS_RSA_WITH_RC4_128_SHA,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", &suites,
                         &error),
        ST_OK);
    assert_string_equal(suites.list, "ECDHE-RSA-AES256-GCM-SHA384");
    assert_string_equal(suites.missing, "TLS_RSA_WITH_RC4_128_SHA");
}

static void endless_lists_of_suites_are_refused(void **state)
{
    (void)state;
    char list[4096] = "";
    struct tls_suites suites;
    struct error error;
    for (int i = 0; i < 60; i++)
        memcpy(list + 32 * i, "TLS_RSA_WITH_AES_128_CBC_SHA256,", 33);
    assert_int_equal(tls_suites_parse(list, &suites, &error), ST_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(suites_have_the_names_of_go),
        cmocka_unit_test(default_suites_are_those_of_go),
        cmocka_unit_test(suites_that_openssl_lacks_are_named),
        cmocka_unit_test(endless_lists_of_suites_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
