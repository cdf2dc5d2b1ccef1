#include "kube/jobs/garbage/garbage.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/xalloc.h"
#include "kube/jobs/follower/follower.h"
#include "kube/jobs/garbage/worker.h"

#define EVENTS_PREFIX SLICE_LITERAL("/registry/events/")

enum {
    EXPANDED_MAX = 2000,     /* dependents queued in one turn */
    SCRATCH_BYTES = 8 << 10, /* for the references of one object; more is allocated */
};

struct collector {
    struct kube_follower follower;
    const struct http_route *route;
    struct garbage *garbage; /* a reference; NULL unless objects and events are taken */
    _Alignas(16) uint8_t scratch[SCRATCH_BYTES];
};

static struct collector *collector_of(struct kube_follower *follower)
{
    return CONTAINER_OF(follower, struct collector, follower);
}

static void begin(struct kube_follower *follower)
{
    struct collector *c = collector_of(follower);
    c->garbage = garbage_new(follower->job.api, c->route);
    c->garbage->collector = &follower->job;
}

static void drop(struct kube_follower *follower)
{
    struct collector *c = collector_of(follower);
    if (c->garbage) {
        c->garbage->abandoned = true;
        c->garbage->collector = NULL;
    }
    garbage_unref(c->garbage);
    c->garbage = NULL;
}

static void loaded(struct kube_follower *follower)
{
    const struct garbage_graph *graph = &collector_of(follower)->garbage->graph;
    log_info("garbage collection has begun", LOG_U64("nodes", graph->nodes.count),
             LOG_U64("references", graph->ref_count));
}

/* -- Objects and events -- */

static void take_object(struct kube_follower *follower, struct kube_kv kv)
{
    struct collector *c = collector_of(follower);
    struct arena arena;
    struct garbage_facts facts;
    arena_init(&arena, c->scratch, sizeof(c->scratch), KUBE_FOLLOWER_ARENA_BYTES_MAX);
    enum status status = slice_has_prefix(kv.key, EVENTS_PREFIX)
                             ? ST_MALFORMED
                             : garbage_facts_read(&arena, kv.value, &facts);
    if (status == ST_OK)
        garbage_graph_put(&c->garbage->graph, kv.key, kv.mod_revision, &facts);
    arena_fini(&arena);
}

/* False: the object that was deleted is not known any more, so its uid is not either. */
static bool take_deletion(struct collector *c, const struct watch_event *event, int64_t revision)
{
    struct slice prev = watch_cursor_prev(c->follower.cursor, event);
    struct arena arena;
    struct garbage_facts facts;
    if (!prev.len)
        return false;
    arena_init(&arena, c->scratch, sizeof(c->scratch), KUBE_FOLLOWER_ARENA_BYTES_MAX);
    if (garbage_facts_read(&arena, kube_kv_of(prev).value, &facts) == ST_OK)
        garbage_graph_delete(&c->garbage->graph, facts.uid, revision);
    arena_fini(&arena);
    return true;
}

static bool take_event(struct kube_follower *follower, const struct watch_event *event,
                       int64_t revision)
{
    if (event->tombstone)
        return take_deletion(collector_of(follower), event, revision);
    take_object(follower, kube_kv_of(event->field));
    return true;
}

static bool work(struct kube_follower *follower, int64_t *ret_next_ns)
{
    struct garbage *garbage = collector_of(follower)->garbage;
    int64_t now_ns = loop_now_ns(follower->job.api->loop);
    *ret_next_ns = garbage_graph_unpark(&garbage->graph, now_ns);
    if (garbage_graph_expand(&garbage->graph, EXPANDED_MAX))
        *ret_next_ns = now_ns;
    if (!list_empty(&garbage->graph.queue))
        garbage_work(garbage);
    return false;
}

/* -- The job -- */

static void fini(struct kube_job *job)
{
    kube_follower_fini(kube_follower_of(job));
}

static const struct kube_follower_type type = {
    .job = {.step = kube_follower_step, .fini = fini},
    .first = "/registry/",
    .end = "/registry0",
    .stands_back = "garbage collection stands back: kube-controller-manager holds its lease",
    .begin = begin,
    .drop = drop,
    .object = take_object,
    .loaded = loaded,
    .event = take_event,
    .work = work,
};

void kube_garbage_start(struct kube_api *api, const struct http_route *route)
{
    if (!api->config->garbage)
        return;
    struct collector *c = xcalloc(1, sizeof(*c));
    c->route = route;
    kube_follower_start(&c->follower, &type, api);
}
