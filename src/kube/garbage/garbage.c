#include "kube/garbage/garbage.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/log/log.h"
#include "base/xalloc.h"
#include "kube/garbage/worker.h"
#include "kube/jobs/manager_lease.h"
#include "watch/cursor.h"
#include "watch/history.h"

#define DEFAULT_NAMESPACE_KEY "/registry/namespaces/default"
#define ALL_KEYS SLICE_LITERAL("/registry/")
#define ALL_END SLICE_LITERAL("/registry0")
#define EVENTS_PREFIX SLICE_LITERAL("/registry/events/")

enum {
    PAGE_KEYS = 500,
    ARENA_BYTES_MAX = 8 << 20,    /* memory of the engine for one read */
    LOOKED_BYTES_MAX = 256 << 10, /* of objects in one turn; the last may be longer */
    LOOKED_MIN_BYTES = 256,       /* what a short object counts for */
    EXPANDED_MAX = 2000,          /* dependents queued in one turn */
    SCRATCH_BYTES = 8 << 10,      /* for the references of one object; more is allocated */
    RETRY_S = 10,                 /* after a failed read */
    IDLE_S = 3600,
};

enum state { STATE_UNUSED, STATE_STANDING_BACK, STATE_LOADING, STATE_FOLLOWING };

#define TO(state) (1u << STATE_##state)

/* Drawn in garbage.h. */
static const unsigned moves[] = {
    [STATE_UNUSED] = TO(STANDING_BACK),
    [STATE_STANDING_BACK] = TO(LOADING),
    [STATE_LOADING] = TO(STANDING_BACK) | TO(FOLLOWING) | TO(LOADING),
    [STATE_FOLLOWING] = TO(STANDING_BACK) | TO(LOADING),
};

struct collector {
    struct kube_job job;
    const struct http_route *route;
    enum state state;
    struct watch_cursor *cursor;
    struct kube_manager_lease lease;
    struct garbage *garbage; /* a reference; NULL unless LOADING or FOLLOWING */
    struct buf from;         /* LOADING: the first key of the next page */
    bool page_open;          /* its range has objects that have not been examined */
    bool loaded;             /* every page was read */
    bool failed;             /* the last read */
    bool noted;              /* STANDING_BACK: the lease was read since it last changed */
    bool used;               /* UNUSED: the default namespace exists */
    int64_t read_at;         /* the revision of the newest page */
    _Alignas(16) uint8_t scratch[SCRATCH_BYTES];
};

static struct collector *collector_of(struct kube_job *job)
{
    return CONTAINER_OF(job, struct collector, job);
}

static int64_t now_ns(const struct collector *c)
{
    return loop_now_ns(c->job.api->loop);
}

static void on_wake(void *ctx)
{
    kube_job_hurry(&((struct collector *)ctx)->job);
}

/* NULL for the end of the range: one key. */
static void watch(struct collector *c, struct slice key, struct slice end)
{
    watch_cursor_free(c->cursor);
    c->cursor =
        watch_cursor_new(engine_watch_hub(c->job.api->shard), &(struct watch_cursor_options){
                                                                  .key = key,
                                                                  .range_end = end,
                                                                  .own = true,
                                                                  .wake = on_wake,
                                                                  .ctx = c,
                                                              });
}

static void drop_graph(struct collector *c)
{
    if (c->page_open)
        engine_range_close(&c->job.range);
    c->page_open = false;
    if (c->garbage) {
        c->garbage->abandoned = true;
        c->garbage->collector = NULL;
    }
    garbage_unref(c->garbage);
    c->garbage = NULL;
}

/* Begins to watch first, so that nothing that is written meanwhile is lost. */
static void move(struct collector *c, enum state next)
{
    assert(moves[c->state] & 1u << next);
    drop_graph(c);
    c->state = next;
    c->noted = c->loaded = c->failed = false;
    buf_reset(&c->from, SIZE_MAX);
    if (next == STATE_STANDING_BACK) {
        watch(c, SLICE_LITERAL(KUBE_MANAGER_LEASE_KEY), SLICE_EMPTY);
    } else if (next == STATE_LOADING) {
        watch(c, ALL_KEYS, ALL_END);
        c->garbage = garbage_new(c->job.api, c->route);
        c->garbage->collector = &c->job;
    }
}

static void follow(struct collector *c)
{
    assert(moves[c->state] & TO(FOLLOWING));
    c->state = STATE_FOLLOWING;
    log_info("garbage collection has begun", LOG_U64("nodes", c->garbage->graph.nodes.count),
             LOG_U64("references", c->garbage->graph.ref_count));
}

/* -- One key: the default namespace, the lease -- */

static void note_lease(struct collector *c, int64_t revision, struct slice value)
{
    kube_manager_lease_note(&c->lease, revision, value, now_ns(c),
                            clock_real_ns(c->job.api->clock));
    c->noted = true;
}

