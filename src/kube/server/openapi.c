#include "kube/server/openapi.h"

#include "base/xalloc.h"
#include "kube/call/gate.h"
#include "kube/call/registry.h"
#include "kube/request/life.h"
#include "kube/server/custom_openapi.h"
#include "kube/server/routes.h"
#include "kube/types/schema/openapi.h"

#include <stdio.h>

/* A document that is being sent. */
struct sending {
    struct kube_life life;
    struct http_source source;
    struct http_exchange *x; /* NULL once it has ended */
    struct kube_api *api;
    struct kube_registry_wait wait;
    bool waits;
    void (*answer)(struct sending *s);
    const char *type;              /* type of the content; NULL: JSON */
    struct kube_openapi *document; /* owned; of built-in kinds; or NULL */
    struct kube_custom_openapi
        *custom; /* owned; of custom resources, alone or added to the document; or NULL */
};

static enum http_fill fill(struct http_source *source, uint8_t *dst, size_t room, size_t *ret_len)
{
    struct sending *s = CONTAINER_OF(source, struct sending, source);
    *ret_len = 0;
    enum status status = s->document ? kube_openapi_read(s->document, dst, room, ret_len)
                                     : kube_custom_openapi_read(s->custom, dst, room, ret_len);
    if (status != ST_OK) {
        http_abort(s->x);
        return HTTP_FILL_DONE;
    }
    return *ret_len < room ? HTTP_FILL_DONE : HTTP_FILL_MORE;
}

static void not_found(struct http_exchange *x)
{
    struct kube_status status = {0};
    AUTO(buf_fini) struct buf text = {0};
    kube_fail(&status, KUBE_NOT_FOUND, "the server could not find the requested resource");
    if (kube_status_write(&status, &text) == ST_OK)
        http_respond(x, 404, SLICE_LITERAL("application/json"), buf_slice(&text));
    else
        http_abort(x);
}

/* The client has the current version; true: that was answered. */
static bool is_known(struct http_exchange *x, const struct http_request *request, const char *hash)
{
    char tag[64];
    struct slice known;
    int len = snprintf(tag, sizeof(tag), "\"%s\"", hash);
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
    if (slice_is(request->method, "GET") || slice_is(request->method, "HEAD"))
        return true;
    http_respond(x, 405, SLICE_EMPTY, SLICE_EMPTY);
    return false;
}

/* -- The index -- */

static void write_custom(void *kinds, struct json_writer *w)
{
    kube_custom_openapi_index(kinds, w);
}

static const char *hash_custom(void *kinds, struct slice api_version,
                               char text[KUBE_OPENAPI_HASH_BYTES])
{
    return kube_custom_openapi_hash(kinds, api_version, text);
}

