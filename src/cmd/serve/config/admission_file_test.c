#include "cmd/serve/config/admission_file.h"

#include "base/temp_dir_test.h"
#include "kube/policy/security/settings.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static char dir[TEMP_DIR_BYTES];
static char path[TEMP_DIR_BYTES + 16];
static struct arena arena;
static struct kube_admission_set set;
static struct kube_webhook_settings webhooks;
static struct error error;

static int setup(void **state)
{
    (void)state;
    temp_dir_make_fast("admission", dir);
    snprintf(path, sizeof(path), "%s/file.yaml", dir);
    arena_init(&arena, NULL, 0, 1 << 20);
    set = kube_admission_default(false);
    webhooks = (struct kube_webhook_settings){0};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_fini(&arena);
    temp_dir_remove(dir);
    return 0;
}

static void write_file(const char *name, const char *text)
{
    char at[TEMP_DIR_BYTES + 32];
    snprintf(at, sizeof(at), "%s/%s", dir, name);
    FILE *file = fopen(at, "w");
    assert_non_null(file);
    assert_int_equal(fputs(text, file) < 0, 0);
    assert_int_equal(fclose(file), 0);
}

#define HEAD                                   \
    "apiVersion: apiserver.config.k8s.io/v1\n" \
    "kind: AdmissionConfiguration\n"
#define POD_SECURITY                                        \
    "apiVersion: pod-security.admission.config.k8s.io/v1, " \
    "kind: PodSecurityConfiguration"

static void accepted(const char *text)
{
    write_file("file.yaml", text);
    if (admission_file_read(path, &arena, &set, &webhooks, &error) != ST_OK)
        fail_msg("%s", error.text);
}

/* The error begins with the path of the file. */
static void refused(const char *text, const char *why)
{
    write_file("file.yaml", text);
    assert_int_not_equal(admission_file_read(path, &arena, &set, &webhooks, &error), ST_OK);
    if (strncmp(error.text, path, strlen(path)) != 0 || !strstr(error.text, why))
        assert_string_equal(error.text, why);
}

static void a_plugin_is_configured_in_the_file(void **state)
{
    (void)state;
    accepted(HEAD "plugins:\n- name: PodSecurity\n  configuration: {" POD_SECURITY ",\n"
                  "    defaults: {enforce: baseline}, exemptions: {usernames: [\"a\\u0062\"]}}\n");
    assert_int_equal(set.pod_security->defaults.enforce.level, POD_LEVEL_BASELINE);
    assert_true(pod_names_have(&set.pod_security->users, SLICE_LITERAL("ab")));
}

static void a_plugin_is_configured_in_a_file_of_its_own(void **state)
{
    (void)state;
    write_file("own.json", "{\"kind\":\"PodSecurityConfiguration\",\"apiVersion\":"
                           "\"pod-security.admission.config.k8s.io/v1alpha1\",\"defaults\":"
                           "{\"warn\":\"baseline\"}}");
    accepted("{\"apiVersion\":\"apiserver.k8s.io/v1alpha1\",\"kind\":\"AdmissionConfiguration\","
             "\"plugins\":[{\"name\":\"PodSecurity\",\"path\":\"own.json\"}]}");
    assert_int_equal(set.pod_security->defaults.warn.level, POD_LEVEL_BASELINE);
    refused(HEAD "plugins: [{name: PodSecurity, path: none}]", "none");
    write_file("empty", "");
    set = kube_admission_default(false);
    accepted(HEAD "plugins: [{name: PodSecurity, path: empty}]");
    assert_ptr_equal(set.pod_security, &pod_security_unconfigured);
}

static void what_is_not_read_is_as_in_kubernetes(void **state)
{
    (void)state;
    accepted(HEAD);
    accepted(HEAD "plugins: []");
    accepted(HEAD "plugins:\n- {name: NoSuchPlugin, configuration: {a: b}}\n- {name: Priority}\n"
                  "- {name: DenyServiceExternalIPs, configuration: {a: b}}\n"
                  "- {configuration: {a: b}}\n");
    accepted(HEAD "plugins:\n- name: PodSecurity\n  configuration: {" POD_SECURITY "}\n"
                  "- {name: PodSecurity, configuration: {a: b}}\n");
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    refused("", "Object 'Kind' is missing");
    refused("a: b", "Object 'Kind' is missing");
    refused("[]", "json: cannot unmarshal array into Go value of type AdmissionConfiguration");
    refused("kind: AdmissionConfiguration\napiVersion: v7",
            "no kind \"AdmissionConfiguration\" is registered for version \"v7\"");
    refused(HEAD "plugins:\n- nam: a\nmore: 1\n",
            "strict decoding error: unknown field \"plugins[0].nam\", unknown field \"more\"");
    refused(HEAD "plugins: []\nplugins: []\n", "strict decoding error: yaml: line ");
    refused(HEAD "plugins: {}", "cannot unmarshal object into Go struct field "
                                "AdmissionConfiguration.plugins of type "
                                "[]AdmissionPluginConfiguration");
    refused(HEAD "plugins: [{name: 7}]",
            "json: cannot unmarshal number into Go struct field "
            "AdmissionPluginConfiguration.plugins[0].name of type string");
    refused(HEAD "plugins: [{name: PodSecurity, configuration: 7}]",
            "PodSecurity: json: cannot unmarshal number into Go value of type "
            "PodSecurityConfiguration");
    refused(HEAD "plugins: [{name: PodSecurity, configuration: {" POD_SECURITY ", default: {}}}]",
            "PodSecurity: strict decoding error: unknown field \"default\"");
    refused(HEAD "plugins: [{name: PodSecurity, configuration: {" POD_SECURITY
                 ", defaults: {enforce: x, warn: z}}}]",
            "PodSecurity: [defaults.enforce: Invalid value: \"x\": must be one of privileged, "
            "baseline, restricted, defaults.warn: Invalid value: \"z\": must be one of privileged, "
            "baseline, restricted]");
    refused(HEAD "plugins: [{name: Priority, configuration: {a: b}}]",
            "Priority: this plugin cannot be configured: remove it here");
    refused(HEAD "plugins: [{name: EventRateLimit, path: x}]",
            "EventRateLimit: Vigil does not have this plugin");
}

static void files_and_lists_have_limits(void **state)
{
    (void)state;
    AUTO(buf_fini) struct buf text = {0};
    assert_int_equal(buf_append_text(&text, HEAD "plugins:\n"), ST_OK);
    for (int i = 0; i <= 100; i++)
        assert_int_equal(buf_append_text(&text, "- {name: a}\n"), ST_OK);
    assert_int_equal(buf_append(&text, slice_of("", 1)), ST_OK);
    refused((const char *)text.ptr, "more than 100 plugins");
    text.len--;
    while (text.len <= 1 << 20)
        assert_int_equal(buf_append_text(&text, "# a comment of some length\n"), ST_OK);
    assert_int_equal(buf_append(&text, slice_of("", 1)), ST_OK);
    write_file("file.yaml", (const char *)text.ptr);
    assert_int_equal(admission_file_read(path, &arena, &set, &webhooks, &error), ST_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_plugin_is_configured_in_the_file, setup, teardown),
        cmocka_unit_test_setup_teardown(a_plugin_is_configured_in_a_file_of_its_own, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_is_not_read_is_as_in_kubernetes, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_wrong_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(files_and_lists_have_limits, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
