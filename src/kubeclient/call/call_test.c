/* Calls: what is sent, what is answered, and how they end. */
#include "kubeclient/call/call_world_test.h"

/* -- What is sent -- */

static vigil_kube_call *make_get(vigil_kube *kube)
{
    return vigil_kube_get(kube, &call_pod);
}

static vigil_kube_call *make_list(vigil_kube *kube)
{
    vigil_kube_list_options options = {.size = sizeof(options),
                                       .label_selector = "app=web,tier in (a)",
                                       .field_selector = "metadata.name=x",
                                       .version = "5",
                                       .version_match = "Exact",
                                       .limit = 3};
    return vigil_kube_list(kube, &call_pods, &options);
}

static vigil_kube_call *make_list_of_a_next_page(vigil_kube *kube)
{
    vigil_kube_list_options options = {
        .size = sizeof(options), .version = "5", .limit = 3, .continue_token = "a/b"};
    return vigil_kube_list(kube, &call_pods, &options);
}

static vigil_kube_call *make_create(vigil_kube *kube)
{
    vigil_kube_write_options options = {
        .size = sizeof(options), .field_manager = "me", .dry_run = 1, .field_validation = "Strict"};
    return vigil_kube_create(kube, &call_pods, vigil_text("{}"), &options);
}

static vigil_kube_call *make_update(vigil_kube *kube)
{
    vigil_kube_target status = call_pod;
    status.subresource = "status";
    return vigil_kube_update(kube, &status, vigil_text("{}"), NULL);
}

static vigil_kube_call *make_json_patch(vigil_kube *kube)
{
    return vigil_kube_patch(kube, &call_pod, VIGIL_KUBE_PATCH_JSON, vigil_text("[]"), NULL);
}

static vigil_kube_call *make_merge_patch(vigil_kube *kube)
{
    return vigil_kube_patch(kube, &call_pod, VIGIL_KUBE_PATCH_MERGE, vigil_text("{}"), NULL);
}

static vigil_kube_call *make_strategic_patch(vigil_kube *kube)
{
    return vigil_kube_patch(kube, &call_pod, VIGIL_KUBE_PATCH_STRATEGIC, vigil_text("{}"), NULL);
}

static vigil_kube_call *make_apply(vigil_kube *kube)
{
    return vigil_kube_apply(kube, &call_pod, vigil_text("a: b"), "me", 1);
}

static vigil_kube_call *make_delete(vigil_kube *kube)
{
    return vigil_kube_delete(kube, &call_pod, NULL);
}

static vigil_kube_call *make_delete_with_options(vigil_kube *kube)
{
    int64_t grace = 0;
    vigil_kube_delete_options options = {.size = sizeof(options),
                                         .propagation = "Foreground",
                                         .grace_period_s = &grace,
                                         .uid = "u\"1",
                                         .version = "9",
                                         .dry_run = 1};
    return vigil_kube_delete(kube, &call_pod, &options);
}

static vigil_kube_call *make_delete_collection(vigil_kube *kube)
{
    vigil_kube_list_options selected = {.size = sizeof(selected), .label_selector = "a"};
    vigil_kube_delete_options options = {.size = sizeof(options), .propagation = "Orphan"};
    return vigil_kube_delete_collection(kube, &call_pods, &options, &selected);
}

static vigil_kube_call *make_request(vigil_kube *kube)
{
    return vigil_kube_request(kube, "PUT", "/x/y?z=1", "text/plain", vigil_text("hello"));
}

static vigil_kube_call *make_cluster_get(vigil_kube *kube)
{
    vigil_kube_target node = {
        .group = "apps", .version = "v1", .resource = "deployments", .name = "a b"};
    return vigil_kube_get(kube, &node);
}

#define PODS "/api/v1/namespaces/default/pods"