static void on_key(struct engine_op *op)
{
    struct collector *c = collector_of(kube_job_of_range(op));
    struct slice field;
    struct kube_kv kv = {0};
    c->failed = op->status != ST_OK;
    if (!c->failed && engine_range_next(&c->job.range, &field))
        kv = kube_kv_of(field);
    c->failed = c->failed || c->job.range.op.status != ST_OK;
    if (!c->failed && c->state == STATE_STANDING_BACK)
        note_lease(c, kv.mod_revision, kv.value);
    else if (!c->failed) /* another server's default namespace may be stored in protobuf */
        c->used = kv.value.len && kv.value.ptr[0] == '{';
    engine_range_close(&c->job.range);
    kube_job_next(&c->job);
}

static void read_key(struct collector *c, struct slice key)
{
    kube_job_reset_arena(&c->job, ARENA_BYTES_MAX);
    c->job.request = (struct pb_range_request){.key = key};
    kube_job_read(&c->job, on_key);
}

/* Takes the events of the one key; true: there were some, so that it is read again. */
static bool has_changed(struct collector *c)
{
    const struct watch_event *event;
    int64_t revision;
    bool any = false;
    enum status status = ST_END;
    while (c->cursor && (status = watch_cursor_next(c->cursor, &event, &revision)) == ST_OK) {
        watch_cursor_take(c->cursor);
        any = true;
    }
    if (c->cursor && status != ST_COMPACTED && status != ST_DAMAGED)
        return any;
    if (c->state == STATE_UNUSED)
        watch(c, SLICE_LITERAL(DEFAULT_NAMESPACE_KEY), SLICE_EMPTY);
    else
        watch(c, SLICE_LITERAL(KUBE_MANAGER_LEASE_KEY), SLICE_EMPTY);
    return true;
}

static int64_t seconds_until(const struct collector *c, int64_t at_ns)
{
    if (at_ns == CLOCK_NEVER)
        return IDLE_S;
    int64_t left_ns = at_ns > now_ns(c) ? at_ns - now_ns(c) : 0;
    return left_ns / NS_PER_S + 1;
}

static void step_unused(struct collector *c)
{
    bool changed = has_changed(c);
    if (c->used) {
        move(c, STATE_STANDING_BACK);
        kube_job_next(&c->job);
    } else if (changed || !c->noted) {
        c->noted = true;
        read_key(c, SLICE_LITERAL(DEFAULT_NAMESPACE_KEY));
    } else {
        c->noted = !c->failed;
        kube_job_wait(&c->job, c->failed ? RETRY_S : IDLE_S);
    }
}

static void step_standing_back(struct collector *c)
{
    bool changed = has_changed(c);
    if (c->failed) {
        c->failed = false;
        kube_job_wait(&c->job, RETRY_S);
    } else if (changed || !c->noted) {
        read_key(c, SLICE_LITERAL(KUBE_MANAGER_LEASE_KEY));
    } else if (kube_manager_lease_held(&c->lease, now_ns(c))) {
        kube_job_wait(&c->job, kube_manager_lease_left_s(&c->lease, now_ns(c)));
    } else {
        move(c, STATE_LOADING);
        kube_job_next(&c->job);
    }
}

/* -- Objects -- */

static void take_object(struct collector *c, struct kube_kv kv)
{
    struct arena arena;
    struct garbage_facts facts;
    arena_init(&arena, c->scratch, sizeof(c->scratch), ARENA_BYTES_MAX);
    enum status status = slice_has_prefix(kv.key, EVENTS_PREFIX)
                             ? ST_MALFORMED
                             : garbage_facts_read(&arena, kv.value, &facts);
    if (status == ST_OK)
        garbage_graph_put(&c->garbage->graph, kv.key, kv.mod_revision, &facts);
    arena_fini(&arena);
}

static size_t cost_of(struct slice field)
{
    return size_max(field.len, LOOKED_MIN_BYTES);
}

/* -- Loading -- */

static void close_page(struct collector *c, enum status status)
{
    c->failed = status != ST_OK;
    c->loaded = !c->failed && !c->job.range.more;
    engine_range_close(&c->job.range);
    c->page_open = false;
}

static enum status load_object(struct collector *c, struct slice field)
{
    struct kube_kv kv = kube_kv_of(field);
    buf_reset(&c->from, SIZE_MAX);
    TRY(buf_append(&c->from, kv.key));
    TRY(buf_append(&c->from, slice_of("", 1)));
    take_object(c, kv);
    return ST_OK;
}

static void load_some(struct collector *c)
{
    struct slice field;
    size_t looked = 0;
    enum status status = ST_OK;
    while (looked < LOOKED_BYTES_MAX && status == ST_OK) {
        if (!engine_range_next(&c->job.range, &field)) {
            close_page(c, c->job.range.op.status);
            break;
        }
        looked += cost_of(field);
        status = load_object(c, field);
    }
    if (status != ST_OK)
        close_page(c, status);
    kube_job_next(&c->job);
}

