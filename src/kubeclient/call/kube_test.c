/* The client's handle: options, accessors, credentials that are renewed, the end. */
#include "kubeclient/call/call_world_test.h"

#include "base/temp_dir_test.h"

static void expect_refused(const vigil_kube_options *options, int code, const char *text)
{
    vigil_kube *kube;
    vigil_error error;
    assert_int_equal(vigil_kube_new(options, &kube, &error), code);
    assert_int_equal(error.code, code);
    if (!strstr(error.text, text))
        fail_msg("%s", error.text);
    assert_int_equal(vigil_kube_new(options, &kube, NULL), code);
}

static vigil_kube_options defaults(void)
{
    vigil_kube_options options;
    vigil_kube_options_init(&options);
    options.server = "http://127.0.0.1:1";
    return options;
}

static void wrong_options_are_refused(void **state)
{
    (void)state;
    vigil_kube_options o = {.server = "http://127.0.0.1:1"};
    expect_refused(&o, VIGIL_ERROR_ARGUMENT, "vigil_kube_options_init");
    o = defaults();
    o.size = sizeof(o) + 1;
    expect_refused(&o, VIGIL_ERROR_ARGUMENT, "vigil_kube_options_init");
    o = defaults();
    o.call_timeout_ms = -1;
    expect_refused(&o, VIGIL_ERROR_ARGUMENT, "a time is negative");
    o = defaults();
    o.connect_timeout_ms = -1;
    expect_refused(&o, VIGIL_ERROR_ARGUMENT, "a time is negative");
    o = defaults();
    o.http = 3;
    expect_refused(&o, VIGIL_ERROR_ARGUMENT, "enum vigil_kube_http");
    o = defaults();
    o.cert_file = "cert.pem";
    expect_refused(&o, VIGIL_ERROR_ARGUMENT, "belong together");
    o = defaults();
    o.password = "secret";
    expect_refused(&o, VIGIL_ERROR_ARGUMENT, "without user");
    o = defaults();
    o.user = "me";
    o.token = "secret";
    expect_refused(&o, VIGIL_ERROR_ARGUMENT, "but not both");
    o = defaults();
    o.server = "ftp://a.b";
    expect_refused(&o, VIGIL_ERROR_ARGUMENT, "must begin with https://");
    o = defaults();
    o.token = "a\nb";
    expect_refused(&o, VIGIL_ERROR_ARGUMENT, "the token");
    o = defaults();
    o.server = NULL;
    o.kubeconfig = "/nonexistent/kubeconfig";
    expect_refused(&o, VIGIL_ERROR_ARGUMENT, "/nonexistent/kubeconfig");
    o = defaults();
    o.server = "https://127.0.0.1:1";
    o.ca_file = "/nonexistent/ca.pem";
    expect_refused(&o, VIGIL_ERROR_ARGUMENT, "/nonexistent/ca.pem");
    o = defaults();
    o.proxy_url = "gopher://proxy";
    expect_refused(&o, VIGIL_ERROR_ARGUMENT, "the URL of the proxy");
}

/* A program that was built with an older header has a smaller struct. */
static void smaller_options_have_defaults_for_the_rest(void **state)
{
    (void)state;
    vigil_kube_options o = defaults();
    vigil_kube *kube;
    o.call_timeout_ms = -1; /* beyond its size */
    o.own_thread = 7;
    o.size = offsetof(vigil_kube_options, call_timeout_ms);
    assert_int_equal(vigil_kube_new(&o, &kube, NULL), VIGIL_OK);
    assert_int_equal(kube->call_timeout_ms, 60000);
    assert_int_equal(kube->receive_bytes_max, 256u << 20);
    assert_string_equal(vigil_kube_server(kube), "http://127.0.0.1:1");
    assert_string_equal(vigil_kube_namespace(kube), "default");
    assert_int_equal(vigil_kube_fd(kube), -1);
    assert_int_equal(vigil_kube_timeout_ms(kube), -1);
    vigil_kube_process(kube); /* no effect: it has its own thread */
    vigil_kube_free(kube);
    vigil_kube_free(NULL);
}

