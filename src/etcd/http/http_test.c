#include "etcd/api.h"

#include "base/buf.h"
#include "base/clock.h"
#include "codec/pb/rpc.pb.h"
#include "engine/engine.h"
#include "etcd/http/health_counts.h"
#include "fake/fake.h"
#include "io/loop.h"
#include "wire/connection.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* One HTTP/1.1 connection to the API over the fake engine. */
struct fixture {
    struct engine *engine;
    struct engine_shard *shard;
    struct etcd_api *api;
    struct wire_server *server;
    struct wire_connection *connection;
    struct buf out;
};

static struct etcd_config config = {.version = "3.7.0", .cluster_version = "3.7.0"};

static void ignore(void *owner)
{
    (void)owner;
}

static void alarm_done(struct engine_op *op)
{
    assert_int_equal(op->status, ST_OK);
}

static void fixture_init_with(struct fixture *f, unsigned inline_percent, bool secure)
{
    struct wire_limits limits = WIRE_LIMITS_DEFAULT;
    *f = (struct fixture){0};
    f->engine = fake_new(&(struct fake_options){.seed = 1, .inline_percent = inline_percent});
    assert_int_equal(engine_shard_new(f->engine, NULL, &f->shard), ST_OK);
    assert_int_equal(etcd_api_new(&config, f->engine, f->shard, &f->api), ST_OK);
    assert_int_equal(
        wire_server_new(etcd_api_services(f->api), etcd_api_routes(f->api), &limits, &f->server),
        ST_OK);
    struct wire_hooks hooks = {.on_output = ignore, .secure = secure};
    assert_int_equal(wire_connection_new(f->server, hooks, 1, &f->connection), ST_OK);
}

static void fixture_init(struct fixture *f, unsigned inline_percent)
{
    fixture_init_with(f, inline_percent, false);
}

static void fixture_fini(struct fixture *f)
{
    wire_connection_free(f->connection);
    while (fake_step(f->engine))
        ;
    assert_int_equal(fake_open(f->engine), 0);
    wire_server_free(f->server);
    etcd_api_free(f->api);
    engine_shard_free(f->shard);
    fake_free(f->engine);
    buf_fini(&f->out);
}

static void ask(struct fixture *f, const char *method, const char *target)
{
    char request[256];
    int len =
        snprintf(request, sizeof(request), "%s %s HTTP/1.1\r\nHost: x\r\n\r\n", method, target);
    wire_connection_feed(f->connection, slice_of(request, (size_t)len), 1);
}

/* What the server has sent since the last call, as text. */
static const char *answer(struct fixture *f)
{
    uint8_t bytes[WIRE_FILL_ROOM_MIN];
    f->out.len = 0;
    while (wire_connection_wants_write(f->connection)) {
        size_t n = wire_connection_fill(f->connection, bytes, sizeof(bytes), 1);
        if (n == 0)
            break;
        assert_int_equal(buf_append(&f->out, slice_of(bytes, n)), ST_OK);
    }
    assert_int_equal(buf_append(&f->out, slice_of("", 1)), ST_OK);
    return (const char *)f->out.ptr;
}

static void assert_answer(struct fixture *f, const char *method, const char *target,
                          const char *status_line, const char *body)
{
    ask(f, method, target);
    const char *text = answer(f);
    if (strncmp(text, status_line, strlen(status_line)) != 0)
        fail_msg("%s %s: %s", method, target, text);
    const char *end = strstr(text, "\r\n\r\n");
    assert_non_null(end);
    assert_string_equal(end + 4, body);
}

static void paths_answer_like_etcd(void **state)
{
    (void)state;
    static const char ok[] = "HTTP/1.1 200 OK\r\n";
    static const char missing[] = "HTTP/1.1 404 Not Found\r\n";
    static const char refused[] = "HTTP/1.1 405 Method Not Allowed\r\n";
    static const struct {
        const char *method, *target, *status, *body;
    } rows[] = {
        {"GET", "/health", ok, "{\"health\":\"true\",\"reason\":\"\"}"},
        {"GET", "/health?serializable=true", ok, "{\"health\":\"true\",\"reason\":\"\"}"},
        {"GET", "/version", ok,
         "{\"etcdserver\":\"3.7.0\",\"etcdcluster\":\"3.7.0\",\"storage\":\"3.7.0\"}"},
        {"GET", "/livez", ok, "ok\n"},
        {"GET", "/livez?verbose", ok, "[+]serializable_read ok\nok\n"},
        {"GET", "/livez/serializable_read", ok, "ok\n"},
        {"GET", "/readyz?verbose&exclude=non_learner&exclude=nonsense", ok,
         "[+]data_corruption ok\n[+]serializable_read ok\n[+]linearizable_read ok\nok\n"},
        {"GET", "/readyz/non_learner?verbose", ok, "[+]non_learner ok\nok\n"},
        {"GET", "/", missing, "404 page not found\n"},
        {"GET", "/livez/non_learner", missing, "404 page not found\n"},
        {"GET", "/health/", missing, "404 page not found\n"},
        {"POST", "/health", refused, "Method Not Allowed\n"},
        {"POST", "/version", refused, "Method Not Allowed\n"},
        {"DELETE", "/readyz", refused, "Method Not Allowed\n"},
    };
    struct fixture f;
    fixture_init(&f, 100);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_answer(&f, rows[i].method, rows[i].target, rows[i].status, rows[i].body);
    fixture_fini(&f);
}

