#include "etcd/gateway/gateway.h"

#include "base/buf.h"
#include "base/memory/budget.h"
#include "codec/json/scanner.h"
#include "etcd/api.h"
#include "etcd/auth_fixture_test.h"
#include "etcd/gateway/offload.h"
#include "io/blocked_worker_test.h"
#include "io/loop.h"
#include "wire/connection.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* HTTP/1.1 connections to the API over the fake engine. tests/live/gateway_test.py compares the
 * answers with a real etcd; these tests are about timing and disconnecting clients. */
enum { CONNECTIONS = 4 };

static struct blocked_worker blocked;

struct fixture {
    struct etcd_config config;
    struct engine *engine;
    struct engine_shard *shard;
    struct etcd_api *api;
    struct wire_server *server;
    struct wire_connection *connections[CONNECTIONS];
    struct buf out[CONNECTIONS];
    int64_t now_ns;
    struct auth_issuer *issuer;
    struct loop *loop;
    struct worker *worker; /* may be NULL */
    struct budget *budget;
    struct account *account; /* account of all connections */
};

static void ignore(void *owner)
{
    (void)owner;
}

static void fixture_open(struct fixture *f, unsigned inline_percent, uint32_t calls_max,
                         struct worker *worker)
{
    struct wire_limits limits = WIRE_LIMITS_DEFAULT;
    *f = (struct fixture){.now_ns = 1, .worker = worker};
    assert_int_equal(loop_new(clock_system(), &f->loop), ST_OK);
    assert_int_equal(budget_new(64 << 20, &f->budget), ST_OK);
    assert_int_equal(account_new(f->budget, &f->account), ST_OK);
    f->config = (struct etcd_config){.version = "3.7.0",
                                     .cluster_version = "3.7.0",
                                     .txn_ops_max = 128,
                                     .request_bytes_max = ETCD_REQUEST_BYTES_MAX_DEFAULT,
                                     .gateway_calls_max = calls_max,
                                     .worker = worker};
    struct error error;
    struct wire_hooks hooks = {.on_output = ignore, .peer_name = "root", .account = f->account};
    assert_int_equal(
        auth_issuer_new(&(struct auth_issuer_settings){.simple_ttl_ns = 300 * NS_PER_S}, &f->issuer,
                        &error),
        ST_OK);
    f->config.issuer = f->issuer;
    f->config.names_from_certificates = true;
    f->engine = fake_new(&(struct fake_options){.seed = 1, .inline_percent = inline_percent});
    assert_int_equal(engine_shard_new(f->engine, NULL, &f->shard), ST_OK);
    assert_int_equal(etcd_api_new(&f->config, f->engine, f->shard, &f->api), ST_OK);
    etcd_api_set_loop(f->api, f->loop);
    limits.http.body_bytes_max = 4 << 20;
    assert_int_equal(
        wire_server_new(etcd_api_services(f->api), etcd_api_routes(f->api), &limits, &f->server),
        ST_OK);
    for (size_t i = 0; i < CONNECTIONS; i++)
        assert_int_equal(wire_connection_new(f->server, hooks, f->now_ns, &f->connections[i]),
                         ST_OK);
}

static void fixture_init(struct fixture *f, unsigned inline_percent, uint32_t calls_max)
{
    fixture_open(f, inline_percent, calls_max, NULL);
}

static void hang_up(struct fixture *f, size_t c)
{
    wire_connection_free(f->connections[c]);
    f->connections[c] = NULL;
}

static void fixture_fini(struct fixture *f)
{
    for (size_t i = 0; i < CONNECTIONS; i++)
        hang_up(f, i);
    while (fake_step(f->engine))
        ;
    assert_int_equal(fake_open(f->engine), 0);
    assert_false(etcd_api_busy(f->api));
    wire_server_free(f->server);
    etcd_api_free(f->api);
    engine_shard_free(f->shard);
    fake_free(f->engine);
    auth_issuer_free(f->issuer);
    for (size_t i = 0; i < CONNECTIONS; i++)
        buf_fini(&f->out[i]);
    if (f->worker)
        blocked_worker_fini(&blocked);
    loop_free(f->loop);
    account_unref(f->account);
    assert_int_equal(budget_stats(f->budget).held_bytes, 0);
    budget_free(f->budget);
}

