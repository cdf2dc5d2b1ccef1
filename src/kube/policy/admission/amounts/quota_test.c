#include "kube/policy/admission/amounts/quota.h"

#include "base/buf.h"
#include "kube/policy/admission/amounts/quota_usage.h"
#include "kube/policy/admission/trees_test.h"

static const struct kube_kind *kind_of(const char *group, const char *plural)
{
    const struct kube_kind *kind =
        kube_builtin_find(slice_from_text(group), SLICE_LITERAL("v1"), slice_from_text(plural));
    assert_non_null(kind);
    return kind;
}

struct write {
    const char *group, *plural, *subresource, *object, *old;
    const char *scopes; /* scopes in the spec of the quota */
    const char *hard, *used;
};

/* What happens to the quota: its new usage, why the write is refused, or "" if nothing changes. */
static const char *outcome(const struct write *given)
{
    static char text[2048];
    struct kube_status status = {0};
    const struct kube_admission_write write = {
        .arena = &arena,
        .kind = kind_of(given->group, given->plural),
        .subresource = slice_from_text(given->subresource ? given->subresource : ""),
        .operation = given->old ? KUBE_ADMISSION_UPDATE : KUBE_ADMISSION_CREATE,
        .name = SLICE_LITERAL("x"),
        .object = tree(given->object),
        .old = tree(given->old),
        .status = &status,
    };
    AUTO(buf_fini) struct buf used = {0};
    struct json_node *charged;
    bool matches = true;
    if (!kube_quota_applies(write.kind, write.subresource, write.object, write.old))
        return "";
    snprintf(text, sizeof(text), "{'spec':{%s},'status':{'hard':{%s},'used':{%s}}}",
             given->scopes ? given->scopes : "", given->hard, given->used);
    const struct json_node *quota = tree(text);
    if (!kube_quota_matches(&write, SLICE_LITERAL("q"), quota, &matches) ||
        (matches && !kube_quota_charge(&write, SLICE_LITERAL("q"), quota, &charged))) {
        const char *why = strstr(status.message, "is forbidden: ");
        assert_int_equal(status.reason, KUBE_FORBIDDEN);
        assert_non_null(why);
        snprintf(text, sizeof(text), "%s", why + strlen("is forbidden: "));
        return text;
    }
    if (!matches || !charged)
        return "";
    assert_int_equal(json_tree_write(json_node_path(charged, "status.used"), &used), ST_OK);
    snprintf(text, sizeof(text), "%.*s", SLICE_ARGS(buf_slice(&used)));
    for (char *at = text; *at; at++)
        *at = *at == '"' ? '\'' : *at;
    return text;
}

#define EXPECT(text, ...) assert_string_equal(outcome(&(struct write){__VA_ARGS__}), text)
#define POD(...) .group = "", .plural = "pods", .object = "{'spec':{" __VA_ARGS__ "}}"
#define NEEDS(requests, limits) \
    "'containers':[{'name':'a','resources':{'requests':{" requests "},'limits':{" limits "}}}]"

static void pods_are_charged(void **state)
{
    (void)state;
    EXPECT("{'pods':'3','cpu':'1500m','limits.memory':'1Gi','requests.cpu':'3500m'}",
           POD(NEEDS("'cpu':'1500m'", "'memory':'1Gi'")),
           .hard = "'pods':'3','cpu':'2','limits.memory':'1Gi','requests.cpu':'4'",
           .used = "'pods':'2','cpu':'0','limits.memory':'0','requests.cpu':'2'");
    EXPECT("{'count/pods':'1','requests.a.b/c':'2','requests.hugepages-2Mi':'4Mi'}",
           POD(NEEDS("'a.b/c':'2','hugepages-2Mi':'4Mi'", "")),
           .hard = "'count/pods':'1','requests.a.b/c':'2','requests.hugepages-2Mi':'1Gi'",
           .used = "'count/pods':'0','requests.a.b/c':'0','requests.hugepages-2Mi':'0'");
    EXPECT("{'cpu':'4','limits.cpu':'0'}",
           POD(NEEDS("'cpu':'1'", "'cpu':'0'") ",'overhead':{'cpu':'3'}"),
           .hard = "'cpu':'9','limits.cpu':'9'", .used = "'cpu':'0','limits.cpu':'0'");
    EXPECT("", POD(NEEDS("'cpu':'1'", "")), .hard = "'services':'0'", .used = "'services':'0'");
}

