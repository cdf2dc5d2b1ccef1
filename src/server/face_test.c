/* A server with a face: what serves the Kubernetes API's URLs, over an empty mirror. */
#include "server/face.h"

#include "base/temp_dir_test.h"
#include "engine/local/local.h"
#include "engine/local/mirror/mirror_store.h"
#include "io/address.h"
#include "mirror/directory/directory.h"
#include "server/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { THREADS = 2, BUSY_TURNS = 3, ANSWER_BYTES = 256 << 10 };

/* -- The face of the test: everything below is counted and ordered -- */

struct test_face {
    struct server_face face;
    const char *not_ready; /* NULL: it is ready */
    enum status open_status, shard_status;
    struct engine *engine; /* NULL: not open */
    int64_t revision;      /* the engine's when it was opened */
    _Atomic int shards, stopped, opened, closed;
};

struct test_shard {
    struct test_face *face;
    struct http_routes *routes;
    bool is_stopped;
    _Atomic int busy_turns;
};

struct applying {
    struct mirror_batch batch; /* first */
    _Atomic bool done;
};

static void applied(struct mirror_batch *batch, enum status status)
{
    assert_int_equal(status, ST_OK);
    atomic_store(&CONTAINER_OF(batch, struct applying, batch)->done, true);
}

/* What a later start must not find. */
static void put_something(struct engine *engine)
{
    struct imported_change change = {.kv = {.key = SLICE_LITERAL("k"),
                                            .value = SLICE_LITERAL("v"),
                                            .create_revision = 10,
                                            .version = 1}};
    struct mirror_revision one = {.revision = 10, .changes = &change, .count = 1};
    struct applying applying = {
        .batch = {.revisions = &one, .count = 1, .done = applied},
    };
    local_mirror_apply(engine, &applying.batch);
    while (!atomic_load(&applying.done))
        usleep(100);
    assert_int_equal(local_mirror_revision(engine), 10);
}

static enum status face_open(void *ctx, struct engine *engine, struct turns *turns,
                             struct error *error)
{
    struct test_face *face = ctx;
    assert_null(face->engine);
    assert_non_null(turns);
    if (face->open_status != ST_OK)
        return error_set(error, face->open_status, "the face does not open");
    face->engine = engine;
    face->revision = local_mirror_revision(engine);
    put_something(engine);
    atomic_fetch_add(&face->opened, 1);
    return ST_OK;
}

static void face_close(void *ctx)
{
    struct test_face *face = ctx;
    assert_non_null(face->engine);
    assert_int_equal(atomic_load(&face->shards), 0);
    assert_int_equal(local_mirror_revision(face->engine), 10); /* it is still there */
    face->engine = NULL;
    atomic_fetch_add(&face->closed, 1);
}

static void hello(struct http_exchange *x, void *service, const struct http_request *request)
{
    struct test_shard *shard = service;
    assert_false(shard->is_stopped);
    char text[100];
    int len = snprintf(text, sizeof(text), "the face's answer to %.*s", SLICE_ARGS(request->path));
    http_respond(x, 200, SLICE_LITERAL("text/plain"), slice_of(text, (size_t)len));
}

static enum status shard_new(void *ctx, struct engine_shard *engine, struct loop *loop,
                             void **ret_shard)
{
    static const struct http_route route = {.path = "/", .on_request = hello};
    struct test_face *face = ctx;
    assert_non_null(face->engine);
    assert_non_null(engine);
    assert_non_null(loop);
    TRY(face->shard_status);
    struct test_shard *shard = calloc(1, sizeof(*shard));
    assert_non_null(shard);
    shard->face = face;
    assert_int_equal(http_routes_new(&shard->routes), ST_OK);
    assert_int_equal(http_routes_add(shard->routes, &route, 1, shard), ST_OK);
    atomic_fetch_add(&face->shards, 1);
    *ret_shard = shard;
    return ST_OK;
}

static const struct http_routes *shard_routes(const void *shard)
{
    return ((const struct test_shard *)shard)->routes;
}

static void shard_stop(void *ctx)
{
    struct test_shard *shard = ctx;
    shard->is_stopped = true;
    atomic_store(&shard->busy_turns, BUSY_TURNS);
    atomic_fetch_add(&shard->face->stopped, 1);
}

