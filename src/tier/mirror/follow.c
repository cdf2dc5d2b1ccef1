#include "tier/mirror/follow.h"

#include "base/clock.h"
#include "base/metric/counter.h"
#include "kube/types/kind.h"
#include "kubeclient/call/kube.h"
#include "tier/mirror/arrived.h"
#include "tier/mirror/store_queue.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <vigil/client.h>

#define METADATA ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
#define METADATA_LIST ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
#define PROTOBUF "application/vnd.kubernetes.protobuf"

/* What is known contradicts what the server sends. Once may be a restored backup; a server that
 * does it again and again has versions that do not count changes. */
#define CONTRADICTED_WITHIN_NS (600 * NS_PER_S)

enum {
    CONTRADICTIONS_MAX = 3,
    REFUSALS_SHIFT_MAX = 5, /* the pause doubles as often: a state is read in vain each time */
};

static const char *const accept_watch[TIER_ENCODINGS] = {
    [TIER_JSON] = "application/json",
    [TIER_PROTOBUF] = PROTOBUF,
    [TIER_METADATA_JSON] = "application/json" METADATA,
    [TIER_METADATA_PROTOBUF] = PROTOBUF METADATA,
};
static const char *const accept_list[TIER_ENCODINGS] = {
    [TIER_JSON] = "application/json",
    [TIER_PROTOBUF] = PROTOBUF,
    [TIER_METADATA_JSON] = "application/json" METADATA_LIST,
    [TIER_METADATA_PROTOBUF] = PROTOBUF METADATA_LIST,
};

static int64_t now_of(const struct tier_follow *f)
{
    return loop_now_ns(f->follower->kube->driver.loop);
}

static struct tier_collection_counters *counters_of(struct tier_follow *f)
{
    return &f->collection.counters;
}

/* -- Publishing -- */

static const char *const encoding_names[TIER_ENCODINGS] = {
    [TIER_JSON] = "JSON",
    [TIER_PROTOBUF] = "protobuf",
    [TIER_METADATA_JSON] = "metadata as JSON",
    [TIER_METADATA_PROTOBUF] = "metadata as protobuf",
};

static void say(struct tier_follow *f, int level, const char *what, const char *detail)
{
    char text[TIER_REASON_BYTES + 512];
    const struct tier_name *name = &f->collection.name;
    if (!f->follower->log)
        return;
    snprintf(text, sizeof(text), "mirror of %.*s%s%.*s (%s, %s): %s%s%s",
             SLICE_ARGS(name->resource), name->group.len ? "." : "", SLICE_ARGS(name->group),
             (const char *)name->version.ptr, encoding_names[name->encoding], what,
             *detail ? ": " : "", detail);
    f->follower->log(f->follower->log_ctx, level, text);
}

static enum tier_phase phase_of(const struct tier_follow *f)
{
    const struct tier_reflector *r = &f->reflector;
    switch (r->state == TIER_REFLECTOR_WAITING ? r->again : r->state) {
    case TIER_REFLECTOR_STREAMING:
    case TIER_REFLECTOR_LISTING:
        return TIER_LOADING;
    case TIER_REFLECTOR_WATCHING:
        return f->generations.next.number ? TIER_LOADING : TIER_SERVING;
    case TIER_REFLECTOR_REFUSED:
        return TIER_REFUSED;
    default:
        return TIER_STARTING;
    }
}

static const char *reason_of(const struct tier_follow *f)
{
    enum status failure = store_queue_failure(f->follower->queue);
    return failure == ST_OK ? f->reason : status_text(failure);
}

static void count(struct tier_follow *f)
{
    const struct generation_keys *shown =
        f->generations.loading ? f->generations.loading : f->generations.current;
    counter_set(&counters_of(f)->objects, shown ? objects_count(&shown->objects) : 0);
    counter_set(&counters_of(f)->bytes, shown ? shown->objects.bytes : 0);
    counter_set(&counters_of(f)->held_bytes, generations_usage(&f->generations));
}