static void what_exceeds_a_quota_is_refused(void **state)
{
    (void)state;
    EXPECT("exceeded quota: q, requested: cpu=500m,pods=1, used: cpu=1600m,pods=3, "
           "limited: cpu=2,pods=3",
           POD("'resources':{'requests':{'cpu':'500m'}},'containers':[{}]"),
           .hard = "'pods':'3','memory':'1','cpu':'2'",
           .used = "'pods':'3','cpu':'1600m','memory':'9'");
    /* One that is exceeded already refuses only what adds to it. */
    EXPECT("{'pods':'1','requests.a.b/c':'9'}", POD(NEEDS("", "")),
           .hard = "'pods':'3','requests.a.b/c':'2'", .used = "'pods':'0','requests.a.b/c':'9'");
}

static void containers_must_give_what_is_limited(void **state)
{
    (void)state;
    EXPECT("failed quota: q: must specify limits.cpu for: a,b,i; memory for: b,i", .group = "",
           .plural = "pods",
           .object = "{'spec':{'containers':[{'name':'b'},{'name':'a','resources':{'requests':"
                     "{'memory':'1'}}}],'initContainers':[{'name':'i'}]}}",
           .hard = "'memory':'1','limits.cpu':'1','pods':'1','requests.ephemeral-storage':'1'",
           .used = "");
}

static void usage_must_be_known(void **state)
{
    (void)state;
    EXPECT("status unknown for quota: q, resources: pods,requests.a.b/c", POD(NEEDS("", "")),
           .hard = "'requests.a.b/c':'1','services':'1','pods':'1'", .used = "'pods':'0'");
}

#define PODS .hard = "'pods':'5'", .used = "'pods':'0'"

static void scopes_choose_pods(void **state)
{
    (void)state;
    const char *one = "{'pods':'1'}";
    EXPECT(one, POD("'activeDeadlineSeconds':0"), PODS, .scopes = "'scopes':['Terminating']");
    EXPECT("", POD(""), PODS, .scopes = "'scopes':['Terminating']");
    EXPECT(one, POD(""), PODS, .scopes = "'scopes':['NotTerminating','BestEffort']");
    EXPECT("", POD(NEEDS("'cpu':'1'", "")), PODS, .scopes = "'scopes':['BestEffort']");
    EXPECT(one, POD(NEEDS("'cpu':'0'", "")), PODS, .scopes = "'scopes':['BestEffort']");
    EXPECT(one, POD(NEEDS("", "'memory':'1'")), PODS, .scopes = "'scopes':['NotBestEffort']");
    EXPECT(one, POD("'priorityClassName':'a'"), PODS, .scopes = "'scopes':['PriorityClass']");
    EXPECT("", POD(""), PODS, .scopes = "'scopes':['PriorityClass']");
    EXPECT("", POD(""), PODS, .scopes = "'scopes':['VolumeAttributesClass']");
#define SELECT(rest) "'scopeSelector':{'matchExpressions':[{'scopeName':'PriorityClass'," rest "}]}"
    EXPECT(one, POD("'priorityClassName':'a'"), PODS,
           .scopes = SELECT("'operator':'In','values':['b','a']"));
    EXPECT("", POD("'priorityClassName':'c'"), PODS,
           .scopes = SELECT("'operator':'In','values':['b','a']"));
    EXPECT("", POD(""), PODS, .scopes = SELECT("'operator':'In','values':['a']"));
    EXPECT(one, POD(""), PODS, .scopes = SELECT("'operator':'NotIn','values':['a']"));
    EXPECT("", POD("'priorityClassName':'a'"), PODS,
           .scopes = SELECT("'operator':'NotIn','values':['a']"));
    EXPECT(one, POD(""), PODS, .scopes = SELECT("'operator':'DoesNotExist'"));
    EXPECT(one,
           POD("'affinity':{'podAntiAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':"
               "[{'podAffinityTerm':{'namespaces':['a']}}]}}"),
           PODS, .scopes = "'scopes':['CrossNamespacePodAffinity']");
    EXPECT(one,
           POD("'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':"
               "[{'namespaceSelector':{}}]}}"),
           PODS, .scopes = "'scopes':['CrossNamespacePodAffinity']");
    EXPECT("",
           POD("'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':"
               "[{'topologyKey':'a'}]}}"),
           PODS, .scopes = "'scopes':['CrossNamespacePodAffinity']");
}

