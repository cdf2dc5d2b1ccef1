/*
 * HTTP on the client port, as etcd answers it: /version, /health, /livez, /readyz and the single
 * checks below them, and 404 for the rest. A health check reads from the engine like a client;
 * everything else is known here.
 */
#include "base/buf.h"
#include "base/xalloc.h"
#include "codec/pb/rpc.pb.h"
#include "etcd/metrics.h"

#include <stdio.h>

#define TEXT_PLAIN SLICE_LITERAL("text/plain; charset=utf-8")

enum { READ_ARENA_BYTES_MAX = 64 * 1024 };

enum check {
    CHECK_DATA_CORRUPTION = 1,
    CHECK_SERIALIZABLE_READ = 2,
    CHECK_LINEARIZABLE_READ = 4,
    CHECK_NON_LEARNER = 8,
};

static const struct {
    enum check check;
    const char *name;
} check_names[] = {
    {CHECK_DATA_CORRUPTION, "data_corruption"},
    {CHECK_SERIALIZABLE_READ, "serializable_read"},
    {CHECK_LINEARIZABLE_READ, "linearizable_read"},
    {CHECK_NON_LEARNER, "non_learner"},
};

/* -- Answers -- */

/* False: the connection is over. */
static bool add_field(struct http_exchange *exchange, const char *name, const char *value)
{
    return http_add_field(exchange, slice_from_text(name), slice_from_text(value)) == ST_OK;
}

static void respond(struct http_exchange *exchange, unsigned status, struct slice content_type,
                    struct slice body)
{
    /* etcd's default --cors. */
    if (add_field(exchange, "Access-Control-Allow-Headers",
                  "accept, content-type, authorization") &&
        add_field(exchange, "Access-Control-Allow-Methods", "POST, GET, OPTIONS, PUT, DELETE") &&
        add_field(exchange, "Access-Control-Allow-Origin", "*"))
        http_respond(exchange, status, content_type, body);
}

/* Plain text that no browser shall take for something else, as Go's http.Error has it. */
static void respond_text(struct http_exchange *exchange, unsigned status, struct slice body)
{
    if (add_field(exchange, "X-Content-Type-Options", "nosniff"))
        respond(exchange, status, TEXT_PLAIN, body);
}

/* True for GET; everything else is refused here. */
static bool is_get(struct http_exchange *exchange, const struct http_request *request)
{
    if (slice_equal(request->method, SLICE_LITERAL("GET")))
        return true;
    if (add_field(exchange, "Allow", "GET"))
        respond_text(exchange, 405, SLICE_LITERAL("Method Not Allowed\n"));
    return false;
}

static void not_found(struct http_exchange *exchange, void *service,
                      const struct http_request *request)
{
    (void)service;
    (void)request;
    respond_text(exchange, 404, SLICE_LITERAL("404 page not found\n"));
}

static void version(struct http_exchange *exchange, void *service,
                    const struct http_request *request)
{
    const struct etcd_config *config = ((struct etcd_face *)service)->config;
    if (!is_get(exchange, request))
        return;
    char body[256];
    int len = snprintf(body, sizeof(body),
                       "{\"etcdserver\":\"%s\",\"etcdcluster\":\"%s\",\"storage\":\"%s\"}",
                       config->version, config->cluster_version, config->cluster_version);
    respond(exchange, 200, SLICE_LITERAL("application/json"),
            slice_of(body, size_min((size_t)len, sizeof(body) - 1)));
}

/* -- Queries -- */

/* The next name[=value] of a query. Names and values here are plain words: nothing is decoded. */
static bool query_next(struct slice *rest, struct slice *ret_name, struct slice *ret_value)
{
    if (rest->len == 0)
        return false;
    const uint8_t *end = memchr(rest->ptr, '&', rest->len);
    size_t len = end ? (size_t)(end - rest->ptr) : rest->len;
    struct slice pair = slice_sub(*rest, 0, len);
    *rest =
        slice_sub(*rest, size_min(len + 1, rest->len), rest->len - size_min(len + 1, rest->len));
    const uint8_t *equals = len ? memchr(pair.ptr, '=', pair.len) : NULL;
    size_t name_len = equals ? (size_t)(equals - pair.ptr) : pair.len;
    *ret_name = slice_sub(pair, 0, name_len);
    *ret_value = equals ? slice_sub(pair, name_len + 1, pair.len - name_len - 1) : SLICE_EMPTY;
    return true;
}