static void old_versions_have_their_own_json(void **state)
{
    (void)state;
    struct fixture f;
    struct etcd_config before = config;
    config.before_3_5 = true;
    config.gateway_calls_max = 4;
    fixture_init(&f, 100);
    assert_answer(&f, "GET", "/health", "HTTP/1.1 200 OK\r\n", "{\"health\":\"true\"}");
    assert_answer(&f, "POST", "/v3/nothing", "HTTP/1.1 404 Not Found\r\n",
                  "{\"error\":\"Not Found\",\"message\":\"Not Found\",\"code\":5}");
    fixture_fini(&f);
    config = before;
}

static void failed_read_is_unhealthy(void **state)
{
    (void)state;
    static const char status[] = "HTTP/1.1 503 Service Unavailable\r\n";
    struct fixture f;
    fixture_init(&f, 100);
    fake_fail_next(f.engine, ST_TIMEOUT, SLICE_EMPTY);
    assert_answer(
        &f, "GET", "/health", status,
        "{\"health\":\"false\",\"reason\":\"RANGE ERROR:etcdserver: request timed out\"}\n");
    fake_fail_next(f.engine, ST_TIMEOUT, SLICE_EMPTY);
    assert_answer(&f, "GET", "/livez", status,
                  "[-]serializable_read failed: etcdserver: request timed out\n\n");
    fixture_fini(&f);
}

static void raise_alarm(struct fixture *f, int type)
{
    struct arena arena;
    arena_init(&arena, NULL, 0, 4096);
    struct pb_alarm_request request = {
        .action = PB_ALARM_ACTION_ACTIVATE, .member_id = 1, .alarm = type};
    struct engine_alarm alarm = {.op = {.done = alarm_done, .arena = &arena}};
    engine_alarm(f->shard, &alarm, &request);
    arena_fini(&arena);
}

static void alarms_are_unhealthy_unless_they_are_excluded(void **state)
{
    (void)state;
    static const char ok[] = "HTTP/1.1 200 OK\r\n", bad[] = "HTTP/1.1 503 Service Unavailable\r\n";
    struct fixture f;
    fixture_init(&f, 100);
    raise_alarm(&f, ENGINE_ALARM_NOSPACE);
    assert_answer(&f, "GET", "/health?exclude=CORRUPT", bad,
                  "{\"health\":\"false\",\"reason\":\"ALARM NOSPACE\"}\n");
    assert_answer(&f, "GET", "/health?exclude=NOSPACE", ok,
                  "{\"health\":\"true\",\"reason\":\"\"}");
    assert_answer(&f, "GET", "/readyz", ok, "ok\n");
    raise_alarm(&f, ENGINE_ALARM_CORRUPT);
    assert_answer(&f, "GET", "/health", bad,
                  "{\"health\":\"false\",\"reason\":\"ALARM CORRUPT\"}\n");
    assert_answer(&f, "GET", "/livez", ok, "ok\n");
    assert_answer(&f, "GET", "/readyz/data_corruption", bad,
                  "[-]data_corruption failed: alarm activated: CORRUPT\n\n");
    raise_alarm(&f, 7);
    assert_answer(&f, "GET", "/health?exclude=NOSPACE", bad,
                  "{\"health\":\"false\",\"reason\":\"ALARM UNKNOWN\"}\n");
    assert_answer(&f, "GET", "/health?exclude=7", ok, "{\"health\":\"true\",\"reason\":\"\"}");
    fixture_fini(&f);
}

