#include "kube/policy/security/metrics.h"
#include "kube/policy/security/settings.h"

#include "kube/policy/admission/trees_test.h"

/* The errors, one per line: "field: message". */
static const char *errors_of(const char *text, struct pod_security_settings *settings)
{
    static char lines[4096];
    struct kube_field_errors errors = {.arena = &arena};
    size_t len = 0;
    pod_security_settings_read(tree(text), &arena, settings, &errors);
    assert_false(errors.no_memory);
    lines[0] = 0;
    for (const struct kube_field_error *one = errors.first; one; one = one->next)
        len += (size_t)snprintf(lines + len, sizeof(lines) - len, "%.*s: %.*s\n",
                                SLICE_ARGS(one->field), SLICE_ARGS(one->message));
    return lines;
}

static bool has(const struct pod_names *names, const char *name)
{
    return pod_names_have(names, slice_from_text(name));
}

static void nothing_is_configured_by_default(void **state)
{
    (void)state;
    struct pod_security_settings settings;
    assert_true(pod_security_is_trivial(&pod_security_unconfigured));
    assert_string_equal(errors_of("{}", &settings), "");
    assert_true(pod_security_is_trivial(&settings));
    assert_string_equal(errors_of("{'defaults':{'enforce':''},'exemptions':{}}", &settings), "");
    assert_true(pod_standard_equal(&settings.defaults.enforce,
                                   &pod_security_unconfigured.defaults.enforce));
    assert_false(has(&settings.users, ""));
}

static void defaults_and_exemptions_are_read(void **state)
{
    (void)state;
    struct pod_security_settings settings;
    assert_string_equal(
        errors_of("{'defaults':{'enforce':'baseline','enforce-version':'v1.30','warn':'restricted',"
                  "'audit-version':'v1.7'},'exemptions':{'usernames':['b','a b'],"
                  "'namespaces':['kube-system'],'runtimeClasses':['g.v']}}",
                  &settings),
        "");
    assert_int_equal(settings.defaults.enforce.level, POD_LEVEL_BASELINE);
    assert_int_equal(settings.defaults.enforce.minor, 30);
    assert_int_equal(settings.defaults.warn.level, POD_LEVEL_RESTRICTED);
    assert_int_equal(settings.defaults.warn.minor, POD_VERSION_LATEST);
    assert_int_equal(settings.defaults.audit.level, POD_LEVEL_PRIVILEGED);
    assert_int_equal(settings.defaults.audit.minor, 7);
    assert_true(has(&settings.users, "a b") && has(&settings.users, "b"));
    assert_false(has(&settings.users, "a") || has(&settings.users, ""));
    assert_true(has(&settings.namespaces, "kube-system"));
    assert_true(has(&settings.runtime_classes, "g.v"));
    assert_false(pod_security_is_trivial(&settings));
}

static void what_is_wrong_is_named_as_in_kubernetes(void **state)
{
    (void)state;
    struct pod_security_settings settings;
    assert_string_equal(
        errors_of("{'defaults':{'enforce':'x','warn-version':'v2.1',"
                  "'audit-version':'v1.18446744073709551615'},"
                  "'exemptions':{'usernames':['','u','u'],'namespaces':['a','A'],"
                  "'runtimeClasses':['r','s','r']}}",
                  &settings),
        "defaults.enforce: Invalid value: \"x\": must be one of privileged, baseline, restricted\n"
        "defaults.warn-version: Invalid value: \"v2.1\": must be \"latest\" or \"v1.x\"\n"
        "defaults.audit-version: Invalid value: \"v1.18446744073709551615\": must be \"latest\" or "
        "\"v1.x\"\n"
        "exemptions.namespaces[1]: Invalid value: \"A\": a lowercase RFC 1123 label must consist "
        "of lower case alphanumeric characters or '-', and must start and end with an "
        "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')\n"
        "exemptions.runtimeClasses[2]: Duplicate value: \"r\"\n"
        "exemptions.usernames[0]: Invalid value: \"\": username must not be empty\n"
        "exemptions.usernames[2]: Duplicate value: \"u\"\n");
}

static const char *warning_of(const struct pod_security_settings *settings, const char *labels)
{
    static char text[512];
    struct pod_policy policy;
    struct buf to = {0};
    pod_policy_read(tree(labels), &settings->defaults, &arena, &policy, NULL);
    assert_int_equal(
        pod_security_warn_exempt(settings, SLICE_LITERAL("n"), tree(labels), &policy, &to), ST_OK);
    snprintf(text, sizeof(text), "%.*s", (int)to.len, to.len ? (const char *)to.ptr : "");
    buf_fini(&to);
    return text;
}