static unsigned excluded_checks(struct slice query)
{
    unsigned excluded = 0;
    struct slice name, value;
    while (query_next(&query, &name, &value)) {
        if (!slice_equal(name, SLICE_LITERAL("exclude")))
            continue;
        for (size_t i = 0; i < COUNT_OF(check_names); i++) {
            if (slice_equal(value, slice_from_text(check_names[i].name)))
                excluded |= check_names[i].check;
        }
    }
    return excluded;
}

static bool has_query(struct slice query, struct slice wanted)
{
    struct slice name, value;
    while (query_next(&query, &name, &value)) {
        if (slice_equal(name, wanted))
            return true;
    }
    return false;
}

/* -- Checks that read -- */

/* One check under way. On the heap; freed when the exchange is over and the engine has answered. */
struct check_call {
    struct engine_range range; /* first */
    struct http_exchange *exchange;
    struct etcd_face *face;
    struct arena arena;
    struct pb_range_request request;
    unsigned checks; /* 0: /health, which answers in JSON */
    bool verbose;
    bool pending;
    bool ended;
};

static void check_call_free(struct check_call *check)
{
    engine_range_close(&check->range);
    arena_fini(&check->arena);
    free(check);
}

static void health_reply(struct check_call *check)
{
    enum status status = check->range.op.status;
    if (status == ST_OK) {
        respond(check->exchange, 200, TEXT_PLAIN,
                SLICE_LITERAL("{\"health\":\"true\",\"reason\":\"\"}"));
        return;
    }
    char body[256];
    int len = snprintf(body, sizeof(body), "{\"health\":\"false\",\"reason\":\"RANGE ERROR:%s\"}\n",
                       status_text(status));
    respond_text(check->exchange, 503, slice_of(body, size_min((size_t)len, sizeof(body) - 1)));
}

/* One line for each check; false if one of them failed. Only reads can fail. */
static bool list_checks(const struct check_call *check, struct buf *lines)
{
    bool read_failed = check->range.op.status != ST_OK;
    bool passed = true;
    for (size_t i = 0; i < COUNT_OF(check_names); i++) {
        bool reads = check_names[i].check & (CHECK_SERIALIZABLE_READ | CHECK_LINEARIZABLE_READ);
        const char *name = check_names[i].name;
        if (!(check->checks & check_names[i].check))
            continue;
        enum status status;
        if (reads && read_failed) {
            status = buf_append_format(lines, "[-]%s failed: %s\n", name,
                                       status_text(check->range.op.status));
            passed = false;
        } else {
            status = buf_append_format(lines, "[+]%s ok\n", name);
        }
        if (status != ST_OK)
            return false;
    }
    return passed;
}

static void checks_reply(struct check_call *check)
{
    AUTO(buf_fini) struct buf lines = {0};
    bool passed = list_checks(check, &lines);
    if (passed && !check->verbose)
        buf_reset(&lines, SIZE_MAX);
    if (buf_append_text(&lines, passed ? "ok\n" : "\n") == ST_OK)
        respond_text(check->exchange, passed ? 200 : 503, buf_slice(&lines));
    else
        respond_text(check->exchange, 503, SLICE_EMPTY);
}

static void read_done(struct engine_op *op)
{
    struct check_call *check = CONTAINER_OF(op, struct check_call, range.op);
    check->pending = false;
    check->face->under_way--;
    if (check->ended)
        check_call_free(check);
    else if (check->checks)
        checks_reply(check);
    else
        health_reply(check);
}

static void check_on_end(struct http_exchange *exchange, void *service)
{
    (void)service;
    struct check_call *check = http_exchange_user(exchange);
    if (!check)
        return;
    check->ended = true;
    if (!check->pending)
        check_call_free(check);
}

