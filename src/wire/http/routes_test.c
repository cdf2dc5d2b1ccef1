#include "wire/http/routes.h"

#include "wire/http/exchange_private.h"
#include "wire/http/routes_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void longest_matching_route_is_used(void **state)
{
    (void)state;
    static const struct http_route rows[] = {
        {.path = "/", .on_request = test_site_health},
        {.path = "/a/", .on_request = test_site_health},
        {.path = "/a/b", .on_request = test_site_health},
    };
    AUTO(http_routes_freep) struct http_routes *routes = NULL;
    void *service;
    assert_int_equal(http_routes_new(&routes), ST_OK);
    assert_int_equal(http_routes_add(routes, rows, COUNT_OF(rows), NULL), ST_OK);
    assert_ptr_equal(http_routes_find(routes, SLICE_LITERAL("/x"), &service), &rows[0]);
    assert_ptr_equal(http_routes_find(routes, SLICE_LITERAL("/a/x"), &service), &rows[1]);
    assert_ptr_equal(http_routes_find(routes, SLICE_LITERAL("/a/b"), &service), &rows[2]);
    assert_ptr_equal(http_routes_find(routes, SLICE_LITERAL("/a/bc"), &service), &rows[1]);
    assert_ptr_equal(http_routes_find(routes, SLICE_LITERAL("/a"), &service), &rows[0]);
}

static void route_limits_can_only_lower_the_limit(void **state)
{
    (void)state;
    static const struct http_route rows[] = {
        {.path = "/small", .on_request = test_site_health, .body_bytes_max = 10},
        {.path = "/large", .on_request = test_site_health, .body_bytes_max = 1000},
        {.path = "/usual", .on_request = test_site_health},
    };
    size_t expected[] = {10, 100, 100};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct http_exchange x = {.route = &rows[i]};
        assert_int_equal(http_exchange_body_max(&x, 100), expected[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(longest_matching_route_is_used),
        cmocka_unit_test(route_limits_can_only_lower_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
