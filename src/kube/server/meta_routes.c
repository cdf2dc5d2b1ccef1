#include "kube/server/meta_routes.h"

#include "base/metric/page.h"
#include "codec/json/writer.h"
#include "kube/server/routes.h"
#include "wire/http/exchange.h"
#include "zip/gzip.h"

#include <stdio.h>

#define JSON SLICE_LITERAL("application/json")
#define PLAIN SLICE_LITERAL("text/plain; charset=utf-8")

static void respond_json(struct http_exchange *x, const struct json_writer *w,
                         const struct buf *text)
{
    if (json_writer_finish(w) == ST_OK)
        http_respond(x, 200, JSON, buf_slice(text));
    else
        http_abort(x);
}

static void version(struct http_exchange *x, void *service, const struct http_request *request)
{
    (void)request;
    const struct kube_config *config = ((struct kube_api *)service)->config;
    char git_version[64];
    snprintf(git_version, sizeof(git_version),
             "v" KUBE_VERSION_MAJOR "." KUBE_VERSION_MINOR ".0-vigil.%s", config->version);
    const char *const rows[][2] = {
        {"major", KUBE_VERSION_MAJOR},
        {"minor", KUBE_VERSION_MINOR},
        {"emulationMajor", KUBE_VERSION_MAJOR},
        {"emulationMinor", KUBE_VERSION_MINOR},
        {"gitVersion", git_version},
        {"gitCommit", ""},
        {"gitTreeState", ""},
        {"buildDate", "1970-01-01T00:00:00Z"},
        {"goVersion", "none"},
        {"compiler", "cc"},
        {"platform", "linux/" ARCHITECTURE},
    };
    AUTO(buf_fini) struct buf text = {0};
    struct json_writer w;
    json_writer_init(&w, &text);
    json_begin_object(&w);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        json_member_text(&w, rows[i][0], rows[i][1]);
    }
    json_end_object(&w);
    respond_json(x, &w, &text);
}

static enum status write_metrics(struct kube_api *api, struct http_exchange *x,
                                 const struct http_request *request)
{
    AUTO(metric_page_fini) struct metric_page page = {0};
    AUTO(buf_fini) struct buf packed = {0};
    api->write_metrics(api->metrics_ctx, &page);
    TRY(page.status);
    struct slice body = buf_slice(&page.text);
    if (http_accepts_gzip(request)) {
        TRY(gzip(body, &packed));
        TRY(http_add_field(x, SLICE_LITERAL("Content-Encoding"), SLICE_LITERAL("gzip")));
        body = buf_slice(&packed);
    }
    http_respond(x, 200, SLICE_LITERAL("text/plain; version=0.0.4; charset=utf-8"), body);
    return ST_OK;
}

static void metrics(struct http_exchange *x, void *service, const struct http_request *request)
{
    struct kube_api *api = service;
    http_make_bulk(x);
    if (!api->write_metrics)
        http_respond(x, 404, PLAIN, SLICE_LITERAL("404 page not found\n"));
    else if (write_metrics(api, x, request) != ST_OK)
        http_abort(x);
}

static const char *const paths[] = {
    "/api",     "/api/v1",     "/apis",       "/healthz", "/livez",
    "/metrics", "/openapi/v2", "/openapi/v3", "/readyz",  "/version",
};

static void root(struct http_exchange *x, void *service, const struct http_request *request)
{
    (void)service;
    AUTO(buf_fini) struct buf text = {0};
    struct json_writer w;
    if (request->path.len > 1) {
        http_respond(x, 404, PLAIN, SLICE_LITERAL("404 page not found\n"));
        return;
    }
    json_writer_init(&w, &text);
    json_begin_object(&w);
    json_member_array(&w, "paths");
    for (size_t i = 0; i < COUNT_OF(paths); i++)
        json_text(&w, paths[i]);
    json_end_array(&w);
    json_end_object(&w);
    respond_json(x, &w, &text);
}

static const struct http_route routes[] = {
    {.path = "/", .on_request = root},
    {.path = "/version", .on_request = version},
    {.path = "/version/", .on_request = version},
    {.path = "/metrics", .on_request = metrics},
};

enum status kube_meta_routes_add(struct kube_api *api)
{
    return kube_routes_add(api, routes, COUNT_OF(routes));
}
