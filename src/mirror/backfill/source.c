#include "mirror/backfill/source.h"

#include "base/buf.h"
#include "base/xalloc.h"
#include "codec/pb/rpc.pb.h"
#include "io/loop.h"
#include "mirror/backfill/response.h"

static const int64_t pause_first_ns = 100 * NS_PER_MS, pause_max_ns = 5 * NS_PER_S;

enum {
    EVENT_BYTES_PER_UNIT = 4096, /* an event costs one unit, and one for each 4096 bytes */
};

#define TO(state) (1u << BACKFILL_SOURCE_##state)

/* Drawn in source.h. */
static const unsigned source_moves[] = {
    [BACKFILL_SOURCE_PAUSING] = TO(OPEN) | TO(PAUSING) | TO(GONE),
    [BACKFILL_SOURCE_OPEN] = TO(PAUSING) | TO(GONE),
    [BACKFILL_SOURCE_GONE] = TO(GONE),
};

static void move(struct backfill_source *source, enum backfill_source_state next)
{
    assert(source_moves[source->state] & (1u << next));
    source->state = next;
}

/* A server says so when it cannot read a revision of its log. */
static bool is_damage(struct slice text)
{
    return slice_is(text, status_text(ST_CORRUPT));
}

/* -- The call -- */

static void queue_drop(struct backfill_source *source)
{
    while (source->queue_count) {
        backfill_body_unref(source->queue[source->queue_first++]);
        source->queue_count--;
    }
    source->queue_first = source->queue_bytes = source->read_at = 0;
}

/* Everything that is not known to be complete is received again. */
static void forget(struct backfill_source *source)
{
    queue_drop(source);
    backfill_run_cut(&source->run, source->known);
    source->newest = 0;
}

static void close_call(struct backfill_source *source)
{
    loop_timer_cancel(source->options.loop, &source->timer);
    if (source->call)
        source->options.calls->cancel(source->call);
    source->call = NULL;
}

static void pause_then_open(struct backfill_source *source)
{
    close_call(source);
    forget(source);
    move(source, BACKFILL_SOURCE_PAUSING);
    loop_timer_set(source->options.loop, &source->timer,
                   clock_add(loop_now_ns(source->options.loop), source->pause_ns));
    source->pause_ns = source->pause_ns * 2 < pause_max_ns ? source->pause_ns * 2 : pause_max_ns;
}

/* Makes room for one more message at the end of the queue. */
static void queue_grow(struct backfill_source *source)
{
    if (source->queue_first > source->queue_count) {
        memmove(source->queue, source->queue + source->queue_first,
                source->queue_count * sizeof(source->queue[0]));
        source->queue_first = 0;
        return;
    }
    source->queue_capacity = size_max(16, source->queue_capacity * 2);
    source->queue = xrealloc(source->queue, source->queue_capacity * sizeof(source->queue[0]));
}

static void queue_push(struct backfill_source *source, struct backfill_body *body)
{
    if (source->queue_first + source->queue_count == source->queue_capacity)
        queue_grow(source);
    source->queue[source->queue_first + source->queue_count++] = body;
    source->queue_bytes += body->len;
}

void backfill_source_received(struct backfill_source *source, struct slice message)
{
    source->received_bytes += message.len;
    queue_push(source, backfill_body_new(message, source->options.counted));
    source->options.changed(source->options.ctx);
}

static void become_damaged(struct backfill_source *source)
{
    close_call(source);
    forget(source);
    backfill_run_begin(&source->run, source->known++);
    backfill_run_lose(&source->run);
    move(source, BACKFILL_SOURCE_GONE);
}

static void call_ended(struct backfill_source *source)
{
    if (source->ended_damaged)
        become_damaged(source);
    else
        pause_then_open(source);
}

void backfill_source_ended(struct backfill_source *source, struct slice text)
{
    source->call = NULL;
    source->ended_damaged = is_damage(text);
    /* What was received before is read first. */
    if (!source->queue_count)
        call_ended(source);
    source->options.changed(source->options.ctx);
}

static enum status send_request(struct backfill_source *source,
                                const struct pb_watch_request *request)
{
    AUTO(buf_fini) struct buf bytes = {0};
    TRY(pb_append(&pb_watch_request_table, request, &bytes));
    return source->options.calls->send(source->call, buf_slice(&bytes));
}