static void answer_index(struct sending *s)
{
    const struct http_request *request = http_exchange_request(s->x);
    struct kube_kinds *kinds = kube_registry_kinds(s->api->registry);
    char hash[KUBE_CUSTOM_HASH_BYTES];
    AUTO(buf_fini) struct buf text = {0};
    if (is_known(s->x, request, kube_custom_openapi_hash(kinds, SLICE_EMPTY, hash)))
        return;
    struct kube_openapi_others others = {hash_custom, write_custom, kinds};
    if (kube_openapi_index(&text, &others) == ST_OK)
        http_respond(s->x, 200, SLICE_LITERAL("application/json"), buf_slice(&text));
    else
        http_abort(s->x);
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

/* -- Documents -- */

/* Sends s->document or s->custom. */
static void begin_sending(struct sending *s, const char *hash)
{
    if (is_known(s->x, http_exchange_request(s->x), hash))
        return;
    http_make_bulk(s->x);
    http_begin(s->x, 200, slice_from_text(s->type ? s->type : "application/json"));
    http_set_source(s->x, &s->source);
}

static void answer_document(struct sending *s)
{
    struct slice version = version_of(http_exchange_request(s->x)->path);
    struct kube_kinds *kinds = kube_registry_kinds(s->api->registry);
    char hash[KUBE_CUSTOM_HASH_BYTES];
    enum status builtin = kube_openapi_open(version, &s->document);
    enum status custom = kube_custom_openapi_open(kinds, version, &s->custom);
    if (builtin == ST_NOT_FOUND && custom == ST_NOT_FOUND) {
        not_found(s->x);
        return;
    }
    if ((builtin != ST_OK && builtin != ST_NOT_FOUND) ||
        (custom != ST_OK && custom != ST_NOT_FOUND)) {
        http_abort(s->x);
        return;
    }
    if (s->document && s->custom)
        kube_openapi_add_others(s->document, kube_custom_openapi_write, s->custom);
    begin_sending(s, kube_custom_openapi_hash(kinds, version, hash));
}

/* -- Requests -- */

static void sending_free(struct sending *s)
{
    kube_openapi_close(s->document);
    kube_custom_openapi_close(s->custom);
    free(s);
}

/* The registry has read all definitions. */
static void on_definitions(struct kube_registry_wait *wait)
{
    struct sending *s = CONTAINER_OF(wait, struct sending, wait);
    s->waits = false;
    s->api->under_way--;
    if (!s->x)
        sending_free(s);
    else if (wait->status == ST_OK)
        s->answer(s);
    else
        http_respond(s->x, 500, SLICE_LITERAL("text/plain; charset=utf-8"),
                     slice_from_text(status_text(wait->status)));
}

static void on_end(struct kube_life *life)
{
    struct sending *s = CONTAINER_OF(life, struct sending, life);
    s->x = NULL;
    if (!s->waits)
        sending_free(s);
}

static void begin(struct http_exchange *x, struct kube_api *api, void (*answer)(struct sending *s))
{
    struct sending *s = xcalloc(1, sizeof(*s));
    *s = (struct sending){
        .life.end = on_end, .source.fill = fill, .x = x, .api = api, .answer = answer};
    http_exchange_set_user(x, &s->life);
    s->wait.go = on_definitions;
    s->waits = true;
    api->under_way++;
    kube_registry_read(api->registry, &s->wait);
}

static void on_index(struct http_exchange *x, void *service, const struct http_request *request)
{
    if (is_get(x, request))
        begin(x, service, answer_index);
}

static void on_document(struct http_exchange *x, void *service, const struct http_request *request)
{
    if (is_get(x, request))
        begin(x, service, answer_document);
}

/* -- Version 2 -- */

#define V2_PROTOBUF "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

static void answer_v2(struct sending *s)
{
    struct kube_kinds *kinds = kube_registry_kinds(s->api->registry);
    char hash[KUBE_CUSTOM_HASH_BYTES];
    struct slice accept;
    bool protobuf =
        http_request_get(http_exchange_request(s->x), SLICE_LITERAL("accept"), &accept) &&
        slice_has_prefix(accept, SLICE_LITERAL("application/com.github.proto-openapi.spec.v2"));
    if (kube_openapi_open_v2(protobuf, &s->document) != ST_OK) {
        http_abort(s->x);
        return;
    }
    s->custom = kube_custom_openapi_open_v2(kinds);
    kube_openapi_add_others(s->document, kube_custom_openapi_write, s->custom);
    s->type = protobuf ? V2_PROTOBUF : NULL;
    begin_sending(s, kube_custom_openapi_hash(kinds, SLICE_EMPTY, hash));
}

static void on_v2(struct http_exchange *x, void *service, const struct http_request *request)
{
    if (is_get(x, request))
        begin(x, service, answer_v2);
}

static const struct http_route routes[] = {
    {.path = "/openapi/v2", .on_request = on_v2, .on_end = kube_life_end},
    {.path = "/openapi/v3", .on_request = on_index, .on_end = kube_life_end},
    {.path = "/openapi/v3/", .on_request = on_document, .on_end = kube_life_end},
};

enum status kube_openapi_add(struct kube_api *api)
{
    return kube_routes_add(api, routes, COUNT_OF(routes));
}
