#include "tier/face/face.h"

#include "base/lock.h"
#include "base/metric/metric.h"
#include "base/metric/page.h"
#include "base/metric/turn.h"
#include "base/xalloc.h"
#include "kube/types/kind.h"
#include "tier/call/pass.h"
#include "tier/face/role_watch.h"
#include "tier/link/rate.h"
#include "tier/read/events.h"
#include "tier/read/request.h"
#include "tier/read/tags.h"
#include "tier/read/version.h"
#include "wire/http/origin.h"

enum { ASK_ARENA_BYTES_MAX = 1 << 20, FORWARDS_MAX = 16 * 1024, FACES_MAX = 256 };

struct tier {
    struct tier_settings settings;
    const vigil_kube_options *client; /* borrowed */
    void (*log)(void *ctx, int level, const char *text);
    void *log_ctx;
    int64_t rights_ttl_ns;
    struct metric_set *rights_metrics; /* owned */
    struct tier_rate *rate;            /* owned */
    struct lock lock;
    struct tier_face *faces[FACES_MAX]; /* protected by the lock */
    size_t face_count;
};

struct tier_face {
    struct tier_api api;
    struct tier *tier;
    struct tier_tags tags;
    struct tier_version version;
    struct tier_role_watch *roles; /* owned */
    struct http_routes *routes;    /* owned */
};

/* -- Requests -- */

/* Without TLS only programs of this machine may use it, as our own Kubernetes API. */
static bool gate(struct http_exchange *x, void *ctx, const struct http_request *request)
{
    struct slice origin;
    (void)ctx;
    if (request->secure ||
        (http_host_is_loopback(request->host) && !http_is_foreign(request, &origin)))
        return true;
    http_respond(x, 403, SLICE_LITERAL("text/plain; charset=utf-8"),
                 SLICE_LITERAL("without TLS this is served to programs of this machine only, under "
                               "its loopback addresses\n"));
    return false;
}

static void on_request(struct http_exchange *x, void *service, const struct http_request *request)
{
    struct tier_face *face = service;
    struct arena arena;
    struct tier_ask ask;
    arena_init(&arena, NULL, 0, ASK_ARENA_BYTES_MAX);
    arena_charge(&arena, http_exchange_account(x));
    bool is_read = !request->has_body && !request->upgrade && tier_ask_read(&arena, request, &ask);
    if (is_read && tier_ask_is_table(&ask) && !tier_version_is_ours(&face->version))
        is_read = false;
    if (is_read && !arena_ran_out(&arena)) {
        tier_request_start(&face->api, x, &arena, &ask);
        return;
    }
    arena_fini(&arena);
    tier_count(&face->api, TIER_TOTAL_PASSED_ON);
    tier_pass_on(&face->api, x);
}

static void on_body(struct http_exchange *x, void *service, struct slice bytes)
{
    (void)service;
    tier_pass_body(x, bytes);
}

static void on_end(struct http_exchange *x, void *service)
{
    struct kube_life *life = http_exchange_user(x);
    (void)service;
    if (life)
        life->end(life);
}

/* -- Health -- */

/* "/readyz": whether the mirror is complete; the other pages: whether the process answers. */
static void on_health(struct http_exchange *x, void *service, const struct http_request *request)
{
    struct tier_face *face = service;
    char reason[TIER_REASON_BYTES], text[TIER_REASON_BYTES + 64];
    struct slice plain = SLICE_LITERAL("text/plain; charset=utf-8");
    if (!slice_has_prefix(request->path, SLICE_LITERAL("/readyz")) ||
        tier_mirror_is_ready(face->api.settings->mirror, reason)) {
        http_respond(x, 200, plain, SLICE_LITERAL("ok"));
        return;
    }
    int len = snprintf(text, sizeof(text), "[-]mirror failed: %s\nreadyz check failed\n", reason);
    http_respond(x, 500, plain, slice_of(text, (size_t)len));
}

