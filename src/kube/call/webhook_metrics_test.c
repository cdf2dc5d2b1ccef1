#include "kube/call/webhook_metrics.h"

#include "kube/call/label_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define W "name=\"w.example.com\","
#define P "apiserver_admission_"

static struct kube_label_rows *metrics;

static int set_up(void **state)
{
    (void)state;
    metrics = kube_webhook_metrics_new();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kube_label_rows_free(metrics);
    return 0;
}

static void count(enum kube_webhook_outcome outcome, bool is_mutating, unsigned code)
{
    kube_webhook_metrics_call(metrics,
                              &(struct kube_webhook_count){.name = SLICE_LITERAL("w.example.com"),
                                                           .is_mutating = is_mutating,
                                                           .operation = "CREATE",
                                                           .outcome = outcome,
                                                           .code = code,
                                                           .elapsed_ns = 30000000});
}

/* NULL ends the lines. */
static void assert_lines(const char *const *lines)
{
    struct metric_page page = {0};
    kube_label_rows_write(metrics, &page);
    assert_int_equal(page.status, ST_OK);
    assert_int_equal(buf_append(&page.text, slice_of("", 1)), ST_OK);
    for (; *lines; lines++)
        if (!strstr((const char *)page.text.ptr, *lines))
            fail_msg("%s is not in %s", *lines, (const char *)page.text.ptr);
    metric_page_fini(&page);
}

static size_t lines_with(const char *text)
{
    struct metric_page page = {0};
    size_t found = 0;
    kube_label_rows_write(metrics, &page);
    assert_int_equal(buf_append(&page.text, slice_of("", 1)), ST_OK);
    for (const char *at = (const char *)page.text.ptr; (at = strstr(at, text)); at++)
        found++;
    metric_page_fini(&page);
    return found;
}

static void calls_are_counted_as_by_kubernetes(void **state)
{
    (void)state;
    count(KUBE_WEBHOOK_ADMITTED, true, 0);
    count(KUBE_WEBHOOK_ADMITTED, true, 0);
    count(KUBE_WEBHOOK_DENIED, false, 403);
    count(KUBE_WEBHOOK_DENIED, false, 700);
    count(KUBE_WEBHOOK_FAILED, true, 503);
    count(KUBE_WEBHOOK_FAILED_OPEN, false, 503);
    count(KUBE_WEBHOOK_BROKEN, true, 500);
    assert_lines((const char *const[]){
        "# TYPE " P "webhook_admission_duration_seconds histogram\n",
        "# TYPE " P "webhook_rejection_count counter\n",
        P "webhook_request_total{" W
          "type=\"admit\",operation=\"CREATE\",code=\"200\",rejected=\"false\"} 2\n",
        P "webhook_request_total{" W
          "type=\"validating\",operation=\"CREATE\",code=\"403\",rejected=\"true\"} 1\n",
        P "webhook_request_total{" W
          "type=\"validating\",operation=\"CREATE\",code=\"600\",rejected=\"true\"} 1\n",
        P "webhook_request_total{" W
          "type=\"admit\",operation=\"CREATE\",code=\"503\",rejected=\"true\"} 1\n",
        P "webhook_request_total{" W
          "type=\"validating\",operation=\"CREATE\",code=\"503\",rejected=\"false\"} 1\n",
        P "webhook_request_total{" W
          "type=\"admit\",operation=\"CREATE\",code=\"0\",rejected=\"true\"} 1\n",
        P "webhook_admission_duration_seconds_bucket{" W
          "type=\"admit\",operation=\"CREATE\",rejected=\"false\",le=\"0.025\"} 0\n",
        P "webhook_admission_duration_seconds_bucket{" W
          "type=\"admit\",operation=\"CREATE\",rejected=\"false\",le=\"0.1\"} 2\n",
        P "webhook_admission_duration_seconds_bucket{" W
          "type=\"admit\",operation=\"CREATE\",rejected=\"false\",le=\"25\"} 2\n",
        P "webhook_admission_duration_seconds_sum{" W
          "type=\"admit\",operation=\"CREATE\",rejected=\"false\"} 0.06\n",
        P "webhook_rejection_count{" W "type=\"validating\",operation=\"CREATE\","
          "error_type=\"no_error\",rejection_code=\"403\"} 1\n",
        P "webhook_rejection_count{" W "type=\"admit\",operation=\"CREATE\","
          "error_type=\"calling_webhook_error\",rejection_code=\"503\"} 1\n",
        P "webhook_rejection_count{" W "type=\"admit\",operation=\"CREATE\","
          "error_type=\"apiserver_internal_error\",rejection_code=\"0\"} 1\n",
        P "webhook_fail_open_count{" W "type=\"validating\"} 1\n", NULL});
    assert_int_equal(lines_with(P "webhook_rejection_count{"), 4);
    assert_int_equal(lines_with(P "webhook_fail_open_count{"), 1);
}

static void conditions_are_counted_as_by_kubernetes(void **state)
{
    (void)state;
    struct kube_conditions_count conditions = {.name = SLICE_LITERAL("w.example.com"),
                                               .is_mutating = true,
                                               .operation = "UPDATE",
                                               .errors = 2,
                                               .elapsed_ns = 3000000};
    kube_webhook_metrics_conditions(metrics, &conditions);
    conditions.errors = 0;
    conditions.is_excluded = true;
    kube_webhook_metrics_conditions(metrics, &conditions);
    conditions.is_mutating = false;
    conditions.errors = 1;
    kube_webhook_metrics_conditions(metrics, &conditions);
    conditions = (struct kube_conditions_count){
        .name = SLICE_LITERAL("p"), .is_policy = true, .is_mutating = true, .operation = "DELETE"};
    kube_webhook_metrics_conditions(metrics, &conditions);
#define OF_WEBHOOK W "kind=\"webhook\",type=\"admit\",operation=\"UPDATE\""
    assert_lines((const char *const[]){
        P "match_condition_evaluation_errors_total{" OF_WEBHOOK "} 2\n",
        P "match_condition_exclusions_total{" OF_WEBHOOK "} 1\n",
        P "match_condition_exclusions_total{" W
          "kind=\"webhook\",type=\"validate\",operation=\"UPDATE\"} 1\n",
        P "match_condition_evaluation_errors_total{" W
          "kind=\"webhook\",type=\"validating\",operation=\"UPDATE\"} 1\n",
        P "match_condition_evaluation_seconds_bucket{" OF_WEBHOOK ",le=\"0.001\"} 0\n",
        P "match_condition_evaluation_seconds_bucket{" OF_WEBHOOK ",le=\"0.005\"} 2\n",
        P "match_condition_evaluation_seconds_count{name=\"p\",kind=\"policy\",type=\"validate\","
          "operation=\"DELETE\"} 1\n",
        NULL});
    assert_int_equal(lines_with(P "match_condition_evaluation_errors_total{"), 2);
}

static void without_a_set_nothing_is_counted(void **state)
{
    (void)state;
    kube_webhook_metrics_call(NULL, &(struct kube_webhook_count){.operation = "CREATE"});
    kube_webhook_metrics_conditions(NULL, &(struct kube_conditions_count){.operation = "CREATE"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(calls_are_counted_as_by_kubernetes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(conditions_are_counted_as_by_kubernetes, set_up, tear_down),
        cmocka_unit_test(without_a_set_nothing_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
