#include "wire/http/routes.h"

#include "base/metric/turn.h"
#include "wire/http/exchange_private.h"
#include "wire/http/query.h"

#include <stdlib.h>

struct route_row {
    const struct http_route *route;
    void *service;
};

struct http_routes {
    struct route_row *rows;
    size_t count;
    bool streams; /* a route takes bodies as they arrive */
    http_gate *gate;
    void *gate_ctx;
};

enum status http_routes_new(struct http_routes **ret_routes)
{
    struct http_routes *routes = calloc(1, sizeof(*routes));
    if (!routes)
        return ST_NOMEM;
    *ret_routes = routes;
    return ST_OK;
}

void http_routes_free(struct http_routes *routes)
{
    if (!routes)
        return;
    free(routes->rows);
    free(routes);
}

enum status http_routes_add(struct http_routes *routes, const struct http_route *rows, size_t count,
                            void *service)
{
    if (count == 0)
        return ST_OK;
    struct route_row *more = realloc(routes->rows, (routes->count + count) * sizeof(*more));
    if (!more)
        return ST_NOMEM;
    routes->rows = more;
    for (size_t i = 0; i < count; i++) {
        assert(rows[i].path[0] == '/' && rows[i].on_request);
        more[routes->count++] = (struct route_row){&rows[i], service};
        routes->streams |= rows[i].on_body != NULL;
    }
    return ST_OK;
}

void http_routes_set_gate(struct http_routes *routes, http_gate *gate, void *ctx)
{
    routes->gate = gate;
    routes->gate_ctx = ctx;
}

bool http_routes_stream(const struct http_routes *routes)
{
    return routes && routes->streams;
}

static bool matches(const struct http_route *route, struct slice path)
{
    struct slice pattern = slice_from_text(route->path);
    if (slice_equal(path, pattern))
        return true;
    /* As in Go's ServeMux, a pattern that ends with a slash stands for everything below it. */
    return pattern.ptr[pattern.len - 1] == '/' && slice_has_prefix(path, pattern);
}

const struct http_route *http_routes_find(const struct http_routes *routes, struct slice path,
                                          void **ret_service)
{
    const struct route_row *best = NULL;
    size_t best_len = 0;
    for (size_t i = 0; i < routes->count; i++) {
        size_t len = strlen(routes->rows[i].route->path);
        if (len > best_len && matches(routes->rows[i].route, path)) {
            best = &routes->rows[i];
            best_len = len;
        }
    }
    if (!best)
        return NULL;
    *ret_service = best->service;
    return best->route;
}

/* False: it was answered, because an escape is malformed or there is no memory. */
static bool decode_path(struct http_exchange *x)
{
    struct slice path = x->opening->request.path;
    size_t len = 0;
    if (path.len == 0 || !memchr(path.ptr, '%', path.len))
        return true;
    if (account_reserve(x->account, &x->opening->path, path.len) != ST_OK) {
        http_answer_plain(x, 429);
        return false;
    }
    if (!http_path_decode(path, x->opening->path.ptr, &len)) {
        http_answer_plain(x, 400);
        return false;
    }
    x->opening->path.len = len;
    x->opening->request.path = buf_slice(&x->opening->path);
    return true;
}

static bool route_admits(struct http_exchange *x)
{
    return !x->route->admit || x->route->admit(x, x->service, &x->opening->request);
}

/* False: the request was answered. */
static bool passes_gate(const struct http_routes *routes, struct http_exchange *x)
{
    if (!decode_path(x))
        return false;
    turn_work_copy("answering", x->opening->request.method, x->opening->request.path);
    if (routes && routes->gate && !routes->gate(x, routes->gate_ctx, &x->opening->request))
        return false;
    return !http_exchange_complete(x); /* it is if the gate had no memory for its fields */
}

static void authorize(struct http_exchange *x)
{
    http_exchange_move(x, HTTP_AUTHORIZING);
    x->in_admit = true;
    x->route->authorize(x, x->service, &x->opening->request);
    x->in_admit = false;
}

void http_routes_admit(const struct http_routes *routes, struct http_exchange *x)
{
    if (!passes_gate(routes, x))
        return;
    x->route = routes ? http_routes_find(routes, x->opening->request.path, &x->service) : NULL;
    if (!x->route)
        http_answer_plain(x, 404);
    else if (!route_admits(x) || http_exchange_complete(x))
        return;
    else if (x->route->authorize)
        authorize(x);
    else
        http_exchange_move(x, HTTP_ADMITTED);
}

void http_routes_dispatch(const struct http_routes *routes, struct http_exchange *x)
{
    x->opening->request.body = buf_slice(&x->opening->body);
    /* A request without a body has not been admitted yet. */
    if (x->state == HTTP_RECEIVING)
        http_routes_admit(routes, x);
    if (x->state != HTTP_ADMITTED)
        return;
    turn_work_copy("answering", x->opening->request.method, x->opening->request.path);
    /* The client was admitted when the body began to arrive, and may have lost its permission
     * since. */
    if (x->opening->body.len && !route_admits(x))
        return;
    if (http_exchange_complete(x))
        return;
    http_exchange_move(x, HTTP_HANDLED);
    x->route->on_request(x, x->service, &x->opening->request);
}
