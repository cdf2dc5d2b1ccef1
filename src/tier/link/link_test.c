/* The connections to the kube-apiserver, and single calls. */
#include "tier/link/link.h"

#include "base/temp_dir_test.h"
#include "tier/link/link_fixture_test.h"

#define PATH "/apis/authentication.k8s.io/v1/tokenreviews"

struct test_call {
    struct tier_call call;
    struct tier_link *link;
    unsigned ends, code;
    size_t bytes;
    char body[64], reason[512];
    int64_t ended_ns;
    bool starts_again;
};

static enum status start(struct tier_link *link, struct test_call *t);

static void on_done(struct tier_call *call, unsigned code, struct slice body, const char *reason)
{
    struct test_call *t = CONTAINER_OF(call, struct test_call, call);
    assert_null(call->state);
    assert_true((code == 0) == (*reason != 0));
    t->ends++;
    t->code = code;
    t->bytes = body.len;
    t->ended_ns = loop_now_ns(faults.loop);
    snprintf(t->body, sizeof(t->body), "%.*s", SLICE_ARGS(body));
    snprintf(t->reason, sizeof(t->reason), "%s", reason);
    if (t->starts_again) {
        t->starts_again = false;
        assert_int_equal(start(t->link, t), ST_OK);
    }
}

static enum status start(struct tier_link *link, struct test_call *t)
{
    unsigned ends = t->ends;
    t->link = link;
    t->call.done = on_done;
    faulty_memory_begin();
    enum status status = tier_call_start(
        link, &t->call, "POST", PATH, SLICE_LITERAL("{\"kind\":\"TokenReview\"}"), 10 * NS_PER_S);
    faulty_memory_end();
    assert_int_equal(t->ends, ends);
    assert_true((status == ST_OK) == (t->call.state != NULL));
    return status;
}

static void answer_json(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    (void)request;
    sim_reply_json(reply, 201, ctx ? ctx : "{\"a\":1}");
}

static void answer_nothing(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    (void)reply, (void)request, (void)ctx;
}

static void begin(struct link_world *w, enum sim_protocol protocol, sim_answer *answer, void *ctx)
{
    link_world_init(w, protocol, NULL);
    kube_server_route(&w->server, NULL, "*", answer, ctx);
}

static void call_carries_the_account(void **state)
{
    (void)state;
    for (enum sim_protocol protocol = 0; protocol < SIM_PROTOCOLS; protocol++) {
        struct link_world w;
        struct test_call t = {.ends = 0};
        begin(&w, protocol, answer_json, NULL);
        w.options.token = "tiers-own";
        w.path_prefix = "/k8s/one/";
        assert_int_equal(link_world_start(&w), ST_OK);
        assert_int_equal(start(w.link, &t), ST_OK);
        link_world_run(&w, NS_PER_S);
        assert_int_equal(t.ends, 1);
        assert_int_equal(t.code, 201);
        assert_string_equal(t.body, "{\"a\":1}");
        const struct sim_request *seen = kube_server_last(&w.server);
        assert_string_equal(seen->method, "POST");
        assert_string_equal(seen->target, "/k8s/one" PATH);
        assert_string_equal(seen->authorization, "Bearer tiers-own");
        assert_string_equal(seen->content_type, "application/json");
        assert_string_equal(seen->accept, "application/json");
        assert_memory_equal(seen->user_agent, "vigil-tier/", 11);
        assert_string_equal(seen->body, "{\"kind\":\"TokenReview\"}");
        assert_true(slice_is(tier_link_path_prefix(w.link), "/k8s/one"));
        assert_string_equal(tier_link_server(w.link), w.url);
        /* Other calls do not share its connections. */
        assert_int_equal(http_pool_stats(tier_link_own(w.link)).connects, 0);
        assert_int_equal(http_pool_stats(tier_link_callers(w.link)).connects, 0);
        link_world_fini(&w);
    }
}

struct plain_request {
    struct pool_request request;
    unsigned status, ends;
};

static void plain_on_head(struct pool_request *request, unsigned status,
                          const struct http_field *fields, size_t count)
{
    (void)fields, (void)count;
    CONTAINER_OF(request, struct plain_request, request)->status = status;
}

static void plain_on_body(struct pool_request *request, struct slice bytes)
{
    (void)request, (void)bytes;
}

static void plain_on_end(struct pool_request *request, enum status status, const char *reason)
{
    (void)status, (void)reason;
    CONTAINER_OF(request, struct plain_request, request)->ends++;
}

static const struct pool_request_ops plain_ops = {plain_on_head, plain_on_body, plain_on_end};

/* What a server is shown by a connection: its client's certificate. */
static unsigned get_over(struct link_world *w, struct http_pool *pool)
{
    struct plain_request r = {.request.ops = &plain_ops};
    struct pool_request_params params = {.method = SLICE_LITERAL("GET"),
                                         .target = SLICE_LITERAL("/version")};
    assert_int_equal(http_pool_start(pool, &r.request, &params), ST_OK);
    link_world_run(w, 60 * NS_PER_S);
    assert_int_equal(r.ends, 1);
    return r.status;
}

