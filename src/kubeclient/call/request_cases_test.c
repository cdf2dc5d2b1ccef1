/* The cases of client-go's request_test.go and with_retry_test.go under their names; those that do
 * not apply are in tests/kube_client/client_go_cases.txt, with the reason. */
#include "kubeclient/call/call_world_test.h"

/* What the server does with one attempt after the other. */
struct step {
    enum { ANSWER, LOSE, HANG } kind;
    unsigned code;
    const char *retry_after;
    const char *body;
};

enum { STEPS_MAX = 12 };

struct steps {
    struct step steps[STEPS_MAX]; /* the last one with a code or kind is repeated */
    size_t count;
};

static void answer_steps(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    const struct steps *s = ctx;
    const struct step *step = &s->steps[reply->number < s->count ? reply->number : s->count - 1];
    (void)request;
    if (step->kind == HANG)
        return;
    if (step->kind == LOSE) {
        sim_reply_lose(reply);
        return;
    }
    if (step->retry_after)
        sim_reply_field(reply, "Retry-After", step->retry_after);
    sim_reply_whole(reply, step->code, step->body ? "application/json" : "",
                    slice_from_text(step->body ? step->body : ""));
}

#define OK_STEP     \
    {               \
        .code = 200 \
    }
#define RETRY_AFTER(c)                  \
    {                                   \
        .code = (c), .retry_after = "1" \
    }
#define LOST         \
    {                \
        .kind = LOSE \
    }
#define STEPS(...)                                                          \
    (struct steps)                                                          \
    {                                                                       \
        .steps = {__VA_ARGS__},                                             \
        .count = sizeof((struct step[]){__VA_ARGS__}) / sizeof(struct step) \
    }

/* A request without a query; the call is freed with call_end. */
static void run_request(struct kube_world *w, struct call_result *r, const char *method,
                        const char *path)
{
    call_run(w, r, vigil_kube_request(w->kube, method, path, NULL, vigil_text("")));
}

static void expect_attempts(const char *method, struct steps steps, size_t attempts, int code)
{
    for (enum sim_protocol protocol = SIM_HTTP1; protocol <= SIM_HTTP2; protocol++) {
        struct kube_world w;
        struct call_result r = {.code = 0};
        call_world_start(&w, protocol, answer_steps, &steps);
        run_request(&w, &r, method, "/foo");
        assert_int_equal(r.code, code);
        assert_int_equal(w.server.request_count, attempts);
        call_end(&r);
        kube_world_fini(&w);
    }
}

/* -- What is sent -- */

static void new_request_sets_accept(void **state)
{
    (void)state;
    struct kube_world w;
    struct call_result r = {.code = 0};
    call_world_start(&w, SIM_HTTP1, call_answer_pod, NULL);
    run_request(&w, &r, "GET", "/foo");
    assert_string_equal(kube_server_last(&w.server)->accept, "application/json, */*");
    call_end(&r);
    vigil_kube_call *call = vigil_kube_get(w.kube, &call_pod);
    vigil_kube_call_want_protobuf(call);
    call_run(&w, &r, call);
    assert_string_equal(kube_server_last(&w.server)->accept,
                        "application/vnd.kubernetes.protobuf,application/json");
    call_end(&r);
    kube_world_fini(&w);
}

static void request_sets_headers(void **state)
{
    (void)state;
    struct kube_world w;
    struct call_result r = {.code = 0};
    call_world_init(&w, SIM_HTTP2, call_answer_pod, NULL);
    w.options.user_agent = "controller/1";
    w.options.token = "secret";
    assert_true(kube_world_start(&w));
    run_request(&w, &r, "GET", "/foo");
    assert_string_equal(kube_server_last(&w.server)->user_agent, "controller/1");
    assert_string_equal(kube_server_last(&w.server)->authorization, "Bearer secret");
    call_end(&r);
    kube_world_fini(&w);
}