static void post(struct fixture *f, size_t c, const char *path, const char *fields,
                 const char *body)
{
    AUTO(buf_fini) struct buf request = {0};
    assert_int_equal(buf_append_format(&request,
                                       "POST /v3/%s HTTP/1.1\r\nHost: x\r\n%sContent-Length: "
                                       "%zu\r\n\r\n%s",
                                       path, fields, strlen(body), body),
                     ST_OK);
    wire_connection_feed(f->connections[c], buf_slice(&request), f->now_ns);
}

/* Runs one turn of the shard; returns what a connection has sent since the last call, as text. */
static const char *answer(struct fixture *f, size_t c)
{
    uint8_t bytes[WIRE_FILL_ROOM_MIN];
    struct buf *out = &f->out[c];
    out->len = 0;
    engine_shard_turn_begin(f->shard);
    engine_shard_turn_end(f->shard);
    while (wire_connection_wants_write(f->connections[c])) {
        size_t n = wire_connection_fill(f->connections[c], bytes, sizeof(bytes), f->now_ns);
        if (n == 0)
            break;
        assert_int_equal(buf_append(out, slice_of(bytes, n)), ST_OK);
    }
    engine_shard_flushed(f->shard);
    etcd_api_check(f->api);
    assert_int_equal(buf_append(out, slice_of("", 1)), ST_OK);
    return (const char *)out->ptr;
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no %s in: %s", part, text);
}

static void assert_answer(struct fixture *f, const char *path, const char *body, const char *status,
                          const char *part)
{
    post(f, 0, path, "", body);
    const char *text = answer(f, 0);
    assert_has(text, status);
    assert_has(text, part);
}

static void every_method_has_one_path(void **state)
{
    (void)state;
    size_t count;
    const struct gateway_row *rows = gateway_rows(&count);
    assert_int_equal(count, 51);
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(gateway_row_find(slice_from_text(rows[i].path)), &rows[i]);
        assert_non_null(strstr(rows[i].request->name, "Request"));
        assert_non_null(strstr(rows[i].response->name, "Response"));
    }
    assert_null(gateway_row_find(SLICE_LITERAL("/v3/kv/rang")));
    assert_null(gateway_row_find(SLICE_EMPTY));
}

static void calls_are_answered_immediately_or_late(void **state)
{
    (void)state;
    for (unsigned percent = 0; percent <= 100; percent += 100) {
        struct fixture f;
        fixture_init(&f, percent, 100);
        post(&f, 0, "kv/put", "", "{\"key\":\"YQ==\",\"value\":\"Yg==\"}");
        if (percent == 0) {
            assert_string_equal(answer(&f, 0), "");
            assert_true(fake_step(f.engine));
        }
        assert_has(answer(&f, 0), "\r\n\r\n{\"header\":{");
        post(&f, 0, "kv/range", "", "{\"key\":\"YQ==\"}");
        while (fake_step(f.engine))
            ;
        const char *text = answer(&f, 0);
        assert_has(text, "Content-Length: ");
        assert_has(text, "\"kvs\":[{\"key\":\"YQ==\"");
        assert_has(text, "\"count\":\"1\"}");
        fixture_fini(&f);
    }
}

static void early_disconnect_leaks_nothing(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 0, 100);
    post(&f, 0, "kv/put", "", "{\"key\":\"YQ==\"}");
    post(&f, 1, "kv/range", "", "{\"key\":\"YQ==\"}");
    post(&f, 2, "watch", "", "{\"create_request\":{\"key\":\"YQ==\"}}");
    hang_up(&f, 0);
    hang_up(&f, 1);
    hang_up(&f, 2);
    assert_true(etcd_api_busy(f.api));
    fixture_fini(&f);
}

