/* One request with credentials, and its response. */
#include "kubeclient/call/exchange.h"

#include "kubeclient/call/kube_server_sim_test.h"

#include <vigil/client.h>

enum test_action { ACT_NOTHING, ACT_CANCEL_IN_HEAD, ACT_CANCEL_IN_BODY, ACT_RESTART_IN_END };

struct test_exchange {
    struct kube_exchange exchange;
    struct vigil_kube *kube;
    struct exchange_request request;
    enum test_action action;
    unsigned heads, ends, code;
    char body[256];
    size_t received;
    enum exchange_end end;
    char reason[VIGIL_KUBE_MESSAGE_BYTES];
    bool may_be_sent;
    int retry_after_s;
    struct vigil_kube_status status;
};

static const struct exchange_request get_pods = {
    .method = "GET",
    .target = {(const uint8_t *)"/api/v1/pods", 12},
    .accept = "application/json",
};

static void on_head(struct kube_exchange *exchange, unsigned status,
                    const struct http_field *fields, size_t count)
{
    struct test_exchange *t = CONTAINER_OF(exchange, struct test_exchange, exchange);
    (void)fields, (void)count;
    t->heads++;
    t->code = status;
    if (t->action == ACT_CANCEL_IN_HEAD)
        kube_exchange_cancel(exchange);
}

static void on_body(struct kube_exchange *exchange, struct slice bytes)
{
    struct test_exchange *t = CONTAINER_OF(exchange, struct test_exchange, exchange);
    for (size_t i = 0; i < bytes.len && t->received + i < sizeof(t->body) - 1; i++)
        t->body[t->received + i] = (char)bytes.ptr[i];
    t->received += bytes.len;
    if (t->action == ACT_CANCEL_IN_BODY)
        kube_exchange_cancel(exchange);
}

static enum status start(struct vigil_kube *kube, struct test_exchange *t);

static void on_end(struct kube_exchange *exchange, const struct exchange_result *result)
{
    struct test_exchange *t = CONTAINER_OF(exchange, struct test_exchange, exchange);
    assert_int_equal(exchange->state, EXCHANGE_IDLE);
    assert_true((result->end == EXCHANGE_COMPLETE) == (*result->reason == 0));
    assert_true((result->end == EXCHANGE_REFUSED) == (result->status != NULL));
    t->ends++;
    t->end = result->end;
    t->may_be_sent = result->may_be_sent;
    t->retry_after_s = result->retry_after_s;
    if (result->status)
        t->status = *result->status;
    snprintf(t->reason, sizeof(t->reason), "%s", result->reason);
    if (t->action == ACT_RESTART_IN_END) {
        t->action = ACT_NOTHING;
        if (start(t->kube, t) != ST_OK)
            t->ends++;
    }
}

static const struct exchange_ops ops = {.on_head = on_head, .on_body = on_body, .on_end = on_end};

static enum status start(struct vigil_kube *kube, struct test_exchange *t)
{
    if (!t->request.method)
        t->request = get_pods;
    t->kube = kube;
    t->exchange.ops = &ops;
    t->heads = t->ends = 0;
    t->received = 0;
    memset(t->body, 0, sizeof(t->body));
    return kube_exchange_start(&t->exchange, kube, &t->request);
}

static void begin(struct kube_world *w, enum sim_protocol protocol, sim_answer *answer, void *ctx)
{
    kube_world_init(w, protocol, NULL);
    kube_server_route(&w->server, NULL, "*", answer, ctx);
    assert_true(kube_world_start(w));
}

static void run(struct kube_world *w, struct test_exchange *t)
{
    assert_int_equal(start(w->kube, t), ST_OK);
    assert_int_equal(t->heads + t->ends, 0);
    kube_world_run(w, 20 * NS_PER_S);
    kube_exchange_check(&t->exchange);
}

static void answer_pods(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    (void)request, (void)ctx;
    sim_reply_begin(reply, 200, "application/json");
    sim_reply_text(reply, "{\"kind\":");
    sim_reply_text(reply, "\"PodList\"}");
    sim_reply_end(reply);
}

