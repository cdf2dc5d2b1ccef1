/* Calls of webhooks by URL: what is sent, what an answer becomes, failures, limits. */
#include "base/temp_dir_test.h"
#include "client/connect/relay_test.h"
#include "kube/webhook/answer.h"
#include "kube/webhook/caller_fixture_test.h"
#include "kube/webhook/peer.h"
#include "zip/gzip.h"

/* -- What is sent -- */

static void call_is_answered(void **state)
{
    (void)state;
    struct hook_world w;
    char expected[512];
    hook_world_init(&w);
    for (unsigned i = 1; i <= 2; i++) {
        struct hook_call c = hook_ask(&w, hook_at(&w, "/hook/a"));
        assert_int_equal(c.call.status, ST_OK);
        assert_int_equal(c.call.code, 200);
        assert_string_equal(c.answer, "{}");
        snprintf(expected, sizeof(expected),
                 "POST /hook/a?timeout=2s 1 host=server.test:%u "
                 "user-agent=kube-apiserver-admission accept=application/json, */* "
                 "content-type=application/json accept-encoding=gzip",
                 hook_port(&w));
        assert_string_equal(w.site.seen, expected);
        assert_int_equal(w.site.body_bytes, 26);
        /* The second one used the connection of the first. */
        assert_int_equal(faults.connects, 1);
    }
    hook_world_fini(&w);
}

static void url_of_this_machine_gets_http2(void **state)
{
    (void)state;
    struct hook_world w;
    hook_world_init(&w);
    static const char *const hosts[] = {"localhost", "127.0.0.1"};
    for (size_t i = 0; i < COUNT_OF(hosts); i++) {
        struct hook_call c =
            hook_ask(&w, hook_target(&w, "{'url':'https://%s:%u/hook/x','caBundle':'%s'}", hosts[i],
                                     hook_port(&w), w.ca));
        assert_int_equal(c.call.status, ST_OK);
        assert_non_null(strstr(w.site.seen, "POST /hook/x?timeout=2s 2 host="));
    }
    hook_world_fini(&w);
}

static void timeout_is_rounded_up(void **state)
{
    (void)state;
    static const struct {
        int64_t ns;
        const char *text;
    } rows[] = {
        {1, ""}, /* is over before anything is sent */
        {NS_PER_S, "?timeout=1s "},
        {NS_PER_S + 1, "?timeout=2s "},
        {30 * NS_PER_S, "?timeout=30s "},
        {65 * NS_PER_S, "?timeout=1m5s "},
        {3600 * NS_PER_S, "?timeout=1h0m0s "},
    };
    struct hook_world w;
    hook_world_init(&w);
    (void)hook_ask(&w, hook_at(&w, "/hook/x")); /* so that there is a connection */
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct hook_call c = {.ends = 0};
        hook_start(&w, &c, hook_at(&w, "/hook/x"), rows[i].ns);
        hook_run(&w, NS_PER_S);
        assert_int_equal(c.ends, 1);
        if (i > 0)
            assert_non_null(strstr(w.site.seen, rows[i].text));
    }
    hook_world_fini(&w);
}

/* -- Users -- */

static const char *seen_of(struct hook_world *w, enum kube_webhook_use use)
{
    struct hook_call c = {.call = {.use = use}};
    hook_start(w, &c, hook_at(w, "/hook/x"), 2 * NS_PER_S);
    hook_run(w, 3 * NS_PER_S);
    assert_int_equal(c.ends, 1);
    assert_int_equal(c.call.status, ST_OK);
    return strstr(w->site.seen, "accept-encoding=gzip") + strlen("accept-encoding=gzip");
}