static void errors_have_the_status_of_their_code(void **state)
{
    (void)state;
    static const struct {
        enum status status;
        const char *line, *body;
    } rows[] = {
        {ST_COMPACTED, "HTTP/1.1 400 Bad Request\r\n",
         "{\"code\":11,\"message\":\"etcdserver: mvcc"},
        {ST_PERMISSION_DENIED, "HTTP/1.1 403 Forbidden\r\n", "{\"code\":7,"},
        {ST_NO_LEADER, "HTTP/1.1 503 Service Unavailable\r\n", "{\"code\":14,"},
        {ST_INVALID_AUTH_TOKEN, "HTTP/1.1 401 Unauthorized\r\n", "{\"code\":16,"},
        {ST_LIMIT, "HTTP/1.1 429 Too Many Requests\r\n", "{\"code\":8,"},
        {ST_DAMAGED, "HTTP/1.1 500 Internal Server Error\r\n", "{\"code\":15,"},
    };
    struct fixture f;
    fixture_init(&f, 100, 100);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        fake_fail_next(f.engine, rows[i].status, SLICE_EMPTY);
        assert_answer(&f, "kv/range", "{\"key\":\"YQ==\"}", rows[i].line, rows[i].body);
    }
    fake_fail_next(f.engine, ST_INVALID_AUTH_TOKEN, SLICE_EMPTY);
    assert_answer(&f, "kv/range", "{\"key\":\"YQ==\"}", "HTTP/1.1 401",
                  "WWW-Authenticate: etcdserver: invalid auth token\r\n");
    fake_fail_next(f.engine, ST_INTERNAL, SLICE_LITERAL("say \"it\"\n"));
    assert_answer(&f, "kv/range", "{\"key\":\"YQ==\"}", "HTTP/1.1 500",
                  "\"message\":\"say \\\"it\\\"\\n\"}");
    fixture_fini(&f);
}

static void invalid_requests_get_the_reason(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 100, 100);
    assert_answer(
        &f, "kv/range", "{\"key\":5}", "HTTP/1.1 400",
        "{\"code\":3,\"message\":\"proto: (line 1:8): invalid value for bytes field key: 5\"}");
    assert_answer(&f, "kv/range", "nope", "HTTP/1.1 400",
                  "invalid character 'o' in literal null (expecting 'u')");
    assert_answer(&f, "kv/range", "", "HTTP/1.1 400", "etcdserver: key is not provided");
    assert_answer(&f, "kv/nothing", "{}", "HTTP/1.1 404", "{\"code\":5,\"message\":\"Not Found\"}");
    assert_answer(&f, "kv/range%", "{}", "HTTP/1.1 400", "Bad Request");
    assert_answer(&f, "kv/r%61nge", "{\"key\":\"YQ==\"}", "HTTP/1.1 200", "{\"header\":{");
    wire_connection_feed(f.connections[0],
                         SLICE_LITERAL("GET /v3/watch HTTP/1.1\r\nHost: x\r\n\r\n"), f.now_ns);
    assert_has(answer(&f, 0), "HTTP/1.1 501 Not Implemented\r\n");
    fixture_fini(&f);
}

static void watch_sends_lines_and_ends_with_an_error_line(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 100, 100);
    post(&f, 1, "watch", "",
         "{\"create_request\":{\"key\":\"YQ==\"}}{\"create_request\":{\"key\":\"Yg==\"}} junk");
    const char *text = answer(&f, 1);
    assert_has(text, "HTTP/1.1 200 OK\r\n");
    assert_has(text, "Transfer-Encoding: chunked\r\n");
    assert_has(text, ",\"created\":true}}\n{\"result\":{");
    assert_has(text, "\"watch_id\":\"1\",\"created\":true}}\n");
    assert_answer(&f, "kv/put", "{\"key\":\"YQ==\",\"value\":\"Yg==\"}", "200 OK", "revision");
    assert_has(answer(&f, 1), "\"events\":[{\"kv\":{\"key\":\"YQ==\"");
    wire_connection_shutdown(f.connections[1], f.now_ns);
    text = answer(&f, 1);
    assert_has(text, "{\"error\":{\"code\":14,\"message\":\"etcdserver: server stopped\"}}\n");
    assert_has(text, "\r\n0\r\n\r\n");
    fixture_fini(&f);
}