static const struct http_route routes[] = {
    {.path = "/healthz", .on_request = on_health},
    {.path = "/livez", .on_request = on_health},
    {.path = "/readyz", .on_request = on_health},
    {.path = "/", .on_request = on_request, .on_body = on_body, .on_end = on_end},
};

/* -- A thread -- */

static void add_face(struct tier *tier, struct tier_face *face)
{
    lock_take(&tier->lock);
    if (tier->face_count < FACES_MAX)
        tier->faces[tier->face_count++] = face;
    lock_release(&tier->lock);
}

static void remove_face(struct tier *tier, const struct tier_face *face)
{
    lock_take(&tier->lock);
    for (size_t i = 0; i < tier->face_count; i++) {
        if (tier->faces[i] == face) {
            tier->faces[i] = tier->faces[--tier->face_count];
            break;
        }
    }
    lock_release(&tier->lock);
}

/* Roles are followed for the sake of running watches. Other clients cannot start their mirrors. */
static void on_stands(void *ctx, bool any)
{
    struct tier_face *face = ctx;
    if (any)
        tier_role_watch_start(face->roles);
    else
        tier_role_watch_stop(face->roles);
}

static enum status open_face(struct tier_face *face, struct engine_shard *shard, struct loop *loop)
{
    struct tier *tier = face->tier;
    struct tier_api *api = &face->api;
    struct error error;
    api->settings = &tier->settings;
    api->shard = shard;
    api->loop = loop;
    random_init(&api->random, random_seed_system());
    tier_forwards_init(&api->forwards, tier->settings.forwards_max, random_u64(&api->random));
    kube_search_init(&api->search_budget, loop);
    kube_selections_init(&api->selections, random_u64(&api->random));
    api->events = tier_event_cache_new();
    api->tags = &face->tags;
    tier_tags_init(&face->tags, engine_watch_hub(shard));
    api->reader = tier_reader_new(tier->settings.mirror, loop);
    TRY(tier_link_new(
        &(struct tier_link_options){
            .loop = loop, .client = tier->client, .log = tier->log, .log_ctx = tier->log_ctx},
        &api->link, &error));
    tier_version_init(&face->version, api->link, loop);
    api->rights = tier_rights_new(&(struct tier_rights_options){.loop = loop,
                                                                .link = api->link,
                                                                .ttl_ns = tier->rights_ttl_ns,
                                                                .rate = tier->rate,
                                                                .metrics = tier->rights_metrics,
                                                                .seed = random_u64(&api->random),
                                                                .stands = on_stands,
                                                                .ctx = face});
    face->roles = tier_role_watch_new(api);
    TRY(http_routes_new(&face->routes));
    http_routes_set_gate(face->routes, gate, face);
    return http_routes_add(face->routes, routes, COUNT_OF(routes), face);
}

enum status tier_face_new(struct tier *tier, struct engine_shard *shard, struct loop *loop,
                          struct tier_face **ret_face)
{
    struct tier_face *face = xcalloc(1, sizeof(*face));
    face->tier = tier;
    enum status status = open_face(face, shard, loop);
    if (status != ST_OK) {
        tier_face_free(face);
        return status;
    }
    add_face(tier, face);
    *ret_face = face;
    return ST_OK;
}

const struct http_routes *tier_face_routes(const struct tier_face *face)
{
    return face->routes;
}

void tier_face_stop(struct tier_face *face)
{
    kube_search_stop(&face->api.search_budget);
}

bool tier_face_busy(const struct tier_face *face)
{
    return face->api.under_way > 0;
}

void tier_face_free(struct tier_face *face)
{
    if (!face)
        return;
    remove_face(face->tier, face);
    tier_role_watch_free(face->roles);
    tier_rights_free(face->api.rights);
    tier_version_fini(&face->version);
    tier_link_free(face->api.link);
    tier_reader_free(face->api.reader);
    tier_event_cache_free(face->api.events);
    if (face->api.tags)
        tier_tags_fini(&face->tags);
    http_routes_free(face->routes);
    tier_forwards_fini(&face->api.forwards);
    kube_selections_fini(&face->api.selections);
    free(face);
}