static const struct {
    vigil_kube_call *(*make)(vigil_kube *kube);
    const char *method, *target, *content_type, *body;
} requests[] = {
    {make_get, "GET", PODS "/web", "", ""},
    {make_list, "GET",
     PODS "?fieldSelector=metadata.name%3Dx&labelSelector=app%3Dweb%2Ctier%20in%20%28a%29&limit=3"
          "&resourceVersion=5&resourceVersionMatch=Exact",
     "", ""},
    {make_list_of_a_next_page, "GET", PODS "?continue=a%2Fb&limit=3", "", ""},
    {make_create, "POST", PODS "?dryRun=All&fieldManager=me&fieldValidation=Strict",
     "application/json", "{}"},
    {make_update, "PUT", PODS "/web/status", "application/json", "{}"},
    {make_json_patch, "PATCH", PODS "/web", "application/json-patch+json", "[]"},
    {make_merge_patch, "PATCH", PODS "/web", "application/merge-patch+json", "{}"},
    {make_strategic_patch, "PATCH", PODS "/web", "application/strategic-merge-patch+json", "{}"},
    {make_apply, "PATCH", PODS "/web?fieldManager=me&force=true", "application/apply-patch+yaml",
     "a: b"},
    {make_delete, "DELETE", PODS "/web", "", ""},
    {make_delete_with_options, "DELETE", PODS "/web", "application/json",
     "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"gracePeriodSeconds\":0,"
     "\"preconditions\":{\"uid\":\"u\\\"1\",\"resourceVersion\":\"9\"},"
     "\"propagationPolicy\":\"Foreground\",\"dryRun\":[\"All\"]}"},
    {make_delete_collection, "DELETE", PODS "?labelSelector=a", "application/json",
     "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"propagationPolicy\":\"Orphan\"}"},
    {make_request, "PUT", "/x/y?z=1", "text/plain", "hello"},
    {make_cluster_get, "GET", "/apis/apps/v1/deployments/a%20b", "", ""},
};

static void answer_anything(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    (void)ctx;
    if (strcmp(request->method, "GET") == 0 && !strstr(request->target, "/web") &&
        !strstr(request->target, "deployments"))
        sim_reply_json(reply, 200, "{\"kind\":\"PodList\",\"items\":[]}");
    else
        sim_reply_json(reply, 200, CALL_POD);
}

static void requests_are_sent_as_the_program_wants(void **state)
{
    (void)state;
    struct kube_world w;
    call_world_start(&w, SIM_HTTP2, answer_anything, NULL);
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        struct call_result r = {.code = 0};
        call_run(&w, &r, requests[i].make(w.kube));
        if (r.code != VIGIL_OK)
            fail_msg("%s", vigil_kube_call_error(r.call)->text);
        const struct sim_request *sent = kube_server_last(&w.server);
        assert_string_equal(sent->method, requests[i].method);
        assert_string_equal(sent->target, requests[i].target);
        assert_string_equal(sent->content_type, requests[i].content_type);
        assert_string_equal(sent->body, requests[i].body);
        assert_string_equal(sent->accept, "application/json, */*");
        call_end(&r);
    }
    assert_int_equal(w.server.request_count, COUNT_OF(requests));
    kube_world_fini(&w);
}

static void wrong_arguments_are_refused_at_the_start(void **state)
{
    (void)state;
    struct kube_world w;
    static const vigil_kube_target none = {.resource = NULL},
                                   bad = {.version = "v1", .resource = "pods", .name = "a/b"};
    vigil_kube_list_options unset = {.limit = 1},
                            negative = {.size = sizeof(negative), .limit = -1};
    vigil_kube_write_options unset_write = {.force = 1};
    vigil_kube_delete_options unset_delete = {.dry_run = 1};
    vigil_bytes object = vigil_text("{}");
    call_world_start(&w, SIM_HTTP2, call_answer_pod, NULL);
    vigil_kube_call *calls[] = {
        vigil_kube_get(w.kube, &none),
        vigil_kube_get(w.kube, &bad),
        vigil_kube_get(w.kube, &call_pods),
        vigil_kube_list(w.kube, &call_pod, NULL),
        vigil_kube_list(w.kube, &call_pods, &unset),
        vigil_kube_list(w.kube, &call_pods, &negative),
        vigil_kube_list_each(w.kube, &call_pod, NULL, NULL, NULL),
        vigil_kube_create(w.kube, &call_pod, object, NULL),
        vigil_kube_create(w.kube, &call_pods, vigil_text(""), NULL),
        vigil_kube_create(w.kube, &call_pods, object, &unset_write),
        vigil_kube_update(w.kube, &call_pods, object, NULL),
        vigil_kube_patch(w.kube, &call_pod, 4, object, NULL),
        vigil_kube_patch(w.kube, &call_pod, -1, object, NULL),
        vigil_kube_patch(w.kube, &call_pods, VIGIL_KUBE_PATCH_JSON, object, NULL),
        vigil_kube_apply(w.kube, &call_pod, object, "", 0),
        vigil_kube_delete(w.kube, &call_pods, NULL),
        vigil_kube_delete(w.kube, &call_pod, &unset_delete),
        vigil_kube_delete_collection(w.kube, &call_pod, NULL, NULL),
        vigil_kube_request(w.kube, "GET", "x", NULL, vigil_text("")),
        vigil_kube_request(w.kube, "", "/x", NULL, vigil_text("")),
        vigil_kube_request(w.kube, "GET", "/x y", NULL, vigil_text("")),
        vigil_kube_request(w.kube, "G T", "/x", NULL, vigil_text("")),
        vigil_kube_request(w.kube, "PUT", "/x", "a\nb", object),
    };
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        struct call_result r = {.code = 0};
        call_run(&w, &r, calls[i]);
        assert_int_equal(r.code, VIGIL_ERROR_ARGUMENT);
        assert_int_equal(r.outcome, VIGIL_NOT_SENT);
        call_end(&r);
    }
    assert_int_equal(w.server.request_count, 0);
    kube_world_fini(&w);
}