static void request_carries_the_standard_fields(void **state)
{
    (void)state;
    for (enum sim_protocol protocol = 0; protocol < SIM_PROTOCOLS; protocol++) {
        struct kube_world w;
        struct test_exchange t = {.heads = 0};
        kube_world_init(&w, protocol, NULL);
        kube_server_route(&w.server, "GET", "/k8s/one/api/v1/pods", answer_pods, NULL);
        w.path_prefix = "/k8s/one/";
        w.options.token = "secret";
        w.options.impersonate = "jane";
        assert_true(kube_world_start(&w));
        run(&w, &t);
        assert_int_equal(t.ends, 1);
        assert_int_equal(t.end, EXCHANGE_COMPLETE);
        assert_string_equal(t.body, "{\"kind\":\"PodList\"}");
        const struct sim_request *r = kube_server_last(&w.server);
        assert_string_equal(r->target, "/k8s/one/api/v1/pods");
        assert_string_equal(r->authorization, "Bearer secret");
        assert_string_equal(r->accept, "application/json");
        assert_string_equal(r->impersonate, "jane");
        assert_non_null(strstr(r->user_agent, "libvigil-kube/"));
        assert_string_equal(r->content_type, "");
        kube_world_fini(&w);
    }
}

static void body_has_its_content_type(void **state)
{
    (void)state;
    struct kube_world w;
    struct test_exchange t = {.request = {.method = "POST",
                                          .target = SLICE_LITERAL("/api/v1/pods"),
                                          .accept = "application/json",
                                          .content_type = "application/yaml",
                                          .body = SLICE_LITERAL("a: b")}};
    begin(&w, SIM_HTTP2, answer_pods, NULL);
    run(&w, &t);
    assert_int_equal(t.end, EXCHANGE_COMPLETE);
    assert_string_equal(kube_server_last(&w.server)->content_type, "application/yaml");
    assert_string_equal(kube_server_last(&w.server)->body, "a: b");
    kube_world_fini(&w);
}

static void answer_throttled(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    (void)request;
    if (ctx)
        sim_reply_field(reply, "Retry-After", ctx);
    sim_reply_status(reply, 429, "TooManyRequests", "slow down");
}

static void refusal_becomes_a_status(void **state)
{
    (void)state;
    static const struct {
        const char *field;
        int expected, status;
    } rows[] = {{NULL, -1, -1},    {"7", 7, 7},
                {"0", 0, 0},       {"Wed, 21 Oct 2015 07:28:00 GMT", -1, -1},
                {"301", 300, 301}, {"99999999999", 300, INT32_MAX}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct kube_world w;
        struct test_exchange t = {.heads = 0};
        begin(&w, i % 2 ? SIM_HTTP1 : SIM_HTTP2, answer_throttled, (void *)rows[i].field);
        run(&w, &t);
        assert_int_equal(t.end, EXCHANGE_REFUSED);
        assert_int_equal(t.heads + t.received, 0);
        assert_int_equal(t.status.code, 429);
        assert_string_equal(t.status.reason, "TooManyRequests");
        assert_string_equal(t.reason, "slow down");
        assert_int_equal(t.retry_after_s, rows[i].expected);
        assert_int_equal(t.status.retry_after_s, rows[i].status);
        assert_true(t.may_be_sent);
        kube_world_fini(&w);
    }
}

static void answer_endless(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    static const uint8_t block[3 * EXCHANGE_ERROR_BYTES_MAX / 2];
    (void)request, (void)ctx;
    sim_reply_begin(reply, 500, "text/plain");
    sim_reply_write(reply, slice_of(block, sizeof(block)));
}

static void answer_silent(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    (void)request, (void)ctx;
    sim_reply_begin(reply, 500, "text/plain");
    sim_reply_text(reply, "etcd is down");
}

static void answer_cut_off_refusal(struct sim_reply *reply, const struct sim_request *request,
                                   void *ctx)
{
    answer_silent(reply, request, ctx);
    sim_reply_break(reply);
}

static void refusal_that_does_not_end_is_used_as_it_is(void **state)
{
    (void)state;
    static const struct {
        sim_answer *answer;
        const char *message;
        int64_t ns;
    } rows[] = {{answer_endless, "the server answered with status 500 and without an explanation",
                 NS_PER_S},
                {answer_silent, "etcd is down", EXCHANGE_ERROR_NS + NS_PER_S},
                {answer_cut_off_refusal, "etcd is down", NS_PER_S}};
    for (size_t i = 0; i < 2 * COUNT_OF(rows); i++) {
        struct kube_world w;
        struct test_exchange t = {.action = ACT_RESTART_IN_END};
        begin(&w, i % 2 ? SIM_HTTP1 : SIM_HTTP2, rows[i / 2].answer, NULL);
        assert_int_equal(start(w.kube, &t), ST_OK);
        kube_world_run(&w, 2 * rows[i / 2].ns);
        assert_int_equal(t.ends, 1);
        assert_int_equal(w.server.request_count, 2);
        assert_int_equal(t.end, EXCHANGE_REFUSED);
        assert_int_equal(t.status.code, 500);
        assert_string_equal(t.reason, rows[i / 2].message);
        kube_world_fini(&w);
    }
}

