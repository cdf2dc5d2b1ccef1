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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(smaller_options_have_defaults_for_the_rest),
        cmocka_unit_test(statistics_may_grow),
        cmocka_unit_test(blocking_call_fails_without_a_server),
        cmocka_unit_test(refused_token_is_read_again_soon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
