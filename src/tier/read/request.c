#include "tier/read/request.h"

#include "base/xalloc.h"
#include "tier/call/pass.h"

#include <stdio.h>

enum { ARENA_BYTES_MAX = 1 << 20, RETRIES_MAX = 8 };
/* How long a request waits for a collection's first state. */
#define STATE_NS (30 * NS_PER_S)
/* A watch waits longer. Proxies often close connections that are idle for a minute. */
#define WATCH_STATE_NS (50 * NS_PER_S)
/* How long it waits for a version or a fence, as in Kubernetes' watch cache. */
#define FRESH_NS (3 * NS_PER_S)
/* A watch waits longer: informers that begin together would burden a busy kube-apiserver more if
 * they were passed on, and each would stay there. */
#define WATCH_FRESH_NS (30 * NS_PER_S)
#define AGAIN_NS NS_PER_S /* the pause after a fence that has failed */

#define TO(phase) (1u << TIER_REQUEST_##phase)

/* Drawn in request.h. */
static const unsigned moves[] = {
    [TIER_REQUEST_NEW] = TO(IDENTIFYING) | TO(OVER),
    [TIER_REQUEST_IDENTIFYING] = TO(DECIDING) | TO(OVER),
    [TIER_REQUEST_DECIDING] = TO(OPENING) | TO(OVER),
    [TIER_REQUEST_OPENING] = TO(FRESHENING) | TO(OVER),
    [TIER_REQUEST_FRESHENING] = TO(READING) | TO(ANSWERING) | TO(OVER),
    [TIER_REQUEST_READING] = TO(READING) | TO(OPENING) | TO(ANSWERING) | TO(OVER),
    [TIER_REQUEST_ANSWERING] = TO(OVER),
    [TIER_REQUEST_OVER] = 0,
};

static void move(struct tier_request *r, enum tier_request_phase next)
{
    assert(moves[r->phase] & 1u << next);
    r->phase = next;
}

/* -- The end -- */

void tier_request_free(struct tier_request *r)
{
    if (r->read_under_way) {
        r->is_abandoned = true;
        engine_give_up(&r->read.op);
        return;
    }
    tier_request_close_range(r);
    kube_selection_unref(r->selection);
    tier_collection_close(r->collection);
    tier_user_unref(r->user);
    arena_fini(&r->read_arena);
    arena_fini(&r->arena);
    free(r);
}

static void end_answer(struct tier_request *r)
{
    if (r->on_over)
        r->on_over(r);
    r->on_over = NULL;
}

/* Nothing but an operation of the engine refers to it any more. */
static void leave(struct tier_request *r)
{
    tier_question_cancel(&r->question);
    tier_right_wait_cancel(&r->right);
    tier_wait_cancel(&r->wait);
    loop_timer_cancel(r->api->loop, &r->again);
    end_answer(r);
    r->exchange = NULL;
    move(r, TIER_REQUEST_OVER);
}

static void on_end(struct kube_life *life)
{
    struct tier_request *r = CONTAINER_OF(life, struct tier_request, life);
    leave(r);
    tier_request_free(r);
}

void tier_request_detach(struct tier_request *r, struct kube_life *life)
{
    assert(!r->read_under_way);
    http_exchange_set_user(r->exchange, life);
    leave(r);
}

void tier_request_pass_on(struct tier_request *r)
{
    struct tier_api *api = r->api;
    struct http_exchange *x = r->exchange;
    bool is_reviewed_watch = r->ask.verb == TIER_WATCH && r->phase >= TIER_REQUEST_OPENING;
    tier_count(api, TIER_TOTAL_UNMIRRORED);
    tier_request_detach(r, NULL);
    if (is_reviewed_watch)
        tier_pass_watch_on(api, x, r->user, &r->access);
    else
        tier_pass_on(api, x);
    tier_request_free(r);
}

void tier_request_fail(struct tier_request *r, const struct kube_status *status)
{
    struct http_exchange *x = r->exchange;
    tier_refuse(x, status);
}

/* -- Reading -- */

struct tier_kind tier_kind_of(enum tier_encoding encoding, const struct tier_view *view)
{
    if (tier_encoding_is_metadata(encoding))
        return (struct tier_kind){.kind = "PartialObjectMetadata",
                                  .list_kind = "PartialObjectMetadataList",
                                  .api_version = "meta.k8s.io/v1",
                                  .has_kinds = true};
    return (struct tier_kind){.kind = view->kind,
                              .list_kind = view->list_kind,
                              .api_version = view->api_version,
                              .has_kinds = view->has_kinds};
}

void tier_request_close_range(struct tier_request *r)
{
    if (r->read_open)
        engine_range_close(&r->read);
    r->read_open = false;
}