#define L(mode) "'pod-security.kubernetes.io/" mode "':"

static void labels_of_an_exempt_namespace_cause_a_warning(void **state)
{
    (void)state;
    struct pod_security_settings settings;
    assert_string_equal(errors_of("{'defaults':{'enforce':'baseline'}}", &settings), "");
    assert_string_equal(warning_of(&settings, "{'a':'b'}"), "");
    assert_string_equal(warning_of(&settings, "{" L("enforce") "'baseline'}"),
                        "namespace \"n\" is exempt from Pod Security, and the policy "
                        "(enforce=baseline:latest) will be ignored");
    assert_string_equal(warning_of(&settings, "{" L("enforce") "'privileged'}"), "");
    assert_string_equal(warning_of(&settings, "{" L("enforce-version") "'v1.9'," L(
                                                  "audit") "'restrict"
                                                           "ed'," L("warn") "'baseline'}"),
                        "namespace \"n\" is exempt from Pod Security, and the policy "
                        "(enforce=baseline:v1.9, audit=restricted:latest, warn=baseline:latest) "
                        "will be ignored");
}

/* -- Metrics -- */

static bool page_has(const struct pod_security_metrics *metrics, const char *row)
{
    struct metric_page page = {0};
    pod_security_metrics_write(metrics, &page);
    assert_int_equal(page.status, ST_OK);
    assert_int_equal(buf_append(&page.text, slice_of("", 1)), ST_OK);
    bool found = strstr((const char *)page.text.ptr, row);
    metric_page_fini(&page);
    return found;
}

static void decisions_are_counted_with_the_labels_of_kubernetes(void **state)
{
    (void)state;
    struct pod_security_metrics *metrics = pod_security_metrics_new();
    const struct pod_request create = {0}, update = {.updates = true, .is_controller = true},
                             debug = {.updates = true, .part = POD_PART_EPHEMERAL_CONTAINERS};
    const struct pod_standard old = {POD_LEVEL_RESTRICTED, 9}, future = {POD_LEVEL_BASELINE, 37},
                              privileged = {POD_LEVEL_PRIVILEGED, 9};
    assert_true(page_has(metrics, "\npod_security_evaluations_total{decision=\"allow\",mode="
                                  "\"enforce\",policy_level=\"privileged\",policy_version="
                                  "\"latest\",request_operation=\"update\",resource=\"pod\","
                                  "subresource=\"\"} 0\n"));
    pod_security_count(metrics, &create, POD_MODE_ENFORCE, &privileged, true);
    pod_security_count(metrics, &update, POD_MODE_WARN, &old, false);
    pod_security_count(metrics, &debug, POD_MODE_AUDIT, &future, false);
    pod_security_count_exempt(metrics, &update);
    pod_security_count_error(metrics, &debug);
    assert_true(page_has(metrics,
                         "policy_level=\"privileged\",policy_version=\"latest\","
                         "request_operation=\"create\",resource=\"pod\",subresource=\"\"} 1\n"));
    assert_true(page_has(
        metrics, "{decision=\"deny\",mode=\"warn\",policy_level=\"restricted\","
                 "policy_version=\"v1.9\",request_operation=\"update\",resource=\"controller\","
                 "subresource=\"\"} 1\n"));
    assert_true(page_has(metrics,
                         "{decision=\"deny\",mode=\"audit\",policy_level=\"baseline\","
                         "policy_version=\"future\",request_operation=\"update\",resource=\"pod\","
                         "subresource=\"ephemeralcontainers\"} 1\n"));
    assert_true(page_has(metrics, "\npod_security_exemptions_total{request_operation=\"update\","
                                  "resource=\"controller\",subresource=\"\"} 1\n"));
    assert_true(page_has(metrics, "\npod_security_errors_total{fatal=\"false\",request_operation="
                                  "\"update\",resource=\"pod\",subresource=\"ephemeralcontainers\""
                                  "} 1\n"));
    pod_security_metrics_free(metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_configured_by_default),
        cmocka_unit_test(defaults_and_exemptions_are_read),
        cmocka_unit_test(what_is_wrong_is_named_as_in_kubernetes),
        cmocka_unit_test(labels_of_an_exempt_namespace_cause_a_warning),
        cmocka_unit_test(decisions_are_counted_with_the_labels_of_kubernetes),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
