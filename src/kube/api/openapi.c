#include "kube/api/openapi.h"

#include "base/xalloc.h"
#include "kube/schema/openapi.h"

#include <stdio.h>

/* A document on its way. */
struct sending {
    struct http_source source;
    struct http_exchange *x;
    struct kube_openapi *document; /* owned */
};

static enum http_fill fill(struct http_source *source, uint8_t *dst, size_t room, size_t *ret_len)
{
    struct sending *s = CONTAINER_OF(source, struct sending, source);
    *ret_len = 0;
    if (kube_openapi_read(s->document, dst, room, ret_len) != ST_OK) {
        http_abort(s->x);
        return HTTP_FILL_DONE;
    }
    return *ret_len < room ? HTTP_FILL_DONE : HTTP_FILL_MORE;
}

static void not_found(struct http_exchange *x)
{
    struct kube_status status = {0};
    struct buf text = {0};
    kube_fail(&status, KUBE_NOT_FOUND, "the server could not find the requested resource");
    if (kube_status_write(&status, &text) == ST_OK)
        http_respond(x, 404, SLICE_LITERAL("application/json"), buf_slice(&text));
    else
        http_abort(x);
    buf_fini(&text);
}

/* What was sent under this tag is still right: true when that was answered. */
static bool is_known(struct http_exchange *x, const struct http_request *request)
{
    char tag[64];
    struct slice known;
    int len = snprintf(tag, sizeof(tag), "\"%s\"", kube_openapi_hash());
    if (http_add_field(x, SLICE_LITERAL("Etag"), slice_of(tag, (size_t)len)) != ST_OK ||
        http_add_field(x, SLICE_LITERAL("Vary"), SLICE_LITERAL("Accept")) != ST_OK) {
        http_abort(x);
        return true;
    }
    if (!http_request_get(request, SLICE_LITERAL("if-none-match"), &known) ||
        !slice_equal(known, slice_of(tag, (size_t)len)))
        return false;
    http_respond(x, 304, SLICE_EMPTY, SLICE_EMPTY);
    return true;
}

static bool is_get(struct http_exchange *x, const struct http_request *request)
{
    if (slice_equal(request->method, SLICE_LITERAL("GET")) ||
        slice_equal(request->method, SLICE_LITERAL("HEAD")))
        return true;
    http_respond(x, 405, SLICE_EMPTY, SLICE_EMPTY);
    return false;
}

static void on_index(struct http_exchange *x, void *service, const struct http_request *request)
{
    (void)service;
    struct buf text = {0};
    if (!is_get(x, request) || is_known(x, request))
        return;
    if (kube_openapi_index(&text) == ST_OK)
        http_respond(x, 200, SLICE_LITERAL("application/json"), buf_slice(&text));
    else
        http_abort(x);
    buf_fini(&text);
}

/* "api/v1" is v1, "apis/apps/v1" is apps/v1. */
static struct slice version_of(struct slice path)
{
    struct slice root = SLICE_LITERAL("/openapi/v3/");
    static const char *const heads[] = {"api/", "apis/"};
    path = slice_sub(path, root.len, path.len - root.len);
    for (size_t i = 0; i < COUNT_OF(heads); i++) {
        struct slice head = slice_from_text(heads[i]);
        if (!slice_has_prefix(path, head))
            continue;
        path = slice_sub(path, head.len, path.len - head.len);
        bool core = !path.len || !memchr(path.ptr, '/', path.len);
        return core == (i == 0) ? path : SLICE_EMPTY;
    }
    return SLICE_EMPTY;
}

static void on_document(struct http_exchange *x, void *service, const struct http_request *request)
{
    (void)service;
    struct kube_openapi *document;
    if (!is_get(x, request))
        return;
    enum status status = kube_openapi_open(version_of(request->path), &document);
    if (status == ST_NOT_FOUND) {
        not_found(x);
        return;
    }
    if (status != ST_OK) {
        http_abort(x);
        return;
    }
    struct sending *s = xcalloc(1, sizeof(*s));
    *s = (struct sending){.source.fill = fill, .x = x, .document = document};
    http_exchange_set_user(x, s);
    if (is_known(x, request))
        return;
    http_make_bulk(x);
    http_begin(x, 200, SLICE_LITERAL("application/json"));
    http_set_source(x, &s->source);
}

static void on_document_end(struct http_exchange *x, void *service)
{
    (void)service;
    struct sending *s = http_exchange_user(x);
    if (!s)
        return;
    kube_openapi_close(s->document);
    free(s);
}

static const struct http_route routes[] = {
    {.path = "/openapi/v3", .on_request = on_index},
    {.path = "/openapi/v3/", .on_request = on_document, .on_end = on_document_end},
};

enum status kube_openapi_add(struct kube_face *face)
{
    return http_routes_add(face->routes, routes, COUNT_OF(routes), face);
}
