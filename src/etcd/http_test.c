#include "etcd/face.h"

#include "base/buf.h"
#include "engine/fake.h"
#include "wire/connection.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* One HTTP/1.1 connection to a face over the fake engine. */
struct fixture {
    struct engine *engine;
    struct engine_shard *shard;
    struct etcd_face *face;
    struct wire_server *server;
    struct wire_connection *connection;
    struct buf out;
};

static const struct etcd_config config = {.version = "3.7.0", .cluster_version = "3.7.0"};

static void ignore(void *owner)
{
    (void)owner;
}

static void fixture_init(struct fixture *f, unsigned inline_percent)
{
    struct wire_limits limits = WIRE_LIMITS_DEFAULT;
    *f = (struct fixture){0};
    f->engine = fake_new(&(struct fake_options){.seed = 1, .inline_percent = inline_percent});
    assert_int_equal(engine_shard_new(f->engine, NULL, &f->shard), ST_OK);
    assert_int_equal(etcd_face_new(&config, f->engine, f->shard, &f->face), ST_OK);
    assert_int_equal(wire_server_new(etcd_face_services(f->face), etcd_face_routes(f->face),
                                     &limits, &f->server),
                     ST_OK);
    assert_int_equal(
        wire_connection_new(f->server, (struct wire_hooks){.on_output = ignore}, 1, &f->connection),
        ST_OK);
}

static void fixture_fini(struct fixture *f)
{
    wire_connection_free(f->connection);
    while (fake_step(f->engine))
        ;
    assert_int_equal(fake_open(f->engine), 0);
    wire_server_free(f->server);
    etcd_face_free(f->face);
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

/* What the server has sent since it was last asked, as text. */
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

static void paths_answer_as_etcds_do(void **state)
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

static void late_reads_answer_in_order_or_not_at_all(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_answer_as_etcds_do),
        cmocka_unit_test(failed_read_is_unhealthy),
        cmocka_unit_test(late_reads_answer_in_order_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