static void server_signs_in_with_the_users_of_its_plugin(void **state)
{
    (void)state;
    static const struct http_field fields[] = {
        {SLICE_LITERAL("authorization"), SLICE_LITERAL("Basic YQ==")},
        {SLICE_LITERAL("impersonate-user"), SLICE_LITERAL("bob")}};
    static const struct kube_webhook_credentials rows[] = {
        {.hosts = SLICE_LITERAL("other.test"), .token_file = "", .token = "", .cert_file = ""},
        {.hosts = SLICE_LITERAL("*"),
         .fields = fields,
         .field_count = 2,
         .token_file = "",
         .token = "",
         .cert_file = ""}};
    struct hook_world w;
    hook_world_init_users(&w, (struct kube_webhook_users){.rows = rows, .count = 2});
    assert_string_equal(seen_of(&w, KUBE_WEBHOOK_VALIDATES),
                        " authorization=Basic YQ== impersonate-user=bob");
    assert_string_equal(seen_of(&w, KUBE_WEBHOOK_MUTATES), "");
    assert_string_equal(seen_of(&w, KUBE_WEBHOOK_CONVERTS), "");
    assert_int_equal(faults.connects, 3); /* each use has connections of its own */
    hook_world_fini(&w);
}

static void write_token(const char *path, const char *token)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(token, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void token_file_is_read_again(void **state)
{
    (void)state;
    char dir[TEMP_DIR_BYTES], path[TEMP_DIR_BYTES + 8];
    temp_dir_make_fast("token", dir);
    snprintf(path, sizeof(path), "%s/token", dir);
    const struct kube_webhook_credentials all = {.token_file = path, .token = "", .cert_file = ""};
    struct hook_world w;
    hook_world_init_users(&w, (struct kube_webhook_users){.others = &all});
    struct hook_call c = {.call = {.use = KUBE_WEBHOOK_VALIDATES}};
    hook_start(&w, &c, hook_at(&w, "/hook/x"), 2 * NS_PER_S);
    hook_run(&w, 3 * NS_PER_S);
    assert_non_null(strstr(c.error, path)); /* there is none */
    write_token(path, "one\n");
    assert_string_equal(seen_of(&w, KUBE_WEBHOOK_VALIDATES), " authorization=Bearer one");
    write_token(path, "two");
    assert_string_equal(seen_of(&w, KUBE_WEBHOOK_VALIDATES), " authorization=Bearer one");
    hook_run(&w, TOKEN_FILE_VALID_NS);
    assert_string_equal(seen_of(&w, KUBE_WEBHOOK_VALIDATES), " authorization=Bearer two");
    temp_dir_remove(dir);
    hook_world_fini(&w);
}

static void users_are_chosen_by_host_and_port(void **state)
{
    (void)state;
    static const struct kube_webhook_credentials rows[] = {
        {.hosts = SLICE_LITERAL("a.b.svc:8443")}, {.hosts = SLICE_LITERAL("a.b.svc")},
        {.hosts = SLICE_LITERAL("*.b.svc")},      {.hosts = SLICE_LITERAL("*.svc:8443")},
        {.hosts = SLICE_LITERAL("[::1]:443")},    {.hosts = SLICE_LITERAL("*")}};
    static const struct {
        const char *host;
        uint16_t port;
        ssize_t row;
    } cases[] = {
        {"a.b.svc", 8443, 0}, {"a.b.svc", 443, 1}, {"a.b.svc", 1, 5}, {"c.b.svc", 443, 2},
        {"c.b.svc", 8443, 3}, {"::1", 443, 4},     {"b.svc", 443, 5}, {"x", 443, 5},
    };
    struct kube_webhook_users users = {.rows = rows, .count = COUNT_OF(rows)};
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_ptr_equal(
            kube_webhook_credentials_find(&users, slice_from_text(cases[i].host), cases[i].port),
            &rows[cases[i].row]);
    users.count--;
    assert_null(kube_webhook_credentials_find(&users, SLICE_LITERAL("x"), 443));
    users.others = &rows[0];
    assert_ptr_equal(kube_webhook_credentials_find(&users, SLICE_LITERAL("x"), 443), &rows[0]);
}

/* -- What an answer becomes -- */

static void answers_become_the_errors_of_client_go(void **state)
{
    (void)state;
    static const char words[] = "  some \"words\"\n  ";
    static const char failure[] =
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"mine\"}";
    static const struct {
        unsigned code;
        const char *type, *body, *error;
    } rows[] = {
        {200, "text/html", "<html>", ""},
        {206, NULL, "{}", ""},
        {200, NULL, "",
         "0-length response with status code: 200 and content type: application/json"},
        {207, NULL, words,
         "the server responded with the status code 207 but did not return more information"},
        {300, NULL, words,
         "the server responded with the status code 300 but did not return more information"},
        {400, NULL, words, "the server rejected our request for an unknown reason"},
        {401, NULL, words, "the server has asked for the client to provide credentials"},
        {403, NULL, words, "unknown"},
        {403, "text/plain; charset=utf-8", words, "some \"words\""},
        {404, NULL, words, "the server could not find the requested resource"},
        {405, NULL, words, "the server does not allow this method on the requested resource"},
        {406, NULL, words,
         "the server was unable to respond with a content type that the client supports"},
        {406, "text/plain", words, "some \"words\""},
        {409, NULL, words, "the server reported a conflict"},
        {415, "text/plain", words, "some \"words\""},
        {418, NULL, words,
         "the server responded with the status code 418 but did not return more information"},
        {422, NULL, words, "the server rejected our request due to an error in our request"},
        {429, NULL, words,
         "the server has received too many requests and has asked us to try again later"},
        {500, NULL, words,
         "an error on the server (\"unknown\") has prevented the request from succeeding"},
        {500, "text/plain", words,
         "an error on the server (\"some \\\"words\\\"\") has prevented the request from "
         "succeeding"},
        {503, NULL, words, "the server is currently unable to handle the request"},
        {504, NULL, words,
         "the server was unable to return a response in the time allotted, but may still be "
         "processing the request"},
        {400, NULL, failure, "mine"},
        {500, NULL, failure, "mine"},
        {500, NULL, "{\"status\":\"Failure\",\"message\":\"mine\"}",
         "an error on the server (\"unknown\") has prevented the request from succeeding"},
    };
    struct hook_world w;
    hook_world_init(&w);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        w.site.code = rows[i].code;
        w.site.type = rows[i].type;
        w.site.body = slice_from_text(rows[i].body);
        struct hook_call c = hook_ask(&w, hook_at(&w, "/hook/x"));
        assert_string_equal(c.error, rows[i].error);
        assert_int_equal(c.call.code, rows[i].code);
        assert_true((c.call.status == ST_OK) == !*rows[i].error);
    }
    hook_world_fini(&w);
}