static void statistics_may_grow(void **state)
{
    (void)state;
    vigil_kube_options o = defaults();
    vigil_kube *kube;
    struct {
        vigil_kube_stats stats;
        uint64_t more;
    } grown = {.more = 7};
    assert_int_equal(vigil_kube_new(&o, &kube, NULL), VIGIL_OK);
    vigil_kube_get_stats(kube, &grown.stats, sizeof(grown));
    assert_int_equal(grown.more, 0);
    grown.stats.connect_errors = 7;
    vigil_kube_get_stats(kube, &grown.stats, sizeof(grown.stats.connects));
    assert_int_equal(grown.stats.connect_errors, 7);
    vigil_kube_free(kube);
}

/* -- Blocking calls, on an own thread and without one -- */

static void blocking_call_fails_without_a_server(void **state)
{
    (void)state;
    for (int own_thread = 0; own_thread < 2; own_thread++) {
        vigil_kube_options o = defaults();
        vigil_kube *kube;
        o.own_thread = own_thread;
        assert_int_equal(vigil_kube_new(&o, &kube, NULL), VIGIL_OK);
        vigil_kube_call *call = vigil_kube_get(kube, &call_pod);
        assert_int_equal(vigil_kube_call_run(call), VIGIL_ERROR_UNAVAILABLE);
        assert_int_equal(vigil_kube_call_error(call)->outcome, VIGIL_NOT_SENT);
        vigil_kube_call_free(call);
        vigil_kube_shutdown(kube);
        call = vigil_kube_get(kube, &call_pod);
        assert_int_equal(vigil_kube_call_run(call), VIGIL_ERROR_CANCELED);
        vigil_kube_free(kube);
        vigil_kube_call_free(call);
    }
}

/* -- Credentials -- */

static void answer_if_authorized(struct sim_reply *reply, const struct sim_request *request,
                                 void *ctx)
{
    if (strcmp(request->authorization, "Bearer new") == 0)
        call_answer_pod(reply, request, ctx);
    else
        sim_reply_status(reply, 401, "Unauthorized", "unknown token");
}

static void write_token(const char *path, const char *token)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(token, file);
    fclose(file);
}

/* Otherwise the file would be read after 50 seconds. */
static void refused_token_is_read_again_soon(void **state)
{
    (void)state;
    char directory[TEMP_DIR_BYTES], path[TEMP_DIR_BYTES + 16];
    struct kube_world w;
    struct call_result r = {.code = 0};
    temp_dir_make("kube", directory);
    snprintf(path, sizeof(path), "%s/token", directory);
    write_token(path, "old");
    call_world_init(&w, SIM_HTTP2, answer_if_authorized, NULL);
    w.options.token_file = path;
    assert_true(kube_world_start(&w));
    call_run(&w, &r, vigil_kube_get(w.kube, &call_pod));
    assert_int_equal(r.code, VIGIL_ERROR_UNAUTHENTICATED);
    call_end(&r);
    write_token(path, "new");
    kube_world_run(&w, 2 * NS_PER_S);
    call_run(&w, &r, vigil_kube_get(w.kube, &call_pod));
    assert_int_equal(r.code, VIGIL_OK);
    call_end(&r);
    kube_world_fini(&w);
    temp_dir_remove(directory);
}

/* -- Groups -- */

static void answer_now(struct sim_reply *reply, void *ctx)
{
    (void)ctx;
    sim_reply_json(reply, 200, CALL_POD);
}

static void answer_after_a_second(struct sim_reply *reply, const struct sim_request *request,
                                  void *ctx)
{
    (void)request;
    sim_reply_after(reply, NS_PER_S, answer_now, ctx);
}

/* A server, and a group of two clients in a loop of the simulation. */
struct group_world {
    struct kube_world w;
    struct loop *loop;
    struct kube_group *group;
    vigil_kube *first, *second;
};

static void group_world_start(struct group_world *g, enum sim_protocol protocol)
{
    *g = (struct group_world){.group = NULL};
    kube_world_init(&g->w, protocol, NULL);
    kube_server_route(&g->w.server, NULL, "*", answer_after_a_second, NULL);
    kube_server_start(&g->w.server);
    kube_server_url(&g->w.server, g->w.url, sizeof(g->w.url));
    g->w.options.server = g->w.url;
    assert_int_equal(network_loop_new(&faults.network, &g->loop), ST_OK);
    assert_int_equal(kube_group_new(g->loop, &g->w.options, &g->group, &g->w.error), VIGIL_OK);
    assert_int_equal(kube_new_in(g->group, &faults.network, &g->w, &g->first, NULL), VIGIL_OK);
    assert_int_equal(kube_new_in(g->group, &faults.network, &g->w, &g->second, NULL), VIGIL_OK);
}

