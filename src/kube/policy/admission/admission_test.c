/* The admission chain over the API of the fake engine, and its sets of plugins. */
#include "kube/policy/admission/admission.h"

#include "kube/server/bed_test.h"
#include "kube/server/starved_test.h"

#define PODS "/api/v1/namespaces/default/pods"
#define ACCOUNTS "/api/v1/namespaces/default/serviceaccounts"
#define CLASSES "/apis/scheduling.k8s.io/v1/priorityclasses"
#define POD(name, spec)                                \
    "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{" \
    "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]" spec "}}"

static struct kube_admission_set set;

static void begin_with(bool controllers, uint64_t seed, unsigned inline_percent)
{
    set = kube_admission_default(controllers);
    bed_admission = &set;
    begin(seed, inline_percent);
    bed_admission = NULL;
}

/* Time passes until a request that waits is answered. */
static struct peer *ask_slowly(const char *path, const char *body)
{
    struct peer *peer = send_json("POST", path, body);
    run();
    for (int i = 0; i < 3000 && !peer->code; i++) {
        clock_sim_advance(&bed->clock, NS_PER_MS);
        run();
    }
    return peer;
}

/* -- Sets -- */

static void plugins_are_enabled_and_disabled_by_name(void **state)
{
    (void)state;
    struct error error;
    struct kube_admission_set some = kube_admission_default(false),
                              all = kube_admission_default(true);
    assert_int_equal(
        kube_admission_enable(&some, "ServiceAccount, StorageObjectInUseProtection", "f", &error),
        ST_OK);
    assert_int_equal(some.enabled, all.enabled);
    assert_int_equal(kube_admission_enable(&some, "", "f", &error), ST_OK);
    assert_int_equal(
        kube_admission_disable(&some, "ServiceAccount,PodNodeSelector,StorageObjectInUseProtection",
                               "f", &error),
        ST_OK);
    assert_int_equal(some.enabled, kube_admission_default(false).enabled);
    static const char *const optional[] = {"DenyServiceExternalIPs",
                                           "OwnerReferencesPermissionEnforcement"};
    for (size_t i = 0; i < COUNT_OF(optional); i++) {
        assert_true(kube_admission_exists(slice_from_text(optional[i])));
        assert_false(kube_admission_is_enabled(&all, slice_from_text(optional[i])));
    }
    assert_true(kube_admission_exists(SLICE_LITERAL("Priority")));
    assert_false(kube_admission_exists(SLICE_LITERAL("PodNodeSelector")));
}

static void unknown_plugins_are_named_with_those_that_exist(void **state)
{
    (void)state;
    struct error error;
    struct kube_admission_set some = kube_admission_default(true), before = some;
    assert_int_equal(kube_admission_disable(&some, "Nothing", "flag", &error), ST_INVALID);
    assert_non_null(strstr(error.text, "--flag: there is no admission plugin \"Nothing\" here, "
                                       "only NamespaceLifecycle, "));
    assert_int_equal(kube_admission_enable(&some, "PodNodeSelector", "flag", &error), ST_INVALID);
    assert_string_equal(error.text,
                        "--flag: the admission plugin PodNodeSelector does not exist in "
                        "Vigil: node selectors of namespaces are not added to pods");
    assert_int_equal(some.enabled, before.enabled);
}

/* The list of kube-apiserver 1.36. */
static void every_plugin_of_kubernetes_exists_or_is_refused_with_a_reason(void **state)
{
    (void)state;
    static const char *const names[] = {
        "AlwaysAdmit",
        "AlwaysDeny",
        "AlwaysPullImages",
        "CertificateApproval",
        "CertificateSigning",
        "CertificateSubjectRestriction",
        "ClusterTrustBundleAttest",
        "DefaultIngressClass",
        "DefaultStorageClass",
        "DefaultTolerationSeconds",
        "DenyServiceExternalIPs",
        "EventRateLimit",
        "ExtendedResourceToleration",
        "ImagePolicyWebhook",
        "JobValidation",
        "LimitPodHardAntiAffinityTopology",
        "LimitRanger",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionWebhook",
        "NamespaceAutoProvision",
        "NamespaceExists",
        "NamespaceLifecycle",
        "NodeDeclaredFeatureValidator",
        "NodeRestriction",
        "OwnerReferencesPermissionEnforcement",
        "PersistentVolumeClaimResize",
        "PodGroupProtection",
        "PodGroupWorkloadExists",
        "PodNodeSelector",
        "PodResizeValidator",
        "PodSecurity",
        "PodTolerationRestriction",
        "PodTopologyLabels",
        "Priority",
        "ResourceQuota",
        "RuntimeClass",
        "ServiceAccount",
        "StorageObjectInUseProtection",
        "TaintNodesByCondition",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionWebhook",
    };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct kube_admission_set some = kube_admission_least();
        struct error error;
        struct slice name = slice_from_text(names[i]);
        const struct kube_admission_absent *absent = kube_admission_absent(name);
        bool enabled = kube_admission_enable(&some, names[i], "flag", &error) == ST_OK;
        assert_int_equal(enabled, kube_admission_exists(name));
        assert_int_equal(enabled, !absent);
        assert_int_equal(enabled, kube_admission_is_enabled(&some, name));
        if (!enabled)
            assert_non_null(strstr(error.text, absent->why));
        assert_int_equal(kube_admission_disable(&some, names[i], "flag", &error), ST_OK);
        assert_false(kube_admission_is_enabled(&some, name));
    }
}