/* The target that a server with this prefix receives. */
static void expect_target(const char *prefix, const char *path, const char *target)
{
    struct kube_world w;
    struct call_result r = {.code = 0};
    call_world_init(&w, SIM_HTTP2, call_answer_pod, NULL);
    w.path_prefix = prefix;
    assert_true(kube_world_start(&w));
    run_request(&w, &r, "GET", path);
    assert_int_equal(r.code, VIGIL_OK);
    assert_string_equal(kube_server_last(&w.server)->target, target);
    call_end(&r);
    kube_world_fini(&w);
}

static void request_abs_path_preserves_trailing_slash(void **state)
{
    (void)state;
    expect_target("", "/foo/", "/foo/");
}

static void request_abs_path_joins(void **state)
{
    (void)state;
    expect_target("/foo", "/bar/baz", "/foo/bar/baz");
}

static void abs_path(void **state)
{
    (void)state;
    expect_target("", "/", "/");
    expect_target("/", "/", "/");
    expect_target("", "/api", "/api");
    expect_target("", "/api/", "/api/");
    expect_target("", "/apis", "/apis");
    expect_target("/p1", "/", "/p1/");
    expect_target("/p1", "/api", "/p1/api");
    expect_target("/p1", "/apis", "/p1/apis");
    expect_target("/p1/api/p2", "/", "/p1/api/p2/");
    expect_target("/p1/api/p2", "/api", "/p1/api/p2/api");
    expect_target("/p1/api/p2", "/api/", "/p1/api/p2/api/");
}

static void request_uri(void **state)
{
    (void)state;
    expect_target("", "/test?foo=b&a=b&c=1&c=2", "/test?foo=b&a=b&c=1&c=2");
}

static void request_uri_context(void **state)
{
    (void)state;
    expect_target("/context", "/test?foo=b&a=b&c=1&c=2", "/context/test?foo=b&a=b&c=1&c=2");
}

static void expect_path(vigil_kube_target target, const char *path)
{
    struct kube_world w;
    struct call_result r = {.code = 0};
    call_world_start(&w, SIM_HTTP2, call_answer_pod, NULL);
    call_run(&w, &r, vigil_kube_get(w.kube, &target));
    assert_string_equal(kube_server_last(&w.server)->target, path);
    call_end(&r);
    kube_world_fini(&w);
}

static void request_sets_namespace(void **state)
{
    (void)state;
    expect_path(
        (vigil_kube_target){
            .version = "v1", .resource = "pods", .name_space = "foo", .name = "bar"},
        "/api/v1/namespaces/foo/pods/bar");
}

static void request_orders_namespace_in_path(void **state)
{
    (void)state;
    expect_path((vigil_kube_target){.group = "test",
                                    .version = "v1",
                                    .name = "bar",
                                    .resource = "baz",
                                    .name_space = "foo"},
                "/apis/test/v1/namespaces/foo/baz/bar");
}

static void request_orders_sub_resource(void **state)
{
    (void)state;
    expect_path((vigil_kube_target){.group = "test",
                                    .version = "v1",
                                    .resource = "baz",
                                    .name_space = "foo",
                                    .name = "bar",
                                    .subresource = "test"},
                "/apis/test/v1/namespaces/foo/baz/bar/test");
}

static void expect_refused(struct kube_world *w, vigil_kube_call *call)
{
    struct call_result r = {.code = 0};
    call_run(w, &r, call);
    assert_int_equal(r.code, VIGIL_ERROR_ARGUMENT);
    assert_int_equal(w->server.request_count, 0);
    call_end(&r);
}

static void invalid_segments(void **state)
{
    (void)state;
    static const char *const texts[] = {".", "..", "test/segment", "test%2bsegment"};
    struct kube_world w;
    call_world_start(&w, SIM_HTTP1, call_answer_pod, NULL);
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        vigil_kube_target rows[] = {call_pod, call_pod, call_pod, call_pod};
        rows[0].name_space = texts[i];
        rows[1].resource = texts[i];
        rows[2].name = texts[i];
        rows[3].subresource = texts[i];
        for (size_t k = 0; k < COUNT_OF(rows); k++)
            expect_refused(&w, vigil_kube_get(w.kube, &rows[k]));
    }
    kube_world_fini(&w);
}