/* After a step that may have changed the state: what has become of it. */
static void publish(struct tier_follow *f)
{
    struct tier_collection *c = &f->collection;
    bool stored = store_queue_failure(f->follower->queue) == ST_OK;
    lock_take(&c->lock);
    enum tier_phase before = c->phase;
    if (!c->retries)
        c->phase = phase_of(f);
    c->store_fails = !stored;
    c->connected = f->accepted && stored && f->reflector.state == TIER_REFLECTOR_WATCHING;
    bool wakes = f->fails && !c->fails;
    c->fails = f->fails;
    snprintf(c->reason, sizeof(c->reason), "%s", reason_of(f));
    lock_release(&c->lock);
    count(f);
    if (before != c->phase || wakes)
        collection_notify(c, c->phase == TIER_REFUSED);
    currency_serve(&f->currency, c->phase == TIER_SERVING);
}

/* Readers learn of what was put into the store when it has been applied. */
static void await_store(struct tier_follow *f)
{
    if (list_empty(&f->in_awaiting))
        list_push_back(&f->follower->awaiting, &f->in_awaiting);
}

void tier_follow_applied(struct tier_follow *f)
{
    /* Before other looks at the store: what it applies from here on is for the next time. */
    if (generations_are_visible(&f->generations))
        list_remove(&f->in_awaiting);
    if (generations_publish(&f->generations)) {
        char text[96];
        snprintf(text, sizeof(text), "%zu objects at version %" PRIu64,
                 objects_count(&f->generations.current->objects), f->reflector.version);
        say(f, VIGIL_LOG_INFO, "complete", text);
        counter_add(&counters_of(f)->generations, 1);
        atomic_store_explicit(&counters_of(f)->began_ns, now_of(f), memory_order_relaxed);
        f->refusals = 0;
        publish(f);
        currency_state_is_published(&f->currency, f->next_fence);
        collection_notify(&f->collection, true);
    }
    currency_applied(&f->currency);
    collection_notify(&f->collection, false);
}

/* -- What the reflector decides -- */

static void on_request(void *ctx, const struct tier_reflector_request *request)
{
    struct tier_follow *f = ctx;
    char version[24];
    struct reflector_request made = {
        .kind = REFLECTOR_LISTING,
        .version = "",
        .continue_token = request->token,
        .limit = request->limit,
        .timeout_s = request->timeout_s,
    };
    f->accepted = f->fails = false;
    f->resumed = 0;
    f->has_item = false;
    if (request->kind == TIER_REFLECTOR_STREAMING) {
        made.kind = REFLECTOR_STREAMING;
    } else if (request->kind == TIER_REFLECTOR_WATCHING) {
        snprintf(version, sizeof(version), "%" PRIu64, request->version);
        made.kind = REFLECTOR_WATCHING;
        made.version = version;
        f->resumed = request->version;
        counter_add(&counters_of(f)->restarts, 1);
    }
    fetcher_request(&f->fetcher, &made);
}

static void on_cancel(void *ctx)
{
    struct tier_follow *f = ctx;
    f->accepted = false;
    request_waiter_cancel(&f->waiter);
    fetcher_cancel(&f->fetcher);
}

static void on_wait(void *ctx, int64_t delay_ns)
{
    struct tier_follow *f = ctx;
    loop_timer_set(f->follower->kube->driver.loop, &f->wait, clock_add(now_of(f), delay_ns));
}

static void on_state(void *ctx, bool begins)
{
    struct tier_follow *f = ctx;
    generations_drop(&f->generations);
    sweeper_continue(&f->follower->sweeper);
    /* A generation is made when its first object arrives, so that its number is that of a request
     * which was made after this. */
    if (begins)
        f->loading_fence = currency_state_begins(&f->currency);
}

/* Readers may not use it any more. */
static void hide(struct tier_follow *f)
{
    struct tier_collection *c = &f->collection;
    lock_take(&c->lock);
    c->phase = TIER_REFUSED;
    c->may_retry = c->retries = false;
    snprintf(c->reason, sizeof(c->reason), "%s", f->reason);
    generations_hide(&f->generations);
    lock_release(&c->lock);
    currency_serve(&f->currency, false);
    generations_sweep(&f->generations);
    sweeper_continue(&f->follower->sweeper);
    currency_fail(&f->currency);
    collection_notify(c, true);
}