static void calls_during_shutdown_are_refused(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 100, 1);
    struct slice head = SLICE_LITERAL("POST /v3/watch HTTP/1.1\r\nHost: x\r\nContent-Length: 33"
                                      "\r\n\r\n");
    wire_connection_feed(f.connections[0], head, f.now_ns);
    wire_connection_shutdown(f.connections[0], f.now_ns);
    wire_connection_feed(f.connections[0], SLICE_LITERAL("{\"create_request\":{\"key\":\"YQ==\"}}"),
                         f.now_ns);
    assert_has(answer(&f, 0), "HTTP/1.1 503 Service Unavailable\r\n");
    assert_int_equal(fake_open(f.engine), 0);
    post(&f, 1, "watch", "", "{\"create_request\":{\"key\":\"YQ==\"}}");
    assert_has(answer(&f, 1), "created");
    post(&f, 2, "watch", "", "{\"create_request\":{\"key\":\"YQ==\"}}"); /* waits: one is open */
    wire_connection_shutdown(f.connections[2], f.now_ns);
    hang_up(&f, 1);
    assert_has(answer(&f, 2), "HTTP/1.1 503 Service Unavailable\r\n");
    fixture_fini(&f);
}

static void deadlines_end_calls(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 0, 1);
    post(&f, 0, "watch", "Grpc-Timeout: 5S\r\n", "{\"create_request\":{\"key\":\"YQ==\"}}");
    assert_has(answer(&f, 0), "\"created\":true");
    post(&f, 1, "kv/put", "Grpc-Timeout: 3S\r\n", "{\"key\":\"YQ==\"}"); /* waits: one is open */
    assert_int_equal(wire_connection_timeout(f.connections[1]), f.now_ns + INT64_C(3000000000));
    f.now_ns += INT64_C(3000000000);
    wire_connection_tick(f.connections[1], f.now_ns);
    assert_has(answer(&f, 1), "HTTP/1.1 504 Gateway Timeout\r\n");
    f.now_ns += INT64_C(2000000000);
    wire_connection_tick(f.connections[0], f.now_ns);
    assert_has(answer(&f, 0),
               "{\"error\":{\"code\":4,\"message\":\"context deadline exceeded\"}}\n");
    post(&f, 1, "kv/put", "Grpc-Timeout: 1S\r\n", "{\"key\":\"YQ==\"}");
    f.now_ns += INT64_C(1000000000);
    wire_connection_tick(f.connections[1], f.now_ns);
    assert_has(answer(&f, 1), "{\"code\":4,\"message\":\"context deadline exceeded\"}");
    assert_true(etcd_api_busy(f.api)); /* the engine still executes it */
    post(&f, 2, "kv/put", "Grpc-Timeout: 1n\r\n", "{\"key\":\"YQ==\"}");
    assert_has(answer(&f, 2), "HTTP/1.1 504 ");
    post(&f, 2, "kv/put", "Grpc-Timeout: often\r\n", "{\"key\":\"YQ==\"}");
    assert_has(answer(&f, 2), "invalid grpc-timeout: often");
    fixture_fini(&f);
}

static void calls_past_the_limit_wait_their_turn(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 100, 1);
    post(&f, 0, "watch", "", "{\"create_request\":{\"key\":\"YQ==\"}}");
    assert_has(answer(&f, 0), "created");
    for (size_t c = 1; c < CONNECTIONS; c++) {
        post(&f, c, "kv/put", "", "{\"key\":\"YQ==\"}");
        assert_string_equal(answer(&f, c), "");
    }
    hang_up(&f, 1);
    hang_up(&f, 0);
    assert_has(answer(&f, 2), "HTTP/1.1 200 OK\r\n");
    assert_has(answer(&f, 3), "HTTP/1.1 200 OK\r\n");
    fixture_fini(&f);
}

