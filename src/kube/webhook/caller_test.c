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

/* -- Answers that are large or compressed -- */

static void use_zipped(struct hook_world *w, size_t bytes, struct buf *zipped)
{
    AUTO(buf_fini) struct buf plain = {0};
    assert_int_equal(buf_reserve(&plain, bytes), ST_OK);
    memset(plain.ptr, 'x', bytes);
    plain.len = bytes;
    assert_int_equal(gzip(buf_slice(&plain), zipped), ST_OK);
    w->site.name = "Content-Encoding";
    w->site.value = "gzip";
    w->site.body = buf_slice(zipped);
}

static void compressed_answer_is_read(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 1000, 300000, KUBE_WEBHOOK_ANSWER_BYTES_MAX};
    struct hook_world w;
    hook_world_init(&w);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        AUTO(buf_fini) struct buf zipped = {0};
        use_zipped(&w, sizes[i], &zipped);
        struct hook_call c = hook_ask(&w, hook_at(&w, "/hook/x"));
        assert_string_equal(c.error, "");
        assert_int_equal(c.answer_bytes, sizes[i]);
        assert_true(c.turns >= sizes[i] / (256 * 1024)); /* no turn is long */
    }
    hook_world_fini(&w);
}

static void damaged_compressed_answer_fails(void **state)
{
    (void)state;
    AUTO(buf_fini) struct buf zipped = {0};
    struct hook_world w;
    hook_world_init(&w);
    use_zipped(&w, 1000, &zipped);
    w.site.body.len /= 2;
    struct hook_call c = hook_ask(&w, hook_at(&w, "/hook/x"));
    assert_string_equal(c.error, "unexpected error when reading response body. Please retry. "
                                 "Original error: unexpected EOF");
    w.site.body = SLICE_LITERAL("this was never compressed");
    c = hook_ask(&w, hook_at(&w, "/hook/x"));
    assert_string_equal(c.error, "unexpected error when reading response body. Please retry. "
                                 "Original error: gzip: invalid header");
    hook_world_fini(&w);
}

static void expect_too_long(struct hook_world *w)
{
    struct hook_call c = hook_ask(w, hook_at(w, "/hook/x"));
    assert_string_equal(c.error, "unexpected error when reading response body. Please retry. "
                                 "Original error: the answer is longer than 8388608 bytes");
    assert_int_equal(c.call.status, ST_LIMIT);
}

static void answer_is_limited(void **state)
{
    (void)state;
    AUTO(buf_fini) struct buf zipped = {0}, long_one = {0};
    struct hook_world w;
    struct hook_call c;
    hook_world_init(&w);
    assert_int_equal(buf_reserve(&long_one, KUBE_WEBHOOK_ANSWER_BYTES_MAX + 1), ST_OK);
    memset(long_one.ptr, 'x', KUBE_WEBHOOK_ANSWER_BYTES_MAX + 1);
    w.site.body = slice_of(long_one.ptr, KUBE_WEBHOOK_ANSWER_BYTES_MAX);
    c = hook_ask(&w, hook_at(&w, "/hook/x"));
    assert_string_equal(c.error, "");
    assert_int_equal(c.answer_bytes, KUBE_WEBHOOK_ANSWER_BYTES_MAX);
    w.site.body.len++;
    expect_too_long(&w);
    w.site.floods = true;
    expect_too_long(&w);
    w.site.floods = false;
    use_zipped(&w, KUBE_WEBHOOK_ANSWER_BYTES_MAX + 1, &zipped);
    expect_too_long(&w);
    hook_world_fini(&w);
}

/* The client whose request is waiting pays for the answer. */
static void answer_is_charged(void **state)
{
    (void)state;
    struct budget *budget;
    struct account *account;
    struct hook_world w;
    static uint8_t body[3 << 20];
    assert_int_equal(budget_new(4 << 20, &budget), ST_OK);
    assert_int_equal(account_new(budget, &account), ST_OK);
    hook_world_init(&w);
    memset(body, 'x', sizeof(body));
    for (int i = 0; i < 2; i++) {
        struct hook_call c = {.call.account = account};
        w.site.body = slice_of(body, i ? sizeof(body) : 100000);
        hook_start(&w, &c, hook_at(&w, "/hook/x"), 5 * NS_PER_S);
        hook_run(&w, 5 * NS_PER_S);
        assert_int_equal(c.call.status, i ? ST_NOMEM : ST_OK);
        assert_true(c.charged >= (i ? 0 : 100000));
        assert_int_equal(account_held_bytes(account), 0);
    }
    hook_world_fini(&w);
    account_unref(account);
    budget_free(budget);
}

