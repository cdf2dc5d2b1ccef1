#include "auth/token/settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static enum status parse(const char *text, struct auth_token_settings *settings)
{
    struct error error;
    return auth_token_settings_parse(text, settings, &error);
}

static void simple_needs_nothing_more(void **state)
{
    (void)state;
    struct auth_token_settings settings;
    assert_int_equal(parse("simple", &settings), ST_OK);
    assert_int_equal(settings.kind, AUTH_TOKEN_SIMPLE);
}

static void jwt_has_keys_a_method_and_a_time(void **state)
{
    (void)state;
    struct auth_token_settings settings;
    assert_int_equal(
        parse("jwt,pub-key=/a/pub.pem,priv-key=/a/key,sign-method=RS256,ttl=10m", &settings),
        ST_OK);
    assert_int_equal(settings.kind, AUTH_TOKEN_JWT);
    assert_true(slice_equal(settings.public_key_file, SLICE_LITERAL("/a/pub.pem")));
    assert_true(slice_equal(settings.private_key_file, SLICE_LITERAL("/a/key")));
    assert_true(slice_equal(settings.sign_method, SLICE_LITERAL("RS256")));
    assert_int_equal(settings.ttl_s, 600);
    assert_int_equal(parse("jwt,sign-method=HS256,priv-key=k", &settings), ST_OK);
    assert_int_equal(settings.ttl_s, 300);
    assert_int_equal(settings.public_key_file.len, 0);
}

static void invalid_settings_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "other",
        "jwt",
        "jwt,",
        "jwt,sign-method",
        "jwt,sign-method=",
        "jwt,sign-method=RS256,sign-method=RS256",
        "jwt,sign-method=RS256,ttl=soon",
        "jwt,sign-method=RS256,ttl=0s",
        "jwt,sign-method=RS256,ttl=-5m",
        "jwt,sign-method=RS256,tll=5m",
        ("jwt,sign-method=RS256,"
         "ttl=1111111111111111111111111111111111111111111111111111111111111111111111m"),
        "jwt,sign-method=RS256,,pub-key=a",
        "simple,x",
    };
    struct auth_token_settings settings = {.ttl_s = -1};
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        assert_int_equal(parse(texts[i], &settings), ST_INVALID);
    assert_int_equal(settings.ttl_s, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simple_needs_nothing_more),
        cmocka_unit_test(jwt_has_keys_a_method_and_a_time),
        cmocka_unit_test(invalid_settings_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