static void on_page(struct engine_op *op)
{
    struct collector *c = collector_of(kube_job_of_range(op));
    c->page_open = true;
    c->read_at = op->revision;
    if (op->status != ST_OK)
        close_page(c, op->status);
    kube_job_next(&c->job);
}

static void read_page(struct collector *c)
{
    struct slice key;
    kube_job_reset_arena(&c->job, ARENA_BYTES_MAX);
    if (arena_dup(&c->job.arena, c->from.len ? buf_slice(&c->from) : ALL_KEYS, &key) != ST_OK) {
        c->failed = true;
        kube_job_next(&c->job);
        return;
    }
    c->job.request =
        (struct pb_range_request){.key = key, .range_end = ALL_END, .limit = PAGE_KEYS};
    kube_job_read(&c->job, on_page);
}

static void step_loading(struct collector *c)
{
    if (c->page_open) {
        load_some(c);
    } else if (c->failed || !c->cursor) {
        /* From the beginning: the place in history is older with each attempt. */
        move(c, STATE_STANDING_BACK);
        c->failed = true;
        kube_job_next(&c->job);
    } else if (c->loaded) {
        follow(c);
        kube_job_next(&c->job);
    } else {
        read_page(c);
    }
}

/* -- Following -- */

/* False: the object that was deleted is not known any more, so its uid is not either. */
static bool take_deletion(struct collector *c, const struct watch_event *event, int64_t revision)
{
    struct slice prev = watch_cursor_prev(c->cursor, event);
    struct arena arena;
    struct garbage_facts facts;
    if (!prev.len)
        return false;
    arena_init(&arena, c->scratch, sizeof(c->scratch), ARENA_BYTES_MAX);
    if (garbage_facts_read(&arena, kube_kv_of(prev).value, &facts) == ST_OK)
        garbage_graph_delete(&c->garbage->graph, facts.uid, revision);
    arena_fini(&arena);
    return true;
}

static bool take_event(struct collector *c, const struct watch_event *event, int64_t revision)
{
    bool fine = true;
    struct kube_kv kv = {.mod_revision = revision};
    if (!event->tombstone)
        kv = kube_kv_of(event->field);
    if (slice_equal(event->key, SLICE_LITERAL(KUBE_MANAGER_LEASE_KEY)))
        note_lease(c, revision, kv.value);
    if (event->tombstone)
        fine = take_deletion(c, event, revision);
    else
        take_object(c, kv);
    return fine;
}

/* Some events per turn. ST_END: all that are known so far; ST_COMPACTED: some are lost. */
static enum status take_events(struct collector *c)
{
    const struct watch_event *event;
    int64_t revision;
    size_t looked = 0;
    enum status status = ST_OK;
    while (looked < LOOKED_BYTES_MAX &&
           (status = watch_cursor_next(c->cursor, &event, &revision)) == ST_OK) {
        looked += cost_of(event->field);
        if (!take_event(c, event, revision))
            return ST_COMPACTED;
        watch_cursor_take(c->cursor);
    }
    return status;
}

/* The graph is complete when every event up to the newest page was taken. */
static bool is_complete(const struct collector *c)
{
    return watch_cursor_revision(c->cursor) >= c->read_at;
}

static void step_following(struct collector *c)
{
    enum status status = take_events(c);
    if (status == ST_COMPACTED || status == ST_DAMAGED) {
        move(c, STATE_LOADING);
        kube_job_next(&c->job);
        return;
    }
    if (kube_manager_lease_held(&c->lease, now_ns(c))) {
        log_info("garbage collection stands back: kube-controller-manager holds its lease");
        move(c, STATE_STANDING_BACK);
        kube_job_next(&c->job);
        return;
    }
    int64_t retry_ns = garbage_graph_unpark(&c->garbage->graph, now_ns(c));
    bool more = garbage_graph_expand(&c->garbage->graph, EXPANDED_MAX);
    if (is_complete(c))
        garbage_work(c->garbage);
    if (status == ST_OK || more)
        kube_job_next(&c->job);
    else
        kube_job_wait(&c->job, is_complete(c) ? seconds_until(c, retry_ns) : 1);
}

/* -- The job -- */

static void step(struct kube_job *job)
{
    static void (*const steps[])(struct collector *) = {
        [STATE_UNUSED] = step_unused,
        [STATE_STANDING_BACK] = step_standing_back,
        [STATE_LOADING] = step_loading,
        [STATE_FOLLOWING] = step_following,
    };
    struct collector *c = collector_of(job);
    steps[c->state](c);
}

static void fini(struct kube_job *job)
{
    struct collector *c = collector_of(job);
    drop_graph(c);
    watch_cursor_free(c->cursor);
    buf_fini(&c->from);
}

static const struct kube_job_type type = {.step = step, .fini = fini};

void kube_garbage_start(struct kube_api *api, const struct http_route *route)
{
    if (!api->config->garbage)
        return;
    struct collector *c = xcalloc(1, sizeof(*c));
    c->route = route;
    kube_job_start(&c->job, &type, api);
}
