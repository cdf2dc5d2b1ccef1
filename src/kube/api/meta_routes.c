#include "kube/api/meta_routes.h"

#include "base/metric/page.h"
#include "codec/json/writer.h"
#include "engine/auth.h"
#include "kube/api/tokens.h"
#include "wire/http/gzip.h"
#include "wire/http/origin.h"

#include <stdio.h>

#define JSON SLICE_LITERAL("application/json")
#define PLAIN SLICE_LITERAL("text/plain; charset=utf-8")

/* -- The gate -- */

/* What everyone may ask, as in Kubernetes. */
static bool is_public(struct slice path)
{
    static const char *const paths_of_all[] = {"/healthz", "/livez", "/readyz", "/version"};
    for (size_t i = 0; i < COUNT_OF(paths_of_all); i++) {
        if (slice_equal(path, slice_from_text(paths_of_all[i])))
            return true;
    }
    return false;
}

static bool has_token(const struct kube_face *face, const struct http_request *request)
{
    struct slice field = SLICE_EMPTY;
    (void)http_request_get(request, SLICE_LITERAL("authorization"), &field);
    return face->config->tokens && kube_tokens_find(face->config->tokens, field);
}

struct auth_principal kube_principal(const struct kube_face *face,
                                     const struct http_request *request)
{
    bool named = request->peer_name || face->config->tokens; /* the gate has let nobody else in */
    return named ? ENGINE_SERVER : (struct auth_principal){0};
}

bool kube_lets_in(const struct kube_face *face, const struct http_request *request)
{
    if (has_token(face, request))
        return true;
    if (face->config->tokens && !request->peer_name)
        return false;
    return engine_auth_holds(face->shard,
                             slice_from_text(request->peer_name ? request->peer_name : ""),
                             SLICE_LITERAL("/registry/"), SLICE_LITERAL("/registry0"));
}

bool kube_shuts_out(const struct kube_face *face, const struct http_request *request)
{
    return engine_auth_enabled(face->shard) && !kube_lets_in(face, request);
}

static void respond_status(struct http_exchange *x, const struct kube_status *status)
{
    struct buf text = {0};
    if (kube_status_write(status, &text) == ST_OK)
        http_respond(x, kube_status_code(status), JSON, buf_slice(&text));
    else
        http_abort(x);
    buf_fini(&text);
}

void kube_unauthorized(const struct kube_face *face, struct kube_status *status)
{
    (void)kube_fail(status, KUBE_UNAUTHORIZED, "%s",
                    engine_auth_enabled(face->shard)
                        ? "Unauthorized: authentication is enabled in this store, so a request "
                          "needs a bearer token of the server's --kube-token-file, or over TLS the "
                          "certificate of a user who may read and write all keys below /registry/"
                        : "Unauthorized");
}

static void respond_unauthorized(struct http_exchange *x, const struct kube_face *face)
{
    struct kube_status status;
    kube_unauthorized(face, &status);
    respond_status(x, &status);
}

/* Impersonate-User, -Group, -Uid and -Extra-…: done in one's own name, such a request would do what
 * the other may not. */
static const struct http_field *find_impersonation(const struct http_request *request)
{
    struct slice prefix = SLICE_LITERAL("impersonate-");
    for (size_t i = 0; i < request->field_count; i++) {
        const struct http_field *field = &request->fields[i];
        if (field->name.len >= prefix.len &&
            http_name_equal(slice_sub(field->name, 0, prefix.len), prefix))
            return field;
    }
    return NULL;
}

static void refuse_impersonation(struct http_exchange *x, const struct http_field *field)
{
    struct kube_status status;
    kube_fail(&status, KUBE_FORBIDDEN,
              "impersonation is not supported by this server: send the request without the header "
              "%.*s",
              (int)size_min(field->name.len, 64), (const char *)field->name.ptr);
    respond_status(x, &status);
}

bool kube_gate(struct http_exchange *x, void *ctx, const struct http_request *request)
{
    struct kube_face *face = ctx;
    struct slice origin;
    bool local = http_host_is_loopback(request->host) && !http_is_foreign(request, &origin);
    const struct http_field *impersonation = find_impersonation(request);
    if (request->secure || local) {
        bool known = is_public(request->path) || kube_lets_in(face, request);
        if (!known)
            respond_unauthorized(x, face);
        else if (impersonation)
            refuse_impersonation(x, impersonation);
        return known && !impersonation;
    }
    http_respond(x, 403, PLAIN,
                 SLICE_LITERAL("without TLS this is served to programs of this machine only, under "
                               "its loopback addresses\n"));
    return false;
}

/* -- Pages -- */

