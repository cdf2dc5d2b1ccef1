#include "kube/jobs/follower/follower.h"

#include "base/clock.h"
#include "base/log/log.h"

#define DEFAULT_NAMESPACE_KEY "/registry/namespaces/default"
#define ALL_KEYS SLICE_LITERAL("/registry/")
#define ALL_END SLICE_LITERAL("/registry0")

enum {
    PAGE_KEYS = 500,
    RETRY_S = 10, /* after a failed read */
    IDLE_S = 3600,
};

#define TO(state) (1u << KUBE_FOLLOWER_##state)

/* Drawn in follower.h. */
static const unsigned moves[] = {
    [KUBE_FOLLOWER_UNUSED] = TO(STANDING_BACK),
    [KUBE_FOLLOWER_STANDING_BACK] = TO(LOADING),
    [KUBE_FOLLOWER_LOADING] = TO(STANDING_BACK) | TO(FOLLOWING) | TO(LOADING),
    [KUBE_FOLLOWER_FOLLOWING] = TO(STANDING_BACK) | TO(LOADING),
};

static void on_wake(void *ctx)
{
    kube_job_hurry(&((struct kube_follower *)ctx)->job);
}

/* Without an end: one key. */
static struct watch_cursor *new_cursor(struct kube_follower *f, struct slice key, struct slice end)
{
    return watch_cursor_new(engine_watch_hub(f->job.api->shard), &(struct watch_cursor_options){
                                                                     .key = key,
                                                                     .range_end = end,
                                                                     .own = true,
                                                                     .wake = on_wake,
                                                                     .ctx = f,
                                                                 });
}

static void watch(struct kube_follower *f, struct slice key, struct slice end)
{
    watch_cursor_free(f->cursor);
    f->cursor = new_cursor(f, key, end);
}

static void drop(struct kube_follower *f)
{
    if (f->page_open)
        engine_range_close(&f->job.range);
    f->page_open = false;
    f->type->drop(f);
}

/* Begins to watch first, so that nothing that is written meanwhile is lost. */
static void move(struct kube_follower *f, enum kube_follower_state next)
{
    assert(moves[f->state] & 1u << next);
    drop(f);
    f->state = next;
    f->noted = f->loaded = f->failed = false;
    buf_reset(&f->from, SIZE_MAX);
    watch_cursor_free(f->lease_cursor);
    f->lease_cursor = NULL;
    if (next == KUBE_FOLLOWER_STANDING_BACK) {
        watch(f, SLICE_LITERAL(KUBE_MANAGER_LEASE_KEY), SLICE_EMPTY);
    } else if (next == KUBE_FOLLOWER_LOADING && f->type->follows_loaded) {
        watch(f, slice_from_text(f->type->first), slice_from_text(f->type->end));
        f->lease_cursor = new_cursor(f, SLICE_LITERAL(KUBE_MANAGER_LEASE_KEY), SLICE_EMPTY);
        f->type->begin(f);
    } else if (next == KUBE_FOLLOWER_LOADING) {
        watch(f, ALL_KEYS, ALL_END);
        f->type->begin(f);
    }
}

/* -- One key: the default namespace, the lease -- */

static void note_lease(struct kube_follower *f, int64_t revision, struct slice value)
{
    kube_manager_lease_note(&f->lease, revision, value, loop_now_ns(f->job.api->loop),
                            clock_real_ns(f->job.api->clock));
    f->noted = true;
}

static void on_key(struct engine_op *op)
{
    struct kube_follower *f = kube_follower_of(kube_job_of_range(op));
    struct slice field;
    struct kube_kv kv = {0};
    f->failed = op->status != ST_OK;
    /* A key that does not exist leaves an empty value. */
    if (!f->failed && engine_range_next(&f->job.range, &field))
        kv = kube_kv_of(field);
    f->failed = f->failed || f->job.range.op.status != ST_OK;
    if (!f->failed && f->state == KUBE_FOLLOWER_STANDING_BACK)
        note_lease(f, kv.mod_revision, kv.value);
    else if (!f->failed) /* another server's default namespace may be stored in protobuf */
        f->used = kv.value.len && kv.value.ptr[0] == '{';
    engine_range_close(&f->job.range);
    kube_job_next(&f->job);
}

static void read_key(struct kube_follower *f, struct slice key)
{
    kube_job_reset_arena(&f->job, KUBE_FOLLOWER_ARENA_BYTES_MAX);
    f->job.request = (struct pb_range_request){.key = key};
    kube_job_read(&f->job, on_key);
}