static void request_error(void **state)
{
    (void)state;
    struct kube_world w;
    call_world_start(&w, SIM_HTTP1, call_answer_pod, NULL);
    expect_refused(&w, vigil_kube_request(w.kube, "GET", "%", NULL, vigil_text("")));
    kube_world_fini(&w);
}

static void expect_list(vigil_kube_list_options options, const char *target)
{
    struct steps steps = STEPS({.code = 200, .body = "{\"kind\":\"PodList\",\"items\":[]}"});
    struct kube_world w;
    struct call_result r = {.code = 0};
    call_world_start(&w, SIM_HTTP1, answer_steps, &steps);
    call_run(&w, &r, vigil_kube_list(w.kube, &call_pods, &options));
    assert_int_equal(r.code, VIGIL_OK);
    assert_string_equal(kube_server_last(&w.server)->target, target);
    call_end(&r);
    kube_world_fini(&w);
}

static void request_param(void **state)
{
    (void)state;
    expect_list((vigil_kube_list_options){.size = sizeof(vigil_kube_list_options),
                                          .label_selector = "a",
                                          .field_selector = "b"},
                "/api/v1/namespaces/default/pods?fieldSelector=b&labelSelector=a");
}

static void request_versioned_params_from_list_options(void **state)
{
    (void)state;
    expect_list((vigil_kube_list_options){.size = sizeof(vigil_kube_list_options), .version = "1"},
                "/api/v1/namespaces/default/pods?resourceVersion=1");
}

static void expect_body(const char *method, const char *path, const char *body)
{
    struct kube_world w;
    struct call_result r = {.code = 0};
    call_world_start(&w, SIM_HTTP1, call_answer_pod, NULL);
    call_run(&w, &r, vigil_kube_request(w.kube, method, path, NULL, vigil_text(body)));
    assert_int_equal(r.code, VIGIL_OK);
    assert_non_null(vigil_kube_call_object(r.call));
    assert_string_equal(kube_server_last(&w.server)->method, method);
    assert_string_equal(kube_server_last(&w.server)->target, path);
    assert_string_equal(kube_server_last(&w.server)->body, body);
    assert_string_equal(kube_server_last(&w.server)->content_type, *body ? "application/json" : "");
    call_end(&r);
    kube_world_fini(&w);
}

static void request_body(void **state)
{
    (void)state;
    expect_body("POST", "/foo", "test");
    expect_body("POST", "/foo", "");
}

static void body(void **state)
{
    (void)state;
    expect_body("POST", "/foo", "{\"metadata\":{\"name\":\"foo\"}}");
}

static void do_request_new_way(void **state)
{
    (void)state;
    expect_body("POST", "/foo/bar/baz?timeout=1s", "request body");
}

static void verbs(void **state)
{
    (void)state;
    static const char *const methods[] = {"POST", "PUT", "GET", "DELETE", "PATCH"};
    for (size_t i = 0; i < COUNT_OF(methods); i++)
        expect_body(methods[i], "/foo", "");
}

/* -- What is answered -- */

struct answer_case {
    const char *method;
    unsigned code;
    const char *type, *body;
    int status;         /* expected; 0: success */
    const char *reason; /* reason of the Status; NULL: any */
};

static void answer_one(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    const struct answer_case *c = ctx;
    (void)request;
    sim_reply_whole(reply, c->code, c->type, slice_from_text(c->body));
}

static void expect_answers(const struct answer_case *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct kube_world w;
        struct call_result r = {.code = 0};
        call_world_start(&w, SIM_HTTP1, answer_one, (void *)&rows[i]);
        run_request(&w, &r, rows[i].method ? rows[i].method : "GET", "/foo");
        assert_int_equal(r.code == VIGIL_OK, rows[i].status == 0);
        assert_int_equal(vigil_kube_call_status(r.call)->code, rows[i].status);
        if (rows[i].reason)
            assert_string_equal(vigil_kube_call_status(r.call)->reason, rows[i].reason);
        if (rows[i].status == 0)
            assert_int_equal(vigil_kube_call_body(r.call).size, strlen(rows[i].body));
        call_end(&r);
        kube_world_fini(&w);
    }
}