static void respond_json(struct http_exchange *x, const struct json_writer *w, struct buf *text)
{
    if (json_writer_finish(w) == ST_OK)
        http_respond(x, 200, JSON, buf_slice(text));
    else
        http_abort(x);
    buf_fini(text);
}

static void version(struct http_exchange *x, void *service, const struct http_request *request)
{
    (void)request;
    const struct kube_config *config = ((struct kube_face *)service)->config;
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
    struct buf text = {0};
    struct json_writer w;
    json_writer_init(&w, &text);
    json_begin_object(&w);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        json_key(&w, rows[i][0]);
        json_text(&w, rows[i][1]);
    }
    json_end_object(&w);
    respond_json(x, &w, &text);
}

/* The store was read before anybody was let in, and a store that fails ends the process: who hears
 * an answer hears that all is well. */
static void health(struct http_exchange *x, void *service, const struct http_request *request)
{
    (void)service;
    struct slice query = request->query, word = SLICE_LITERAL("verbose");
    bool verbose = query.len >= word.len && slice_equal(slice_sub(query, 0, word.len), word);
    char text[256];
    snprintf(text, sizeof(text), "[+]ping ok\n[+]log ok\n[+]etcd ok\n%.*s check passed\n",
             (int)size_min(request->path.len - 1, 16), request->path.ptr + 1);
    http_respond(x, 200, PLAIN, verbose ? slice_from_text(text) : SLICE_LITERAL("ok"));
}

/* /livez/ping */
static void health_of(struct http_exchange *x, void *service, const struct http_request *request)
{
    static const char *const checks[] = {"", "ping", "log", "etcd"};
    (void)service;
    struct slice path = request->path;
    const uint8_t *slash = memchr(path.ptr + 1, '/', path.len - 1);
    size_t at = slash ? (size_t)(slash - path.ptr) + 1 : path.len;
    struct slice check = slice_sub(path, at, path.len - at);
    for (size_t i = 0; i < COUNT_OF(checks); i++) {
        if (slice_equal(check, slice_from_text(checks[i]))) {
            http_respond(x, 200, PLAIN, SLICE_LITERAL("ok"));
            return;
        }
    }
    http_respond(x, 404, PLAIN, SLICE_LITERAL("404 page not found\n"));
}

static enum status write_metrics(struct kube_face *face, struct http_exchange *x,
                                 const struct http_request *request)
{
    AUTO(metric_page_fini) struct metric_page page = {0};
    AUTO(buf_fini) struct buf packed = {0};
    face->write_metrics(face->metrics_ctx, &page);
    TRY(page.status);
    struct slice body = buf_slice(&page.text);
    if (http_accepts_gzip(request)) {
        TRY(http_gzip(body, &packed));
        TRY(http_add_field(x, SLICE_LITERAL("Content-Encoding"), SLICE_LITERAL("gzip")));
        body = buf_slice(&packed);
    }
    http_respond(x, 200, SLICE_LITERAL("text/plain; version=0.0.4; charset=utf-8"), body);
    return ST_OK;
}

static void metrics(struct http_exchange *x, void *service, const struct http_request *request)
{
    struct kube_face *face = service;
    http_make_bulk(x);
    if (!face->write_metrics)
        http_respond(x, 404, PLAIN, SLICE_LITERAL("404 page not found\n"));
    else if (write_metrics(face, x, request) != ST_OK)
        http_abort(x);
}

static const char *const paths[] = {
    "/api",     "/api/v1",     "/apis",       "/healthz", "/livez",
    "/metrics", "/openapi/v2", "/openapi/v3", "/readyz",  "/version",
};

static void root(struct http_exchange *x, void *service, const struct http_request *request)
{
    (void)service;
    struct buf text = {0};
    struct json_writer w;
    if (request->path.len > 1) {
        http_respond(x, 404, PLAIN, SLICE_LITERAL("404 page not found\n"));
        return;
    }
    json_writer_init(&w, &text);
    json_begin_object(&w);
    json_key(&w, "paths");
    json_begin_array(&w);
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
    {.path = "/healthz", .on_request = health},
    {.path = "/healthz/", .on_request = health_of},
    {.path = "/livez", .on_request = health},
    {.path = "/livez/", .on_request = health_of},
    {.path = "/readyz", .on_request = health},
    {.path = "/readyz/", .on_request = health_of},
    {.path = "/metrics", .on_request = metrics},
};

enum status kube_pages_add(struct kube_face *face)
{
    http_routes_set_gate(face->routes, kube_gate, face);
    return http_routes_add(face->routes, routes, COUNT_OF(routes), face);
}
