#include "kube/policy/security/review.h"
#include "kube/policy/security/settings.h"

#include "kube/policy/admission/trees_test.h"

#define LATEST POD_VERSION_LATEST

/* What is found in a pod with this spec, and perhaps these annotations. */
static const char *found(enum pod_level level, int64_t minor, const char *spec,
                         const char *annotations)
{
    static char text[2048];
    const struct pod_standard standard = {level, minor};
    const struct json_node *metadata = annotations ? tree(annotations) : NULL;
    struct buf to = {0};
    assert_int_equal(pod_review(&standard, metadata, tree(spec), &arena, true, &to), ST_OK);
    snprintf(text, sizeof(text), "%.*s", (int)to.len, to.len ? (const char *)to.ptr : "");
    buf_fini(&to);
    return text;
}

#define C(rest) "{'containers':[{'name':'a'" rest "},{'name':'b'}]}"
#define S(rest) C(",'securityContext':{" rest "}")

static void baseline_names_what_is_forbidden(void **state)
{
    static const struct {
        int64_t minor;
        const char *spec, *text;
    } cases[] = {
        {LATEST, C(""), ""},
        {LATEST, S("'privileged':true"),
         "privileged (container \"a\" must not set securityContext.privileged=true)"},
        {LATEST, "{'hostPID':true,'hostNetwork':true,'hostIPC':false}",
         "host namespaces (hostNetwork=true, hostPID=true)"},
        {LATEST, "{'volumes':[{'name':'v','hostPath':{}},{'name':'w','hostPath':null}]}",
         "hostPath volumes (volume \"v\")"},
        {LATEST, C(",'ports':[{'hostPort':90},{'hostPort':80},{'hostPort':90},{'hostPort':0}]"),
         "hostPort (container \"a\" uses hostPorts 80, 90)"},
        {LATEST, C(",'livenessProbe':{'httpGet':{'host':'h'}}"),
         "probe or lifecycle host (container \"a\" uses probe or lifecycle host \"h\")"},
        {33, C(",'livenessProbe':{'httpGet':{'host':'h'}}"), ""},
        {LATEST, S("'capabilities':{'add':['SYS_ADMIN','CHOWN','NET_RAW','NET_RAW']}"),
         "non-default capabilities (container \"a\" must not include \"NET_RAW\", \"SYS_ADMIN\" in "
         "securityContext.capabilities.add)"},
        {LATEST, "{'securityContext':{'seLinuxOptions':{'type':'x','user':'u','role':'r'}}}",
         "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type \"x\"; user may "
         "not be set; role may not be set)"},
        {30, S("'seLinuxOptions':{'type':'container_engine_t'}"),
         "seLinuxOptions (container \"a\" set forbidden securityContext.seLinuxOptions: type "
         "\"container_engine_t\")"},
        {31, S("'seLinuxOptions':{'type':'container_engine_t'}"), ""},
        {LATEST, "{'securityContext':{'sysctls':[{'name':'a'},{'name':'net.ipv4.tcp_rmem'}]}}",
         "forbidden sysctls (a)"},
        {31, "{'securityContext':{'sysctls':[{'name':'net.ipv4.tcp_rmem'}]}}",
         "forbidden sysctls (net.ipv4.tcp_rmem)"},
        {LATEST, "{'securityContext':{'windowsOptions':{'hostProcess':true}}}",
         "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)"},
        {LATEST,
         "{'securityContext':{'seccompProfile':{'type':'Unconfined'}},'initContainers':[{'name':"
         "'i','securityContext':{'seccompProfile':{'type':'Unconfined'}}}]}",
         "seccompProfile (pod and container \"i\" must not set securityContext.seccompProfile.type "
         "to \"Unconfined\")"},
        {34,
         "{'hostUsers':false,'ephemeralContainers':[{'name':'e','securityContext':{'procMount':"
         "'Unmasked'}}]}",
         "procMount (container \"e\" must not set securityContext.procMount to \"Unmasked\")"},
        {35,
         "{'hostUsers':false,'ephemeralContainers':[{'name':'e','securityContext':{'procMount':"
         "'Unmasked'}}]}",
         ""},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_string_equal(found(POD_LEVEL_BASELINE, cases[i].minor, cases[i].spec, NULL),
                            cases[i].text);
}

#define FINE_CONTEXT                                                    \
    "'allowPrivilegeEscalation':false,'capabilities':{'drop':['ALL']}," \
    "'runAsNonRoot':true,'seccompProfile':{'type':'RuntimeDefault'}"
#define ONE(context, rest) "{'containers':[{'name':'a','securityContext':{" context "}}]" rest "}"

static void restricted_names_what_is_missing(void **state)
{
    static const struct {
        int64_t minor;
        const char *spec, *text;
    } cases[] = {
        {LATEST, ONE(FINE_CONTEXT, ""), ""},
        {LATEST, ONE("", ""),
         "allowPrivilegeEscalation != false (container \"a\" must set "
         "securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "
         "\"a\" must set securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod "
         "or container \"a\" must set securityContext.runAsNonRoot=true), seccompProfile (pod or "
         "container \"a\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or "
         "\"Localhost\")"},
        {LATEST, ONE(FINE_CONTEXT ",'runAsUser':0", ""),
         "runAsUser=0 (container \"a\" must not set runAsUser=0)"},
        {22, ONE(FINE_CONTEXT ",'runAsUser':0", ""), ""},
        {35, ONE(FINE_CONTEXT ",'runAsUser':0", ",'hostUsers':false"), ""},
        {LATEST, ONE(FINE_CONTEXT, ",'securityContext':{'runAsNonRoot':false}"),
         "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)"},
        {LATEST, ONE("'runAsNonRoot':true", ",'os':{'name':'windows'}"), ""},
        {24,
         ONE("'runAsNonRoot':true,'seccompProfile':{'type':'Localhost'},"
             "'allowPrivilegeEscalation':false,'capabilities':{'add':['CHOWN',"
             "'NET_BIND_SERVICE']}",
             ",'os':{'name':'windows'}"),
         "unrestricted capabilities (container \"a\" must set "
         "securityContext.capabilities.drop=[\"ALL\"]; container \"a\" must not include \"CHOWN\" "
         "in securityContext.capabilities.add)"},
        {LATEST,
         ONE(FINE_CONTEXT, ",'volumes':[{'name':'v','nfs':{}},{'name':'w','hostPath':{}},"
                           "{'name':'x','emptyDir':{}},{'name':'y'}]"),
         "restricted volume types (volumes \"v\", \"w\", \"y\" use restricted volume types "
         "\"hostPath\", \"nfs\", \"unknown\")"},
        {7, ONE("'runAsNonRoot':true", ""), ""},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_string_equal(found(POD_LEVEL_RESTRICTED, cases[i].minor, cases[i].spec, NULL),
                            cases[i].text);
}

static void profiles_may_be_annotations(void **state)
{
    (void)state;
    assert_string_equal(
        found(POD_LEVEL_BASELINE, LATEST, "{}",
              "{'annotations':{'container.apparmor.security.beta.kubernetes.io/b':'x\\ny',"
              "'container.apparmor.security.beta.kubernetes.io/a':'runtime/default'}}"),
        "forbidden AppArmor profile (annotation must not set AppArmor profile type to "
        "\"container.apparmor.security.beta.kubernetes.io/b=\"x\\ny\"\")");
    assert_string_equal(
        found(POD_LEVEL_BASELINE, 18, C(""),
              "{'annotations':{'seccomp.security.alpha.kubernetes.io/pod':'unconfined',"
              "'container.seccomp.security.alpha.kubernetes.io/a':'localhost/x',"
              "'container.seccomp.security.alpha.kubernetes.io/b':''}}"),
        "seccompProfile (forbidden annotations "
        "container.seccomp.security.alpha.kubernetes.io/b=\"\", "
        "seccomp.security.alpha.kubernetes.io/pod=\"unconfined\")");
    assert_string_equal(
        found(POD_LEVEL_BASELINE, LATEST, "{}",
              "{'annotations':{'seccomp.security.alpha.kubernetes.io/pod':'unconfined'}}"),
        "");
}

static void privileged_allows_everything(void **state)
{
    (void)state;
    assert_string_equal(
        found(POD_LEVEL_PRIVILEGED, LATEST, "{'hostPID':true,'hostIPC':true}", NULL), "");
}

static void details_can_be_left_out(void **state)
{
    const struct pod_standard standard = {POD_LEVEL_BASELINE, LATEST};
    struct buf to = {0};
    (void)state;
    assert_int_equal(pod_review(&standard, NULL,
                                tree("{'hostPID':true,'containers':[{'name':'a',"
                                     "'securityContext':{'privileged':true}}]}"),
                                &arena, false, &to),
                     ST_OK);
    assert_true(slice_is(buf_slice(&to), "host namespaces, privileged"));
    buf_fini(&to);
}

/* A pod is never taken for one that complies because something could not be stored. */
static void a_review_without_memory_fails(void **state)
{
    const struct pod_standard standard = {POD_LEVEL_RESTRICTED, LATEST};
    const struct json_node *spec = tree(ONE("'seLinuxOptions':{'type':'a\\u000ab'}", ""));
    struct arena tiny;
    struct buf to = {0};
    (void)state;
    arena_init(&tiny, NULL, 0, 0);
    assert_int_equal(pod_review(&standard, NULL, spec, &tiny, true, &to), ST_NOMEM);
    arena_fini(&tiny);
    buf_fini(&to);
}

/* -- Policies -- */

static void labels_choose_the_standards(void **state)
{
    static const struct {
        const char *labels, *enforce, *warn, *audit;
        bool fine;
    } cases[] = {
        {"{}", "privileged:latest", "privileged:latest", "privileged:latest", true},
        {"{'pod-security.kubernetes.io/enforce':'restricted',"
         "'pod-security.kubernetes.io/enforce-version':'v1.30'}",
         "restricted:v1.30", "restricted:v1.30", "privileged:latest", true},
        {"{'pod-security.kubernetes.io/enforce':'restricted',"
         "'pod-security.kubernetes.io/warn-version':'v1.8'}",
         "restricted:latest", "restricted:v1.8", "privileged:latest", true},
        {"{'pod-security.kubernetes.io/enforce':'restricted',"
         "'pod-security.kubernetes.io/warn':'baseline'}",
         "restricted:latest", "baseline:latest", "privileged:latest", true},
        {"{'pod-security.kubernetes.io/enforce':'Restricted',"
         "'pod-security.kubernetes.io/audit':'x','pod-security.kubernetes.io/warn':''}",
         "restricted:latest", "privileged:latest", "privileged:latest", false},
        {"{'pod-security.kubernetes.io/enforce':'baseline',"
         "'pod-security.kubernetes.io/enforce-version':'v1.08'}",
         "baseline:latest", "baseline:latest", "privileged:latest", false},
        {"{'pod-security.kubernetes.io/enforce-version':'v2.0'}", "privileged:latest",
         "privileged:latest", "privileged:latest", false},
        {"{'pod-security.kubernetes.io/enforce-version':'v1.9223372036854775808'}",
         "privileged:latest", "privileged:latest", "privileged:latest", false},
        {"{'pod-security.kubernetes.io/enforce-version':'v1.999999999999999999'}",
         "privileged:v1.999999999999999999", "privileged:latest", "privileged:latest", true},
    };
    const struct pod_policy defaults = pod_security_unconfigured.defaults;
    char text[POD_STANDARD_BYTES];
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pod_policy policy;
        assert_int_equal(pod_policy_read(tree(cases[i].labels), &defaults, &arena, &policy, NULL),
                         cases[i].fine);
        assert_string_equal(pod_standard_text(&policy.enforce, text), cases[i].enforce);
        assert_string_equal(pod_standard_text(&policy.warn, text), cases[i].warn);
        assert_string_equal(pod_standard_text(&policy.audit, text), cases[i].audit);
    }
}

static void labels_that_cannot_be_read_are_errors(void **state)
{
    const struct pod_policy defaults = pod_security_unconfigured.defaults;
    struct kube_field_errors errors = {.arena = &arena};
    struct pod_policy policy;
    (void)state;
    assert_false(pod_policy_read(tree("{'pod-security.kubernetes.io/warn-version':'1.2',"
                                      "'pod-security.kubernetes.io/enforce':'none'}"),
                                 &defaults, &arena, &policy, &errors));
    assert_int_equal(errors.count, 2);
    assert_true(
        slice_is(errors.first->field, "metadata.labels[pod-security.kubernetes.io/enforce]"));
    assert_true(slice_is(errors.first->message,
                         "Invalid value: \"none\": must be one of privileged, baseline, "
                         "restricted"));
    assert_true(
        slice_is(errors.last->message, "Invalid value: \"1.2\": must be \"latest\" or \"v1.x\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(baseline_names_what_is_forbidden, set_up, tear_down),
        cmocka_unit_test_setup_teardown(restricted_names_what_is_missing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(profiles_may_be_annotations, set_up, tear_down),
        cmocka_unit_test_setup_teardown(privileged_allows_everything, set_up, tear_down),
        cmocka_unit_test_setup_teardown(details_can_be_left_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_review_without_memory_fails, set_up, tear_down),
        cmocka_unit_test_setup_teardown(labels_choose_the_standards, set_up, tear_down),
        cmocka_unit_test_setup_teardown(labels_that_cannot_be_read_are_errors, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