/* -- What is answered -- */

static void answers_can_be_read(void **state)
{
    (void)state;
    for (enum sim_protocol protocol = 0; protocol < SIM_PROTOCOLS; protocol++) {
        struct kube_world w;
        struct call_result r = {.code = 0};
        call_world_start(&w, protocol, call_answer_pod, NULL);
        call_run(&w, &r, make_get(w.kube));
        assert_int_equal(r.code, VIGIL_OK);
        const vigil_kube_object *object = vigil_kube_call_object(r.call);
        assert_non_null(object);
        vigil_bytes key = vigil_kube_object_key(object);
        assert_memory_equal(key.data, "default/web", key.size);
        assert_int_equal(vigil_kube_call_body(r.call).size, sizeof(CALL_POD) - 1);
        assert_int_equal(vigil_kube_call_status(r.call)->code, 0);
        assert_string_equal(vigil_kube_call_version(r.call), "");
        call_end(&r);
        kube_world_fini(&w);
    }
}

static void answer_list(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    (void)request, (void)ctx;
    sim_reply_json(reply, 200,
                   "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":"
                   "\"12\",\"continue\":\"next\\u0021\"},\"items\":[" CALL_POD "]}");
}

static void list_has_a_version_and_a_token(void **state)
{
    (void)state;
    struct kube_world w;
    struct call_result r = {.code = 0};
    call_world_start(&w, SIM_HTTP1, answer_list, NULL);
    call_run(&w, &r, vigil_kube_list(w.kube, &call_pods, NULL));
    assert_int_equal(r.code, VIGIL_OK);
    assert_string_equal(vigil_kube_call_version(r.call), "12");
    assert_string_equal(vigil_kube_call_continue(r.call), "next!");
    assert_null(vigil_kube_call_object(r.call));
    call_end(&r);
    kube_world_fini(&w);
}

struct canned {
    unsigned code;
    const char *type, *body;
    int expected;
    int status; /* result of vigil_kube_call_status */
    bool has_object;
};

static void answer_canned(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    const struct canned *c = ctx;
    (void)request;
    sim_reply_whole(reply, c->code, c->type, slice_from_text(c->body));
}

#define JSON "application/json"
#define STATUS(state, code) \
    "{\"kind\":\"Status\",\"status\":\"" state "\",\"message\":\"no\",\"code\":" #code "}"