/* Takes the events of the one key; true: there were some, so that it is read again. */
static bool has_changed(struct kube_follower *f)
{
    const struct watch_event *event;
    int64_t revision;
    bool any = false;
    enum status status = ST_END;
    while (f->cursor && (status = watch_cursor_next(f->cursor, &event, &revision)) == ST_OK) {
        watch_cursor_take(f->cursor);
        any = true;
    }
    /* The cursor has lost events, so the key may have changed. It is read again, and another cursor
     * continues from here. */
    if (f->cursor && status != ST_COMPACTED && status != ST_DAMAGED)
        return any;
    if (f->state == KUBE_FOLLOWER_UNUSED)
        watch(f, SLICE_LITERAL(DEFAULT_NAMESPACE_KEY), SLICE_EMPTY);
    else
        watch(f, SLICE_LITERAL(KUBE_MANAGER_LEASE_KEY), SLICE_EMPTY);
    return true;
}

static void step_unused(struct kube_follower *f)
{
    bool changed = has_changed(f);
    if (f->used) {
        move(f, KUBE_FOLLOWER_STANDING_BACK);
        kube_job_next(&f->job);
    } else if (changed || !f->noted) {
        f->noted = true;
        read_key(f, SLICE_LITERAL(DEFAULT_NAMESPACE_KEY));
    } else {
        f->noted = !f->failed;
        kube_job_wait(&f->job, f->failed ? RETRY_S : IDLE_S);
    }
}

static void step_standing_back(struct kube_follower *f)
{
    bool changed = has_changed(f);
    if (f->failed) {
        f->failed = false;
        kube_job_wait(&f->job, RETRY_S);
    } else if (changed || !f->noted) {
        read_key(f, SLICE_LITERAL(KUBE_MANAGER_LEASE_KEY));
    } else if (kube_manager_lease_held(&f->lease, loop_now_ns(f->job.api->loop))) {
        /* A controller manager of Kubernetes holds the lease and does the same work. It is left to
         * that manager until the lease has expired. */
        kube_job_wait(&f->job, kube_manager_lease_left_s(&f->lease, loop_now_ns(f->job.api->loop)));
    } else {
        move(f, KUBE_FOLLOWER_LOADING);
        kube_job_next(&f->job);
    }
}

/* -- Loading -- */

static void close_page(struct kube_follower *f, enum status status)
{
    f->failed = status != ST_OK;
    f->loaded = !f->failed && !f->job.range.more;
    engine_range_close(&f->job.range);
    f->page_open = false;
}

static enum status load_object(struct kube_follower *f, struct slice field)
{
    struct kube_kv kv = kube_kv_of(field);
    buf_reset(&f->from, SIZE_MAX);
    TRY(buf_append(&f->from, kv.key));
    /* The key with a zero byte behind it is the first possible key after it, where the next page
     * begins. */
    TRY(buf_append(&f->from, slice_of("", 1)));
    f->type->object(f, kv);
    return ST_OK;
}

static void load_some(struct kube_follower *f)
{
    struct slice field;
    size_t looked = 0;
    enum status status = ST_OK;
    while (looked < KUBE_FOLLOWER_LOOKED_BYTES_MAX && status == ST_OK) {
        if (!engine_range_next(&f->job.range, &field)) {
            close_page(f, f->job.range.op.status);
            break;
        }
        /* Large objects end the turn sooner than small ones. */
        looked += kube_follower_cost(field);
        status = load_object(f, field);
    }
    if (status != ST_OK)
        close_page(f, status);
    kube_job_next(&f->job);
}

static void on_page(struct engine_op *op)
{
    struct kube_follower *f = kube_follower_of(kube_job_of_range(op));
    f->page_open = true;
    f->read_at = op->revision;
    if (op->status != ST_OK)
        close_page(f, op->status);
    kube_job_next(&f->job);
}

static void read_page(struct kube_follower *f)
{
    struct slice key, first = slice_from_text(f->type->first);
    kube_job_reset_arena(&f->job, KUBE_FOLLOWER_ARENA_BYTES_MAX);
    if (arena_dup(&f->job.arena, f->from.len ? buf_slice(&f->from) : first, &key) != ST_OK) {
        f->failed = true;
        kube_job_next(&f->job);
        return;
    }
    f->job.request = (struct pb_range_request){
        .key = key, .range_end = slice_from_text(f->type->end), .limit = PAGE_KEYS};
    kube_job_read(&f->job, on_page);
}

