/* The routes of etcd's HTTP endpoints, and the handlers that need no file of their own. */
#include "etcd/http/http.h"

#include "base/clock.h"
#include "etcd/http/metrics.h"
#include "zip/gzip.h"

#include <stdio.h>

enum { LINES_BURST = 20, LINES_PER_S = 10 };

bool http_may_log(struct etcd_api *api, struct log_field *ret_unlogged)
{
    int64_t now_ns = clock_mono_ns(clock_system());
    if (!rate_limit_take(&api->http_lines, LINES_BURST, LINES_PER_S, now_ns)) {
        api->http_unlogged++;
        return false;
    }
    *ret_unlogged = (struct log_field){.key = NULL};
    if (api->http_unlogged)
        *ret_unlogged = LOG_U64("suppressed", api->http_unlogged);
    api->http_unlogged = 0;
    return true;
}

/* False: there was no memory, and the exchange was aborted. */
static bool add_field(struct http_exchange *x, const char *name, const char *value)
{
    if (http_add_field(x, slice_from_text(name), slice_from_text(value)) == ST_OK)
        return true;
    http_abort(x);
    return false;
}

void http_reply_text(struct http_exchange *x, unsigned status, struct slice body)
{
    if (add_field(x, "X-Content-Type-Options", "nosniff"))
        http_respond(x, status, HTTP_TEXT_PLAIN, body);
}

bool http_is_get(struct http_exchange *x, const struct http_request *request)
{
    if (slice_is(request->method, "GET"))
        return true;
    if (add_field(x, "Allow", "GET"))
        http_reply_text(x, 405, SLICE_LITERAL("Method Not Allowed\n"));
    return false;
}

void http_not_found(struct http_exchange *x, void *service, const struct http_request *request)
{
    (void)service;
    (void)request;
    http_reply_text(x, 404, SLICE_LITERAL("404 page not found\n"));
}

static void version(struct http_exchange *x, void *service, const struct http_request *request)
{
    const struct etcd_api *api = service;
    struct engine_versions v;
    if (!http_is_get(x, request))
        return;
    etcd_versions(api, &v);
    char body[256];
    int len = snprintf(body, sizeof(body), "{\"etcdserver\":\"%s\",\"etcdcluster\":\"%s\"%s%s%s}",
                       v.server, v.cluster, *v.storage ? ",\"storage\":\"" : "", v.storage,
                       *v.storage ? "\"" : "");
    http_respond(x, 200, SLICE_LITERAL("application/json"),
                 slice_of(body, size_min((size_t)len, sizeof(body) - 1)));
}

/* etcd serves Go's profiles here if --enable-pprof is given. */
static void pprof(struct http_exchange *x, void *service, const struct http_request *request)
{
    const struct etcd_config *config = ((struct etcd_api *)service)->config;
    if (config->pprof_wanted)
        http_reply_text(x, 404,
                        SLICE_LITERAL("there are no profiles here: this server is not written in "
                                      "Go, and --enable-pprof has no effect\n"));
    else
        http_not_found(x, service, request);
}

/* Compressed if the client accepts it, as Prometheus does. */
static enum status respond_page(struct http_exchange *x, const struct http_request *request,
                                const struct metric_page *page)
{
    AUTO(buf_fini) struct buf packed = {0};
    struct slice body = buf_slice(&page->text);
    TRY(page->status);
    if (http_accepts_gzip(request)) {
        TRY(gzip(body, &packed));
        TRY(http_add_field(x, SLICE_LITERAL("Content-Encoding"), SLICE_LITERAL("gzip")));
        body = buf_slice(&packed);
    }
    http_respond(x, 200,
                 SLICE_LITERAL("text/plain; version=0.0.4; charset=utf-8; escaping=underscores"),
                 body);
    return ST_OK;
}

static void metrics(struct http_exchange *x, void *service, const struct http_request *request)
{
    struct metric_page page = {0};
    http_make_bulk(x);
    etcd_metrics_write(service, &page);
    if (respond_page(x, request, &page) != ST_OK)
        http_abort(x);
    metric_page_fini(&page);
}

static const struct http_route metrics_routes[] = {
    {.path = "/", .on_request = http_not_found},
    {.path = "/metrics", .on_request = metrics},
};

static const struct http_route client_routes[] = {
    {.path = "/version", .on_request = version},
    {.path = "/debug/vars", .on_request = http_vars},
    {.path = "/debug/pprof/", .on_request = pprof},
};

enum status http_service_add(struct etcd_api *api)
{
    TRY(http_routes_add(api->routes, metrics_routes, COUNT_OF(metrics_routes), api));
    TRY(http_routes_add(api->routes, client_routes, COUNT_OF(client_routes), api));
    TRY(http_health_add(api->routes, api));
    http_routes_set_gate(api->routes, http_gate_clients, api);
    TRY(http_routes_add(api->metrics_routes, metrics_routes, COUNT_OF(metrics_routes), api));
    TRY(http_health_add(api->metrics_routes, api));
    http_routes_set_gate(api->metrics_routes, http_gate_metrics, api);
    return ST_OK;
}