static void on_failed(void *ctx, const char *reason, bool refused)
{
    struct tier_follow *f = ctx;
    bool is_new = strcmp(f->reason, reason) != 0;
    snprintf(f->reason, sizeof(f->reason), "%s", reason);
    if (is_new || refused)
        say(f, VIGIL_LOG_WARN, refused ? "given up, requests are forwarded" : "tries again",
            f->reason);
    if (!refused)
        return;
    loop_timer_cancel(f->follower->kube->driver.loop, &f->wait);
    int64_t pause_ns = f->follower->refused_ns;
    f->refused_until_ns = clock_add(now_of(f), pause_ns << f->refusals);
    f->refused_opened = atomic_load(&f->collection.opened);
    hide(f);
}

/* Gives up after a whole state was read, which is not to be repeated often. */
static void give_up(struct tier_follow *f, const char *reason)
{
    tier_reflector_refuse(&f->reflector, reason);
    if (f->refusals < REFUSALS_SHIFT_MAX)
        f->refusals++;
}

/* What is known is not what the server has. */
static void contradicted(struct tier_follow *f, const char *reason)
{
    int64_t now_ns = now_of(f);
    if (!f->contradictions || now_ns - f->contradicted_ns > CONTRADICTED_WITHIN_NS) {
        f->contradicted_ns = now_ns;
        f->contradictions = 0;
    }
    if (++f->contradictions > CONTRADICTIONS_MAX) {
        give_up(f, reason);
        return;
    }
    tier_reflector_restart(&f->reflector, reason, now_ns);
}

/* -- Probing -- */

static void probe_item(struct tier_follow *f, struct slice item)
{
    struct slice kind, api_version;
    if (f->has_item)
        return;
    arrived_read_kind(item, &kind, &api_version);
    f->has_item = true;
    f->item_has_kinds = kind.len && api_version.len;
    f->item_kind.len = f->item_api_version.len = 0;
    if (buf_append(&f->item_kind, kind) != ST_OK ||
        buf_append(&f->item_api_version, api_version) != ST_OK)
        tier_reflector_retry(&f->reflector, "out of memory", now_of(f));
}

/* Items of a list in JSON have their kinds, unless they are of a type that is part of the server.
 */
static bool items_have_kinds(const struct tier_follow *f)
{
    const struct tier_name *name = &f->collection.name;
    if (f->has_item)
        return f->item_has_kinds;
    return name->encoding != TIER_JSON ||
           !kube_builtin_find(name->group, name->version, name->resource);
}

static enum status take_kinds(struct tier_follow *f, const struct list_info *info)
{
    struct tier_collection *c = &f->collection;
    bool own = f->has_item && f->item_has_kinds;
    struct slice kind = own ? buf_slice(&f->item_kind) : info->item_kind;
    struct slice api_version = own ? buf_slice(&f->item_api_version) : info->api_version;
    const struct tier_kinds *kinds;
    if (!kind.len)
        kind = info->kind;
    TRY(generations_set_kinds(&f->generations, kind, api_version));
    LOCK_SCOPE(&c->lock);
    TRY(tier_kinds_take(&c->all_kinds, kind, info->kind, info->api_version, &kinds));
    c->kinds = kinds;
    c->has_kinds = items_have_kinds(f);
    return ST_OK;
}

/* Why it cannot be mirrored; NULL: it can. */
static const char *fault_of(const struct tier_follow *f, const struct list_info *info)
{
    enum tier_encoding encoding = f->collection.name.encoding;
    uint64_t version;
    if (!arrived_read_version(info->version, &version))
        return "its lists have no version that is a number";
    if (info->is_protobuf != tier_encoding_is_protobuf(encoding))
        return "the server answers in another encoding";
    if (tier_encoding_is_metadata(encoding) && !slice_is(info->kind, "PartialObjectMetadataList"))
        return "the server does not reduce its objects to their metadata";
    return NULL;
}

