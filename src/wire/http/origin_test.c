#include "wire/http/origin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void loopback_hosts_are_recognized(void **state)
{
    (void)state;
    static const char *const yes[] = {"localhost", "localhost:2379", "LocalHost:1",
                                      "127.0.0.1", "127.0.0.1:2379", "127.1.2.3:80",
                                      "[::1]",     "[::1]:2379"};
    static const char *const no[] = {"",
                                     "evil.example",
                                     "evil.example:2379",
                                     "localhost.evil.example",
                                     "127.0.0.1.evil.example",
                                     "127.0.0.1@evil.example",
                                     "evil.example:localhost",
                                     "10.0.0.1:2379",
                                     "0.0.0.0:2379",
                                     "128.0.0.1",
                                     "[::2]:1",
                                     "[::1",
                                     "localhost:1:2",
                                     "1270.0.0.1",
                                     "127.0.0.1127.0.0.1127.0.0.1127.0.0.1127.0.0.1127.0.0.1"};
    for (size_t i = 0; i < COUNT_OF(yes); i++)
        assert_true(http_host_is_loopback(slice_from_text(yes[i])));
    for (size_t i = 0; i < COUNT_OF(no); i++)
        assert_false(http_host_is_loopback(slice_from_text(no[i])));
}

static bool is_foreign(const char *host, const char *origin, bool secure)
{
    struct http_field field = {.name = SLICE_LITERAL("Origin"),
                               .value = slice_from_text(origin ? origin : "")};
    struct http_request request = {.host = slice_from_text(host),
                                   .secure = secure,
                                   .fields = &field,
                                   .field_count = origin ? 1 : 0};
    struct slice reported = SLICE_EMPTY;
    bool foreign = http_is_foreign(&request, &reported);
    if (foreign)
        assert_true(slice_equal(reported, slice_from_text(origin)));
    return foreign;
}

static void only_a_page_of_the_same_origin_is_not_foreign(void **state)
{
    (void)state;
    assert_false(is_foreign("localhost:2379", NULL, false));
    assert_false(is_foreign("localhost:2379", "http://localhost:2379", false));
    assert_false(is_foreign("localhost:2379", "https://localhost:2379", true));
    static const char *const foreign[] = {
        "",
        "null",
        "http://",
        "http://localhost",
        "http://localhost:3000",
        "https://localhost:2379",
        "http://127.0.0.1:2379",
        "http://evil.example",
        "localhost:2379",
    };
    for (size_t i = 0; i < COUNT_OF(foreign); i++)
        assert_true(is_foreign("localhost:2379", foreign[i], false));
    assert_true(is_foreign("", "http://", false));
}

static void embedded_requests_of_pages_are_foreign_without_an_origin(void **state)
{
    (void)state;
    static const struct {
        const char *site;
        bool foreign;
    } rows[] = {{"cross-site", true}, {"same-site", true}, {"same-origin", false}, {"none", false}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct http_field fields[] = {
            {.name = SLICE_LITERAL("Sec-Fetch-Site"), .value = slice_from_text(rows[i].site)},
            {.name = SLICE_LITERAL("Origin"), .value = SLICE_LITERAL("http://localhost:2379")}};
        struct http_request request = {
            .host = SLICE_LITERAL("localhost:2379"), .fields = fields, .field_count = 1};
        struct slice reported;
        assert_int_equal(http_is_foreign(&request, &reported), rows[i].foreign);
        request.field_count = 2; /* with an Origin, that field decides */
        assert_false(http_is_foreign(&request, &reported));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loopback_hosts_are_recognized),
        cmocka_unit_test(only_a_page_of_the_same_origin_is_not_foreign),
        cmocka_unit_test(embedded_requests_of_pages_are_foreign_without_an_origin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
