#include "kube/types/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void assert_written(const struct kube_status *status, bool event, const char *expected)
{
    struct buf text = {0};
    assert_int_equal((event ? kube_status_write_event : kube_status_write)(status, &text), ST_OK);
    assert_int_equal(buf_append(&text, slice_of("", 1)), ST_OK);
    assert_string_equal((const char *)text.ptr, expected);
    buf_fini(&text);
}

static void not_found_names_the_object(void **state)
{
    (void)state;
    struct kube_status status;
    assert_false(kube_fail_not_found(&status, SLICE_LITERAL("apps"), SLICE_LITERAL("deployments"),
                                     SLICE_LITERAL("a")));
    assert_int_equal(kube_status_code(&status), 404);
    assert_written(&status, false,
                   "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":"
                   "\"Failure\",\"message\":\"deployments.apps \\\"a\\\" not found\",\"reason\":"
                   "\"NotFound\",\"details\":{\"name\":\"a\",\"group\":\"apps\",\"kind\":"
                   "\"deployments\"},\"code\":404}");
}

static void conflict_says_what_to_do(void **state)
{
    (void)state;
    struct kube_status status;
    kube_fail_conflict(&status, SLICE_EMPTY, SLICE_LITERAL("configmaps"), SLICE_LITERAL("g1"),
                       NULL);
    assert_int_equal(kube_status_code(&status), 409);
    assert_string_equal(status.message,
                        "Operation cannot be fulfilled on configmaps \"g1\": the object has been "
                        "modified; please apply your changes to the latest version and try again");
}

static void watch_errors_are_sent_as_events(void **state)
{
    (void)state;
    struct kube_status status;
    kube_fail_expired(&status, 5, 469);
    assert_written(&status, true,
                   "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\","
                   "\"metadata\":{},\"status\":\"Failure\",\"message\":\"too old resource version: "
                   "5 (469)\",\"reason\":\"Expired\",\"code\":410}}\n");
    kube_fail_future(&status, 99999999, 276);
    assert_written(&status, true,
                   "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\","
                   "\"metadata\":{},\"status\":\"Failure\",\"message\":\"Timeout: Too large "
                   "resource version: 99999999, current: 276\",\"reason\":\"Timeout\",\"details\":{"
                   "\"causes\":[{\"reason\":\"ResourceVersionTooLarge\",\"message\":\"Too large "
                   "resource version\"}],\"retryAfterSeconds\":1},\"code\":504}}\n");
}

static void success_has_no_code(void **state)
{
    (void)state;
    struct kube_status status = {.name = SLICE_LITERAL("a"), .kind = SLICE_LITERAL("pods")};
    assert_written(&status, false,
                   "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":"
                   "\"Success\",\"details\":{\"name\":\"a\",\"kind\":\"pods\"}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(not_found_names_the_object),
        cmocka_unit_test(conflict_says_what_to_do),
        cmocka_unit_test(watch_errors_are_sent_as_events),
        cmocka_unit_test(success_has_no_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