/* -- More than one try -- */

static void retry_after_is_followed(void **state)
{
    (void)state;
    static const struct {
        unsigned code;
        const char *after;
        unsigned requests;
        const char *error; /* its end */
    } rows[] = {
        {429, "0", 11,
         "the server has received too many requests and has asked us to try again later"},
        {503, "0", 11, "the server is currently unable to handle the request"},
        {500, "-5", 11,
         "an error on the server (\"unknown\") has prevented the request from succeeding"},
        {500, "1", 2, "context deadline exceeded"},
        {500, "100000000000000000", 1, "context deadline exceeded"},
        {500, "Thu, 01 Jan 2026 00:00:00 GMT", 1,
         "an error on the server (\"unknown\") has prevented the request from succeeding"},
        {400, "0", 1, "the server rejected our request for an unknown reason"},
        {200, "0", 1, ""},
    };
    struct hook_world w;
    hook_world_init(&w);
    w.site.name = "Retry-After";
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        unsigned before = w.site.requests;
        w.site.code = rows[i].code;
        w.site.value = rows[i].after;
        struct hook_call c = hook_ask(&w, hook_at(&w, "/hook/x"));
        assert_true(slice_has_suffix(slice_from_text(c.error), slice_from_text(rows[i].error)));
        assert_int_equal(!*c.error, !*rows[i].error);
        assert_int_equal(w.site.requests - before, rows[i].requests);
    }
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

/* A server that speaks TLS, and answers with these bytes. */
static struct hook_call ask_relay(struct hook_world *w, const char *answer)
{
    struct relay server;
    relay_start(&server, sim_network(w->server.sim));
    relay_use_tls(&server, w->server.certs.cert_file, w->server.certs.key_file);
    server.answer = slice_from_text(answer);
    server.closes = true;
    struct hook_call c =
        hook_ask(w, hook_target(w, "{'url':'https://server.test:%u/x','caBundle':'%s'}",
                                address_port(&server.listener.address), w->ca));
    relay_stop(&server);
    return c;
}

static void violations_of_http_fail_the_call(void **state)
{
    (void)state;
    static const struct {
        const char *answer, *error; /* its end */
    } rows[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", "unexpected EOF"},
        {"HTTP/1.1 200 OK\r\n", "\": EOF"},
        {"SSH-2.0\r\n\r\n", ""},
        {"HTTP/1.1 101 Switching Protocols\r\n\r\n", ""},
    };
    struct hook_world w;
    hook_world_init(&w);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct hook_call c = ask_relay(&w, rows[i].answer);
        assert_true(*c.error && c.call.status != ST_TIMEOUT);
        assert_true(slice_has_suffix(slice_from_text(c.error), slice_from_text(rows[i].error)));
    }
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

/* -- Limits -- */