/* A server that demands certificates serves the tier's own connections only. */
static void callers_connections_show_no_certificate(void **state)
{
    (void)state;
    struct link_world w;
    char dir[TEMP_DIR_BYTES], cert[TEMP_DIR_BYTES + 8], key[TEMP_DIR_BYTES + 8];
    temp_dir_make_fast("link", dir);
    snprintf(cert, sizeof(cert), "%s/cert", dir);
    snprintf(key, sizeof(key), "%s/key", dir);
    begin(&w, SIM_TLS_HTTP2, answer_json, NULL);
    w.server.demands_certificate = true;
    struct test_identity tier = test_identity_make(
        TEST_WISH(.common_name = "tier", .usage = "clientAuth"), &w.server.certs.ca);
    test_write_certificate(cert, tier.certificate);
    test_write_key(key, tier.key);
    test_identity_free(&tier);
    w.options.cert_file = cert;
    w.options.key_file = key;
    assert_int_equal(link_world_start(&w), ST_OK);
    assert_int_equal(get_over(&w, tier_link_own(w.link)), 201);
    assert_int_equal(get_over(&w, tier_link_callers(w.link)), 0);
    link_world_fini(&w);
    temp_dir_remove(dir);
}

static void callers_connections_carry_no_credentials(void **state)
{
    (void)state;
    struct link_world w;
    begin(&w, SIM_TLS_HTTP2, answer_json, NULL);
    w.options.token = "tiers-own";
    assert_int_equal(link_world_start(&w), ST_OK);
    assert_int_equal(get_over(&w, tier_link_callers(w.link)), 201);
    assert_string_equal(kube_server_last(&w.server)->authorization, "");
    link_world_fini(&w);
}

/* -- 401 -- */

static void write_token(const char *path, const char *token)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(token, file);
    fclose(file);
}

static void answer_if_known(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    const char *path = ctx;
    if (strcmp(request->authorization, "Bearer second") == 0) {
        sim_reply_json(reply, 201, "{}");
        return;
    }
    if (path)
        write_token(path, "second");
    sim_reply_status(reply, 401, "Unauthorized", "Unauthorized");
}

static void refused_token_is_read_again_and_the_call_repeated(void **state)
{
    (void)state;
    struct link_world w;
    struct test_call t = {.ends = 0};
    char dir[TEMP_DIR_BYTES], path[TEMP_DIR_BYTES + 8];
    temp_dir_make_fast("link", dir);
    snprintf(path, sizeof(path), "%s/token", dir);
    write_token(path, "first");
    begin(&w, SIM_HTTP2, answer_if_known, path);
    w.options.token_file = path;
    assert_int_equal(link_world_start(&w), ST_OK);
    link_world_run(&w, 5 * NS_PER_S); /* the file is not read more often */
    assert_int_equal(start(w.link, &t), ST_OK);
    link_world_run(&w, NS_PER_S);
    assert_int_equal(t.ends, 1);
    assert_int_equal(t.code, 201);
    assert_int_equal(w.server.request_count, 2);
    assert_string_equal(w.server.requests[0].authorization, "Bearer first");
    /* The same for a request that is not a call. */
    link_world_run(&w, 5 * NS_PER_S);
    write_token(path, "third");
    tier_link_refused(w.link);
    struct slice authorization;
    struct credentials_waiter waiter = {0};
    assert_int_equal(tier_link_authorization(w.link, &waiter, &authorization, &w.error), ST_OK);
    assert_true(slice_is(authorization, "Bearer third"));
    link_world_fini(&w);
    temp_dir_remove(dir);
}

static void call_that_is_refused_again_ends(void **state)
{
    (void)state;
    struct link_world w;
    struct test_call t = {.ends = 0};
    begin(&w, SIM_HTTP2, answer_if_known, NULL);
    w.options.token = "other";
    assert_int_equal(link_world_start(&w), ST_OK);
    assert_int_equal(start(w.link, &t), ST_OK);
    link_world_run(&w, NS_PER_S);
    assert_int_equal(t.ends, 1);
    assert_int_equal(t.code, 401);
    assert_true(w.server.request_count == 1);
    link_world_fini(&w);
}

/* -- Bad answers -- */

static void silent_server_is_given_up(void **state)
{
    (void)state;
    struct link_world w;
    struct test_call t = {.ends = 0};
    begin(&w, SIM_HTTP2, answer_nothing, NULL);
    assert_int_equal(link_world_start(&w), ST_OK);
    int64_t begin_ns = link_world_now(&w);
    assert_int_equal(start(w.link, &t), ST_OK);
    link_world_run(&w, 60 * NS_PER_S);
    assert_int_equal(t.ends, 1);
    assert_int_equal(t.code, 0);
    assert_string_equal(t.reason, "the kube-apiserver has not answered in time");
    assert_in_range(t.ended_ns - begin_ns, 10 * NS_PER_S, 11 * NS_PER_S);
    assert_true(list_empty(&w.server.replies));
    link_world_fini(&w);
}