/* -- The whole -- */

/* The preferred version of a built-in resource. */
static const char *version_of(struct slice group, struct slice resource)
{
    size_t count;
    const struct kube_kind *kinds = kube_builtin_kinds(&count), *best = NULL;
    for (size_t i = 0; i < count; i++) {
        bool is_it = slice_is(group, kinds[i].group) && slice_is(resource, kinds[i].plural);
        /* "v1" is before "v1beta1", which is before "v2" only in the alphabet. */
        if (is_it && (!best || !strstr(kinds[i].version, "alpha")))
            if (!best || (strstr(best->version, "alpha") || strstr(best->version, "beta")))
                best = &kinds[i];
    }
    return best ? best->version : NULL;
}

static bool is_version(struct slice text)
{
    return text.len > 1 && text.ptr[0] == 'v' && text.ptr[1] >= '0' && text.ptr[1] <= '9';
}

/* "pods", "deployments.apps", "leases.v1.coordination.k8s.io", each with ":protobuf" or without. */
static enum status read_resource(struct slice text, struct tier_name *ret_name, struct error *error)
{
    struct slice rest = text;
    struct slice name = slice_cut(&rest, ':');
    *ret_name = (struct tier_name){.encoding = rest.len ? TIER_PROTOBUF : TIER_JSON};
    if (rest.len && !slice_is(rest, "protobuf") && !slice_is(rest, "json"))
        return error_set(error, ST_INVALID,
                         "--upstream-resources: %.*s: after the colon is json or protobuf",
                         SLICE_ARGS(text));
    if (slice_is(rest, "json"))
        ret_name->encoding = TIER_JSON;
    ret_name->resource = slice_cut(&name, '.');
    struct slice group = name;
    struct slice version = slice_cut(&group, '.');
    if (is_version(version)) {
        ret_name->version = version;
        ret_name->group = group;
        return ST_OK;
    }
    ret_name->group = name;
    const char *known = version_of(ret_name->group, ret_name->resource);
    if (!known)
        return error_set(error, ST_INVALID,
                         "--upstream-resources: %.*s is not a built-in resource: name its version, "
                         "as in widgets.v1.example.com",
                         SLICE_ARGS(text));
    ret_name->version = slice_from_text(known);
    return ST_OK;
}

static enum status keep_resources(struct tier *tier, const struct tier_options *options,
                                  struct error *error)
{
    for (size_t i = 0; i < options->resource_count; i++) {
        struct tier_name name;
        TRY(read_resource(options->resources[i], &name, error));
        enum status status = tier_mirror_keep(tier->settings.mirror, &name);
        if (status != ST_OK)
            return error_set(error, status, "--upstream-resources: %.*s cannot be mirrored: %s",
                             SLICE_ARGS(options->resources[i]), status_reason(status));
    }
    return ST_OK;
}

enum status tier_new(const struct tier_options *options, struct engine *engine,
                     struct tier **ret_tier, struct error *error)
{
    AUTO(tier_freep) struct tier *tier = xcalloc(1, sizeof(*tier));
    struct turn *turn;
    lock_init(&tier->lock);
    if (turns_join(options->turns, "mirror", &turn) != ST_OK)
        return error_no_memory(error);
    tier->rights_metrics = tier_rights_metrics_new();
    tier->rate = tier_rate_new(options->calls_per_second);
    tier->client = options->client;
    tier->log = options->log;
    tier->log_ctx = options->log_ctx;
    tier->rights_ttl_ns = options->rights_ttl_ns;
    tier->settings.reads = options->reads;
    tier->settings.forwards_max = options->forwards_max ? options->forwards_max : FORWARDS_MAX;
    TRY(tier_mirror_new(
        &(struct tier_mirror_options){.engine = engine,
                                      .client = options->client,
                                      .collection_bytes_max = options->collection_bytes_max,
                                      .bytes_max = options->mirror_bytes_max,
                                      .idle_ns = options->idle_ns,
                                      .history_ns = options->history_ns,
                                      .history_bytes_max = options->history_bytes_max,
                                      .rate = tier->rate,
                                      .turn = turn,
                                      .log = options->log,
                                      .log_ctx = options->log_ctx},
        &tier->settings.mirror, error));
    TRY(keep_resources(tier, options, error));
    *ret_tier = TAKE(tier);
    return ST_OK;
}