static void hanging_target_delays_no_other(void **state)
{
    (void)state;
    enum { MORE = 5 };
    struct hook_world w;
    struct hook_call *calls = calloc(KUBE_WEBHOOK_CALLS_PER_TARGET_MAX + MORE, sizeof(*calls)),
                     other = {.ends = 0};
    hook_world_init(&w);
    const struct kube_webhook_target *target = hook_at(&w, "/hook/hangs");
    w.site.holds = true;
    for (int i = 0; i < KUBE_WEBHOOK_CALLS_PER_TARGET_MAX + MORE; i++)
        hook_start(&w, &calls[i], target, 10 * NS_PER_S);
    hook_run(&w, 2 * NS_PER_S);
    /* The connections are limited; the other calls wait for one. */
    assert_int_equal(w.site.requests, KUBE_WEBHOOK_CONNECTIONS_MAX);
    for (int i = 0; i < KUBE_WEBHOOK_CALLS_PER_TARGET_MAX; i++)
        assert_int_equal(calls[i].ends, 0);
    for (int i = 0; i < MORE; i++) {
        struct hook_call *c = &calls[KUBE_WEBHOOK_CALLS_PER_TARGET_MAX + i];
        assert_true(c->ends == 1 && c->call.status == ST_REQUEST_TOO_MANY_REQUESTS);
    }
    w.site.holds = false;
    hook_start(&w, &other, hook_at(&w, "/hook/other"), NS_PER_S);
    hook_run(&w, NS_PER_S);
    assert_int_equal(other.ends, 1);
    assert_string_equal(other.error, "");
    /* The time of a call that waits for a connection runs, too. */
    w.site.holds = true;
    hook_run(&w, 8 * NS_PER_S);
    for (int i = 0; i < KUBE_WEBHOOK_CALLS_PER_TARGET_MAX; i++)
        assert_true(calls[i].ends == 1 && calls[i].call.status == ST_TIMEOUT);
    assert_int_equal(w.under_way, 0);
    hook_world_fini(&w);
    free(calls);
}

static void connections_are_used_by_those_that_wait(void **state)
{
    (void)state;
    enum { CALLS = 1000 };
    struct hook_world w;
    struct hook_call *calls = calloc(CALLS, sizeof(*calls));
    hook_world_init(&w);
    const struct kube_webhook_target *target = hook_at(&w, "/hook/x");
    for (int i = 0; i < CALLS; i++)
        hook_start(&w, &calls[i], target, 10 * NS_PER_S);
    hook_run(&w, 3 * NS_PER_S);
    for (int i = 0; i < CALLS; i++)
        assert_true(calls[i].ends == 1 && calls[i].call.status == ST_OK);
    assert_true(faults.connects <= KUBE_WEBHOOK_CONNECTIONS_MAX);
    hook_world_fini(&w);
    free(calls);
}

/* The targets that have most of the calls get no more, and another one gets those that are reserved
 * for it. None of them gets a connection, because the store does not answer. */
static void calls_are_limited_in_all(void **state)
{
    (void)state;
    enum {
        TARGETS = 5,
        OTHERS_AT = KUBE_WEBHOOK_CALLS_MAX + TARGETS,
        CALLS = OTHERS_AT + KUBE_WEBHOOK_CALLS_RESERVED + 1,
    };
    struct hook_world w;
    const struct kube_webhook_target *targets[TARGETS + 1];
    struct hook_call *calls = calloc(CALLS, sizeof(*calls));
    hook_inline_percent = 0;
    hook_world_init(&w);
    for (int i = 0; i <= TARGETS; i++)
        targets[i] = hook_target(&w, "{'service':{'namespace':'a','name':'b%d'}}", i);
    for (int i = 0; i < CALLS; i++)
        hook_start(&w, &calls[i], targets[i < OTHERS_AT ? i % TARGETS : TARGETS], 10 * NS_PER_S);
    sim_run_until(w.server.sim, pool_world_now(&w.server) + NS_PER_S);
    for (int i = 0; i < CALLS; i++) {
        bool refused = (i >= KUBE_WEBHOOK_CALLS_MAX && i < OTHERS_AT) || i == CALLS - 1;
        assert_int_equal(calls[i].ends, refused);
        if (refused)
            assert_int_equal(calls[i].call.status, ST_REQUEST_TOO_MANY_REQUESTS);
    }
    kube_webhook_caller_check(w.caller);
    for (int i = 0; i < CALLS; i++)
        kube_webhook_call_cancel(&calls[i].call);
    hook_world_fini(&w);
    free(calls);
}