/* A read of one key, as etcd makes it to see whether reads work. */
static void check_start(struct http_exchange *exchange, struct etcd_face *face, unsigned checks,
                        bool verbose)
{
    struct check_call *check = xcalloc(1, sizeof(*check));
    check->exchange = exchange;
    check->checks = checks;
    check->verbose = verbose;
    check->pending = true;
    check->face = face;
    face->under_way++;
    arena_init(&check->arena, NULL, 0, READ_ARENA_BYTES_MAX);
    check->request = (struct pb_range_request){
        .key = SLICE_LITERAL("\0"),
        .limit = 1,
        .keys_only = true,
        .serializable = !(checks & CHECK_LINEARIZABLE_READ),
    };
    check->range.op.done = read_done;
    check->range.op.arena = &check->arena;
    http_exchange_set_user(exchange, check);
    engine_range_start(face->shard, &check->range, &check->request);
}

static void health(struct http_exchange *exchange, void *service,
                   const struct http_request *request)
{
    if (is_get(exchange, request))
        check_start(exchange, service, 0, false);
}

static void run_checks(struct http_exchange *exchange, void *service,
                       const struct http_request *request, unsigned checks)
{
    if (!is_get(exchange, request))
        return;
    checks &= ~excluded_checks(request->query);
    if (checks)
        check_start(exchange, service, checks, has_query(request->query, SLICE_LITERAL("verbose")));
    else
        respond_text(exchange, 200, SLICE_LITERAL("ok\n"));
}

static void livez(struct http_exchange *exchange, void *service, const struct http_request *request)
{
    run_checks(exchange, service, request, CHECK_SERIALIZABLE_READ);
}

static void readyz(struct http_exchange *exchange, void *service,
                   const struct http_request *request)
{
    run_checks(exchange, service, request,
               CHECK_DATA_CORRUPTION | CHECK_SERIALIZABLE_READ | CHECK_LINEARIZABLE_READ |
                   CHECK_NON_LEARNER);
}

/* "/readyz/non_learner": the check named last, if the path before it has it. */
static void single_check(struct http_exchange *exchange, void *service,
                         const struct http_request *request)
{
    struct slice path = request->path;
    bool is_livez = slice_has_prefix(path, SLICE_LITERAL("/livez/"));
    size_t prefix = is_livez ? strlen("/livez/") : strlen("/readyz/");
    struct slice name = slice_sub(path, prefix, path.len - prefix);
    for (size_t i = 0; i < COUNT_OF(check_names); i++) {
        bool known = !is_livez || check_names[i].check == CHECK_SERIALIZABLE_READ;
        if (known && slice_equal(name, slice_from_text(check_names[i].name))) {
            if (is_get(exchange, request))
                check_start(exchange, service, check_names[i].check,
                            has_query(request->query, SLICE_LITERAL("verbose")));
            return;
        }
    }
    not_found(exchange, service, request);
}

static void metrics(struct http_exchange *exchange, void *service,
                    const struct http_request *request)
{
    (void)request; /* etcd's answers every method */
    struct metric_page page = {0};
    etcd_metrics_write(service, &page);
    if (page.status == ST_OK)
        respond(exchange, 200, SLICE_LITERAL("text/plain; version=0.0.4; charset=utf-8"),
                buf_slice(&page.text));
    else
        respond_text(exchange, 500, SLICE_LITERAL("out of memory\n"));
    metric_page_fini(&page);
}

static const struct http_route routes[] = {
    {.path = "/metrics", .on_request = metrics},
    {.path = "/", .on_request = not_found},
    {.path = "/version", .on_request = version},
    {.path = "/health", .on_request = health, .on_end = check_on_end},
    {.path = "/livez", .on_request = livez, .on_end = check_on_end},
    {.path = "/readyz", .on_request = readyz, .on_end = check_on_end},
    {.path = "/livez/", .on_request = single_check, .on_end = check_on_end},
    {.path = "/readyz/", .on_request = single_check, .on_end = check_on_end},
};

enum status http_service_add(struct etcd_face *face)
{
    return http_routes_add(face->routes, routes, COUNT_OF(routes), face);
}