/* As python-etcd3gw and users of curl send it. Certificates are ignored here. */
static void token_in_a_header_identifies_the_user(void **state)
{
    (void)state;
    static const char put[] = "{\"key\":\"YS8x\",\"value\":\"eA==\"}"; /* a/1 */
    static const struct {
        const char *format;
        const char *answer;
    } cases[] = {
        {"Authorization: %s\r\n", "HTTP/1.1 200 OK\r\n"},
        {"AUTHORIZATION: Bearer %s\r\n", "HTTP/1.1 200 OK\r\n"},
        {"Grpc-Metadata-Token: %s\r\n", "HTTP/1.1 200 OK\r\n"},
        {"Grpc-Metadata-Token: %s\r\nAuthorization: other\r\n", "HTTP/1.1 200 OK\r\n"},
        {"Grpc-Metadata-Bad!: %s\r\n", "etcdserver: user name is empty"},
        {"Cookie: token=%s\r\n", "etcdserver: user name is empty"},
        {"Authorization: x%s\r\n", "WWW-Authenticate: etcdserver: invalid auth token\r\n"},
        {"Authorization: bearer %s\r\n", "HTTP/1.1 401 Unauthorized\r\n"},
        {"Token: %s\r\n", "etcdserver: user name is empty"},
    };
    struct fixture f;
    char token[AUTH_TOKEN_ROOM], fields[256];
    fixture_init(&f, 100, 100);
    auth_begin(f.engine, f.shard);
    auth_token(f.issuer, "anna", f.now_ns, token);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        snprintf(fields, sizeof(fields), cases[i].format, token);
        post(&f, i % CONNECTIONS, "kv/put", fields, put);
        assert_has(answer(&f, i % CONNECTIONS), cases[i].answer);
    }
    fixture_fini(&f);
}

/* Without its chunk heads, a long answer must be one complete JSON value. */
static void assert_long_list(const char *text, size_t keys)
{
    AUTO(buf_fini) struct buf json = {0};
    const char *p = strstr(text, "\r\n\r\n");
    assert_has(text, "Transfer-Encoding: chunked\r\n");
    for (p += 4;;) {
        char *end;
        size_t len = strtoul(p, &end, 16);
        assert_true(end[0] == '\r' && end[1] == '\n');
        if (len == 0)
            break;
        assert_int_equal(buf_append(&json, slice_of(end + 2, len)), ST_OK);
        p = end + 2 + len + 2;
    }
    struct json_scanner s;
    struct slice value;
    json_scanner_init(&s, buf_slice(&json));
    assert_true(json_next_value(&s, &value));
    assert_int_equal(value.len, json.len);
    size_t seen = 0;
    assert_int_equal(buf_append(&json, slice_of("", 1)), ST_OK);
    for (const char *at = (const char *)json.ptr; (at = strstr(at, "{\"key\":\"")); at++)
        seen++;
    assert_int_equal(seen, keys);
}

static void long_lists_are_sent_as_the_client_reads(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 100, 100);
    enum { KEYS = 60 };
    char body[4096], value[2001];
    memset(value, 'A', 2000);
    value[2000] = '\0';
    for (int i = 0; i < KEYS; i++) {
        snprintf(body, sizeof(body), "{\"key\":\"YWF%c\",\"value\":\"%s\"}",
                 i < 26   ? 'A' + i
                 : i < 52 ? 'a' + i - 26
                          : '0' + i - 52,
                 value);
        assert_answer(&f, "kv/put", body, "200 OK", "revision");
    }
    post(&f, 0, "kv/range", "", "{\"key\":\"AA==\",\"range_end\":\"AA==\"}");
    assert_long_list(answer(&f, 0), KEYS);
    post(&f, 0, "kv/range", "", "{\"key\":\"AA==\",\"range_end\":\"AA==\"}");
    hang_up(&f, 0); /* within the list */
    fixture_fini(&f);
}