static void transform_response(void **state)
{
    (void)state;
    static const struct answer_case rows[] = {
        {NULL, 200, "", "", 0, NULL},
        {NULL, 201, "", "", 0, NULL},
        {NULL, 500, "", "", 500, "InternalError"},
        {NULL, 422, "", "", 422, "Invalid"},
        {NULL, 409, "", "", 409, "Conflict"},
        {NULL, 404, "", "", 404, "NotFound"},
        {NULL, 401, "", "", 401, "Unauthorized"},
        {NULL, 401, "application/json", "aaaaa", 401, "Unauthorized"},
        {NULL, 401, "text/any", "aaaaa", 401, "Unauthorized"},
        {NULL, 403, "", "", 403, "Forbidden"},
        {NULL, 200, "", "aaaaa", 0, NULL},
    };
    expect_answers(rows, COUNT_OF(rows));
}

static void transform_response_negotiate(void **state)
{
    (void)state;
    static const struct answer_case rows[] = {
        {NULL, 401, "application/json", "aaaaa", 401, "Unauthorized"},
        {NULL, 401, "application/protobuf", "aaaaa", 401, "Unauthorized"},
        {NULL, 500, "application/,others", "aaaaa", 500, "InternalError"},
        {NULL, 200, "text/any", "aaaaa", 0, NULL},
        {NULL, 404, "application/unrecognized", "aaaaa", 404, "NotFound"},
    };
    expect_answers(rows, COUNT_OF(rows));
}

static void transform_unstructured_error(void **state)
{
    (void)state;
    static const char json[] = "application/json";
    static const struct answer_case rows[] = {
        {"POST", 409, "", "", 409, "AlreadyExists"},
        {"PUT", 409, "", "", 409, "Conflict"},
        {NULL, 404, "", "", 404, "NotFound"},
        {NULL, 400, "", "", 400, "BadRequest"},
        {NULL, 400, json,
         "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"code\":404}", 404,
         NULL},
        {NULL, 400, json,
         "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Success\",\"code\":404}", 400,
         "BadRequest"},
        {NULL, 400, json, "{}", 400, "BadRequest"},
        {NULL, 400, json, "{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":404}", 404, NULL},
        {NULL, 400, json, "{\"status\":\"Failure\",\"code\":404}", 400, "BadRequest"},
    };
    expect_answers(rows, COUNT_OF(rows));
}

static void result_into_with_err_returns_err(void **state)
{
    (void)state;
    struct steps steps = STEPS({.code = 404, .body = CALL_POD});
    struct kube_world w;
    struct call_result r = {.code = 0};
    call_world_start(&w, SIM_HTTP1, answer_steps, &steps);
    call_run(&w, &r, vigil_kube_get(w.kube, &call_pod));
    assert_int_equal(r.code, VIGIL_ERROR_SERVER);
    assert_null(vigil_kube_call_object(r.call));
    assert_int_equal(vigil_kube_call_body(r.call).size, 0);
    call_end(&r);
    kube_world_fini(&w);
}

static void request_do(void **state)
{
    (void)state;
    struct kube_world w;
    struct call_result r = {.code = 0};
    call_world_start(&w, SIM_HTTP1, call_answer_pod, NULL);
    kube_server_stop(&w.server);
    call_run(&w, &r, vigil_kube_get(w.kube, &call_pod));
    assert_int_equal(r.code, VIGIL_ERROR_UNAVAILABLE);
    assert_int_equal(r.outcome, VIGIL_NOT_SENT);
    assert_int_equal(vigil_kube_call_body(r.call).size, 0);
    call_end(&r);
    kube_world_fini(&w);
}