static void an_update_is_charged_with_the_difference(void **state)
{
    (void)state;
    /* A pod that moves into a scope is charged in full, one that stays in it not at all. */
    EXPECT("{'pods':'1'}", POD("'activeDeadlineSeconds':1"), PODS, .old = "{'spec':{}}",
           .scopes = "'scopes':['Terminating']");
    EXPECT("", POD("'activeDeadlineSeconds':1"), PODS, .old = "{'spec':{}}");
    EXPECT("", POD("'activeDeadlineSeconds':1"), PODS,
           .old = "{'spec':{'activeDeadlineSeconds':2}}", .scopes = "'scopes':['Terminating']");
    EXPECT("{'cpu':'6'}", POD(NEEDS("'cpu':'3'", "")), .subresource = "resize",
           .old = "{'spec':{" NEEDS("'cpu':'2'", "") "}}", .hard = "'cpu':'6'",
           .used = "'cpu':'5'");
    EXPECT("", POD(NEEDS("'cpu':'1'", "")), .subresource = "resize",
           .old = "{'spec':{" NEEDS("'cpu':'2'", "") "}}", .hard = "'cpu':'6'",
           .used = "'cpu':'7'");
    EXPECT("", POD(""), .subresource = "status", .old = "{}", PODS);
}

#define SERVICE(spec) .group = "", .plural = "services", .object = "{'spec':{" spec "}}"
#define SERVICES                                                                    \
    .hard = "'services':'9','services.nodeports':'2','services.loadbalancers':'1'", \
    .used = "'services':'0','services.nodeports':'0','services.loadbalancers':'0'"

static void services_use_ports_and_load_balancers(void **state)
{
    (void)state;
    EXPECT("{'services':'1','services.nodeports':'0','services.loadbalancers':'0'}",
           SERVICE("'type':'ClusterIP','ports':[{}]"), SERVICES);
    EXPECT("{'services':'1','services.nodeports':'2','services.loadbalancers':'0'}",
           SERVICE("'type':'NodePort','ports':[{},{}]"), SERVICES);
    EXPECT("{'services':'1','services.nodeports':'1','services.loadbalancers':'1'}",
           SERVICE("'type':'LoadBalancer','ports':[{}]"), SERVICES);
    EXPECT("{'services':'1','services.nodeports':'1','services.loadbalancers':'1'}",
           SERVICE("'type':'LoadBalancer','allocateLoadBalancerNodePorts':false,"
                   "'ports':[{'nodePort':1},{}]"),
           SERVICES);
    EXPECT("exceeded quota: q, requested: services.nodeports=3, used: services.nodeports=0, "
           "limited: services.nodeports=2",
           SERVICE("'type':'NodePort','ports':[{},{},{}]"), SERVICES);
    EXPECT("{'services':'0','services.nodeports':'1','services.loadbalancers':'0'}",
           SERVICE("'type':'NodePort','ports':[{}]"), SERVICES,
           .old = "{'spec':{'type':'ClusterIP','ports':[{}]}}");
    EXPECT("", SERVICE("'type':'ClusterIP','ports':[{}]"), SERVICES,
           .scopes = "'scopes':['BestEffort']");
}