static void probed(struct tier_follow *f, const struct list_info *info)
{
    const char *fault = fault_of(f, info);
    enum status status = fault ? ST_OK : take_kinds(f, info);
    if (fault)
        tier_reflector_refuse(&f->reflector, fault);
    else if (status == ST_LIMIT)
        tier_reflector_refuse(&f->reflector, "it has had too many kinds");
    else if (status != ST_OK)
        tier_reflector_retry(&f->reflector, "out of memory", now_of(f));
    else
        tier_reflector_probed(&f->reflector, now_of(f));
}

/* -- Objects -- */

/* An object could not be used. False: nothing is under way any more. */
static bool object_failed(struct tier_follow *f, enum status status)
{
    if (status == ST_OK)
        return true;
    if (status == ST_DAMAGED)
        contradicted(f, "an event does not fit what is known");
    else if (status == ST_INVALID)
        tier_reflector_refuse(&f->reflector, "its objects have versions that are not numbers");
    else if (status == ST_NOMEM)
        tier_reflector_retry(&f->reflector, "out of memory", now_of(f));
    else
        tier_reflector_retry(&f->reflector, "the server sent an object that cannot be read",
                             now_of(f));
    return false;
}

static bool is_beyond(uint64_t bytes, uint64_t max)
{
    return max && bytes > max;
}

/* False: the request is over. */
static bool check_size(struct tier_follow *f, const struct generation_keys *keys)
{
    struct tier_follower *follower = f->follower;
    if (is_beyond(objects_usage(&keys->objects), follower->collection_bytes_max))
        give_up(f, "it has become too large");
    else if (is_beyond(follower->sweeper.usage.held, follower->bytes_max))
        follower->is_full(follower->full_ctx, f);
    return f->reflector.state != TIER_REFLECTOR_REFUSED;
}

void tier_follow_refuse(struct tier_follow *f)
{
    give_up(f, "all resources together have become too large");
    publish(f);
}

/* All objects of a resource have a namespace, or none has. */
static enum status read_object(struct tier_follow *f, struct slice bytes,
                               struct arrived *ret_arrived)
{
    TRY(arrived_read(bytes, &f->key, ret_arrived));
    bool is_cluster_scoped = !memchr(ret_arrived->key.ptr, '/', ret_arrived->key.len);
    atomic_store_explicit(&f->collection.is_cluster_scoped, is_cluster_scoped,
                          memory_order_relaxed);
    return ST_OK;
}

static enum status load(struct tier_follow *f, struct slice bytes, bool deleted)
{
    struct arrived arrived;
    if (!f->generations.loading)
        TRY(generations_begin(&f->generations, random_u64(&f->reflector.random)));
    TRY(read_object(f, bytes, &arrived));
    return deleted ? generations_unload(&f->generations, &arrived)
                   : generations_load(&f->generations, &arrived, bytes);
}

static bool load_checked(struct tier_follow *f, struct slice bytes, bool deleted)
{
    return object_failed(f, load(f, bytes, deleted)) && check_size(f, f->generations.loading);
}

/* The state is complete. */
static void loaded(struct tier_follow *f, uint64_t version)
{
    struct tier_generations *g = &f->generations;
    enum status status = ST_OK;
    if (!g->loading) /* without objects */
        status = generations_begin(g, random_u64(&f->reflector.random));
    if (version < g->loading_newest)
        version = g->loading_newest;
    if (!object_failed(f, status) || !tier_reflector_believes(&f->reflector, version, now_of(f)) ||
        !object_failed(f, generations_complete(g, version)))
        return;
    f->next_fence = f->loading_fence;
    tier_reflector_loaded(&f->reflector, version, now_of(f));
    f->resumed = version;
    await_store(f);
}

/* -- Changes -- */

/* The version of a change that is new; 0: it was delivered before. */
static enum status read_change(struct tier_follow *f, const struct received_event *event,
                               struct arrived *ret_arrived)
{
    TRY(read_object(f, event->object, ret_arrived));
    if (ret_arrived->version <= f->resumed)
        return ST_END; /* a server that is behind repeats it */
    return ret_arrived->version > f->reflector.version ? ST_OK : ST_DAMAGED;
}