/* Another target replaces the one that was not used for the longest time, unless it has calls. */
static void targets_are_limited(void **state)
{
    (void)state;
    struct hook_world w;
    struct hook_call hanging = {.ends = 0},
                     *calls = calloc(KUBE_WEBHOOK_TARGETS_MAX, sizeof(*calls));
    hook_world_init(&w);
    w.site.holds = true;
    hook_start(&w, &hanging, hook_at(&w, "/hook/hangs"), 100 * NS_PER_S);
    hook_run(&w, NS_PER_S);
    w.site.holds = false;
    for (int i = 0; i < KUBE_WEBHOOK_TARGETS_MAX; i++) {
        char path[32];
        snprintf(path, sizeof(path), "/hook/%d", i);
        hook_start(&w, &calls[i], hook_at(&w, path), 10 * NS_PER_S);
        hook_run(&w, 20 * NS_PER_MS);
        assert_true(calls[i].ends == 1 && calls[i].call.status == ST_OK);
    }
    assert_int_equal(hanging.ends, 0);
    assert_int_equal(faults.connects, KUBE_WEBHOOK_TARGETS_MAX + 1);
    (void)hook_ask(&w, hook_at(&w, "/hook/1"));
    assert_int_equal(faults.connects, KUBE_WEBHOOK_TARGETS_MAX + 1);
    (void)hook_ask(&w, hook_at(&w, "/hook/0")); /* its connection has gone */
    assert_int_equal(faults.connects, KUBE_WEBHOOK_TARGETS_MAX + 2);
    kube_webhook_call_cancel(&hanging.call);
    /* All of them have calls. */
    w.site.holds = true;
    for (int i = 0; i < KUBE_WEBHOOK_TARGETS_MAX; i++) {
        char path[32];
        snprintf(path, sizeof(path), "/hook/n%d", i);
        hook_start(&w, &calls[i], hook_at(&w, path), 100 * NS_PER_S);
    }
    hook_start(&w, &hanging, hook_at(&w, "/hook/hangs"), 100 * NS_PER_S);
    hook_run(&w, 100 * NS_PER_MS);
    assert_true(hanging.ends == 1 && hanging.call.status == ST_REQUEST_TOO_MANY_REQUESTS);
    hook_world_fini(&w);
    free(calls);
}

static void idle_targets_are_dropped(void **state)
{
    (void)state;
    struct hook_world w;
    hook_world_init(&w);
    (void)hook_ask(&w, hook_at(&w, "/hook/x"));
    assert_int_equal(kube_webhook_caller_targets(w.caller), 1);
    hook_run(&w, 200 * NS_PER_S);
    assert_int_equal(kube_webhook_caller_targets(w.caller), 0);
    (void)hook_ask(&w, hook_at(&w, "/hook/x"));
    assert_int_equal(faults.connects, 2);
    hook_world_fini(&w);
}

/* -- Proxies -- */

static char *proxy_of_test(const char *name)
{
    static char url[64];
    return strcmp(name, "HTTPS_PROXY") == 0 ? strcpy(url, "http://127.0.0.1:3128") : NULL;
}

static void proxy_of_the_environment_is_used(void **state)
{
    (void)state;
    struct hook_world w;
    hook_world_init(&w);
    w.settings.environment = proxy_of_test;
    kube_webhook_caller_stop(w.caller);
    kube_webhook_caller_free(w.caller);
    hook_make_caller(&w);
    struct hook_call c = hook_ask(&w, hook_at(&w, "/hook/x"));
    assert_non_null(strstr(c.error, "through the proxy"));
    /* Never for this machine. */
    c = hook_ask(&w, hook_target(&w, "{'url':'https://127.0.0.1:%u/hook/x','caBundle':'%s'}",
                                 hook_port(&w), w.ca));
    assert_string_equal(c.error, "");
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
        cmocka_unit_test(compressed_answer_is_read),
        cmocka_unit_test(damaged_compressed_answer_fails),
        cmocka_unit_test(answer_is_limited),
        cmocka_unit_test(answer_is_charged),
        cmocka_unit_test(retry_after_is_followed),
        cmocka_unit_test(violations_of_http_fail_the_call),
        cmocka_unit_test(hanging_target_delays_no_other),
        cmocka_unit_test(connections_are_used_by_those_that_wait),
        cmocka_unit_test(calls_are_limited_in_all),
        cmocka_unit_test(targets_are_limited),
        cmocka_unit_test(idle_targets_are_dropped),
        cmocka_unit_test(proxy_of_the_environment_is_used),
        cmocka_unit_test(server_that_cannot_be_reached_fails_the_call),
        cmocka_unit_test(time_bounds_everything),
        cmocka_unit_test(stop_ends_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