#define CLAIM(spec) .group = "", .plural = "persistentvolumeclaims", .object = "{'spec':{" spec "}}"
#define STORAGE(size) "'resources':{'requests':{'storage':'" size "'}}"
#define CLAIMS                                                                           \
    .hard = "'requests.storage':'3Gi','a.storageclass.storage.k8s.io/requests.storage':" \
            "'1Gi','a.storageclass.storage.k8s.io/persistentvolumeclaims':'1'",          \
    .used = "'requests.storage':'1Gi','a.storageclass.storage.k8s.io/requests.storage':" \
            "'0','a.storageclass.storage.k8s.io/persistentvolumeclaims':'0'"

static void claims_use_storage_of_their_class(void **state)
{
    (void)state;
    EXPECT("{'requests.storage':'2Gi','a.storageclass.storage.k8s.io/requests.storage':'1Gi',"
           "'a.storageclass.storage.k8s.io/persistentvolumeclaims':'1'}",
           CLAIM(STORAGE("1Gi") ",'storageClassName':'a'"), CLAIMS);
    EXPECT("{'requests.storage':'3Gi','a.storageclass.storage.k8s.io/requests.storage':'0',"
           "'a.storageclass.storage.k8s.io/persistentvolumeclaims':'0'}",
           CLAIM(STORAGE("2Gi") ",'storageClassName':'b'"), CLAIMS);
    EXPECT("exceeded quota: q, requested: a.storageclass.storage.k8s.io/requests.storage=2Gi, "
           "used: a.storageclass.storage.k8s.io/requests.storage=0, "
           "limited: a.storageclass.storage.k8s.io/requests.storage=1Gi",
           CLAIM(STORAGE("2Gi") ",'storageClassName':'a'"), CLAIMS);
    EXPECT("{'persistentvolumeclaims':'0','requests.storage':'2Gi'}", CLAIM(STORAGE("2Gi")),
           .old = "{'spec':{" STORAGE("1Gi") "}}",
           .hard = "'persistentvolumeclaims':'0','requests.storage':'2Gi'",
           .used = "'persistentvolumeclaims':'0','requests.storage':'1Gi'");
    EXPECT("{'requests.storage':'2'}", CLAIM(STORAGE("1500m")), .hard = "'requests.storage':'2'",
           .used = "'requests.storage':'0'");
    /* What was allocated is counted, even beyond the limit. */
    EXPECT("{'requests.storage':'4Gi'}", .group = "", .plural = "persistentvolumeclaims",
           .subresource = "status",
           .object = "{'spec':{" STORAGE("1Gi") "},'status':{'allocatedResources':"
                                                "{'storage':'4Gi'}}}",
           .old = "{'spec':{" STORAGE("1Gi") "}}", .hard = "'requests.storage':'2Gi'",
           .used = "'requests.storage':'1Gi'");
    EXPECT("{'requests.storage':'1'}", CLAIM(STORAGE("1") ",'volumeAttributesClassName':'gold'"),
           .hard = "'requests.storage':'2'", .used = "'requests.storage':'0'",
           .scopes = "'scopeSelector':{'matchExpressions':[{'scopeName':'VolumeAttributesClass',"
                     "'operator':'In','values':['gold']}]}");
    EXPECT("", CLAIM(STORAGE("1")), .hard = "'requests.storage':'2'",
           .used = "'requests.storage':'0'", .scopes = "'scopes':['VolumeAttributesClass']");
}