/* The one that is read, not the newest of the store. */
int64_t tier_request_revision(const struct tier_request *r)
{
    return r->wanted.revision ? r->wanted.revision : r->read.op.revision;
}

bool tier_request_version(struct tier_request *r, uint64_t *ret_version)
{
    return tier_collection_version(r->collection, r->view.generation, tier_request_revision(r),
                                   ret_version);
}

/* The state that was read is newer than the one that a fence has proved, but not as new as the
 * fence's version: an object may have come that no longer exists. */
static bool is_between(const struct tier_request *r, uint64_t version)
{
    return !r->wanted.revision && version < r->floor && r->read.op.revision > r->revision;
}

static void open_collection(struct tier_request *r);

/* The generation has ended between two steps: the next one has a state already. */
static void begin_again(struct tier_request *r)
{
    tier_request_close_range(r);
    end_answer(r);
    if (++r->retries > RETRIES_MAX) {
        tier_request_pass_on(r);
        return;
    }
    move(r, TIER_REQUEST_OPENING);
    open_collection(r);
}

static void on_read(struct engine_op *op)
{
    struct tier_request *r = CONTAINER_OF(op, struct tier_request, read.op);
    uint64_t version;
    r->read_under_way = false;
    r->read_open = op->status == ST_OK;
    r->api->under_way--;
    if (r->is_abandoned) {
        tier_request_free(r);
        return;
    }
    if (r->phase == TIER_REQUEST_OVER) {
        r->on_range(r);
        return;
    }
    bool is_historical = r->wanted.revision > 0;
    if (op->status != ST_OK && op->status != ST_COMPACTED)
        tier_request_pass_on(r);
    else if (op->status == ST_COMPACTED || (!is_historical && op->revision < r->revision) ||
             !tier_request_version(r, &version))
        begin_again(r);
    else if (is_between(r, version)) {
        r->wanted.revision = r->revision;
        tier_request_range(r, r->on_range);
    } else
        r->on_range(r);
}

static void start_range(struct tier_request *r, struct arena *arena,
                        void (*on_range)(struct tier_request *r))
{
    r->on_range = on_range;
    r->read =
        (struct engine_range){.op = {.done = on_read, .arena = arena, .principal = ENGINE_SERVER}};
    r->read_under_way = true;
    r->api->under_way++;
    engine_range_start(r->api->shard, &r->read, &r->wanted);
}

void tier_request_range(struct tier_request *r, void (*on_range)(struct tier_request *r))
{
    move(r, TIER_REQUEST_READING);
    tier_request_close_range(r);
    start_range(r, &r->arena, on_range);
}

void tier_request_reopen(struct tier_request *r, void (*done)(struct tier_request *r))
{
    assert(r->phase == TIER_REQUEST_OVER && !r->read_open && !r->read_under_way);
    arena_fini(&r->read_arena);
    arena_init(&r->read_arena, NULL, 0, ARENA_BYTES_MAX);
    start_range(r, &r->read_arena, done);
}

static void answer(struct tier_request *r)
{
    if (tier_ask_range(&r->arena, &r->ask, slice_of(r->view.prefix, TIER_PREFIX_BYTES),
                       &r->range) != ST_OK) {
        http_abort(r->exchange);
        return;
    }
    r->wanted = (struct pb_range_request){.key = r->range.key, .range_end = r->range.range_end};
    switch (r->ask.verb) {
    case TIER_GET:
        tier_get(r);
        break;
    case TIER_LIST:
        tier_list(r);
        break;
    case TIER_WATCH:
        tier_watch(r);
        break;
    }
}

/* -- Waiting in vain -- */

/* Other clients do not want the same, and it costs the kube-apiserver little. */
static bool is_alone(const struct tier_ask *ask)
{
    return ask->verb == TIER_GET ||
           (ask->verb == TIER_LIST && (ask->namespace.len || ask->name.len));
}

static bool loads(const struct tier_request *r)
{
    return r->view.phase == TIER_STARTING || r->view.phase == TIER_LOADING;
}

/* Whether many that wait for the same are a burden to a kube-apiserver that may be too busy to
 * answer the mirror: its lists of the state, or its fences. A store that fails is not its fault. */
static bool is_of_many(const struct tier_request *r)
{
    bool lacks_fence = r->view.phase == TIER_SERVING && r->ask.freshness == TIER_CURRENT;
    return !is_alone(&r->ask) && (loads(r) || (lacks_fence && !r->view.store_fails));
}