static void answer_with_warnings(struct sim_reply *reply, const struct sim_request *request,
                                 void *ctx)
{
    sim_reply_field(reply, "Warning", "299 - \"message\"");
    call_answer_pod(reply, request, ctx);
}

static void request_warning_handler(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct kube_world w;
        struct call_result r = {.code = 0};
        call_world_init(&w, SIM_HTTP2, answer_with_warnings, NULL);
        if (i)
            w.options.warning = NULL;
        assert_true(kube_world_start(&w));
        run_request(&w, &r, "GET", "/foo");
        assert_int_equal(r.code, VIGIL_OK);
        assert_string_equal(w.warnings, i ? "" : "message\n");
        call_end(&r);
        kube_world_fini(&w);
    }
}

/* -- Repetitions -- */

static void check_retry_closes_body(void **state)
{
    (void)state;
    struct steps steps =
        STEPS(RETRY_AFTER(429), RETRY_AFTER(429), RETRY_AFTER(429), RETRY_AFTER(429), OK_STEP);
    struct kube_world w;
    struct call_result r = {.code = 0};
    vigil_kube_stats stats;
    call_world_start(&w, SIM_HTTP1, answer_steps, &steps);
    run_request(&w, &r, "POST", "/foo/bar/baz");
    assert_int_equal(r.code, VIGIL_OK);
    assert_int_equal(w.server.request_count, 5);
    for (size_t i = 1; i < 5; i++)
        assert_in_range(w.server.requests[i].at_ns - w.server.requests[i - 1].at_ns, NS_PER_S,
                        NS_PER_S + 10 * NS_PER_MS);
    kube_world_run(&w, NS_PER_MS);
    vigil_kube_get_stats(w.kube, &stats, sizeof(stats));
    assert_int_equal(stats.connects, 1); /* it is used again, because the bodies were read */
    call_end(&r);
    kube_world_fini(&w);
}

static void connection_reset_by_peer_is_retried(void **state)
{
    (void)state;
    expect_attempts("GET", STEPS(LOST, LOST, OK_STEP), 3, VIGIL_OK);
}