static enum status apply(struct tier_follow *f, const struct received_event *event,
                         struct arrived *ret_arrived)
{
    struct tier_generations *g = &f->generations;
    TRY(read_change(f, event, ret_arrived));
    counter_add(&counters_of(f)->events, 1);
    if (event->type == RECEIVED_DELETED)
        return generations_delete(g, ret_arrived, &f->currency.fence);
    return generations_put(g, ret_arrived, event->object, event->type == RECEIVED_ADDED,
                           &f->currency.fence);
}

static void change_received(struct tier_follow *f, const struct received_event *event)
{
    struct arrived arrived;
    enum status status = apply(f, event, &arrived);
    if (status == ST_END || !object_failed(f, status))
        return;
    if (!tier_reflector_received(&f->reflector, event, arrived.version, now_of(f)))
        return;
    await_store(f);
    currency_advance(&f->currency);
    (void)!check_size(f, f->generations.current);
}

static void bookmark_received(struct tier_follow *f, const struct received_event *event)
{
    uint64_t version;
    if (!arrived_read_version(event->version, &version))
        version = 0;
    if (version && generations_reach(&f->generations, version) != ST_OK)
        version = 0; /* another one follows */
    if (!tier_reflector_received(&f->reflector, event, version, now_of(f)))
        return;
    await_store(f);
    currency_advance(&f->currency);
}

static void initial_events_ended(struct tier_follow *f, const struct received_event *event)
{
    uint64_t version;
    if (arrived_read_version(event->version, &version))
        loaded(f, version);
    else
        tier_reflector_refuse(&f->reflector, "its bookmarks have no version that is a number");
}

static void state_received(struct tier_follow *f, const struct received_event *event)
{
    if (load_checked(f, event->object, event->type == RECEIVED_DELETED))
        (void)!tier_reflector_received(&f->reflector, event, 0, now_of(f));
}

/* -- What becomes of requests -- */

static void on_accepted(void *ctx)
{
    struct tier_follow *f = ctx;
    f->accepted = true;
    f->reason[0] = 0;
    tier_reflector_accepted(&f->reflector);
    if (f->reflector.state == TIER_REFLECTOR_WATCHING)
        currency_check_soon(&f->currency, !f->was_broken);
    f->was_broken = false;
    publish(f);
}

static void on_received(void *ctx, const struct received_event *event)
{
    struct tier_follow *f = ctx;
    enum tier_reflector_state before = f->reflector.state;
    bool streams = before == TIER_REFLECTOR_STREAMING;
    if (event->type == RECEIVED_ERROR)
        (void)!tier_reflector_received(&f->reflector, event, 0, now_of(f));
    else if (streams && event->ends_initial_events)
        initial_events_ended(f, event);
    else if (streams && event->type == RECEIVED_BOOKMARK)
        (void)!tier_reflector_received(&f->reflector, event, 0, now_of(f));
    else if (streams)
        state_received(f, event);
    else if (event->type == RECEIVED_BOOKMARK)
        bookmark_received(f, event);
    else
        change_received(f, event);
    if (f->reflector.state != before)
        publish(f);
    else
        count(f);
}

static void on_watch_ended(void *ctx, bool cut_off)
{
    struct tier_follow *f = ctx;
    bool accepted = f->accepted;
    f->was_broken |= cut_off;
    tier_reflector_watch_ended(&f->reflector, now_of(f));
    /* Servers end watches every few minutes; nothing is missed until the next one has failed. */
    f->accepted = accepted && f->reflector.state == TIER_REFLECTOR_WATCHING;
    publish(f);
}

static void on_listed(void *ctx, struct slice item)
{
    struct tier_follow *f = ctx;
    if (f->reflector.state == TIER_REFLECTOR_PROBING)
        probe_item(f, item);
    else
        (void)!load_checked(f, item, false);
    count(f);
}