/* -- Large bodies -- */

/* The worker is blocked, with `waiting` jobs in its queue. */
static void fixture_init_blocked(struct fixture *f, size_t waiting)
{
    blocked_worker_init(&blocked);
    fixture_open(f, 100, 100, blocked.worker);
    blocked_worker_block(&blocked, waiting);
}

/* Releases the worker and waits until all its jobs are done. */
static void unblock(struct fixture *f)
{
    blocked_worker_release(&blocked);
    while (etcd_api_busy(f->api))
        loop_turn(f->loop, NS_PER_MS);
}

/* Posts the body, padded with blanks before its last byte to this length. */
static void post_long(struct fixture *f, size_t c, const char *path, const char *fields,
                      const char *body, size_t len)
{
    size_t last = strlen(body) - 1;
    char *text = malloc(len + 1);
    memset(text, ' ', len);
    memcpy(text, body, last);
    text[len - 1] = body[last];
    text[len] = '\0';
    post(f, c, path, fields, text);
    memset(text, 'x', len);
    free(text);
}

#define LARGE ((size_t)GATEWAY_INLINE_BYTES_MAX + 1)
#define PUT "{\"key\":\"YQ==\",\"value\":\"Yg==\"}"

static void others_are_answered_while_a_large_body_is_parsed(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init_blocked(&f, 0);
    post_long(&f, 0, "kv/put", "", PUT, LARGE);
    post_long(&f, 1, "kv/put", "", "{\"key\":5}", LARGE);
    post_long(&f, 2, "watch", "",
              "{\"create_request\":{\"key\":\"YQ==\"}}{\"create_request\":{\"key\":\"Yg==\"}}",
              LARGE);
    for (size_t c = 0; c < 3; c++)
        assert_string_equal(answer(&f, c), "");
    post_long(&f, 3, "kv/put", "", PUT, LARGE - 1);
    assert_has(answer(&f, 3), "HTTP/1.1 200 OK\r\n");
    unblock(&f);
    assert_has(answer(&f, 0), "\r\n\r\n{\"header\":{");
    assert_has(answer(&f, 1), "proto: (line 1:8): invalid value for bytes field key: 5");
    assert_has(answer(&f, 2), "\"watch_id\":\"1\",\"created\":true}}\n");
    assert_answer(&f, "kv/put", PUT, "200 OK", "revision");
    assert_has(answer(&f, 2), "\"events\":[{\"kv\":{\"key\":\"YQ==\"");
    fixture_fini(&f);
}

/* These requests cost the service almost nothing, so it never pauses the call. */
static void many_requests_of_a_call_are_delivered_over_several_turns(void **state)
{
    (void)state;
    enum { EMPTY = 20000 };
    static const char create[] = "{\"create_request\":{\"key\":\"YQ==\"}}";
    AUTO(buf_fini) struct buf body = {0};
    struct fixture f;
    fixture_init(&f, 100, 100);
    for (int i = 0; i < EMPTY; i++)
        assert_int_equal(buf_append_text(&body, "{}"), ST_OK);
    assert_int_equal(buf_append(&body, slice_of(create, sizeof(create))), ST_OK);
    post(&f, 0, "watch", "", (const char *)body.ptr);
    post(&f, 1, "watch", "", (const char *)body.ptr);
    unsigned turns = 0;
    while (!strstr(answer(&f, 0), "created")) {
        loop_turn(f.loop, NS_PER_MS);
        turns++;
        if (turns == 3)
            hang_up(&f, 1);
        assert_true(turns < EMPTY);
    }
    assert_true(turns > EMPTY / 1000);
    fixture_fini(&f);
}