static bool shard_busy(const void *ctx)
{
    struct test_shard *shard = (struct test_shard *)(uintptr_t)ctx;
    return atomic_load(&shard->busy_turns) > 0 && atomic_fetch_sub(&shard->busy_turns, 1) > 0;
}

static void shard_free(void *ctx)
{
    struct test_shard *shard = ctx;
    assert_true(shard->is_stopped);
    assert_int_equal(atomic_load(&shard->busy_turns), 0);
    atomic_fetch_sub(&shard->face->shards, 1);
    http_routes_free(shard->routes);
    free(shard);
}

static void write_metrics(void *ctx, struct metric_page *page)
{
    const struct test_face *face = ctx;
    metric_page_gauge(page, "face_shards", "Of the test.", (uint64_t)atomic_load(&face->shards));
}

static bool is_ready(void *ctx, char *ret_reason)
{
    const struct test_face *face = ctx;
    if (face->not_ready)
        snprintf(ret_reason, ENGINE_REASON_BYTES, "%s", face->not_ready);
    return !face->not_ready;
}

/* -- The server -- */

struct fixture {
    char dir[TEMP_DIR_BYTES];
    struct test_face face;
    struct server_config config;
    struct url urls[2];
    enum server_role roles[2];
    struct server *server;
    char answer[ANSWER_BYTES]; /* the last one */
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct error error;
    assert_non_null(f);
    temp_dir_make_fast("face", f->dir);
    f->face.face = (struct server_face){
        .ctx = &f->face,
        .open = face_open,
        .close = face_close,
        .shard_new = shard_new,
        .routes = shard_routes,
        .shard_stop = shard_stop,
        .shard_busy = shard_busy,
        .shard_free = shard_free,
        .write_metrics = write_metrics,
        .ready = is_ready,
    };
    f->roles[0] = SERVER_KUBE;
    f->roles[1] = SERVER_METRICS;
    for (int i = 0; i < 2; i++)
        assert_int_equal(url_parse(SLICE_LITERAL("http://127.0.0.1:0"), &f->urls[i], &error),
                         ST_OK);
    f->config = (struct server_config){
        .engine = {.data_dir = f->dir, .segment_bytes_first = 64 << 10},
        .face = &f->face.face,
        .etcd = {.version = "3.7.0", .cluster_version = "3.7.0", .member_name = "test"},
        .net = NET_OPTIONS_DEFAULT,
        .client_bytes_max = 64 << 20,
        .wire = WIRE_LIMITS_DEFAULT,
        .listen = f->urls,
        .roles = f->roles,
        .listen_count = 2,
        .auth = {.simple_ttl_s = 300, .bcrypt_cost = 10},
    };
    f->config.net.shards = THREADS;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(atomic_load(&f->face.opened), atomic_load(&f->face.closed));
    assert_int_equal(atomic_load(&f->face.shards), 0);
    temp_dir_remove(f->dir);
    free(f);
    return 0;
}

static void start(struct fixture *f)
{
    struct error error = {0};
    if (server_start(&f->config, &f->server, &error) != ST_OK)
        fail_msg("%s", error.text);
}

static void refuse(struct fixture *f, const char *why)
{
    struct error error = {0};
    assert_int_not_equal(server_start(&f->config, &f->server, &error), ST_OK);
    if (!strstr(error.text, why))
        fail_msg("\"%s\" does not say \"%s\"", error.text, why);
}