/* -- Writes -- */

static void a_pod_gets_what_its_cluster_adds(void)
{
    ask("POST", CLASSES, "{\"metadata\":{\"name\":\"high\"},\"value\":7}", 201);
    struct peer *pod = ask("POST", PODS, POD("a", ",\"priorityClassName\":\"high\""), 201);
    assert_true(said(pod, "\"priority\":7"));
    assert_true(said(pod, "\"key\":\"node.kubernetes.io/unreachable\""));
    pod = ask("POST", PODS, POD("b", ",\"priorityClassName\":\"none\""), 403);
    assert_true(
        said(pod, "pods \\\"b\\\" is forbidden: no PriorityClass with name none was found"));
    ask("POST", "/api/v1/namespaces/none/pods", POD("c", ""), 404);
}

static void pods_get_what_their_cluster_adds(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        begin_with(false, seed, (unsigned)seed % 3 * 50);
        bed->spread = seed % 2;
        a_pod_gets_what_its_cluster_adds();
        end();
    }
}

/* The pod is created by another thread than the class, right after its answer. */
static void facts_are_as_new_as_the_store(void **state)
{
    (void)state;
    char body[128];
    begin_with(false, 1, 50);
    bed->spread = true;
    for (int i = 1; i < 40; i++) {
        snprintf(body, sizeof(body),
                 "{\"metadata\":{\"name\":\"usual\"},\"value\":%d,"
                 "\"globalDefault\":true}",
                 i);
        struct peer *class = send_json("POST", CLASSES, body);
        while (!class->code)
            turn_once(), (void)fake_step(bed->engine);
        struct peer *pod = ask("POST", PODS, POD("p", ""), 201);
        snprintf(body, sizeof(body), "\"priority\":%d,", i);
        assert_answer(pod, 201, body);
        ask("DELETE", PODS "/p?gracePeriodSeconds=0", "", 200);
        ask("DELETE", CLASSES "/usual", "", 200);
    }
    end();
}

static void a_client_that_leaves_while_facts_are_gathered_leaves_nothing_behind(void **state)
{
    (void)state;
    for (unsigned turns = 0; turns < 12; turns++) {
        begin_with(true, turns, 0);
        struct peer *pod = send_json("POST", PODS, POD("a", ""));
        for (unsigned i = 0; i < turns; i++)
            turn_once(), (void)fake_step(bed->engine);
        leave(pod);
        run();
        clock_sim_advance(&bed->clock, 2 * NS_PER_S);
        run();
        end();
    }
}

static void the_default_account_is_waited_for(void **state)
{
    (void)state;
    begin_with(true, 1, 50);
    struct peer *pod = ask_slowly(PODS, POD("a", ""));
    assert_answer(pod, 403,
                  "pods \\\"a\\\" is forbidden: error looking up service account default/default: "
                  "serviceaccount \\\"default\\\" not found");
    pod = send_json("POST", PODS, POD("a", ""));
    run();
    assert_int_equal(pod->code, 0);
    ask("POST", ACCOUNTS, "{\"metadata\":{\"name\":\"default\"}}", 201);
    clock_sim_advance(&bed->clock, 2 * NS_PER_MS);
    run();
    assert_answer(pod, 201, "\"serviceAccountName\":\"default\"");
    assert_true(said(pod, "\"name\":\"kube-api-access-"));
    end();
}