static void checks_are_counted_by_kind_and_result(void **state)
{
    (void)state;
    struct etcd_health_counts counts = {0};
    struct metric_page page = {0};
    struct fixture f;
    config.health_counts = &counts;
    fixture_init(&f, 100);
    ask(&f, "GET", "/health");
    ask(&f, "GET", "/livez");
    ask(&f, "GET", "/readyz?exclude=non_learner");
    raise_alarm(&f, ENGINE_ALARM_CORRUPT);
    ask(&f, "GET", "/health");
    ask(&f, "GET", "/readyz/data_corruption");
    (void)answer(&f);
    etcd_health_write(&counts, &page);
    assert_int_equal(buf_append(&page.text, slice_of("", 1)), ST_OK);
    const char *text = (const char *)page.text.ptr;
    static const char *const lines[] = {
        "\netcd_server_health_success 1\n",
        "\netcd_server_health_failures 1\n",
        "\netcd_server_healthcheck{name=\"serializable_read\",type=\"livez\"} 1\n",
        "\netcd_server_healthcheck{name=\"data_corruption\",type=\"readyz\"} 0\n",
        "\netcd_server_healthchecks_total{name=\"data_corruption\",status=\"success\","
        "type=\"readyz\"} 1\n",
        "\netcd_server_healthchecks_total{name=\"data_corruption\",status=\"error\","
        "type=\"readyz\"} 1\n",
    };
    for (size_t i = 0; i < COUNT_OF(lines); i++)
        if (!strstr(text, lines[i]))
            fail_msg("no %s in %s", lines[i], text);
    assert_null(strstr(text, "non_learner"));
    metric_page_fini(&page);
    config.health_counts = NULL;
    fixture_fini(&f);
}

/* Sends a request with this Host field to a server whose list has good.example and ::1. */
static void assert_host(const char *host, bool secure, bool accepted)
{
    static const struct slice hosts[] = {{(const uint8_t *)"good.example", 12},
                                         {(const uint8_t *)"::1", 3}};
    struct fixture f;
    char request[256];
    config.hosts = hosts;
    config.host_count = COUNT_OF(hosts);
    fixture_init_with(&f, 100, secure);
    int len = snprintf(request, sizeof(request), "GET /version HTTP/1.1\r\nHost: %s\r\n\r\n", host);
    wire_connection_feed(f.connection, slice_of(request, (size_t)len), 1);
    const char *wanted = accepted ? "HTTP/1.1 200 OK" : "HTTP/1.1 421 Misdirected Request";
    const char *text = answer(&f);
    if (strncmp(text, wanted, strlen(wanted)) != 0)
        fail_msg("%s: %s", host, text);
    assert_true(accepted == !strstr(text, "CVE-2018-5702"));
    config.host_count = 0;
    fixture_fini(&f);
}

static void hosts_must_be_listed_unless_tls_is_used(void **state)
{
    (void)state;
    static const char *const in[] = {"good.example", "good.example:2379", "[::1]:80", "::1"};
    static const char *const out[] = {
        "evil.example", "good.example.evil.example", "[::1]",         "",
        "a:b:c",        "good.example]:1",           "[good.example]"};
    for (size_t i = 0; i < COUNT_OF(in); i++)
        assert_host(in[i], false, true);
    for (size_t i = 0; i < COUNT_OF(out); i++) {
        assert_host(out[i], false, false);
        assert_host(out[i], true, true);
    }
}

/* The status with which a guarded server answers a POST with this host and origin (may be NULL). */
static int guarded(const char *host, const char *origin, bool *ret_readable)
{
    struct fixture f;
    char request[512], field[128] = "";
    if (origin)
        snprintf(field, sizeof(field), "Origin: %s\r\n", origin);
    fixture_init(&f, 100);
    wire_server_guard(f.server);
    int len =
        snprintf(request, sizeof(request),
                 "POST /version HTTP/1.1\r\nHost: %s\r\n%sContent-Length: 0\r\n\r\n", host, field);
    wire_connection_feed(f.connection, slice_of(request, (size_t)len), 1);
    const char *text = answer(&f);
    int status = (int)strtol(text + strlen("HTTP/1.1 "), NULL, 10);
    *ret_readable = strstr(text, "Access-Control-Allow-Origin") != NULL;
    fixture_fini(&f);
    return status;
}

/* 405 is the answer of /version to a POST that was accepted. */
static void guarded_server_accepts_own_hosts_and_no_pages(void **state)
{
    (void)state;
    static const struct slice urls[] = {SLICE_LITERAL("http://own.example:2379")};
    static const struct {
        const char *host, *origin;
        int status;
    } rows[] = {
        {"localhost:2379", NULL, 405},
        {"127.0.0.1:2379", NULL, 405},
        {"", NULL, 405},
        {"own.example", NULL, 405},
        {"own.example:80", NULL, 405},
        {"evil.example", NULL, 421},
        {"evil.example", "http://evil.example", 421},
        {"localhost:2379", "http://localhost:2379", 405},
        {"localhost:2379", "http://localhost:3000", 403},
        {"localhost:2379", "http://evil.example", 403},
        {"localhost:2379", "null", 403},
    };
    bool readable;
    config.client_urls = urls;
    config.client_url_count = COUNT_OF(urls);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(guarded(rows[i].host, rows[i].origin, &readable), rows[i].status);
        assert_false(readable);
    }
    /* Both lists are empty, so everything is accepted. */
    config.hosts_given = config.origins_given = true;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(guarded(rows[i].host, rows[i].origin, &readable), 405);
        assert_true(readable);
    }
    config.origins = urls;
    config.origin_count = COUNT_OF(urls);
    assert_int_equal(guarded("localhost", "http://own.example:2379", &readable), 405);
    assert_true(readable);
    assert_int_equal(guarded("localhost", "http://evil.example", &readable), 403);
    assert_false(readable);
    config = (struct etcd_config){.version = "3.7.0", .cluster_version = "3.7.0"};
}

