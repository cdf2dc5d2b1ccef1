#include "wire/http1/handler.h"

#include <stdlib.h>

struct row {
    const struct http1_route *route;
    void *service;
};

struct http1_routes {
    struct row *rows;
    size_t count;
};

enum status http1_routes_new(struct http1_routes **ret_routes)
{
    struct http1_routes *routes = calloc(1, sizeof(*routes));
    if (!routes)
        return ST_NOMEM;
    *ret_routes = routes;
    return ST_OK;
}

void http1_routes_free(struct http1_routes *routes)
{
    if (!routes)
        return;
    free(routes->rows);
    free(routes);
}

enum status http1_routes_add(struct http1_routes *routes, const struct http1_route *rows,
                             size_t count, void *service)
{
    if (count == 0)
        return ST_OK;
    struct row *more = realloc(routes->rows, (routes->count + count) * sizeof(*more));
    if (!more)
        return ST_NOMEM;
    routes->rows = more;
    for (size_t i = 0; i < count; i++) {
        assert(rows[i].path[0] == '/' && rows[i].on_request);
        more[routes->count++] = (struct row){&rows[i], service};
    }
    return ST_OK;
}

static bool matches(const struct http1_route *route, struct slice path)
{
    struct slice pattern = slice_from_text(route->path);
    if (slice_equal(path, pattern))
        return true;
    return pattern.ptr[pattern.len - 1] == '/' && slice_has_prefix(path, pattern);
}

const struct http1_route *http1_routes_find(const struct http1_routes *routes, struct slice path,
                                            void **ret_service)
{
    const struct row *best = NULL;
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