static void group_world_fini(struct group_world *g)
{
    vigil_kube_free(g->second);
    kube_group_free(g->group);
    loop_free(g->loop);
    kube_world_fini(&g->w);
}

static vigil_kube_stats stats_of(const vigil_kube *kube)
{
    vigil_kube_stats stats;
    vigil_kube_get_stats(kube, &stats, sizeof(stats));
    return stats;
}

static void client_of_a_group_is_freed_while_others_work(void **state)
{
    (void)state;
    for (enum sim_protocol protocol = 0; protocol < SIM_PROTOCOLS; protocol++) {
        struct group_world g;
        struct call_result kept = {.frees = true}, ended = {.frees = false}, more = {.frees = true};
        group_world_start(&g, protocol);
        assert_int_equal(vigil_kube_fd(g.first), -1);
        assert_int_equal(vigil_kube_timeout_ms(g.first), -1);
        call_start(&g.w, &kept, vigil_kube_get(g.second, &call_pod));
        call_start(&g.w, &ended, vigil_kube_get(g.first, &call_pod));
        KUBE_WORLD_RUN_UNTIL(&g.w, g.w.server.request_count == 2);
        assert_int_equal(stats_of(g.first).connections, 1);
        assert_int_equal(stats_of(g.second).connections, 1);
        /* A command that waits in the mailbox, which belongs to all. */
        call_start(&g.w, &more, vigil_kube_get(g.second, &call_pod));
        vigil_kube_free(g.first);
        assert_int_equal(ended.code, VIGIL_ERROR_CANCELED);
        assert_int_equal(kept.completions, 0);
        call_end(&ended);
        KUBE_WORLD_RUN_UNTIL(&g.w, kept.completions && more.completions);
        assert_int_equal(kept.code, VIGIL_OK);
        assert_int_equal(more.code, VIGIL_OK);
        assert_int_equal(stats_of(g.second).disconnects, 0);
        assert_true(stats_of(g.second).bytes_received > 2 * strlen(CALL_POD));
        group_world_fini(&g);
    }
}

/* What was made with a client is freed after it. */
static void calls_outlive_their_client_in_a_group(void **state)
{
    (void)state;
    struct group_world g;
    struct call_result r = {.frees = false};
    group_world_start(&g, SIM_HTTP2);
    vigil_kube_call *unstarted = vigil_kube_get(g.first, &call_pod);
    call_run(&g.w, &r, vigil_kube_get(g.first, &call_pod));
    vigil_kube_free(g.first);
    assert_int_equal(r.code, VIGIL_OK);
    assert_non_null(vigil_kube_call_object(r.call));
    assert_int_equal(vigil_kube_call_start(unstarted, call_on_done, &r), VIGIL_ERROR_CANCELED);
    vigil_kube_call_free(unstarted);
    call_end(&r);
    group_world_fini(&g);
}

static void group_without_memory_is_refused(void **state)
{
    (void)state;
    struct group_world g;
    struct kube_group *group = NULL;
    vigil_kube *kube = NULL;
    group_world_start(&g, SIM_TLS_HTTP2);
    vigil_kube_free(g.first);
    size_t failures = 0;
    for (size_t at = 1; !kube; at++) {
        memory_fail_at = at;
        int code = kube_group_new(g.loop, &g.w.options, &group, &g.w.error);
        if (code == VIGIL_OK)
            code = kube_new_in(group, &faults.network, &g.w, &kube, &g.w.error);
        memory_fail_at = 0;
        assert_int_equal(code, g.w.error.code);
        failures += code == VIGIL_ERROR_MEMORY;
        if (!kube) {
            kube_group_free(group);
            group = NULL;
        }
    }
    assert_true(failures > 10);
    vigil_kube_free(kube);
    kube_group_free(group);
    group_world_fini(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(smaller_options_have_defaults_for_the_rest),
        cmocka_unit_test(statistics_may_grow),
        cmocka_unit_test(blocking_call_fails_without_a_server),
        cmocka_unit_test(refused_token_is_read_again_soon),
        cmocka_unit_test(client_of_a_group_is_freed_while_others_work),
        cmocka_unit_test(calls_outlive_their_client_in_a_group),
        cmocka_unit_test(group_without_memory_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
