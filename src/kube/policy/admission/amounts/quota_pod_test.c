#include "kube/policy/admission/amounts/quota_pod.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const char usual[] =
    "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[]},\"status\":{\"phase\":\"Running\","
    "\"containerStatuses\":[{\"name\":\"c\",\"ready\":true,\"resources\":{\"requests\":{\"cpu\":"
    "\"1\"}}}],\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}";

/* The usual pod with one text in place of another. */
static bool is_same_with(const char *old, const char *new)
{
    char text[1024];
    const char *at = strstr(usual, old);
    assert_non_null(at);
    snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - usual), usual, new, at + strlen(old));
    bool same = kube_quota_pod_is_same(slice_from_text(text), slice_from_text(usual));
    assert_int_equal(kube_quota_pod_is_same(slice_from_text(usual), slice_from_text(text)), same);
    return same;
}

static void test_heartbeats_make_no_difference(void **state)
{
    (void)state;
    assert_true(is_same_with("\"ready\":true", "\"ready\":false,\"restartCount\":7"));
    assert_true(is_same_with("\"status\":\"True\"", "\"lastProbeTime\":null,\"status\":\"False\""));
    assert_true(is_same_with("{\"name\":\"p\"}", "{\"name\":\"p\",\"labels\":{\"a\":\"b\"}}"));
}

static void test_what_changes_usage_is_noticed(void **state)
{
    (void)state;
    assert_false(is_same_with("Running", "Failed"));
    assert_false(is_same_with("\"containers\":[]", "\"activeDeadlineSeconds\":1"));
    assert_false(is_same_with("\"cpu\":\"1\"", "\"cpu\":\"2\""));
    assert_false(is_same_with("\"ready\":true", "\"allocatedResources\":{\"cpu\":\"3\"}"));
    assert_false(is_same_with("\"type\":\"Ready\"", "\"type\":\"PodResizePending\""));
    assert_false(is_same_with("\"phase\"", "\"qosClass\":\"BestEffort\",\"phase\""));
    assert_false(is_same_with("{\"name\":\"p\"}",
                              "{\"name\":\"p\",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"}"));
}

static void test_what_cannot_be_read_may_differ(void **state)
{
    (void)state;
    for (size_t len = 0; len < sizeof(usual) - 1; len++)
        assert_false(kube_quota_pod_is_same(slice_of(usual, len), slice_from_text(usual)));
    assert_false(is_same_with("\"metadata\"", "\"meta\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heartbeats_make_no_difference),
        cmocka_unit_test(test_what_changes_usage_is_noticed),
        cmocka_unit_test(test_what_cannot_be_read_may_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