static void redirect_is_not_followed(void **state)
{
    (void)state;
    static const unsigned codes[] = {301, 302, 303, 307, 308};
    struct hook_world w;
    hook_world_init(&w);
    w.site.name = "Location";
    w.site.value = "https://other.test/";
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        char expected[128];
        w.site.code = codes[i];
        struct hook_call c = hook_ask(&w, hook_at(&w, "/hook/x"));
        snprintf(expected, sizeof(expected),
                 "the server answered with the code %u and a redirect to \"https://other.test/\", "
                 "which is not followed",
                 codes[i]);
        assert_string_equal(c.error, expected);
    }
    assert_int_equal(w.site.requests, COUNT_OF(codes));
    assert_int_equal(faults.connects, 1);
    hook_world_fini(&w);
}

/* -- Failures -- */

static void expect_failure(struct hook_world *w, const char *url, const char *ca,
                           const char *reason)
{
    char expected[1024];
    struct hook_call c = hook_ask(w, hook_target(w, "{'url':'%s','caBundle':'%s'}", url, ca));
    snprintf(expected, sizeof(expected), "Post \"%s?timeout=2s\": %s", url, reason);
    assert_string_equal(c.error, expected);
    assert_int_equal(c.call.code, 0);
}

static void server_that_cannot_be_reached_fails_the_call(void **state)
{
    (void)state;
    char url[128];
    struct hook_world w;
    hook_world_init(&w);
    expect_failure(&w, "https://127.0.0.1:1/x", w.ca,
                   "dial tcp 127.0.0.1:1: connect: connection refused");
    expect_failure(&w, "https://server.test:1/x", w.ca,
                   "dial tcp 127.0.0.1:1: connect: connection refused");
    expect_failure(&w, "https://[::1]:1/x", w.ca, "dial tcp [::1]:1: connect: connection refused");
    expect_failure(&w, "https://server.test/x", w.ca,
                   "dial tcp 127.0.0.1:443: connect: connection refused");
    expect_failure(&w, "https://missing.test/x", w.ca,
                   "dial tcp: lookup missing.test: no such host");
    snprintf(url, sizeof(url), "https://server.test:%u/x", hook_port(&w));
    expect_failure(&w, url, "",
                   "tls: failed to verify certificate: x509: certificate signed by unknown "
                   "authority");
    hook_certify(&w, TEST_WISH(.names = "DNS:other.test"));
    expect_failure(&w, url, w.ca,
                   "tls: failed to verify certificate: x509: certificate is valid for other.test, "
                   "not server.test");
    hook_world_fini(&w);
}

