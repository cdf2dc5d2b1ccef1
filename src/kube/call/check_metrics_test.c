#include "kube/call/check_metrics.h"

#include "kube/call/label_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define TOTAL "apiserver_validating_admission_policy_check_total{policy="
#define REST "error_type=\"invalid_error\",enforcement_action=\"deny\"} "

static struct kube_label_rows *metrics;

static void count(const char *policy)
{
    kube_check_count(metrics, &(struct kube_check){.policy = slice_from_text(policy),
                                                   .binding = SLICE_LITERAL("b"),
                                                   .error_type = "invalid_error",
                                                   .action = "deny",
                                                   .elapsed_ns = 600});
}

static void assert_page_has(const char *line)
{
    struct metric_page page = {0};
    kube_label_rows_write(metrics, &page);
    assert_int_equal(page.status, ST_OK);
    assert_int_equal(buf_append(&page.text, slice_of("", 1)), ST_OK);
    if (!strstr((const char *)page.text.ptr, line))
        fail_msg("%s is not in %s", line, (const char *)page.text.ptr);
    metric_page_fini(&page);
}

static void policies_are_counted_by_their_names(void **state)
{
    (void)state;
    metrics = kube_check_metrics_new();
    count("p");
    count("p");
    count("a\"b");
    assert_page_has(TOTAL "\"p\",policy_binding=\"b\"," REST "2\n");
    assert_page_has(TOTAL "\"a\\\"b\",policy_binding=\"b\"," REST "1\n");
    assert_page_has("enforcement_action=\"deny\",le=\"0.001\"} 2\n");
    kube_label_rows_free(metrics);
}

static void mutations_have_metrics_of_their_own(void **state)
{
    (void)state;
    metrics = kube_check_metrics_new();
    count("p");
    kube_check_count(metrics, &(struct kube_check){.policy = SLICE_LITERAL("p"),
                                                   .binding = SLICE_LITERAL("b"),
                                                   .error_type = "no_error",
                                                   .elapsed_ns = 600});
    assert_page_has(TOTAL "\"p\",policy_binding=\"b\"," REST "1\n");
    assert_page_has("apiserver_mutating_admission_policy_check_total{policy=\"p\","
                    "policy_binding=\"b\",error_type=\"no_error\"} 1\n");
    assert_page_has("apiserver_mutating_admission_policy_check_duration_seconds_count{policy=\"p\","
                    "policy_binding=\"b\",error_type=\"no_error\"} 1\n");
    kube_label_rows_free(metrics);
}

static void beyond_the_limit_policies_share_a_row(void **state)
{
    char name[32];
    (void)state;
    metrics = kube_check_metrics_new();
    for (int i = 0; i < KUBE_CHECK_ROWS_MAX + 3; i++) {
        snprintf(name, sizeof(name), "p%d", i);
        count(name);
    }
    assert_page_has(TOTAL "\"p999\",policy_binding=\"b\"," REST "1\n");
    assert_page_has(TOTAL "\"other\",policy_binding=\"other\"," REST "3\n");
    kube_label_rows_free(metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policies_are_counted_by_their_names),
        cmocka_unit_test(mutations_have_metrics_of_their_own),
        cmocka_unit_test(beyond_the_limit_policies_share_a_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