/* While it loads, in the words of a kube-apiserver whose watch cache has no state yet. */
static void put_off(struct tier_request *r)
{
    char text[TIER_REASON_BYTES + 64];
    struct kube_status status = {0};
    const char *reason = r->view.reason;
    snprintf(text, sizeof(text), "%s%s%s",
             loads(r) ? "storage is (re)initializing"
                      : "the mirror cannot find out what is current, please try again",
             *reason ? ": " : "", reason);
    (void)!kube_fail_later(&status, slice_from_text(text));
    tier_request_fail(r, &status);
}

/* The mirror does not have what it needs in time. */
static void give_up(struct tier_request *r)
{
    if (!is_of_many(r) || tier_collection_pass_late(r->collection, loop_now_ns(r->api->loop)))
        tier_request_pass_on(r);
    else
        put_off(r);
}

/* -- Freshness -- */

/* A version of which the mirror has the history is read there; any other is the kube-apiserver's
 * business. */
static bool has_history(const struct tier_request *r)
{
    return r->ask.version >= r->view.oldest && r->ask.version <= r->view.newest;
}

/* A fence has failed, perhaps because the kube-apiserver has too much to do: a watch that was
 * passed on now would stay there. */
static bool may_wait(const struct tier_request *r)
{
    return r->ask.verb == TIER_WATCH && r->wait.kind == TIER_WAIT_CURRENT &&
           r->view.phase == TIER_SERVING && r->view.connected &&
           loop_now_ns(r->api->loop) + AGAIN_NS < r->fresh_until_ns;
}

static void on_fresh(struct tier_wait *wait, enum status status)
{
    struct tier_request *r = CONTAINER_OF(wait, struct tier_request, wait);
    uint64_t generation = r->view.generation;
    tier_collection_look(r->collection, &r->view);
    r->revision = wait->revision;
    r->floor = wait->version;
    if (status == ST_UNAVAILABLE && may_wait(r))
        loop_timer_set(r->api->loop, &r->again, loop_now_ns(r->api->loop) + AGAIN_NS);
    else if (status != ST_OK || !r->view.generation)
        give_up(r);
    else if (r->view.generation != generation && r->retries++ < RETRIES_MAX)
        open_collection(r);
    else if (r->ask.freshness == TIER_EXACT && !has_history(r))
        tier_request_pass_on(r);
    else
        answer(r);
}

static void wait_for(struct tier_request *r, enum tier_wait_kind kind, uint64_t version,
                     int64_t timeout_ns, void (*done)(struct tier_wait *wait, enum status status))
{
    r->wait = (struct tier_wait){.done = done,
                                 .kind = kind,
                                 .version = version,
                                 .timeout_ns = timeout_ns,
                                 .ends_with_failure = is_alone(&r->ask)};
    tier_wait_start(r->api->reader, &r->wait, r->collection);
}

static void wait_for_fence(struct tier_request *r)
{
    wait_for(r, TIER_WAIT_CURRENT, 0, r->fresh_until_ns - loop_now_ns(r->api->loop), on_fresh);
}

static void on_again(struct timer *timer)
{
    wait_for_fence(CONTAINER_OF(timer, struct tier_request, again));
}

static void freshen(struct tier_request *r)
{
    bool cached = r->api->settings->reads == TIER_READS_CACHED;
    bool needs_version = r->ask.freshness == TIER_NOT_OLDER || r->ask.freshness == TIER_EXACT;
    r->revision = r->view.began;
    r->floor = 0;
    if (r->phase == TIER_REQUEST_OPENING)
        move(r, TIER_REQUEST_FRESHENING);
    r->fresh_until_ns =
        loop_now_ns(r->api->loop) + (r->ask.verb == TIER_WATCH ? WATCH_FRESH_NS : FRESH_NS);
    if (r->view.is_cluster_scoped && r->ask.path.namespace.len)
        tier_request_pass_on(r); /* there is no such path */
    else if (r->ask.freshness == TIER_CURRENT && !cached)
        wait_for_fence(r);
    else if (needs_version && r->ask.version > r->view.newest)
        wait_for(r, TIER_WAIT_VERSION, r->ask.version, FRESH_NS, on_fresh);
    else if (r->ask.freshness == TIER_EXACT && !has_history(r))
        tier_request_pass_on(r);
    else
        answer(r);
}

/* -- The collection -- */

static void on_state(struct tier_wait *wait, enum status status)
{
    struct tier_request *r = CONTAINER_OF(wait, struct tier_request, wait);
    (void)status;
    tier_collection_look(r->collection, &r->view);
    if (r->view.generation)
        freshen(r);
    else
        give_up(r);
}

