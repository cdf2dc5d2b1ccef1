#include "kube/server/health.h"

#include "engine/engine.h"
#include "kube/server/routes.h"
#include "wire/http/exchange.h"
#include "wire/http/query.h"

#define PLAIN SLICE_LITERAL("text/plain; charset=utf-8")

enum subject {
    STARTED,      /* done before connections are accepted, so it never fails */
    STORE,        /* objects can be read and written */
    FIRST_OBJECTS /* the objects of a new cluster, which the first request creates */
};

static const struct check {
    const char *name;
    enum subject subject;
    bool only_ready; /* belongs to /readyz alone */
} checks[] = {
    {"ping", STARTED, false},
    {"log", STARTED, false},
    {"etcd", STORE, false},
    {"etcd-readiness", STORE, true},
    {"informer-sync", STARTED, true},
    {"poststarthook/start-apiserver-admission-initializer", STARTED, false},
    {"poststarthook/generic-apiserver-start-informers", STARTED, false},
    {"poststarthook/start-apiextensions-informers", STARTED, false},
    {"poststarthook/start-apiextensions-controllers", STARTED, false},
    {"poststarthook/crd-informer-synced", STARTED, false},
    {"poststarthook/start-system-namespaces-controller", FIRST_OBJECTS, false},
    {"poststarthook/start-cluster-authentication-info-controller", FIRST_OBJECTS, false},
    {"poststarthook/rbac/bootstrap-roles", FIRST_OBJECTS, false},
    {"poststarthook/scheduling/bootstrap-system-priority-classes", FIRST_OBJECTS, false},
    {"poststarthook/priority-and-fairness-config-producer", FIRST_OBJECTS, false},
    {"poststarthook/bootstrap-controller", FIRST_OBJECTS, false},
    {"poststarthook/start-kubernetes-service-cidr-controller", FIRST_OBJECTS, false},
    {"poststarthook/apiservice-openapi-controller", STARTED, false},
    {"poststarthook/apiservice-openapiv3-controller", STARTED, false},
    {"shutdown", STARTED, true},
};

/* A request for one of the pages, and its result. */
struct probe {
    struct kube_api *api;
    struct slice page, one; /* "livez"; the name of a single check, or empty */
    bool verbose;
    bool excluded[COUNT_OF(checks)];
    struct buf unknown; /* names to exclude that no check has, for the answer */
    bool store_ready;
    char reason[ENGINE_REASON_BYTES]; /* why the store is not ready */
    struct buf text;
    bool failed;
};

/* NULL: the check passes. */
static const char *failure_of(const struct probe *p, const struct check *check)
{
    const _Atomic bool *unmade = p->api->config->unmade;
    /* What is full, or behind its cluster, is alive all the same: a restart would not help. */
    if (slice_is(p->page, "livez"))
        return NULL;
    switch (check->subject) {
    case STARTED:
        return NULL;
    case STORE:
        return p->store_ready ? NULL : p->reason;
    case FIRST_OBJECTS:
        /* Before the first request nothing is missing: that request waits for them. */
        return unmade && atomic_load_explicit(unmade, memory_order_relaxed)
                   ? "the objects of a new cluster could not be written; trying again"
                   : NULL;
    }
    return NULL;
}

static bool is_of_page(const struct probe *p, const struct check *check)
{
    return !check->only_ready || slice_is(p->page, "readyz");
}

static enum status exclude(struct probe *p, struct slice name)
{
    bool known = false;
    for (size_t i = 0; i < COUNT_OF(checks); i++) {
        if (is_of_page(p, &checks[i]) && slice_is(name, checks[i].name))
            known = p->excluded[i] = true;
    }
    if (known)
        return ST_OK;
    TRY(buf_append_text(&p->unknown, p->unknown.len ? ",\"" : "\""));
    TRY(buf_append(&p->unknown, name));
    return buf_append_text(&p->unknown, "\"");
}

static enum status read_query(struct probe *p, struct slice query)
{
    AUTO(buf_fini) struct buf scratch = {0};
    struct http_field pair;
    TRY(buf_reserve(&scratch, query.len + 1));
    while (http_query_next(&query, &scratch, &pair)) {
        if (slice_is(pair.name, "verbose"))
            p->verbose = true;
        else if (slice_is(pair.name, "exclude"))
            TRY(exclude(p, pair.value));
    }
    return ST_OK;
}

static enum status run_checks(struct probe *p)
{
    for (size_t i = 0; i < COUNT_OF(checks); i++) {
        const char *name = checks[i].name;
        if (!is_of_page(p, &checks[i]) || (p->one.len && !slice_is(p->one, name)))
            continue;
        const char *failure = p->excluded[i] ? NULL : failure_of(p, &checks[i]);
        p->failed |= failure != NULL;
        if (failure)
            TRY(buf_append_format(&p->text, "[-]%s failed: %s\n", name, failure));
        else
            TRY(buf_append_format(&p->text, "[+]%s %s\n", name,
                                  p->excluded[i] ? "excluded: ok" : "ok"));
    }
    if (p->unknown.len)
        TRY(buf_append_format(&p->text,
                              "warn: some health checks cannot be excluded: no matches for %.*s\n",
                              SLICE_ARGS(buf_slice(&p->unknown))));
    return buf_append_format(&p->text, "%.*s check %s\n", SLICE_ARGS(p->page),
                             p->failed ? "failed" : "passed");
}

static void respond(struct http_exchange *x, struct probe *p)
{
    bool known = !p->one.len;
    for (size_t i = 0; i < COUNT_OF(checks); i++)
        known |= is_of_page(p, &checks[i]) && slice_is(p->one, checks[i].name);
    if (!known)
        http_respond(x, 404, PLAIN, SLICE_LITERAL("404 page not found\n"));
    else if (read_query(p, http_exchange_request(x)->query) != ST_OK || run_checks(p) != ST_OK)
        http_abort(x);
    else if (p->failed)
        http_respond(x, 500, PLAIN, buf_slice(&p->text));
    else
        http_respond(x, 200, PLAIN,
                     p->verbose && !p->one.len ? buf_slice(&p->text) : SLICE_LITERAL("ok"));
}

/* "/livez", "/livez/" or "/livez/etcd" */
static void on_probe(struct http_exchange *x, void *service, const struct http_request *request)
{
    struct probe p = {.api = service};
    struct slice path = slice_sub(request->path, 1, request->path.len - 1);
    const uint8_t *slash = memchr(path.ptr, '/', path.len);
    size_t len = slash ? (size_t)(slash - path.ptr) : path.len;
    p.page = slice_sub(path, 0, len);
    if (slash)
        p.one = slice_sub(path, len + 1, path.len - len - 1);

    p.store_ready = engine_ready(p.api->engine, p.reason);
    respond(x, &p);
    buf_fini(&p.unknown);
    buf_fini(&p.text);
}

static const struct http_route routes[] = {
    {.path = "/healthz", .on_request = on_probe}, {.path = "/healthz/", .on_request = on_probe},
    {.path = "/livez", .on_request = on_probe},   {.path = "/livez/", .on_request = on_probe},
    {.path = "/readyz", .on_request = on_probe},  {.path = "/readyz/", .on_request = on_probe},
};

enum status kube_health_add(struct kube_api *api)
{
    return kube_routes_add(api, routes, COUNT_OF(routes));
}
