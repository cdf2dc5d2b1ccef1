#include "wire/grpc/service.h"

#include <stdlib.h>

struct row {
    struct slice path;
    const struct grpc_method *method;
    void *service;
};

/* Sorted by path once filled; a server has some sixty methods. */
struct grpc_services {
    struct row *rows;
    size_t count;
};

enum status grpc_services_new(struct grpc_services **ret_services)
{
    struct grpc_services *services = calloc(1, sizeof(*services));
    if (!services)
        return ST_NOMEM;
    *ret_services = services;
    return ST_OK;
}

void grpc_services_free(struct grpc_services *services)
{
    if (!services)
        return;
    free(services->rows);
    free(services);
}

static int compare_rows(const void *a, const void *b)
{
    return slice_compare(((const struct row *)a)->path, ((const struct row *)b)->path);
}

static const struct row *find_row(const struct grpc_services *services, struct slice path)
{
    struct row key = {.path = path};
    if (services->count == 0)
        return NULL;
    return bsearch(&key, services->rows, services->count, sizeof(key), compare_rows);
}

enum status grpc_services_add(struct grpc_services *services, const struct grpc_method *methods,
                              size_t count, void *service)
{
    if (count == 0)
        return ST_OK;
    struct row *rows = realloc(services->rows, (services->count + count) * sizeof(*rows));
    if (!rows)
        return ST_NOMEM;
    services->rows = rows;
    for (size_t i = 0; i < count; i++) {
        assert(methods[i].path[0] == '/' && methods[i].on_message);
        assert(!find_row(services, slice_from_text(methods[i].path)));
        rows[services->count + i] =
            (struct row){slice_from_text(methods[i].path), &methods[i], service};
    }
    services->count += count;
    qsort(rows, services->count, sizeof(*rows), compare_rows);
    return ST_OK;
}

const struct grpc_method *grpc_services_find(const struct grpc_services *services,
                                             struct slice path, void **ret_service)
{
    const struct row *row = find_row(services, path);
    if (!row)
        return NULL;
    *ret_service = row->service;
    return row->method;
}

bool grpc_services_has(const struct grpc_services *services, struct slice prefix)
{
    for (size_t i = 0; i < services->count; i++) {
        if (slice_has_prefix(services->rows[i].path, prefix))
            return true;
    }
    return false;
}