static void open_collection(struct tier_request *r)
{
    tier_collection_look(r->collection, &r->view);
    bool patient = !tier_ask_is_table(&r->ask);
    if (r->view.phase == TIER_REFUSED || (!r->view.generation && !patient))
        tier_request_pass_on(r);
    else if (r->view.generation)
        freshen(r);
    else
        wait_for(r, TIER_WAIT_STATE, 0, r->ask.verb == TIER_WATCH ? WATCH_STATE_NS : STATE_NS,
                 on_state);
}

/* -- Rights -- */

static void on_right(struct tier_right_wait *wait, enum tier_verdict verdict,
                     const struct kube_status *status)
{
    struct tier_request *r = CONTAINER_OF(wait, struct tier_request, right);
    const struct kube_path *path = &r->ask.path;
    if (verdict != TIER_ALLOWED) {
        tier_count(r->api, TIER_TOTAL_DENIED);
        tier_request_fail(r, status);
        return;
    }
    move(r, TIER_REQUEST_OPENING);
    struct tier_mirror *mirror = r->api->settings->mirror;
    struct tier_name name = {.group = path->group,
                             .version = path->version,
                             .resource = path->resource,
                             .encoding = r->ask.encoding};
    /* A Table is listed once, by a person: the whole resource is not mirrored for that. */
    bool finds = tier_ask_is_table(&r->ask) && r->ask.verb == TIER_LIST;
    r->collection = finds ? tier_mirror_find(mirror, &name) : tier_mirror_open(mirror, &name);
    if (r->collection)
        open_collection(r);
    else
        tier_request_pass_on(r);
}

static void on_user(struct tier_question *question, struct tier_user *user,
                    const struct kube_status *status)
{
    static const char *const verbs[] = {
        [TIER_GET] = "get", [TIER_LIST] = "list", [TIER_WATCH] = "watch"};
    struct tier_request *r = CONTAINER_OF(question, struct tier_request, question);
    const struct kube_path *path = &r->ask.path;
    if (!user) {
        tier_request_fail(r, status);
        return;
    }
    r->user = user;
    /* No review says whether the kube-apiserver accepts requests without credentials at all. */
    if (user->anonymous) {
        tier_request_pass_on(r);
        return;
    }
    bool is_namespace = !path->group.len && slice_is(path->resource, "namespaces");
    r->access = (struct tier_access){
        .verb = verbs[r->ask.verb],
        .group = path->group,
        .version = path->version,
        .resource = path->resource,
        .namespace = is_namespace ? path->name : path->namespace,
        .name = path->name,
        .label_selector = r->ask.query.label_selector,
        .field_selector = r->ask.query.field_selector,
    };
    move(r, TIER_REQUEST_DECIDING);
    tier_may(r->api->rights, &r->right, user, &r->access);
}

/* -- The beginning -- */

/* A read that must be current, and is cheaper to pass on than to prove: of one object, or of a part
 * of the resource. A watch begins with a fence, because it would stay at the kube-apiserver. */
static bool is_passed_on(const struct tier_api *api, const struct tier_ask *ask)
{
    if (ask->freshness != TIER_CURRENT || api->settings->reads == TIER_READS_CACHED)
        return false;
    if (ask->verb == TIER_WATCH)
        return false;
    return api->settings->reads == TIER_READS_FORWARD || ask->verb == TIER_GET ||
           ask->path.namespace.len;
}

static bool get_selection(struct tier_request *r)
{
    struct error ignored;
    struct slice name;
    const struct tier_ask *ask = &r->ask;
    if (kube_selection_get(&r->api->selections, ask->query.label_selector,
                           ask->query.field_selector, ask->kind, &r->selection, &ignored) != ST_OK)
        return false;
    if (r->ask.freshness == TIER_CURRENT && r->ask.verb != TIER_WATCH &&
        kube_selection_requires(r->selection, SLICE_LITERAL("metadata.name"), &name))
        return false;
    tier_ask_narrow(&r->ask, r->selection);
    return true;
}

void tier_request_start(struct tier_api *api, struct http_exchange *x, struct arena *arena,
                        const struct tier_ask *ask)
{
    struct tier_request *r = xcalloc(1, sizeof(*r));
    r->life.end = on_end;
    r->api = api;
    r->exchange = x;
    r->arena = *arena;
    r->ask = *ask;
    r->ask.shaping.clock = loop_clock(api->loop);
    r->question.done = on_user;
    r->right.done = on_right;
    r->again.fn = on_again;
    *arena = (struct arena){0};
    http_exchange_set_user(x, &r->life);
    if (is_passed_on(api, ask) || !get_selection(r)) {
        tier_request_pass_on(r);
        return;
    }
    move(r, TIER_REQUEST_IDENTIFYING);
    tier_identify(api->rights, &r->question, http_exchange_request(x));
}
