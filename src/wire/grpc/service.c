#include "wire/grpc/service.h"

#include "base/clock.h"

#include <stdlib.h>

/* The default buckets of Prometheus' client libraries. */
static const int64_t seconds_bounds[] = {
    5 * NS_PER_MS,    10 * NS_PER_MS,  25 * NS_PER_MS,  50 * NS_PER_MS,
    100 * NS_PER_MS,  250 * NS_PER_MS, 500 * NS_PER_MS, 1 * NS_PER_S,
    2500 * NS_PER_MS, 5 * NS_PER_S,    10 * NS_PER_S,
};
const struct metric_buckets grpc_seconds = {seconds_bounds, COUNT_OF(seconds_bounds), NS_PER_S};

/* Sorted by path once filled; a server has about sixty methods. */
struct grpc_services {
    struct grpc_row *rows;
    size_t count;
    grpc_gunzip *gunzip;
    bool refuses_pages;
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
    return slice_compare(((const struct grpc_row *)a)->path, ((const struct grpc_row *)b)->path);
}

static const struct grpc_row *find_row(const struct grpc_services *services, struct slice path)
{
    struct grpc_row key = {.path = path};
    if (services->count == 0)
        return NULL;
    return bsearch(&key, services->rows, services->count, sizeof(key), compare_rows);
}

enum status grpc_services_add(struct grpc_services *services, const struct grpc_method *methods,
                              size_t count, void *service)
{
    if (count == 0)
        return ST_OK;
    struct grpc_row *rows = realloc(services->rows, (services->count + count) * sizeof(*rows));
    if (!rows)
        return ST_NOMEM;
    services->rows = rows;
    for (size_t i = 0; i < count; i++) {
        assert(methods[i].path[0] == '/' && methods[i].on_message);
        assert(!find_row(services, slice_from_text(methods[i].path)));
        rows[services->count + i] = (struct grpc_row){
            .path = slice_from_text(methods[i].path), .method = &methods[i], .service = service};
    }
    services->count += count;
    qsort(rows, services->count, sizeof(*rows), compare_rows);
    return ST_OK;
}

const struct grpc_row *grpc_services_find(const struct grpc_services *services, struct slice path)
{
    return find_row(services, path);
}

const struct grpc_row *grpc_services_rows(const struct grpc_services *services, size_t *ret_count)
{
    *ret_count = services->count;
    return services->rows;
}

void grpc_services_count(struct grpc_services *services, struct metric_block *block)
{
    for (size_t i = 0; i < services->count; i++) {
        services->rows[i].counts = block;
        services->rows[i].first_count = (unsigned)i * GRPC_COUNTS;
    }
}

void grpc_services_time(struct grpc_services *services, const struct grpc_timing *timing)
{
    for (size_t i = 0; i < services->count; i++)
        services->rows[i].timing = timing;
}

void grpc_services_refuse_pages(struct grpc_services *services)
{
    services->refuses_pages = true;
}

bool grpc_services_refuses_pages(const struct grpc_services *services)
{
    return services->refuses_pages;
}

void grpc_services_guard(struct grpc_services *services, const struct grpc_guard *guard)
{
    for (size_t i = 0; i < services->count; i++)
        services->rows[i].guard = guard;
}

void grpc_services_set_gunzip(struct grpc_services *services, grpc_gunzip *gunzip)
{
    services->gunzip = gunzip;
}

grpc_gunzip *grpc_services_gunzip(const struct grpc_services *services)
{
    return services->gunzip;
}

bool grpc_services_has(const struct grpc_services *services, struct slice prefix)
{
    for (size_t i = 0; i < services->count; i++) {
        if (slice_has_prefix(services->rows[i].path, prefix))
            return true;
    }
    return false;
}