static void refused_connection_ends_the_call(void **state)
{
    (void)state;
    struct link_world w;
    struct test_call t = {.ends = 0};
    begin(&w, SIM_HTTP2, answer_json, NULL);
    assert_int_equal(link_world_start(&w), ST_OK);
    kube_server_stop(&w.server);
    assert_int_equal(start(w.link, &t), ST_OK);
    link_world_run(&w, 60 * NS_PER_S);
    assert_int_equal(t.ends, 1);
    assert_int_equal(t.code, 0);
    link_world_fini(&w);
}

static void answer_bytes(struct sim_reply *reply, const struct sim_request *request, void *ctx)
{
    size_t bytes = *(size_t *)ctx;
    char *text = malloc(bytes);
    (void)request;
    assert_non_null(text);
    memset(text, ' ', bytes);
    sim_reply_begin(reply, 201, "application/json");
    sim_reply_write(reply, slice_of(text, bytes));
    sim_reply_end(reply);
    free(text);
}

static void answer_is_limited(void **state)
{
    (void)state;
    for (size_t over = 0; over < 2; over++) {
        struct link_world w;
        struct test_call t = {.ends = 0};
        size_t bytes = TIER_CALL_BYTES_MAX + over;
        begin(&w, SIM_HTTP2, answer_bytes, &bytes);
        assert_int_equal(link_world_start(&w), ST_OK);
        assert_int_equal(start(w.link, &t), ST_OK);
        link_world_run(&w, 60 * NS_PER_S);
        assert_int_equal(t.ends, 1);
        assert_int_equal(t.code, over ? 0 : 201);
        assert_int_equal(t.bytes, over ? 0 : bytes);
        link_world_fini(&w);
    }
}

/* -- Life -- */

static void cancelled_call_is_not_done(void **state)
{
    (void)state;
    struct link_world w;
    struct test_call t = {.ends = 0};
    begin(&w, SIM_HTTP2, answer_json, NULL);
    assert_int_equal(link_world_start(&w), ST_OK);
    assert_int_equal(start(w.link, &t), ST_OK);
    tier_call_cancel(&t.call);
    tier_call_cancel(&t.call);
    link_world_run(&w, NS_PER_S);
    assert_int_equal(t.ends, 0);
    t.starts_again = true;
    assert_int_equal(start(w.link, &t), ST_OK);
    link_world_run(&w, NS_PER_S);
    assert_int_equal(t.ends, 2);
    link_world_fini(&w);
}

static void configuration_is_checked(void **state)
{
    (void)state;
    struct link_world w;
    link_world_init(&w, SIM_HTTP2, NULL);
    w.options.server = "https://127.0.0.1:1";
    w.options.ca_file = "/nonexistent/ca";
    assert_int_not_equal(link_world_connect(&w), ST_OK);
    assert_non_null(strstr(w.error.text, "/nonexistent/ca"));
    w.options.ca_file = NULL;
    w.options.cert_file = "/nonexistent/cert";
    assert_int_equal(link_world_connect(&w), ST_INVALID);
    w.options.cert_file = NULL;
    w.options.impersonate = "jane";
    assert_int_equal(link_world_connect(&w), ST_INVALID);
    assert_non_null(strstr(w.error.text, "impersonates \"jane\""));
    w.options.impersonate = NULL;
    w.options.server = "https://";
    assert_int_not_equal(link_world_connect(&w), ST_OK);
    link_world_fini(&w);
}

/* False: the link could not be made. */
static bool call_once(struct link_world *w, enum sim_protocol protocol, struct test_call *t)
{
    begin(w, protocol, answer_json, NULL);
    w->options.token = "tiers-own";
    link_world_listen(w);
    enum status status = link_world_connect(w);
    assert_true(status == ST_OK || status == ST_NOMEM);
    if (status != ST_OK)
        return false;
    if (start(w->link, t) != ST_OK)
        return true;
    link_world_run(w, 60 * NS_PER_S);
    assert_int_equal(t->ends, 1);
    return true;
}

static void missing_memory_is_reported(void **state)
{
    (void)state;
    for (enum sim_protocol protocol = 0; protocol < SIM_TLS_HTTP1; protocol++) {
        for (size_t at = 1;; at++) {
            struct link_world w;
            struct test_call t = {.ends = 0};
            faulty_memory_at = at;
            bool made = call_once(&w, protocol, &t);
            bool failed = faulty_memory_at == 0;
            faulty_memory_at = 0;
            assert_true(failed || (made && t.code == 201));
            link_world_fini(&w);
            if (!failed)
                break;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(call_carries_the_account),
        cmocka_unit_test(callers_connections_show_no_certificate),
        cmocka_unit_test(callers_connections_carry_no_credentials),
        cmocka_unit_test(refused_token_is_read_again_and_the_call_repeated),
        cmocka_unit_test(call_that_is_refused_again_ends),
        cmocka_unit_test(silent_server_is_given_up),
        cmocka_unit_test(refused_connection_ends_the_call),
        cmocka_unit_test(answer_is_limited),
        cmocka_unit_test(cancelled_call_is_not_done),
        cmocka_unit_test(configuration_is_checked),
        cmocka_unit_test(missing_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