static void on_page_ended(void *ctx, const struct list_info *info)
{
    struct tier_follow *f = ctx;
    uint64_t version;
    if (f->reflector.state == TIER_REFLECTOR_PROBING)
        probed(f, info);
    else if (info->continue_token.len)
        tier_reflector_page_ended(&f->reflector, info->continue_token, now_of(f));
    else if (arrived_read_version(info->version, &version))
        loaded(f, version);
    else
        tier_reflector_refuse(&f->reflector, "its lists have no version that is a number");
    publish(f);
}

/* A resource that the server does not know may be defined at any time. */
static void allow_retry(struct tier_follow *f)
{
    LOCK_SCOPE(&f->collection.lock);
    f->collection.may_retry = f->reflector.state == TIER_REFLECTOR_REFUSED;
}

static void on_request_failed(void *ctx, const struct vigil_kube_status *status)
{
    struct tier_follow *f = ctx;
    f->accepted = false;
    f->was_broken |= status->code == 0;
    counter_add(&counters_of(f)->throttled, status->code == 429);
    tier_reflector_failed(&f->reflector, status, now_of(f));
    /* Others may pass without the callers: it is overloaded, starts, or cannot be reached. */
    f->fails = status->code == 500 && f->reflector.state == TIER_REFLECTOR_WAITING;
    if (status->code == 404)
        allow_retry(f);
    publish(f);
}

static void on_wait_over(struct timer *timer)
{
    struct tier_follow *f = CONTAINER_OF(timer, struct tier_follow, wait);
    tier_reflector_resume(&f->reflector, now_of(f));
    publish(f);
}

static bool on_admit(void *ctx)
{
    struct tier_follow *f = ctx;
    return request_queue_enter(&f->follower->requests, &f->waiter);
}

static void on_admitted(struct request_waiter *waiter)
{
    fetcher_admitted(&CONTAINER_OF(waiter, struct tier_follow, waiter)->fetcher);
}

static const struct fetcher_ops fetcher_ops = {
    .admit = on_admit,
    .accepted = on_accepted,
    .received = on_received,
    .watch_ended = on_watch_ended,
    .listed = on_listed,
    .page_ended = on_page_ended,
    .failed = on_request_failed,
};

/* -- What fences show -- */

static void on_lost(void *ctx, const char *reason, bool is_behind)
{
    struct tier_follow *f = ctx;
    if (is_behind)
        f->reflector.version = 0; /* whatever the server has now is believed */
    contradicted(f, reason);
    publish(f);
}

static void on_stalled(void *ctx, const char *reason)
{
    struct tier_follow *f = ctx;
    if (f->reflector.state == TIER_REFLECTOR_WATCHING)
        tier_reflector_retry(&f->reflector, reason, now_of(f));
    publish(f);
}

/* -- Life -- */

static bool is_used(const struct tier_follow *f)
{
    return atomic_load(&f->collection.refs) > 0 || atomic_load(&f->collection.is_kept);
}

/* Whether a reader has opened it after it was refused. */
static bool take_retry(struct tier_collection *c)
{
    LOCK_SCOPE(&c->lock);
    bool retries = c->retries;
    c->retries = false;
    return retries;
}

void tier_follow_look(struct tier_follow *f)
{
    if (f->is_over)
        return;
    bool retries = take_retry(&f->collection) && f->reflector.state == TIER_REFLECTOR_REFUSED;
    if (retries || f->reflector.state == TIER_REFLECTOR_STOPPED) {
        tier_reflector_start(&f->reflector);
        publish(f);
    }
    currency_look(&f->currency);
}

void tier_follow_store_changed(struct tier_follow *f)
{
    if (f->is_over)
        return;
    fetcher_withhold(&f->fetcher, store_queue_is_pressed(f->follower->queue));
    publish(f); /* before readers learn that their fence has failed */
    if (store_queue_failure(f->follower->queue) != ST_OK)
        currency_fail(&f->currency);
}

void tier_follow_tick(struct tier_follow *f)
{
    int64_t now_ns = now_of(f);
    bool asked = is_used(f) || atomic_load(&f->collection.opened) != f->refused_opened;
    if (f->is_over)
        return;
    if (f->reflector.state == TIER_REFLECTOR_REFUSED && asked && now_ns >= f->refused_until_ns) {
        tier_reflector_start(&f->reflector);
        publish(f);
    }
    currency_tick(&f->currency);
}