/* A body that the worker parses stays charged to the client that sent it. */
static void client_may_disconnect_while_its_body_is_parsed(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init_blocked(&f, 0);
    post_long(&f, 0, "kv/put", "", PUT, LARGE);
    post_long(&f, 1, "watch", "", "{\"create_request\":{\"key\":\"YQ==\"}}", LARGE);
    post_long(&f, 2, "kv/put", "", "{\"key\":5}", LARGE);
    for (size_t c = 0; c < 3; c++)
        hang_up(&f, c);
    assert_true(account_held_bytes(f.account) >= 3 * 2 * LARGE);
    assert_true(etcd_api_busy(f.api));
    unblock(&f);
    assert_true(account_held_bytes(f.account) < LARGE);
    post(&f, 3, "kv/range", "", "{\"key\":\"YQ==\"}");
    assert_has(answer(&f, 3), "\"revision\":\"1\"");
    fixture_fini(&f);
}

static void deadline_ends_a_call_whose_body_is_parsed(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init_blocked(&f, 0);
    post_long(&f, 0, "kv/put", "Grpc-Timeout: 3S\r\n", PUT, LARGE);
    post_long(&f, 1, "kv/put", "Grpc-Timeout: 3S\r\n", "{\"key\":5}", LARGE);
    post_long(&f, 2, "watch", "", "{\"create_request\":{\"key\":\"YQ==\"}}", LARGE);
    f.now_ns += INT64_C(3000000000);
    for (size_t c = 0; c < 2; c++)
        wire_connection_tick(f.connections[c], f.now_ns);
    wire_connection_shutdown(f.connections[2], f.now_ns);
    assert_has(answer(&f, 0), "HTTP/1.1 504 Gateway Timeout\r\n");
    assert_has(answer(&f, 2), "etcdserver: server stopped");
    unblock(&f); /* the other answers were not sent yet */
    const char *late = answer(&f, 1);
    assert_has(late, "HTTP/1.1 504 Gateway Timeout\r\n");
    assert_null(strstr(late + 1, "HTTP/1.1"));
    for (size_t c = 0; c < 3; c++)
        assert_string_equal(answer(&f, c), "");
    assert_answer(&f, "kv/range", "{\"key\":\"YQ==\"}", "200 OK", "\"revision\":\"1\"");
    fixture_fini(&f);
}

static void bodies_beyond_the_workers_queue_are_refused(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init_blocked(&f, WORKER_QUEUE_MAX);
    post_long(&f, 0, "kv/put", "", PUT, LARGE);
    const char *text = answer(&f, 0);
    assert_has(text, "HTTP/1.1 429 Too Many Requests\r\n");
    assert_has(text, "too many large requests are under way, please try again");
    unblock(&f);
    post_long(&f, 0, "kv/put", "", PUT, LARGE);
    while (etcd_api_busy(f.api))
        loop_turn(f.loop, NS_PER_MS);
    assert_has(answer(&f, 0), "HTTP/1.1 200 OK\r\n");
    fixture_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_method_has_one_path),
        cmocka_unit_test(calls_are_answered_immediately_or_late),
        cmocka_unit_test(early_disconnect_leaks_nothing),
        cmocka_unit_test(errors_have_the_status_of_their_code),
        cmocka_unit_test(invalid_requests_get_the_reason),
        cmocka_unit_test(watch_sends_lines_and_ends_with_an_error_line),
        cmocka_unit_test(calls_during_shutdown_are_refused),
        cmocka_unit_test(deadlines_end_calls),
        cmocka_unit_test(calls_past_the_limit_wait_their_turn),
        cmocka_unit_test(token_in_a_header_identifies_the_user),
        cmocka_unit_test(long_lists_are_sent_as_the_client_reads),
        cmocka_unit_test(others_are_answered_while_a_large_body_is_parsed),
        cmocka_unit_test(many_requests_of_a_call_are_delivered_over_several_turns),
        cmocka_unit_test(client_may_disconnect_while_its_body_is_parsed),
        cmocka_unit_test(deadline_ends_a_call_whose_body_is_parsed),
        cmocka_unit_test(bodies_beyond_the_workers_queue_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