static void check_retry_handles429_and5xx(void **state)
{
    (void)state;
    struct steps steps =
        STEPS({.code = 429, .retry_after = "0"}, {.code = 500, .retry_after = "0"},
              {.code = 501, .retry_after = "0"}, {.code = 504, .retry_after = "0"}, OK_STEP);
    struct kube_world w;
    struct call_result r = {.code = 0};
    char large[1001] = "";
    for (size_t i = 0; i < 1000; i++)
        large[i] = "abcd"[i % 4];
    call_world_start(&w, SIM_HTTP2, answer_steps, &steps);
    call_run(&w, &r, vigil_kube_request(w.kube, "POST", "/foo/bar/baz", NULL, vigil_text(large)));
    assert_int_equal(r.code, VIGIL_OK);
    assert_int_equal(w.server.request_count, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(w.server.requests[i].body, large);
    call_end(&r);
    kube_world_fini(&w);
}

static void request_with_retry(void **state)
{
    (void)state;
    expect_attempts("GET", STEPS(RETRY_AFTER(500), OK_STEP), 2, VIGIL_OK);
    expect_attempts("GET", STEPS(LOST, OK_STEP), 2, VIGIL_OK);
}

static void request_do_with_retry(void **state)
{
    (void)state;
    expect_attempts("GET", STEPS(RETRY_AFTER(500)), 11, VIGIL_ERROR_SERVER);
    expect_attempts("GET", STEPS(LOST), 11, VIGIL_ERROR_UNAVAILABLE);
    expect_attempts("GET", STEPS(RETRY_AFTER(500), LOST, OK_STEP), 3, VIGIL_OK);
    expect_attempts("GET", STEPS({.code = 404, .retry_after = "1"}), 1, VIGIL_ERROR_SERVER);
}

static void is_next_retry(void **state)
{
    (void)state;
    expect_attempts("GET", STEPS(LOST, OK_STEP), 2, VIGIL_OK);
    expect_attempts("GET", STEPS({.code = 429, .retry_after = "2"}, OK_STEP), 2, VIGIL_OK);
    expect_attempts("GET", STEPS({.code = 503, .retry_after = "3"}, OK_STEP), 2, VIGIL_OK);
    expect_attempts("GET", STEPS({.code = 429}), 1, VIGIL_ERROR_TOO_MANY_REQUESTS);
    expect_attempts("GET", STEPS(LOST, LOST, LOST, LOST, LOST, LOST, LOST, LOST, LOST, LOST, LOST),
                    11, VIGIL_ERROR_UNAVAILABLE);
}

static void retryable_conditions(void **state)
{
    (void)state;
    static const char *const methods[] = {"GET", "POST", "PUT", "DELETE", "PATCH"};
    for (size_t i = 0; i < COUNT_OF(methods); i++) {
        expect_attempts(methods[i], STEPS({.code = 429, .retry_after = "0"}, OK_STEP), 2, VIGIL_OK);
        expect_attempts(methods[i], STEPS({.code = 503, .retry_after = "0"}, OK_STEP), 2, VIGIL_OK);
        expect_attempts(methods[i], STEPS({.code = 500}), 1, VIGIL_ERROR_SERVER);
        expect_attempts(methods[i], STEPS({.code = 429}), 1, VIGIL_ERROR_TOO_MANY_REQUESTS);
        expect_attempts(methods[i], STEPS({.code = 301, .retry_after = "0"}), 1,
                        VIGIL_ERROR_SERVER);
        expect_attempts(methods[i], STEPS(OK_STEP), 1, VIGIL_OK);
        expect_attempts(methods[i], STEPS(LOST, OK_STEP), i ? 1 : 2,
                        i ? VIGIL_ERROR_UNAVAILABLE : VIGIL_OK);
        expect_attempts(methods[i], STEPS({.kind = HANG}), 1, VIGIL_ERROR_TIMEOUT);
    }
}

/* A repetition waits for the server's time first, and then for its turn. */
static void request_do_retry_with_rate_limiter_backoff_and_metrics(void **state)
{
    (void)state;
    struct steps steps = STEPS(RETRY_AFTER(500), OK_STEP);
    struct kube_world w;
    struct call_result r = {.code = 0}, other = {.code = 0};
    vigil_kube_stats stats;
    call_world_init(&w, SIM_HTTP2, answer_steps, &steps);
    w.options.calls_per_second = 1;
    w.options.calls_burst = 1;
    assert_true(kube_world_start(&w));
    int64_t from = kube_world_now(&w);
    call_start(&w, &r, vigil_kube_request(w.kube, "GET", "/one", NULL, vigil_text("")));
    call_start(&w, &other, vigil_kube_request(w.kube, "GET", "/two", NULL, vigil_text("")));
    KUBE_WORLD_RUN_UNTIL(&w, r.completions && other.completions);
    assert_int_equal(r.code, VIGIL_OK);
    assert_int_equal(other.code, VIGIL_OK);
    assert_int_equal(w.server.request_count, 3);
    assert_string_equal(w.server.requests[1].target, "/two");
    assert_in_range(w.server.requests[1].at_ns - from, NS_PER_S, 1010 * NS_PER_MS);
    assert_in_range(w.server.requests[2].at_ns - from, 2 * NS_PER_S, 2010 * NS_PER_MS);
    kube_world_run(&w, NS_PER_MS);
    vigil_kube_get_stats(w.kube, &stats, sizeof(stats));
    assert_int_equal(stats.calls_retried, 1);
    call_end(&r);
    call_end(&other);
    kube_world_fini(&w);
}

/* -- Errors that name an earlier one -- */

/* The call is cancelled at its last attempt, which hangs. */
static void expect_wrapped(struct steps steps, size_t attempts, bool wrapped)
{
    struct kube_world w;
    struct call_result r = {.code = 0};
    call_world_start(&w, SIM_HTTP2, answer_steps, &steps);
    vigil_kube_call *call = vigil_kube_get(w.kube, &call_pod);
    vigil_kube_call_set_timeout(call, 0);
    call_start(&w, &r, call);
    kube_world_run(&w, 60 * NS_PER_S);
    assert_int_equal(w.server.request_count, attempts);
    if (r.completions == 0)
        vigil_kube_call_cancel(r.call);
    kube_world_run(&w, NS_PER_S);
    assert_int_equal(r.completions, 1);
    const char *text = vigil_kube_call_error(r.call)->text;
    assert_int_equal(strstr(text, " - error from a previous attempt: ") != NULL, wrapped);
    if (wrapped)
        assert_non_null(strstr(text, "connection reset by peer"));
    call_end(&r);
    kube_world_fini(&w);
}

#define HANGS        \
    {                \
        .kind = HANG \
    }

static void request_do_with_wrap_previous_error(void **state)
{
    (void)state;
    expect_wrapped(STEPS(OK_STEP), 1, false);
    expect_wrapped(STEPS(RETRY_AFTER(500), RETRY_AFTER(500), OK_STEP), 3, false);
    expect_wrapped(STEPS(LOST, LOST, OK_STEP), 3, false);
    expect_wrapped(STEPS({.code = 404}), 1, false);
    expect_wrapped(STEPS(RETRY_AFTER(500), RETRY_AFTER(500), HANGS), 3, false);
    expect_wrapped(STEPS(LOST, RETRY_AFTER(500), RETRY_AFTER(500), HANGS), 4, true);
    expect_wrapped(STEPS(RETRY_AFTER(500), RETRY_AFTER(500), LOST, RETRY_AFTER(500),
                         RETRY_AFTER(500), LOST, RETRY_AFTER(500), RETRY_AFTER(500), HANGS),
                   9, true);
    expect_wrapped(STEPS(LOST, LOST, HANGS), 3, true);
}

/* The same error twice is named once. */
static void wrap_previous_error(void **state)
{
    (void)state;
    expect_wrapped(STEPS(HANGS), 1, false);
    expect_wrapped(STEPS(LOST), 11, false);
    expect_wrapped(STEPS(LOST, HANGS), 2, true);
}

/* -- Life -- */

static void do_context(void **state)
{
    (void)state;
    struct steps steps = STEPS(HANGS);
    struct kube_world w;
    struct call_result r = {.code = 0};
    call_world_start(&w, SIM_HTTP2, answer_steps, &steps);
    call_start(&w, &r, vigil_kube_request(w.kube, "GET", "/foo", NULL, vigil_text("")));
    KUBE_WORLD_RUN_UNTIL(&w, w.server.request_count);
    vigil_kube_call_cancel(r.call);
    kube_world_run(&w, NS_PER_MS);
    assert_int_equal(r.code, VIGIL_ERROR_CANCELED);
    assert_int_equal(r.outcome, VIGIL_UNKNOWN);
    call_end(&r);
    kube_world_fini(&w);
}

static void answer_unless_hang(struct sim_reply *reply, const struct sim_request *request,
                               void *ctx)
{
    if (!strstr(request->target, "/hang"))
        call_answer_pod(reply, request, ctx);
}

static void http1_do_not_reuse_request_after_timeout(void **state)
{
    (void)state;
    for (enum sim_protocol protocol = 0; protocol < SIM_PROTOCOLS; protocol++) {
        bool is_http2 = protocol == SIM_HTTP2 || protocol == SIM_TLS_HTTP2;
        static const char *const paths[] = {"/foo", "/hang", "/foo"};
        struct kube_world w;
        vigil_kube_stats stats;
        call_world_init(&w, protocol, answer_unless_hang, NULL);
        w.options.call_timeout_ms = 1000;
        assert_true(kube_world_start(&w));
        for (size_t i = 0; i < COUNT_OF(paths); i++) {
            struct call_result r = {.code = 0};
            run_request(&w, &r, "GET", paths[i]);
            assert_int_equal(r.code, i == 1 ? VIGIL_ERROR_TIMEOUT : VIGIL_OK);
            call_end(&r);
        }
        kube_world_run(&w, NS_PER_MS);
        vigil_kube_get_stats(w.kube, &stats, sizeof(stats));
        assert_int_equal(stats.connects, is_http2 ? 1 : 2);
        kube_world_fini(&w);
    }
}

static void transport_concurrency(void **state)
{
    (void)state;
    for (enum sim_protocol protocol = SIM_HTTP1; protocol <= SIM_HTTP2; protocol++) {
        struct kube_world w;
        struct call_result r[30] = {{.code = 0}};
        call_world_start(&w, protocol, call_answer_pod, NULL);
        for (size_t i = 0; i < COUNT_OF(r); i++)
            call_start(&w, &r[i], vigil_kube_get(w.kube, &call_pod));
        kube_world_run(&w, 10 * NS_PER_S);
        for (size_t i = 0; i < COUNT_OF(r); i++) {
            assert_int_equal(r[i].completions, 1);
            assert_int_equal(r[i].code, VIGIL_OK);
            call_end(&r[i]);
        }
        assert_int_equal(w.server.request_count, COUNT_OF(r));
        kube_world_fini(&w);
    }
}

static void request_concurrency_with_retry(void **state)
{
    (void)state;
    struct steps steps = STEPS(RETRY_AFTER(500));
    struct kube_world w;
    struct call_result r[20] = {{.code = 0}};
    call_world_start(&w, SIM_HTTP2, answer_steps, &steps);
    for (size_t i = 0; i < COUNT_OF(r); i++)
        call_start(&w, &r[i], vigil_kube_request(w.kube, "POST", "/foo", NULL, vigil_text("{}")));
    kube_world_run(&w, 30 * NS_PER_S);
    for (size_t i = 0; i < COUNT_OF(r); i++) {
        assert_int_equal(r[i].completions, 1);
        assert_int_equal(r[i].code, VIGIL_ERROR_SERVER);
        call_end(&r[i]);
    }
    assert_int_equal(w.server.request_count, COUNT_OF(r) * 11);
    kube_world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_request_sets_accept),
        cmocka_unit_test(request_sets_headers),
        cmocka_unit_test(request_abs_path_preserves_trailing_slash),
        cmocka_unit_test(request_abs_path_joins),
        cmocka_unit_test(request_sets_namespace),
        cmocka_unit_test(request_orders_namespace_in_path),
        cmocka_unit_test(request_orders_sub_resource),
        cmocka_unit_test(invalid_segments),
        cmocka_unit_test(request_param),
        cmocka_unit_test(request_versioned_params_from_list_options),
        cmocka_unit_test(request_error),
        cmocka_unit_test(request_uri),
        cmocka_unit_test(request_uri_context),
        cmocka_unit_test(request_body),
        cmocka_unit_test(result_into_with_err_returns_err),
        cmocka_unit_test(transform_response),
        cmocka_unit_test(transform_response_negotiate),
        cmocka_unit_test(transform_unstructured_error),
        cmocka_unit_test(request_do),
        cmocka_unit_test(do_request_new_way),
        cmocka_unit_test(check_retry_closes_body),
        cmocka_unit_test(connection_reset_by_peer_is_retried),
        cmocka_unit_test(check_retry_handles429_and5xx),
        cmocka_unit_test(verbs),
        cmocka_unit_test(abs_path),
        cmocka_unit_test(body),
        cmocka_unit_test(do_context),
        cmocka_unit_test(request_with_retry),
        cmocka_unit_test(request_do_with_retry),
        cmocka_unit_test(request_do_retry_with_rate_limiter_backoff_and_metrics),
        cmocka_unit_test(request_do_with_wrap_previous_error),
        cmocka_unit_test(http1_do_not_reuse_request_after_timeout),
        cmocka_unit_test(transport_concurrency),
        cmocka_unit_test(retryable_conditions),
        cmocka_unit_test(request_concurrency_with_retry),
        cmocka_unit_test(request_warning_handler),
        cmocka_unit_test(is_next_retry),
        cmocka_unit_test(wrap_previous_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