void tier_follow_stop(struct tier_follow *f)
{
    f->is_over = true;
    loop_timer_cancel(f->follower->kube->driver.loop, &f->wait);
    tier_reflector_stop(&f->reflector);
    currency_serve(&f->currency, false);
    list_remove(&f->in_awaiting);
}

void tier_follow_end(struct tier_follow *f)
{
    tier_follow_stop(f);
    hide(f);
}

void tier_follow_compact(struct tier_follow *f, int64_t revision)
{
    generations_compact(&f->generations, revision);
}

static void on_command(struct driver_command *command)
{
    struct tier_follow *f = CONTAINER_OF(command, struct tier_follow, collection.command);
    atomic_store(&f->collection.is_posted, false);
    if (!f->follower->kube->driver.ended)
        tier_follow_look(f);
}

static void init(struct tier_follow *f, uint64_t seed)
{
    static const struct tier_reflector_ops reflector_ops = {.request = on_request,
                                                            .cancel = on_cancel,
                                                            .wait = on_wait,
                                                            .state = on_state,
                                                            .failed = on_failed};
    static const struct tier_currency_ops currency_ops = {.lost = on_lost, .stalled = on_stalled};
    struct tier_follower *follower = f->follower;
    struct tier_collection *c = &f->collection;
    f->scope = (struct fetcher_scope){
        .target = {.group = (const char *)c->name.group.ptr,
                   .version = (const char *)c->name.version.ptr,
                   .resource = (const char *)c->name.resource.ptr},
        .accept_watch = accept_watch[c->name.encoding],
        .accept_list = accept_list[c->name.encoding],
    };
    f->wait.fn = on_wait_over;
    f->waiter.ready = on_admitted;
    generations_init(&f->generations, c, follower->queue, &follower->sweeper);
    tier_reflector_init(&f->reflector, &reflector_ops, f, seed);
    fetcher_init(&f->fetcher, follower->kube, &f->scope, &fetcher_ops, f);
    currency_init(&f->currency, c, &f->generations, &f->reflector.version, follower->kube,
                  &follower->requests, &follower->fences, &f->scope, follower->fence_ns, seed + 1,
                  &currency_ops, f);
}

enum status tier_follow_new(struct tier_follower *follower, const struct tier_name *name,
                            uint32_t number, uint64_t seed, struct tier_follow **ret_follow)
{
    struct tier_follow *f = calloc(1, sizeof(*f));
    if (!f)
        return ST_NOMEM;
    struct tier_collection *c = &f->collection;
    if (collection_init(c, name) != ST_OK) {
        free(f);
        return ST_NOMEM;
    }
    c->number = number;
    c->engine = follower->engine;
    c->driver = &follower->kube->driver;
    c->command.run = on_command;
    atomic_store(&c->refs, 1);
    atomic_store(&c->opened, 1);
    f->follower = follower;
    list_init(&f->in_mirror);
    list_init(&f->in_awaiting);
    init(f, seed);
    *ret_follow = f;
    return ST_OK;
}

void tier_follow_free(struct tier_follow *f)
{
    assert(f->reflector.state == TIER_REFLECTOR_STOPPED);
    list_remove(&f->in_mirror);
    list_remove(&f->in_awaiting);
    currency_fini(&f->currency);
    fetcher_fini(&f->fetcher);
    tier_reflector_fini(&f->reflector);
    generations_fini(&f->generations);
    collection_fini(&f->collection);
    buf_fini(&f->name);
    buf_fini(&f->item_kind);
    buf_fini(&f->item_api_version);
    buf_fini(&f->key);
    free(f);
}

void tier_follow_check(struct tier_follow *f)
{
    bool requests = f->fetcher.state != FETCHER_IDLE;
    enum tier_reflector_state state = f->reflector.state;
    tier_reflector_check(&f->reflector);
    generations_check(&f->generations);
    assert(requests == (state >= TIER_REFLECTOR_PROBING && state <= TIER_REFLECTOR_WATCHING));
    assert((state == TIER_REFLECTOR_WAITING) == f->wait.set);
}