static enum status open_call(struct backfill_source *source)
{
    const struct backfill_calls *calls = source->options.calls;
    struct pb_watch_create_request create = {
        .key = source->options.key,
        .range_end = source->options.range_end,
        .start_revision = source->known,
        .prev_kv = true,
        .fragment = true,
    };
    struct pb_watch_request first = {.request_union_case = PB_WATCH_REQUEST_CREATE_REQUEST,
                                     .create_request = &create};
    source->call = calls->open(calls->ctx, source);
    return source->call ? send_request(source, &first) : ST_NOMEM;
}

static void on_timer(struct timer *timer)
{
    struct backfill_source *source = CONTAINER_OF(timer, struct backfill_source, timer);
    if (open_call(source) != ST_OK) {
        pause_then_open(source);
        return;
    }
    move(source, BACKFILL_SOURCE_OPEN);
    source->options.calls->pause(source->call, source->paused);
}

void backfill_source_start(struct backfill_source *source,
                           const struct backfill_source_options *options, int64_t from)
{
    *source = (struct backfill_source){
        .options = *options,
        .known = from,
        .pause_ns = pause_first_ns,
        .timer.fn = on_timer,
    };
    on_timer(&source->timer);
}

void backfill_source_stop(struct backfill_source *source)
{
    if (!source->options.loop)
        return;
    close_call(source);
    move(source, BACKFILL_SOURCE_GONE);
    queue_drop(source);
    free(source->queue);
    backfill_run_fini(&source->run);
    *source = (struct backfill_source){.state = BACKFILL_SOURCE_GONE};
}

void backfill_source_pause(struct backfill_source *source, bool paused)
{
    if (source->paused == paused)
        return;
    source->paused = paused;
    if (source->call)
        source->options.calls->pause(source->call, paused);
}

void backfill_source_ask_progress(struct backfill_source *source)
{
    struct pb_watch_progress_request progress = {0};
    struct pb_watch_request request = {.request_union_case = PB_WATCH_REQUEST_PROGRESS_REQUEST,
                                       .progress_request = &progress};
    if (!source->call || !atomic_load(source->options.cluster.progress_reliable))
        return;
    /* Another one follows. */
    enum status status = send_request(source, &request);
    (void)status;
}

/* -- Reading -- */

static bool is_kept(const struct backfill_source *source, struct slice key)
{
    const struct backfill_source_options *options = &source->options;
    for (size_t i = 0; i < options->prefix_count; i++)
        if (slice_has_prefix(key, options->prefixes[i]))
            return true;
    return !options->prefix_count;
}

static struct backfill_revision *last_revision(struct backfill_source *source)
{
    struct backfill_run *run = &source->run;
    return run->revision_count ? &run->revisions[run->revision_count - 1] : NULL;
}

static void keep_event(struct backfill_source *source, struct backfill_body *body,
                       const struct watch_event *event, int64_t revision)
{
    struct backfill_revision *last = last_revision(source);
    if (!last || last->revision != revision)
        backfill_run_begin(&source->run, revision);
    last = last_revision(source);
    if (last->lost)
        return;
    backfill_run_add(&source->run, body, event);
    if (last->bytes > source->options.revision_bytes_max)
        backfill_run_lose(&source->run);
}

/* False: the cluster does not keep its order. */
static bool take_event(struct backfill_source *source, struct backfill_body *body,
                       const struct watch_event *event, int64_t revision)
{
    if (revision < source->known || revision < source->newest)
        return false;
    source->newest = source->known = revision; /* those before are complete */
    if (is_kept(source, event->key))
        keep_event(source, body, event, revision);
    return true;
}

static enum status read_events(struct backfill_source *source, struct backfill_body *body,
                               size_t *units)
{
    for (;;) {
        if (!*units)
            return ST_AGAIN;
        struct watch_event event;
        int64_t revision;
        TRY(backfill_response_next(body, &source->read_at, &event, &revision));
        if (!take_event(source, body, &event, revision))
            return ST_INVALID;
        size_t cost = 1 + event.field.len / EVENT_BYTES_PER_UNIT;
        *units -= size_min(*units, cost);
    }
}