static void a_missing_account_is_refused_at_once(void **state)
{
    (void)state;
    begin_with(true, 1, 50);
    ask("POST", PODS, POD("a", ",\"serviceAccountName\":\"none\""), 403);
    end();
}

static void requests_that_wait_end_with_the_server(void **state)
{
    (void)state;
    begin_with(true, 1, 50);
    struct peer *pod = send_json("POST", PODS, POD("a", ""));
    run();
    kube_api_stop(bed->api);
    clock_sim_advance(&bed->clock, 2 * NS_PER_MS);
    run();
    assert_true(pod->code >= 500);
    end();
}

static void only_the_least_is_enabled_without_a_set(void **state)
{
    (void)state;
    begin(1, 50);
    assert_false(said(ask("POST", PODS, POD("a", ""), 201), "priority"));
    ask("POST", "/api/v1/namespaces/none/pods", POD("c", ""), 404);
    ask("DELETE", "/api/v1/namespaces/default", "", 403);
    end();
}

/* -- Memory that ends anywhere -- */

#define JSON "application/json"
#define MERGE "application/merge-patch+json"
#define IN_DEFAULT(group) group "/namespaces/default/"

/* What the plugins need to know. Texts have escapes, so that reading them takes memory. */
static const struct starved_request facts[] = {
    {"POST", ACCOUNTS, JSON,
     "{\"metadata\":{\"name\":\"default\",\"annotations\":{"
     "\"kubernetes.io/enforce-mountable-secrets\":\"tru\\u0065\"}},\"secrets\":[{\"name\":\"s\"}],"
     "\"imagePullSecrets\":[{\"name\":\"pull\"}]}"},
    {"POST", CLASSES, JSON,
     "{\"metadata\":{\"name\":\"high\"},\"value\":7,\"globalDefault\":true}"},
    {"POST", IN_DEFAULT("/api/v1") "limitranges", JSON,
     "{\"metadata\":{\"name\":\"l\"},\"spec\":{\"limits\":[{\"type\":\"Container\",\"default\":{"
     "\"cpu\":\"500m\"},\"defaultRequest\":{\"cpu\":\"100m\"},\"max\":{\"cpu\":\"2\"}}]}}"},
    {"POST", IN_DEFAULT("/api/v1") "resourcequotas", JSON,
     "{\"metadata\":{\"name\":\"q\"},\"spec\":{\"hard\":{\"requests.cpu\":\"250m\",\"services\":"
     "\"5\","
     "\"requests.storage\":\"5Gi\"}}}"},
    {"PATCH", IN_DEFAULT("/api/v1") "resourcequotas/q/status", MERGE,
     "{\"status\":{\"hard\":{\"requests.cpu\":\"250m\",\"services\":\"5\",\"requests.storage\":"
     "\"5Gi\"},"
     "\"used\":{\"requests.cpu\":\"0\",\"services\":\"0\",\"requests.storage\":\"0\"}}}"},
    {"POST", "/apis/storage.k8s.io/v1/storageclasses", JSON,
     "{\"metadata\":{\"name\":\"fast\",\"annotations\":{"
     "\"storageclass.kubernetes.io/is-default-class\":\"true\"}},\"provisioner\":\"x\"}"},
    {"POST", "/apis/networking.k8s.io/v1/ingressclasses", JSON,
     "{\"metadata\":{\"name\":\"front\",\"annotations\":{"
     "\"ingressclass.kubernetes.io/is-default-class\":\"true\"}},\"spec\":{\"controller\":\"a/"
     "b\"}}"},
    {"POST", "/apis/node.k8s.io/v1/runtimeclasses", JSON,
     "{\"metadata\":{\"name\":\"vm\"},\"handler\":\"h\",\"overhead\":{\"podFixed\":{\"cpu\":\"5m\"}"
     "},"
     "\"scheduling\":{\"nodeSelector\":{\"a\":\"b\"},\"tolerations\":[{\"key\":\"k\"}]}}"},
};

