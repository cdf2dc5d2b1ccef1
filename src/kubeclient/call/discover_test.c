/* Discovery: which requests are made, and what is known afterwards. */
#include "kubeclient/call/call_world_test.h"

#include <vigil/kube/discovery.h>

enum server_kind {
    AGGREGATED,
    GROUP_BY_GROUP,
    ONLY_CORE,     /* /apis is 404 */
    ONLY_GROUPS,   /* /api is 404 */
    GROUP_IS_DOWN, /* group by group, and apps/v1 is 503 */
    SERVERS_THAT_WORK,
    NO_API = SERVERS_THAT_WORK, /* both are 404 */
    FORBIDDEN,
    EMPTY,
};

static bool is(const struct sim_request *request, const char *target)
{
    return strcmp(request->target, target) == 0;
}

#define AGGREGATED_LIST(group, version, resource, kind)                                          \
    "{\"kind\":\"APIGroupDiscoveryList\",\"items\":[{\"metadata\":{\"name\":\"" group            \
    "\"},\"versions\":[{\"version\":\"" version "\",\"resources\":[{\"resource\":\"" resource    \
    "\",\"responseKind\":{\"kind\":\"" kind "\"},\"scope\":\"Namespaced\",\"verbs\":[\"get\"]}]" \
    "}]}]}"
#define VERSION_LIST(group_version, resource, kind)                                      \
    "{\"kind\":\"APIResourceList\",\"groupVersion\":\"" group_version                    \
    "\",\"resources\":[{\"name\":\"" resource "\",\"kind\":\"" kind "\",\"namespaced\":" \
    "true,\"verbs\":[\"get\"]}]}"

static void answer(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    enum server_kind kind = *(enum server_kind *)ctx;
    bool api = is(request, "/api"), apis = is(request, "/apis");
    if (kind == FORBIDDEN)
        sim_reply_status(reply, 403, "Forbidden", "no");
    else if (kind == EMPTY)
        sim_reply_json(reply, 200, "{}");
    else if (kind == NO_API || (kind == ONLY_CORE && apis) || (kind == ONLY_GROUPS && api))
        sim_reply_status(reply, 404, "NotFound", "no");
    else if (kind == AGGREGATED && api)
        sim_reply_json(reply, 200, AGGREGATED_LIST("", "v1", "pods", "Pod"));
    else if (kind == AGGREGATED && apis)
        sim_reply_json(reply, 200, AGGREGATED_LIST("apps", "v1", "deployments", "Deployment"));
    else if (api)
        sim_reply_json(reply, 200, "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"]}");
    else if (apis)
        sim_reply_json(reply, 200,
                       "{\"kind\":\"APIGroupList\",\"groups\":[{\"versions\":[{\"groupVersion\":"
                       "\"apps/v1\"},{\"groupVersion\":\"batch/v1\"}]}]}");
    else if (is(request, "/api/v1"))
        sim_reply_json(reply, 200, VERSION_LIST("v1", "pods", "Pod"));
    else if (is(request, "/apis/apps/v1") && kind != GROUP_IS_DOWN)
        sim_reply_json(reply, 200, VERSION_LIST("apps/v1", "deployments", "Deployment"));
    else if (is(request, "/apis/batch/v1"))
        sim_reply_json(reply, 200, VERSION_LIST("batch/v1", "jobs", "Job"));
    else
        sim_reply_status(reply, 503, "ServiceUnavailable", "the service is down");
}

static void resources_of_all_servers_are_found(void **state)
{
    (void)state;
    static const struct {
        unsigned requests;
        bool pods, deployments, jobs;
    } expected[] = {
        [AGGREGATED] = {2, true, true, false},    [GROUP_BY_GROUP] = {5, true, true, true},
        [ONLY_CORE] = {3, true, false, false},    [ONLY_GROUPS] = {4, false, true, true},
        [GROUP_IS_DOWN] = {5, true, false, true},
    };
    for (enum server_kind kind = 0; kind < SERVERS_THAT_WORK; kind++) {
        struct kube_world w;
        struct call_result r = {.code = 0};
        vigil_kube_resource found;
        call_world_start(&w, kind % 2 ? SIM_HTTP1 : SIM_HTTP2, answer, &kind);
        assert_int_equal(vigil_kube_find_resource(w.kube, "pods", &found), VIGIL_ERROR_UNAVAILABLE);
        call_run(&w, &r, vigil_kube_discover(w.kube));
        assert_int_equal(r.code, VIGIL_OK);
        assert_int_equal(w.server.request_count, expected[kind].requests);
        assert_int_equal(vigil_kube_find_resource(w.kube, "pods", &found) == VIGIL_OK,
                         expected[kind].pods);
        assert_int_equal(vigil_kube_find_resource(w.kube, "Job", &found) == VIGIL_OK,
                         expected[kind].jobs);
        assert_int_equal(vigil_kube_find_resource(w.kube, "deployments.apps", &found) == VIGIL_OK,
                         expected[kind].deployments);
        assert_int_equal(vigil_kube_find_resource(w.kube, NULL, &found), VIGIL_ERROR_ARGUMENT);
        assert_non_null(strstr(w.server.requests[0].accept, "v=v2;as=APIGroupDiscoveryList"));
        call_end(&r);
        kube_world_fini(&w);
    }
}

static void failed_discovery_changes_nothing(void **state)
{
    (void)state;
    static const int codes[] = {[NO_API] = VIGIL_ERROR_SERVER,
                                [FORBIDDEN] = VIGIL_ERROR_PERMISSION_DENIED,
                                [EMPTY] = VIGIL_ERROR_PROTOCOL};
    for (enum server_kind kind = NO_API; kind <= EMPTY; kind++) {
        struct kube_world w;
        struct call_result r = {.code = 0};
        vigil_kube_resource found;
        enum server_kind now = AGGREGATED;
        call_world_start(&w, SIM_HTTP2, answer, &now);
        call_run(&w, &r, vigil_kube_discover(w.kube));
        assert_int_equal(r.code, VIGIL_OK);
        call_end(&r);
        now = kind;
        call_run(&w, &r, vigil_kube_discover(w.kube));
        assert_int_equal(r.code, codes[kind]);
        assert_int_equal(vigil_kube_find_resource(w.kube, "pods", &found), VIGIL_OK);
        call_end(&r);
        kube_world_fini(&w);
    }
}

static void missing_memory_is_reported(void **state)
{
    (void)state;
    enum server_kind kind = GROUP_IS_DOWN;
    for (size_t at = 1;; at++) {
        struct kube_world w;
        struct call_result r = {.code = 0};
        vigil_kube_resource found;
        call_world_start(&w, SIM_HTTP2, answer, &kind);
        faulty_memory_at = at;
        faulty_memory_begin();
        vigil_kube_call *call = vigil_kube_discover(w.kube);
        faulty_memory_end();
        call_run(&w, &r, call);
        bool failed = faulty_memory_at == 0;
        faulty_memory_at = 0;
        assert_true(failed || r.code == VIGIL_OK);
        assert_int_equal(vigil_kube_find_resource(w.kube, "jobs", &found) == VIGIL_OK,
                         r.code == VIGIL_OK);
        call_end(&r);
        kube_world_fini(&w);
        if (!failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resources_of_all_servers_are_found),
        cmocka_unit_test(failed_discovery_changes_nothing),
        cmocka_unit_test(missing_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