/* The response says how far the cluster is, and nothing else. */
static void take_progress(struct backfill_source *source, const struct backfill_response *response)
{
    bool inside = source->newest && source->newest >= source->known;
    if (response->created || inside || !atomic_load(source->options.cluster.progress_reliable))
        return;
    if (response->revision >= source->known)
        source->known = response->revision + 1;
}

static bool is_of_cluster(const struct backfill_source *source,
                          const struct backfill_response *response)
{
    uint64_t id = atomic_load(source->options.cluster.cluster_id);
    return !id || !response->cluster_id || id == response->cluster_id;
}

/* ST_CANCELED: the watch has ended. ST_DAMAGED: the server cannot read what comes next. ST_AGAIN:
 * the units are used up. ST_INVALID: malformed. */
static enum status read_message(struct backfill_source *source, struct backfill_body *body,
                                size_t *units)
{
    struct backfill_response response;
    if (!backfill_response_read(slice_of(body->bytes, body->len), &response) ||
        !is_of_cluster(source, &response))
        return ST_INVALID;
    if (response.canceled && is_damage(response.cancel_reason))
        return ST_DAMAGED;
    if (response.canceled) {
        source->compact_revision = response.compact_revision;
        return ST_CANCELED;
    }
    if (!response.has_events) {
        take_progress(source, &response);
        return ST_OK;
    }
    enum status status = read_events(source, body, units);
    if (status != ST_END)
        return status;
    source->pause_ns = pause_first_ns;
    /* A revision is never split, except into fragments. */
    if (!response.fragment && source->newest)
        source->known = source->newest + 1;
    return ST_OK;
}

static void queue_pop(struct backfill_source *source)
{
    struct backfill_body *body = source->queue[source->queue_first++];
    source->queue_bytes -= body->len;
    source->read_at = 0;
    if (--source->queue_count == 0)
        source->queue_first = 0;
    backfill_body_unref(body);
}

/* Etcd 3.4 refuses a watch with the same text whether the user has no right or no token, which it
 * has not if authentication was enabled after the connection was made. */
static void watch_ended(struct backfill_source *source)
{
    if (source->compact_revision <= source->known) {
        if (source->call && !source->compact_revision)
            source->options.calls->renew_token(source->call);
        source->compact_revision = 0;
        pause_then_open(source);
        return;
    }
    close_call(source);
    forget(source);
    move(source, BACKFILL_SOURCE_GONE);
}

bool backfill_source_step(struct backfill_source *source, size_t *units)
{
    while (source->queue_count && *units) {
        --*units;
        enum status status = read_message(source, source->queue[source->queue_first], units);
        if (status == ST_AGAIN)
            return true;
        if (status == ST_CANCELED) {
            watch_ended(source);
            return false;
        }
        if (status == ST_DAMAGED) {
            become_damaged(source);
            return false;
        }
        if (status != ST_OK) {
            pause_then_open(source);
            return false;
        }
        queue_pop(source);
    }
    if (!source->queue_count && !source->call && source->state == BACKFILL_SOURCE_OPEN)
        call_ended(source); /* the end of the call had to wait */
    return source->queue_count > 0;
}

size_t backfill_source_bytes(const struct backfill_source *source)
{
    size_t bytes = source->queue_bytes;
    for (size_t i = 0; i < source->run.body_count; i++)
        bytes += source->run.bodies[i]->len;
    return bytes + source->run.event_count * sizeof(source->run.events[0]);
}

void backfill_source_check(const struct backfill_source *source)
{
    assert((source->state == BACKFILL_SOURCE_PAUSING) == source->timer.set);
    assert(source->state == BACKFILL_SOURCE_OPEN || !source->call);
    assert(source->call || source->state != BACKFILL_SOURCE_OPEN || source->queue_count);
    size_t bytes = 0;
    for (size_t i = 0; i < source->queue_count; i++)
        bytes += source->queue[source->queue_first + i]->len;
    assert(bytes == source->queue_bytes);
    assert(source->read_at == 0 || source->queue_count);
    const struct backfill_run *run = &source->run;
    for (size_t i = 0; i + 1 < run->revision_count; i++)
        assert(run->revisions[i].revision < source->known);
}