static void step_loading(struct kube_follower *f)
{
    if (f->page_open) {
        load_some(f);
    } else if (f->failed || !f->cursor) {
        /* From the beginning: the place in history is older with each attempt. */
        move(f, KUBE_FOLLOWER_STANDING_BACK);
        f->failed = true;
        kube_job_next(&f->job);
    } else if (f->loaded) {
        assert(moves[f->state] & TO(FOLLOWING));
        f->state = KUBE_FOLLOWER_FOLLOWING;
        if (f->type->loaded)
            f->type->loaded(f);
        kube_job_next(&f->job);
    } else {
        read_page(f);
    }
}

/* -- Following -- */

static void take_lease(struct kube_follower *f, const struct watch_event *event, int64_t revision)
{
    note_lease(f, revision, event->tombstone ? SLICE_EMPTY : kube_kv_of(event->field).value);
}

static enum status take_lease_events(struct kube_follower *f)
{
    const struct watch_event *event;
    int64_t revision;
    enum status status = ST_END;
    while (f->lease_cursor &&
           (status = watch_cursor_next(f->lease_cursor, &event, &revision)) == ST_OK) {
        take_lease(f, event, revision);
        watch_cursor_take(f->lease_cursor);
    }
    return status;
}

/* Some events per turn. ST_END: all that are known so far; ST_COMPACTED: some are lost. */
static enum status take_events(struct kube_follower *f)
{
    const struct watch_event *event;
    int64_t revision;
    size_t looked = 0;
    enum status status = take_lease_events(f);
    if (status == ST_COMPACTED || status == ST_DAMAGED)
        return status;
    status = ST_OK;
    while (looked < KUBE_FOLLOWER_LOOKED_BYTES_MAX &&
           (status = watch_cursor_next(f->cursor, &event, &revision)) == ST_OK) {
        looked += kube_follower_cost(event->field);
        if (slice_is(event->key, KUBE_MANAGER_LEASE_KEY))
            take_lease(f, event, revision);
        /* The event does not fit into what is remembered. Everything is loaded again. */
        if (!f->type->event(f, event, revision))
            return ST_COMPACTED;
        watch_cursor_take(f->cursor);
    }
    return status;
}

static void step_following(struct kube_follower *f)
{
    enum status status = take_events(f);
    int64_t next_ns = CLOCK_NEVER;
    if (status == ST_COMPACTED || status == ST_DAMAGED) {
        move(f, KUBE_FOLLOWER_LOADING);
        kube_job_next(&f->job);
    } else if (kube_manager_lease_held(&f->lease, loop_now_ns(f->job.api->loop))) {
        log_info(f->type->stands_back);
        move(f, KUBE_FOLLOWER_STANDING_BACK);
        kube_job_next(&f->job);
    } else if (watch_cursor_revision(f->cursor) < f->read_at) {
        /* The newest page has objects of revisions whose events were not taken yet. */
        if (status == ST_OK)
            kube_job_next(&f->job);
        else
            kube_job_wait(&f->job, 1);
    } else if (!f->type->work(f, &next_ns)) {
        if (status == ST_OK || next_ns <= loop_now_ns(f->job.api->loop))
            kube_job_next(&f->job);
        else
            kube_job_wait_until(&f->job, next_ns);
    }
}

/* -- The job -- */

void kube_follower_step(struct kube_job *job)
{
    static void (*const steps[])(struct kube_follower *) = {
        [KUBE_FOLLOWER_UNUSED] = step_unused,
        [KUBE_FOLLOWER_STANDING_BACK] = step_standing_back,
        [KUBE_FOLLOWER_LOADING] = step_loading,
        [KUBE_FOLLOWER_FOLLOWING] = step_following,
    };
    struct kube_follower *f = kube_follower_of(job);
    steps[f->state](f);
}

void kube_follower_fini(struct kube_follower *f)
{
    drop(f);
    watch_cursor_free(f->cursor);
    watch_cursor_free(f->lease_cursor);
    buf_fini(&f->from);
}

void kube_follower_start(struct kube_follower *f, const struct kube_follower_type *type,
                         struct kube_api *api)
{
    f->type = type;
    kube_job_start(&f->job, &type->job, api);
}