static void answer_broken(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    (void)request, (void)ctx;
    sim_reply_begin(reply, 200, "application/json");
    reply->break_at = 3;
    sim_reply_text(reply, "{\"kind\"");
}

static void broken_response_is_reported(void **state)
{
    (void)state;
    for (enum sim_protocol protocol = 0; protocol < SIM_PROTOCOLS; protocol++) {
        struct kube_world w;
        struct test_exchange t = {.heads = 0};
        begin(&w, protocol, answer_broken, NULL);
        run(&w, &t);
        assert_int_equal(t.end, EXCHANGE_CUT_OFF);
        assert_string_equal(t.body, "{\"k");
        assert_true(t.may_be_sent);
        assert_non_null(strstr(t.reason, "127.0.0.1"));
        kube_world_fini(&w);
    }
}

/* Only the proxy can look up the server's name. An option has precedence. */
static void proxy_of_the_environment_is_used(void **state)
{
    (void)state;
    for (int option = 0; option < 2; option++) {
        struct kube_world w;
        struct test_exchange t = {.heads = 0};
        kube_world_init(&w, SIM_HTTP1, NULL);
        w.options.server = "http://kube.internal";
        w.options.proxy_url = option ? "http://127.0.0.1:2" : NULL;
        assert_int_equal(setenv("HTTP_PROXY", "http://127.0.0.1:1", 1), 0);
        bool started = kube_world_start(&w);
        assert_int_equal(unsetenv("HTTP_PROXY"), 0);
        assert_true(started);
        run(&w, &t);
        assert_int_equal(t.end, EXCHANGE_UNREACHED);
        assert_non_null(strstr(t.reason, "a request to kube.internal:80 failed"));
        assert_non_null(strstr(t.reason, option ? "127.0.0.1:2" : "127.0.0.1:1"));
        kube_world_fini(&w);
    }
}

static void unreachable_server_is_reported(void **state)
{
    (void)state;
    struct kube_world w;
    struct test_exchange t = {.heads = 0};
    begin(&w, SIM_HTTP1, answer_pods, NULL);
    kube_server_stop(&w.server);
    run(&w, &t);
    assert_int_equal(t.end, EXCHANGE_UNREACHED);
    assert_false(t.may_be_sent);
    assert_non_null(strstr(t.reason, "cannot connect to 127.0.0.1"));
    kube_server_start(&w.server);
    run(&w, &t);
    assert_int_equal(t.end, EXCHANGE_COMPLETE);
    kube_world_fini(&w);
}

static void cancelled_exchange_is_silent(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct kube_world w;
        struct test_exchange t = {.action = i == 0   ? ACT_CANCEL_IN_HEAD
                                            : i == 1 ? ACT_CANCEL_IN_BODY
                                                     : ACT_NOTHING};
        begin(&w, SIM_HTTP2, i == 3 ? answer_silent : answer_pods, NULL);
        assert_int_equal(start(w.kube, &t), ST_OK);
        if (i == 2)
            kube_exchange_cancel(&t.exchange);
        kube_world_run(&w, NS_PER_S);
        kube_exchange_cancel(&t.exchange);
        kube_world_run(&w, NS_PER_S);
        assert_int_equal(t.ends, 0);
        kube_exchange_check(&t.exchange);
        kube_world_fini(&w);
    }
}

static void answer_with_warnings(struct sim_reply *reply, const struct sim_request *request,
                                 void *ctx)
{
    sim_reply_field(reply, "Warning",
                    "299 - \"one \\\"is\\\" deprecated\", 299 a \"two\" \"date\"");
    sim_reply_field(reply, "Warning", "299 - \"three\"");
    sim_reply_field(reply, "Warning", "29 - \"bad\"");
    answer_pods(reply, request, ctx);
}

static void warnings_reach_the_program(void **state)
{
    (void)state;
    struct kube_world w;
    struct test_exchange t = {.heads = 0};
    begin(&w, SIM_HTTP1, answer_with_warnings, NULL);
    run(&w, &t);
    assert_int_equal(t.end, EXCHANGE_COMPLETE);
    assert_string_equal(w.warnings, "one \"is\" deprecated\ntwo\nthree\n");
    kube_world_fini(&w);
}