static void answers_of_all_kinds_are_understood(void **state)
{
    (void)state;
    static const struct canned rows[] = {
        {200, JSON, CALL_POD, VIGIL_OK, 0, true},
        {201, JSON "; charset=utf-8", CALL_POD, VIGIL_OK, 0, true},
        {200, JSON, "{\"kind\":\"SelfSubjectReview\",\"metadata\":{}}", VIGIL_OK, 0, false},
        {200, JSON, STATUS("Success", 200), VIGIL_OK, 0, false},
        {200, JSON, STATUS("Failure", 409), VIGIL_ERROR_SERVER, 409, false},
        {200, "text/plain", "log of the pod", VIGIL_OK, 0, false},
        {200, "", "no type", VIGIL_OK, 0, false},
        {204, "", "", VIGIL_OK, 0, false},
        {202, JSON, "", VIGIL_OK, 0, false},
        {200, JSON, "{", VIGIL_ERROR_PROTOCOL, 0, false},
        {200, JSON, "[]", VIGIL_ERROR_PROTOCOL, 0, false},
        {200, JSON, CALL_POD "x", VIGIL_ERROR_PROTOCOL, 0, false},
        {200, "application/vnd.kubernetes.protobuf", "{}", VIGIL_ERROR_PROTOCOL, 0, false},
        {207, JSON, CALL_POD, VIGIL_ERROR_SERVER, 207, false},
        {301, "", "", VIGIL_ERROR_SERVER, 301, false},
        {401, "text/plain", "who?", VIGIL_ERROR_UNAUTHENTICATED, 401, false},
        {403, JSON, STATUS("Failure", 403), VIGIL_ERROR_PERMISSION_DENIED, 403, false},
        {404, JSON, STATUS("Failure", 404), VIGIL_ERROR_SERVER, 404, false},
        {429, JSON, STATUS("Failure", 429), VIGIL_ERROR_TOO_MANY_REQUESTS, 429, false},
        {500, "text/plain", "oops", VIGIL_ERROR_SERVER, 500, false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct kube_world w;
        struct call_result r = {.code = 0};
        call_world_start(&w, i % 2 ? SIM_HTTP1 : SIM_HTTP2, answer_canned, (void *)&rows[i]);
        call_run(&w, &r, make_get(w.kube));
        assert_int_equal(r.code, rows[i].expected);
        assert_int_equal(vigil_kube_call_status(r.call)->code, rows[i].status);
        assert_int_equal(vigil_kube_call_object(r.call) != NULL, rows[i].has_object);
        assert_int_equal(vigil_kube_call_body(r.call).size,
                         r.code == VIGIL_OK ? strlen(rows[i].body) : 0);
        if (rows[i].status)
            assert_int_equal(r.outcome, rows[i].status >= 500 ? VIGIL_UNKNOWN : VIGIL_REFUSED);
        assert_int_equal(w.server.request_count, 1);
        call_end(&r);
        kube_world_fini(&w);
    }
}

static void protobuf_is_requested(void **state)
{
    (void)state;
    struct kube_world w;
    struct call_result r = {.code = 0};
    call_world_start(&w, SIM_HTTP2, call_answer_pod, NULL);
    vigil_kube_call *call = make_get(w.kube);
    vigil_kube_call_want_protobuf(call);
    call_run(&w, &r, call);
    assert_int_equal(r.code, VIGIL_OK); /* custom resources are JSON all the same */
    assert_string_equal(kube_server_last(&w.server)->accept,
                        "application/vnd.kubernetes.protobuf,application/json");
    call_end(&r);
    kube_world_fini(&w);
}

static void answer_that_is_too_large_is_refused(void **state)
{
    (void)state;
    for (size_t limit = sizeof(CALL_POD) - 2; limit <= sizeof(CALL_POD); limit++) {
        struct kube_world w;
        struct call_result r = {.code = 0};
        call_world_init(&w, SIM_HTTP1, call_answer_pod, NULL);
        w.options.receive_bytes_max = limit;
        assert_true(kube_world_start(&w));
        call_run(&w, &r, make_get(w.kube));
        assert_int_equal(r.code, limit < sizeof(CALL_POD) - 1 ? VIGIL_ERROR_TOO_LARGE : VIGIL_OK);
        call_end(&r);
        kube_world_fini(&w);
    }
}

/* -- Attempts -- */

struct script {
    unsigned refusals; /* before the answer */
    unsigned code;     /* status of the refusals; 0: the connection breaks */
    const char *retry_after;
};

static void answer_script(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    const struct script *s = ctx;
    (void)request;
    if (reply->number >= s->refusals) {
        sim_reply_json(reply, 200, CALL_POD);
        return;
    }
    if (s->code == 0) {
        sim_reply_lose(reply);
        return;
    }
    if (s->retry_after)
        sim_reply_field(reply, "Retry-After", s->retry_after);
    sim_reply_status(reply, s->code, "Busy", "try later");
}

static void expect_attempts(vigil_kube_call *(*make)(vigil_kube *), struct script script,
                            unsigned attempts, int code, int64_t least_ns)
{
    for (enum sim_protocol protocol = SIM_HTTP1; protocol <= SIM_HTTP2; protocol++) {
        struct kube_world w;
        struct call_result r = {.code = 0};
        vigil_kube_stats stats;
        call_world_start(&w, protocol, answer_script, &script);
        vigil_kube_call *call = make(w.kube);
        vigil_kube_call_set_timeout(call, 0);
        int64_t from = kube_world_now(&w);
        call_run(&w, &r, call);
        assert_int_equal(r.code, code);
        assert_int_equal(w.server.request_count, attempts);
        assert_in_range(r.at_ns - from, least_ns, least_ns + NS_PER_S);
        kube_world_run(&w, NS_PER_MS);
        vigil_kube_get_stats(w.kube, &stats, sizeof(stats));
        assert_int_equal(stats.calls_retried, attempts - 1);
        assert_int_equal(stats.calls_started, 1);
        assert_int_equal(stats.calls_completed, 1);
        call_end(&r);
        kube_world_fini(&w);
    }
}

static void busy_server_determines_the_pause(void **state)
{
    (void)state;
    expect_attempts(make_get, (struct script){2, 429, "3"}, 3, VIGIL_OK, 6 * NS_PER_S);
    expect_attempts(make_create, (struct script){1, 429, "1"}, 2, VIGIL_OK, NS_PER_S);
    expect_attempts(make_update, (struct script){1, 500, "1"}, 2, VIGIL_OK, NS_PER_S);
    expect_attempts(make_get, (struct script){1, 503, "0"}, 2, VIGIL_OK, 0);
    expect_attempts(make_get, (struct script){10, 429, "1"}, 11, VIGIL_OK, 10 * NS_PER_S);
    expect_attempts(make_get, (struct script){11, 429, "1"}, 11, VIGIL_ERROR_TOO_MANY_REQUESTS,
                    10 * NS_PER_S);
}

static void other_refusals_are_final(void **state)
{
    (void)state;
    expect_attempts(make_get, (struct script){1, 429, NULL}, 1, VIGIL_ERROR_TOO_MANY_REQUESTS, 0);
    expect_attempts(make_get, (struct script){1, 429, "soon"}, 1, VIGIL_ERROR_TOO_MANY_REQUESTS, 0);
    expect_attempts(make_get, (struct script){1, 503, NULL}, 1, VIGIL_ERROR_SERVER, 0);
    expect_attempts(make_get, (struct script){1, 404, "1"}, 1, VIGIL_ERROR_SERVER, 0);
    expect_attempts(make_get, (struct script){1, 410, "1"}, 1, VIGIL_ERROR_SERVER, 0);
}

static void broken_connection_is_retried_for_reads_only(void **state)
{
    (void)state;
    struct script once = {1, 0, NULL};
    expect_attempts(make_get, once, 2, VIGIL_OK, NS_PER_S);
    expect_attempts(make_get, (struct script){10, 0, NULL}, 11, VIGIL_OK, 10 * NS_PER_S);
    expect_attempts(make_get, (struct script){11, 0, NULL}, 11, VIGIL_ERROR_UNAVAILABLE,
                    10 * NS_PER_S);
    expect_attempts(make_create, once, 1, VIGIL_ERROR_UNAVAILABLE, 0);
    expect_attempts(make_update, once, 1, VIGIL_ERROR_UNAVAILABLE, 0);
    expect_attempts(make_delete, once, 1, VIGIL_ERROR_UNAVAILABLE, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_sent_as_the_program_wants),
        cmocka_unit_test(wrong_arguments_are_refused_at_the_start),
        cmocka_unit_test(answers_can_be_read),
        cmocka_unit_test(list_has_a_version_and_a_token),
        cmocka_unit_test(answers_of_all_kinds_are_understood),
        cmocka_unit_test(protobuf_is_requested),
        cmocka_unit_test(answer_that_is_too_large_is_refused),
        cmocka_unit_test(busy_server_determines_the_pause),
        cmocka_unit_test(other_refusals_are_final),
        cmocka_unit_test(broken_connection_is_retried_for_reads_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