static const struct starved_request admitted[] = {
    {"POST", PODS, JSON, POD("a", "")},
    {"POST", PODS, JSON,
     POD("b", ",\"priorityClassName\":\"h\\u0069gh\",\"runtimeClassName\":\"v\\u006d\","
              "\"volumes\":[{\"name\":\"v\",\"secret\":{\"secretName\":\"\\u0073\"}}]")},
    {"POST", PODS, JSON, POD("c", ",\"priorityClassName\":\"n\\u006fne\"")},
    {"POST", PODS, JSON, POD("c", ",\"serviceAccountName\":\"n\\u006fne\"")},
    {"POST", PODS, JSON,
     POD("c", ",\"volumes\":[{\"name\":\"v\",\"secret\":{\"secretName\":\"\\u0074\"}}]")},
    {"POST", PODS, JSON, POD("c", "")}, /* past the quota */
    {"PATCH", PODS "/a", MERGE, "{\"metadata\":{\"labels\":{\"\\u0061\":\"b\"}}}"},
    {"PATCH", PODS "/a", MERGE, "{\"spec\":{\"tolerations\":[{\"key\":\"\\u006b\"}]}}"},
    {"POST", IN_DEFAULT("/api/v1") "persistentvolumeclaims", JSON,
     "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"accessModes\":[\"ReadWriteOnc\\u0065\"],"
     "\"resources\":{"
     "\"requests\":{\"storage\":\"1G\\u0069\"}}}}"},
    {"PATCH", IN_DEFAULT("/api/v1") "persistentvolumeclaims/d", MERGE,
     "{\"spec\":{\"resources\":{\"requests\":{\"storage\":\"2G\\u0069\"}}}}"},
    {"POST", IN_DEFAULT("/apis/networking.k8s.io/v1") "ingresses", JSON,
     "{\"metadata\":{\"name\":\"i\"},\"spec\":{\"defaultBackend\":{\"service\":{\"name\":\"s\","
     "\"port\":{"
     "\"number\":80}}}}}"},
    {"POST", IN_DEFAULT("/api/v1") "services", JSON,
     "{\"metadata\":{\"name\":\"s\"},\"spec\":{\"ports\":[{\"port\":80}],\"type\":"
     "\"NodeP\\u006frt\"}}"},
    {"POST", "/api/v1/nodes", JSON, "{\"metadata\":{\"name\":\"n\\u006f\"}}"},
    {"POST", "/api/v1/persistentvolumes", JSON,
     "{\"metadata\":{\"name\":\"v\"},\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],\"capacity\":{"
     "\"storage\":\"1Gi\"},\"hostPath\":{\"path\":\"/\\u0061\"}}}"},
    {"POST", CLASSES, JSON,
     "{\"metadata\":{\"name\":\"o\\u0074her\"},\"value\":8,\"globalDefault\":true}"},
    {"DELETE", PODS "/b?gracePeriodSeconds=0", JSON, ""},
    {"DELETE", "/api/v1/namespaces/default", JSON, ""},
};

static void admission_never_decides_from_a_failed_allocation(void **state)
{
    (void)state;
    unsigned expected[COUNT_OF(admitted)];
    for (int round = 0; round < 3; round++) {
        begin_with(true, 15, 100);
        size_t *limit = round == 1 ? &bed->api->call_bytes_max : &bed->api->attempt_bytes_max;
        for (size_t i = 0; i < COUNT_OF(facts); i++)
            assert_true(starved_send(&facts[i], limit, *limit) < 300);
        for (size_t i = 0; i < COUNT_OF(admitted); i++) {
            if (round)
                starve(&admitted[i], limit, expected[i]);
            else
                expected[i] = starved_send(&admitted[i], limit, *limit);
        }
        end();
    }
    static const unsigned refused[] = {2, 3, 4, 5, 14, 16};
    for (size_t i = 0; i < COUNT_OF(refused); i++)
        assert_int_equal(expected[refused[i]], 403);
    assert_int_equal(expected[1], 201);
    assert_int_equal(expected[9], 422); /* a claim that is not bound does not grow */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plugins_are_enabled_and_disabled_by_name),
        cmocka_unit_test(unknown_plugins_are_named_with_those_that_exist),
        cmocka_unit_test(every_plugin_of_kubernetes_exists_or_is_refused_with_a_reason),
        cmocka_unit_test(pods_get_what_their_cluster_adds),
        cmocka_unit_test(facts_are_as_new_as_the_store),
        cmocka_unit_test(a_client_that_leaves_while_facts_are_gathered_leaves_nothing_behind),
        cmocka_unit_test(the_default_account_is_waited_for),
        cmocka_unit_test(a_missing_account_is_refused_at_once),
        cmocka_unit_test(requests_that_wait_end_with_the_server),
        cmocka_unit_test(only_the_least_is_enabled_without_a_set),
        cmocka_unit_test(admission_never_decides_from_a_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