/* -- Time -- */

static void time_bounds_everything(void **state)
{
    (void)state;
    char expected[256];
    struct hook_world w;
    hook_world_init(&w);
    w.site.holds = true;
    struct hook_call c = hook_ask(&w, hook_at(&w, "/hook/x"));
    snprintf(expected, sizeof(expected),
             "Post \"https://server.test:%u/hook/x?timeout=2s\": context deadline exceeded",
             hook_port(&w));
    assert_string_equal(c.error, expected);
    assert_int_equal(c.call.status, ST_TIMEOUT);
    w.site.begins = true;
    c = hook_ask(&w, hook_at(&w, "/hook/x"));
    assert_string_equal(c.error, "unexpected error when reading response body. Please retry. "
                                 "Original error: context deadline exceeded");
    hook_world_fini(&w);
}

/* -- Life -- */

static void stop_ends_calls(void **state)
{
    (void)state;
    struct hook_world w;
    struct hook_call calls[4] = {{.ends = 0}}, late = {.ends = 0};
    hook_world_init(&w);
    w.site.holds = true;
    for (size_t i = 0; i < COUNT_OF(calls); i++)
        hook_start(&w, &calls[i], hook_at(&w, i % 2 ? "/hook/a" : "/hook/b"), 10 * NS_PER_S);
    hook_run(&w, NS_PER_S);
    assert_int_equal(w.under_way, 4);
    kube_webhook_call_cancel(&calls[3].call);
    assert_int_equal(w.under_way, 3);
    kube_webhook_caller_stop(w.caller);
    hook_start(&w, &late, hook_at(&w, "/hook/x"), NS_PER_S);
    hook_run(&w, 10 * NS_PER_MS);
    for (size_t i = 0; i < 3; i++)
        assert_true(calls[i].ends == 1 && calls[i].call.status == ST_STOPPED);
    assert_int_equal(calls[3].ends, 0);
    assert_true(late.ends == 1 && late.call.status == ST_STOPPED);
    assert_int_equal(w.under_way, 0);
    hook_world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(call_is_answered),
        cmocka_unit_test(url_of_this_machine_gets_http2),
        cmocka_unit_test(timeout_is_rounded_up),
        cmocka_unit_test(server_signs_in_with_the_users_of_its_plugin),
        cmocka_unit_test(token_file_is_read_again),
        cmocka_unit_test(users_are_chosen_by_host_and_port),
        cmocka_unit_test(answers_become_the_errors_of_client_go),
        cmocka_unit_test(redirect_is_not_followed),
        cmocka_unit_test(server_that_cannot_be_reached_fails_the_call),
        cmocka_unit_test(time_bounds_everything),
        cmocka_unit_test(stop_ends_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