/* The status of the answer, whose text is in f->answer. */
static int get(struct fixture *f, int listener, const char *path)
{
    char request[200];
    size_t len = 0;
    int n = snprintf(request, sizeof(request), "GET %s HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n", path);
    const struct address *address = &server_bound(f->server, (size_t)listener)->address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(address_port(address)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
    assert_int_equal(write(fd, request, (size_t)n), n);
    ssize_t got;
    while ((got = read(fd, f->answer + len, sizeof(f->answer) - 1 - len)) > 0)
        len += (size_t)got;
    f->answer[len] = 0;
    close(fd);
    const char *space = strchr(f->answer, ' ');
    assert_non_null(space);
    return (int)strtol(space, NULL, 10);
}

static void assert_answer_has(const struct fixture *f, const char *text)
{
    if (!strstr(f->answer, text))
        fail_msg("\"%s\" is not in: %s", text, f->answer);
}

static bool exists(const struct fixture *f, const char *name)
{
    char path[TEMP_DIR_BYTES + 100];
    snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    return access(path, F_OK) == 0;
}

/* -- Tests -- */

static void the_face_serves_the_urls_of_the_kubernetes_api(void **state)
{
    struct fixture *f = *state;
    start(f);
    assert_int_equal(atomic_load(&f->face.shards), THREADS);
    assert_int_equal(get(f, 0, "/api/v1/pods"), 200);
    assert_answer_has(f, "the face's answer to /api/v1/pods");
    assert_int_equal(get(f, 0, "/metrics"), 200);
    assert_answer_has(f, "the face's answer to /metrics");
    assert_int_equal(get(f, 1, "/api/v1/pods"), 404);
    server_free(f->server);
    assert_int_equal(atomic_load(&f->face.stopped), THREADS);
    assert_int_equal(atomic_load(&f->face.closed), 1);
}

static void the_metrics_urls_show_the_face(void **state)
{
    struct fixture *f = *state;
    start(f);
    assert_int_equal(get(f, 1, "/metrics"), 200);
    assert_answer_has(f, "\nface_shards 2\n");
    assert_int_equal(get(f, 1, "/readyz"), 200);
    assert_int_equal(get(f, 1, "/readyz/mirror"), 200);
    assert_int_equal(get(f, 1, "/health"), 200);
    server_free(f->server);
    f->face.not_ready = "the kube-apiserver does not answer";
    start(f);
    assert_int_equal(get(f, 1, "/readyz"), 503);
    assert_answer_has(f, "[-]mirror failed: the kube-apiserver does not answer\n");
    assert_int_equal(get(f, 1, "/health"), 503);
    assert_answer_has(f, "the kube-apiserver does not answer");
    assert_int_equal(get(f, 1, "/livez"), 200);
    server_free(f->server);
}

static void the_mirror_is_empty_at_every_start(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 3; i++) {
        start(f);
        assert_int_equal(f->face.revision, 1);
        assert_true(exists(f, "mirror"));
        server_free(f->server);
        assert_false(exists(f, "mirror"));
    }
}

/* What a killed process leaves, and the mirror of an etcd cluster, which is loaded again. */
static void what_is_left_of_a_mirror_is_thrown_away(void **state)
{
    struct fixture *f = *state;
    struct error error;
    struct mirror_options options = {.mirror = f->config.engine};
    for (int i = 0; i < 2; i++) {
        struct mirror_directory mirror;
        assert_int_equal(mirror_directory_open(&options, &mirror, &error), ST_OK);
        if (i)
            assert_int_equal(mirror_directory_identify(&mirror, &options, 0x1234, &error), ST_OK);
        put_something(mirror.engine);
        mirror_directory_close(&mirror, &options);
        start(f);
        assert_int_equal(f->face.revision, 1);
        server_free(f->server);
    }
}

static void a_store_is_left_alone(void **state)
{
    struct fixture *f = *state;
    struct engine *engine;
    struct error error;
    assert_int_equal(engine_local_open(&f->config.engine, &engine, &error), ST_OK);
    engine_local_close(engine);
    refuse(f, "stores data itself");
    assert_true(exists(f, "FORMAT"));
    assert_int_equal(engine_local_open(&f->config.engine, &engine, &error), ST_OK);
    engine_local_close(engine);
}

static void a_face_that_cannot_start_fails_the_start(void **state)
{
    struct fixture *f = *state;
    f->face.open_status = ST_INVALID;
    refuse(f, "the face does not open");
    f->face.open_status = ST_OK;
    f->face.shard_status = ST_NOMEM;
    refuse(f, "cannot start 2 I/O threads");
    assert_int_equal(atomic_load(&f->face.opened), 1);
    assert_false(exists(f, "mirror"));
    f->face.shard_status = ST_OK;
    start(f);
    server_free(f->server);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_face_serves_the_urls_of_the_kubernetes_api),
        TEST(the_metrics_urls_show_the_face),
        TEST(the_mirror_is_empty_at_every_start),
        TEST(what_is_left_of_a_mirror_is_thrown_away),
        TEST(a_store_is_left_alone),
        TEST(a_face_that_cannot_start_fails_the_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