static void connections_are_logged(void **state)
{
    (void)state;
    for (enum sim_protocol protocol = 0; protocol < SIM_PROTOCOLS; protocol++) {
        bool is_http2 = protocol == SIM_HTTP2 || protocol == SIM_TLS_HTTP2;
        char text[ADDRESS_TEXT_BYTES], expected[512];
        struct kube_world w;
        struct test_exchange t = {.heads = 0};
        begin(&w, protocol, answer_pods, NULL);
        address_format(&w.server.bound.address, text);
        run(&w, &t);
        snprintf(expected, sizeof(expected), "%d connected to %s over %s\n", VIGIL_LOG_INFO, text,
                 is_http2 ? "HTTP/2" : "HTTP/1.1");
        assert_string_equal(w.log, expected);
        kube_server_stop(&w.server);
        kube_world_run(&w, NS_PER_S);
        run(&w, &t);
        snprintf(expected, sizeof(expected), "%d cannot connect to %s: connection refused\n",
                 VIGIL_LOG_WARN, text);
        if (!strstr(w.log, expected))
            fail_msg("%s", w.log);
        kube_world_fini(&w);
    }
}

static void answer_with_warning_and_refusal(struct sim_reply *reply,
                                            const struct sim_request *request, void *ctx)
{
    (void)request, (void)ctx;
    sim_reply_field(reply, "Warning", "299 - \"one\"");
    sim_reply_status(reply, 404, "NotFound", "pods \\\"web\\\" not found");
}

/* Creation, exchange and end. False: the client could not be created. */
static bool run_scenario(struct kube_world *w, enum sim_protocol protocol, struct test_exchange *t)
{
    kube_world_init(w, protocol, NULL);
    w->options.token = "secret";
    w->options.impersonate = "jane";
    kube_server_route(&w->server, NULL, "*",
                      protocol % 2 ? answer_with_warnings : answer_with_warning_and_refusal, NULL);
    if (!kube_world_start(w)) {
        assert_int_equal(w->error.code, VIGIL_ERROR_MEMORY);
        return false;
    }
    faulty_memory_begin();
    enum status status = start(w->kube, t);
    faulty_memory_end();
    assert_true(status == ST_OK || status == ST_NOMEM);
    if (status == ST_OK)
        KUBE_WORLD_RUN_UNTIL(w, t->ends);
    else
        *t = (struct test_exchange){.ends = 1, .end = EXCHANGE_NO_MEMORY};
    assert_int_equal(t->ends, 1);
    return true;
}

static void missing_memory_is_reported(void **state)
{
    (void)state;
    for (enum sim_protocol protocol = 0; protocol < SIM_TLS_HTTP1; protocol++) {
        for (size_t at = 1;; at++) {
            struct kube_world w;
            struct test_exchange t = {.heads = 0};
            faulty_memory_at = at;
            bool created = run_scenario(&w, protocol, &t);
            bool failed = faulty_memory_at == 0;
            faulty_memory_at = 0;
            if (created && !failed)
                assert_int_equal(t.end, protocol % 2 ? EXCHANGE_COMPLETE : EXCHANGE_REFUSED);
            kube_world_fini(&w);
            if (!failed)
                break;
        }
    }
}

static void faults_at_every_byte_are_reported(void **state)
{
    (void)state;
    static const enum fault_kind kinds[] = {FAULT_LOST_READING, FAULT_END, FAULT_GARBAGE,
                                            FAULT_LOST_WRITING, FAULT_CALL};
    for (enum sim_protocol protocol = 0; protocol < SIM_TLS_HTTP1; protocol++) {
        for (size_t k = 0; k < COUNT_OF(kinds); k++) {
            size_t places = 1;
            for (size_t at = 0; at < places; at++) {
                struct kube_world w;
                struct test_exchange t = {.heads = 0};
                kube_world_init(&w, protocol, NULL);
                kube_server_route(&w.server, NULL, "*", answer_with_warning_and_refusal, NULL);
                assert_true(kube_world_start(&w));
                faults.kind = at ? kinds[k] : FAULT_NONE;
                faults.at = at;
                assert_int_equal(start(w.kube, &t), ST_OK);
                KUBE_WORLD_RUN_UNTIL(&w, t.ends);
                assert_int_equal(t.ends, 1);
                if (at == 0)
                    places = fault_places(kinds[k], &faults);
                kube_world_fini(&w);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request_carries_the_standard_fields),
        cmocka_unit_test(body_has_its_content_type),
        cmocka_unit_test(refusal_becomes_a_status),
        cmocka_unit_test(refusal_that_does_not_end_is_used_as_it_is),
        cmocka_unit_test(broken_response_is_reported),
        cmocka_unit_test(proxy_of_the_environment_is_used),
        cmocka_unit_test(unreachable_server_is_reported),
        cmocka_unit_test(cancelled_exchange_is_silent),
        cmocka_unit_test(warnings_reach_the_program),
        cmocka_unit_test(connections_are_logged),
        cmocka_unit_test(missing_memory_is_reported),
        cmocka_unit_test(faults_at_every_byte_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