static void paths_are_redirected_to_their_clean_form(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"//", "/"},          {"/..", "/"},        {"/a/../b", "/b"},
        {"/a/./b/", "/a/b/"}, {"/a/b/..", "/a"},   {"/a/b/../", "/a/"},
        {"/../..//c", "/c"},  {"//%41", "/%2541"}, {"/a//<b>", "/a/%3Cb%3E"},
    };
    struct fixture f;
    fixture_init(&f, 100);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char wanted[64];
        ask(&f, "GET", rows[i][0]);
        snprintf(wanted, sizeof(wanted), "\r\nLocation: %s\r\n", rows[i][1]);
        const char *text = answer(&f);
        if (strncmp(text, "HTTP/1.1 307", 12) != 0 || !strstr(text, wanted))
            fail_msg("%s: %s", rows[i][0], text);
    }
    ask(&f, "GET", "/v2/keys/a/../b");
    const char *text = answer(&f);
    assert_int_equal(strncmp(text, "HTTP/1.1 301", 12), 0);
    assert_non_null(strstr(text, "\r\nLocation: /v2/keys/b\r\n"));
    fixture_fini(&f);
}

static void late_reads_are_answered_in_order(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 0);
    ask(&f, "GET", "/health");
    assert_string_equal(answer(&f), "");
    assert_true(fake_step(f.engine));
    assert_non_null(strstr(answer(&f), "\"true\""));
    ask(&f, "GET", "/readyz");
    assert_int_equal(fake_waiting(f.engine), 1);
    fixture_fini(&f); /* with the read under way */
}

/* Asks for a probe whose read is never answered, and advances the clock by less than a second. */
static void assert_late(const char *target, unsigned steps, const char *status_line,
                        const char *body)
{
    struct fixture f;
    struct clock_sim sim;
    struct loop *loop;
    clock_sim_init(&sim, 0);
    assert_int_equal(loop_new(&sim.clock, &loop), ST_OK);
    fixture_init(&f, 0);
    etcd_api_set_loop(f.api, loop);
    ask(&f, "GET", target);
    for (unsigned i = 0; i < steps; i++)
        assert_true(fake_step(f.engine));
    assert_string_equal(answer(&f), "");
    clock_sim_advance(&sim, 999 * NS_PER_MS);
    loop_turn(loop, 0);
    const char *text = answer(&f);
    if (strncmp(text, status_line, strlen(status_line)) != 0 || !strstr(text, body))
        fail_msg("%s: %s", target, text);
    fixture_fini(&f); /* the reads are answered, too late */
    loop_free(loop);
}

static void probe_is_answered_within_a_second_though_its_read_is_not(void **state)
{
    (void)state;
    static const char unavailable[] = "HTTP/1.1 503 Service Unavailable\r\n";
    assert_late("/health", 0, unavailable, "RANGE ERROR:no answer within 0.8 s");
    assert_late("/health?serializable=true", 0, unavailable, "RANGE ERROR:no answer");
    assert_late("/livez", 0, unavailable, "[-]serializable_read failed: no answer within 0.8 s\n");
    assert_late("/livez/serializable_read", 0, unavailable, "[-]serializable_read failed");
    assert_late("/readyz", 0, unavailable,
                "[-]serializable_read failed: no answer within 0.8 s\n"
                "[-]linearizable_read failed: no answer within 0.8 s\n");
    assert_late("/readyz/linearizable_read", 0, unavailable, "[-]linearizable_read failed");
    /* The serializable read was answered, the linearizable one is not. */
    assert_late("/readyz?verbose", 1, unavailable,
                "[+]serializable_read ok\n[-]linearizable_read failed: no answer within 0.8 s\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_answer_like_etcd),
        cmocka_unit_test(old_versions_have_their_own_json),
        cmocka_unit_test(failed_read_is_unhealthy),
        cmocka_unit_test(alarms_are_unhealthy_unless_they_are_excluded),
        cmocka_unit_test(checks_are_counted_by_kind_and_result),
        cmocka_unit_test(hosts_must_be_listed_unless_tls_is_used),
        cmocka_unit_test(guarded_server_accepts_own_hosts_and_no_pages),
        cmocka_unit_test(paths_are_redirected_to_their_clean_form),
        cmocka_unit_test(late_reads_are_answered_in_order),
        cmocka_unit_test(probe_is_answered_within_a_second_though_its_read_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