static void objects_are_counted(void **state)
{
    (void)state;
    EXPECT("{'count/deployments.apps':'1'}", .group = "apps", .plural = "deployments",
           .object = "{}", .hard = "'count/deployments.apps':'1'",
           .used = "'count/deployments.apps':'0'");
    EXPECT("{'secrets':'1','count/secrets':'2'}", .group = "", .plural = "secrets", .object = "{}",
           .hard = "'secrets':'9','count/secrets':'9','count/pods':'0'",
           .used = "'secrets':'0','count/secrets':'1'");
    EXPECT("exceeded quota: q, requested: configmaps=1, used: configmaps=2, limited: configmaps=2",
           .group = "", .plural = "configmaps", .object = "{}", .hard = "'configmaps':'2'",
           .used = "'configmaps':'2'");
    EXPECT("", .group = "", .plural = "secrets", .object = "{}", .old = "{}",
           .hard = "'secrets':'0'", .used = "'secrets':'0'");
    EXPECT("", .group = "", .plural = "serviceaccounts", .object = "{}",
           .hard = "'serviceaccounts':'0','count/serviceaccounts.a':'0'", .used = "");
}

static void a_pod_that_has_ended_is_only_counted(void **state)
{
    (void)state;
    struct kube_amounts usage;
    struct slice names[] = {SLICE_LITERAL("pods"), SLICE_LITERAL("count/pods"),
                            SLICE_LITERAL("cpu")};
    const struct kube_quota_object pod = {
        .kind = kind_of("", "pods"),
        .object = tree("{'spec':{" NEEDS("'cpu':'1'", "") "},'status':{'phase':'Failed'}}")};
    assert_int_equal(kube_amounts_init(&usage, &arena, names, COUNT_OF(names)), ST_OK);
    assert_int_equal(kube_quota_usage(&pod, &arena, &usage), ST_OK);
    assert_true(kube_amounts_find(&usage, names[1])->known);
    assert_false(kube_amounts_find(&usage, names[0])->known);
    assert_false(kube_amounts_find(&usage, names[2])->known);
}

static struct json_node *large_quota(const char *list, size_t amounts, size_t scopes)
{
    AUTO(buf_fini) struct buf text = {0};
    assert_int_equal(buf_append_format(&text, "{'%s':{'hard':{", list), ST_OK);
    for (size_t i = 0; i < amounts; i++)
        assert_int_equal(buf_append_format(&text, "%s'count/a%zu':'1'", i ? "," : "", i), ST_OK);
    assert_int_equal(buf_append_text(&text, "},'scopes':["), ST_OK);
    for (size_t i = 0; i < scopes; i++)
        assert_int_equal(buf_append_text(&text, i ? ",'BestEffort'" : "'BestEffort'"), ST_OK);
    assert_int_equal(buf_append(&text, slice_of("]}}", 4)), ST_OK);
    return tree((const char *)text.ptr);
}

static void the_size_of_a_quota_is_bounded(void **state)
{
    (void)state;
    assert_true(
        kube_quota_is_sound(large_quota("spec", KUBE_QUOTA_AMOUNTS_MAX, KUBE_QUOTA_SCOPES_MAX)));
    assert_false(kube_quota_is_sound(large_quota("spec", KUBE_QUOTA_AMOUNTS_MAX + 1, 0)));
    assert_false(kube_quota_is_sound(large_quota("status", KUBE_QUOTA_AMOUNTS_MAX + 1, 0)));
    assert_false(kube_quota_is_sound(large_quota("spec", 1, KUBE_QUOTA_SCOPES_MAX + 1)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pods_are_charged, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_exceeds_a_quota_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(containers_must_give_what_is_limited, set_up, tear_down),
        cmocka_unit_test_setup_teardown(usage_must_be_known, set_up, tear_down),
        cmocka_unit_test_setup_teardown(scopes_choose_pods, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_update_is_charged_with_the_difference, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(services_use_ports_and_load_balancers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(claims_use_storage_of_their_class, set_up, tear_down),
        cmocka_unit_test_setup_teardown(objects_are_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_pod_that_has_ended_is_only_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_size_of_a_quota_is_bounded, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