void tier_free(struct tier *tier)
{
    if (!tier)
        return;
    assert(!tier->face_count);
    tier_mirror_free(tier->settings.mirror);
    tier_rate_free(tier->rate);
    metric_set_free(tier->rights_metrics);
    lock_fini(&tier->lock);
    free(tier);
}

/* -- Metrics -- */

static const struct {
    const char *name, *help;
} totals[] = {
    [TIER_TOTAL_GETS] = {"vigil_tier_gets_total",
                         "Requests for one object that the mirror has answered."},
    [TIER_TOTAL_LISTS] = {"vigil_tier_lists_total",
                          "Lists, or pages of lists, that the mirror has answered."},
    [TIER_TOTAL_WATCHES] = {"vigil_tier_watches_total",
                            "Watches of clients that the mirror has begun to answer."},
    [TIER_TOTAL_WATCHES_ENDED] = {"vigil_tier_watches_ended_total",
                                  "Those of these watches that have ended."},
    [TIER_TOTAL_EVENTS] = {"vigil_tier_events_total",
                           "Events that were sent to watches of clients, without bookmarks."},
    [TIER_TOTAL_PASSED_ON] = {"vigil_tier_passed_on_total",
                              "Requests that are not reads of the mirror, and were passed on to "
                              "the kube-apiserver."},
    [TIER_TOTAL_UNMIRRORED] = {"vigil_tier_unmirrored_total",
                               "Reads that were passed on to the kube-apiserver: they must be "
                               "current, or the mirror does not have what they need."},
    [TIER_TOTAL_DENIED] = {"vigil_tier_denied_total",
                           "Reads that were refused, because their user lacks the right or the "
                           "right could not be reviewed."},
    [TIER_TOTAL_IMPERSONATIONS_REFUSED] = {"vigil_tier_impersonations_refused_total",
                                           "Requests of clients with certificates that the "
                                           "kube-apiserver has refused because the tier's account "
                                           "may not impersonate them."},
};

bool tier_is_ready(struct tier *tier, char ret_reason[TIER_REASON_BYTES])
{
    return tier_mirror_is_ready(tier->settings.mirror, ret_reason);
}

void tier_write_metrics(struct tier *tier, struct metric_page *page)
{
    uint64_t sums[TIER_TOTALS] = {0};
    lock_take(&tier->lock);
    for (size_t i = 0; i < tier->face_count; i++)
        for (size_t k = 0; k < TIER_TOTALS; k++)
            sums[k] += atomic_load_explicit(&tier->faces[i]->api.totals[k], memory_order_relaxed);
    if (tier->face_count) /* they share their metrics */
        tier_rights_write_metrics(tier->faces[0]->api.rights, page);
    lock_release(&tier->lock);
    for (size_t k = 0; k < TIER_TOTALS; k++)
        metric_page_counter(page, totals[k].name, totals[k].help, sums[k]);
    /* The threads count while they are read. */
    uint64_t ended = sums[TIER_TOTAL_WATCHES_ENDED], begun = sums[TIER_TOTAL_WATCHES];
    metric_page_gauge(page, "vigil_tier_watches", "Watches of clients that run.",
                      begun > ended ? begun - ended : 0);
    tier_rate_write_metrics(tier->rate, page);
    tier_mirror_write_metrics(tier->settings.mirror, page);
}
