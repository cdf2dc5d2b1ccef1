#include "kube/policy/lookup/lookup.h"

#include "base/clock.h"
#include "base/metric/turn.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "io/loop.h"
#include "kube/policy/lookup/lookup_private.h"
#include "watch/cursor.h"

enum { OP_ARENA_BYTES_MAX = 1 << 20 };

/* Before objects that are not held are read again. */
#define RELOAD_NS (60 * NS_PER_S)
/* Between looks at what another thread reads. */
#define POLL_NS (1 * NS_PER_MS)

static void open_objects(struct kube_lookup *l);

/* -- The version from which the thread decides -- */

/* Callers may have borrowed from the old version until the end of this turn. */
static void on_retire(struct deferred *deferred)
{
    struct kube_lookup *l = CONTAINER_OF(deferred, struct kube_lookup, retire);
    while (l->retired_count)
        kube_shelves_unref(l->retired[--l->retired_count]);
}

static void set_version(struct kube_lookup *l, struct kube_shelves *shelves, uint64_t version)
{
    if (l->shelves && l->retired_count == l->retired_capacity) {
        l->retired_capacity = size_max(4, 2 * l->retired_capacity);
        l->retired = xrealloc(l->retired, l->retired_capacity * sizeof(*l->retired));
    }
    if (l->shelves) {
        l->retired[l->retired_count++] = l->shelves;
        loop_defer(l->options.loop, &l->retire);
    }
    l->shelves = shelves;
    l->version = version;
    l->peek.empty_at = shelves->count || shelves->not_held ? 0 : version;
}

static void wake(void *ctx)
{
    struct kube_lookup *l = ctx;
    loop_defer(l->options.loop, &l->look);
}

/* Until another version is taken, the lookup is not ready. */
static void close_cursor(struct kube_lookup *l)
{
    watch_cursor_free(l->cursor);
    l->cursor = NULL;
    l->peek.empty_at = 0;
}

/* From the revision after the one that is known. */
static struct watch_cursor *open_cursor(struct kube_lookup *l, int64_t revision)
{
    const struct watch_cursor_options options = {
        .key = l->all.key,
        .range_end = l->all.range_end,
        .from = revision + 1,
        .own = true,
        .wake = wake,
        .ctx = l,
    };
    struct watch_cursor *cursor = watch_cursor_new(engine_watch_hub(l->options.shard), &options);
    assert(cursor); /* the limit of watches is not for the server's own */
    loop_defer(l->options.loop, &l->look);
    return cursor;
}

/* Takes the newest version. After all objects have been read again by another thread, events are
 * read from the revision of that reading. False: nothing has been read so far. */
static bool take_version(struct kube_lookup *l)
{
    uint64_t version;
    int64_t revision;
    struct kube_shelves *shelves = kube_stock_get(l->options.stock, &version, &revision);
    if (!shelves)
        return false;
    bool again = !l->cursor || !l->shelves || shelves->generation != l->shelves->generation;
    set_version(l, shelves, version);
    if (!again)
        return true;
    watch_cursor_free(l->cursor);
    l->cursor = open_cursor(l, revision);
    return true;
}

bool kube_lookup_ready(struct kube_lookup *l)
{
    if (l->cursor && l->version != atomic_load_explicit(l->peek.version, memory_order_acquire))
        (void)take_version(l);
    return l->cursor && l->shelves;
}

static void finish_waits(struct kube_lookup *l, enum status status)
{
    struct list ready, *link;
    list_init(&ready);
    list_append(&ready, &l->waiting);
    while ((link = list_pop_front(&ready)) != NULL) {
        struct kube_lookup_wait *wait = LIST_ENTRY(link, struct kube_lookup_wait, in_lookup);
        wait->status = status;
        wait->go(wait);
    }
}

/* -- Reading all -- */

/* Publishes what was read, if it could be. */
static void finish_loading(struct kube_lookup *l, enum status status)
{
    int64_t revision = 0;
    if (status == ST_OK) {
        revision = watch_cursor_revision(l->next_cursor);
        watch_cursor_free(l->cursor);
        l->cursor = TAKE(l->next_cursor);
        l->lost = false;
    }
    watch_cursor_free(l->next_cursor);
    l->next_cursor = NULL;
    l->loading = false;
    if (status != ST_OK) {
        kube_shelves_unref(l->building);
        l->building = NULL;
    }
    struct kube_shelves *published = TAKE(l->building);
    if (published)
        atomic_fetch_add_explicit(&published->refs, 1, memory_order_relaxed);
    kube_stock_end(l->options.stock, published, revision);
    if (published)
        set_version(l, published, 0); /* there may be a newer one already */
    finish_waits(l, l->stopped ? ST_STOPPED : status);
}

static void finish_range(struct kube_lookup *l, enum status status)
{
    int64_t revision = l->range.op.revision;
    engine_range_close(&l->range);
    arena_fini(&l->arena);
    l->reading = false;
    --*l->options.under_way;
    if (l->stopped)
        status = ST_STOPPED;
    if (status == ST_OK)
        l->next_cursor = open_cursor(l, revision);
    else
        finish_loading(l, status);
}

static void read_more(struct deferred *deferred)
{
    struct kube_lookup *l = CONTAINER_OF(deferred, struct kube_lookup, more);
    struct slice field;
    size_t bytes = 0;
    bool more = true;
    turn_work("reading all objects of a kind", l->all.key);
    while (more && bytes < KUBE_LOOKUP_TURN_BYTES) {
        more = !l->stopped && engine_range_next(&l->range, &field);
        if (!more)
            break;
        struct kube_kv kv = kube_kv_of(field);
        kube_shelves_apply(l->building, l->options.stock, kv.key, &kv);
        bytes += size_max(kv.value.len, KUBE_LOOKUP_OBJECT_COST);
    }
    if (more)
        loop_defer(l->options.loop, &l->more);
    else
        finish_range(l, l->range.op.status);
}

static void on_range(struct engine_op *op)
{
    struct kube_lookup *l = CONTAINER_OF(op, struct kube_lookup, range.op);
    if (op->status == ST_OK)
        loop_defer(l->options.loop, &l->more);
    else
        finish_range(l, op->status);
}

/* The caller has begun the reading of the stock. */
static void start_loading(struct kube_lookup *l)
{
    l->loading = l->reading = true;
    l->building = kube_shelves_new();
    ++*l->options.under_way;
    arena_init(&l->arena, NULL, 0, OP_ARENA_BYTES_MAX);
    l->range.op =
        (struct engine_op){.done = on_range, .arena = &l->arena, .principal = ENGINE_SERVER};
    engine_range_start(l->options.shard, &l->range, &l->all);
}

/* Whether another thread has read all objects since this one has lost its place. */
static bool is_found_again(struct kube_lookup *l)
{
    uint64_t version;
    int64_t revision;
    AUTO(kube_shelves_unrefp)
    struct kube_shelves *shelves = kube_stock_get(l->options.stock, &version, &revision);
    return shelves && shelves->generation != l->lost_generation;
}

/* Makes the lookup ready, and then ends the waits. */
static void open_objects(struct kube_lookup *l)
{
    struct loop *loop = l->options.loop;
    if (l->loading || l->stopped)
        return;
    l->lost = l->lost && !is_found_again(l);
    if (!l->lost && take_version(l))
        finish_waits(l, ST_OK);
    else if (kube_stock_begin(l->options.stock))
        start_loading(l);
    else /* another thread is loading the objects, and this one looks again later */
        loop_timer_set(loop, &l->poll, clock_add(loop_now_ns(loop), POLL_NS));
}

static void on_poll(struct timer *timer)
{
    open_objects(CONTAINER_OF(timer, struct kube_lookup, poll));
}

/* -- Changes -- */

/* Reads events until none is left or the turn's share is used up; fn applies one. */
static enum status read_events(struct kube_lookup *l, struct watch_cursor *cursor,
                               void (*fn)(struct kube_lookup *l, const struct watch_event *event,
                                          int64_t revision))
{
    const struct watch_event *event;
    int64_t revision;
    enum status status = ST_OK;
    size_t bytes = 0;
    turn_work("following the objects of a kind", l->all.key);
    while (bytes < KUBE_LOOKUP_TURN_BYTES &&
           (status = watch_cursor_next(cursor, &event, &revision)) == ST_OK) {
        bytes += size_max(event->field.len, KUBE_LOOKUP_OBJECT_COST);
        fn(l, event, revision);
        watch_cursor_take(cursor);
    }
    if (status == ST_OK)
        loop_defer(l->options.loop, &l->look);
    return status;
}

static void apply_to_next(struct kube_lookup *l, const struct watch_event *event, int64_t revision)
{
    struct kube_kv kv = {0};
    (void)revision;
    if (!event->tombstone)
        kv = kube_kv_of(event->field);
    kube_shelves_apply(l->building, l->options.stock, event->key, event->tombstone ? NULL : &kv);
}

static void apply_to_stock(struct kube_lookup *l, const struct watch_event *event, int64_t revision)
{
    struct kube_kv kv = {0};
    if (!event->tombstone)
        kv = kube_kv_of(event->field);
    kube_stock_apply(l->options.stock, l->shelves->generation, revision, event->key,
                     event->tombstone ? NULL : &kv);
    l->applied = true;
}

/* What was read is published when it is as new as what other threads have published. After a lost
 * place, what they have may belong to another history. */
static void catch_up(struct kube_lookup *l)
{
    enum status status = read_events(l, l->next_cursor, apply_to_next);
    if (status == ST_COMPACTED) {
        watch_cursor_free(l->next_cursor);
        l->next_cursor = NULL;
        kube_shelves_unref(l->building);
        start_loading(l);
    } else if (status == ST_DAMAGED) {
        finish_loading(l, status);
    } else if (status == ST_END && (l->lost || watch_cursor_revision(l->next_cursor) >=
                                                   kube_stock_revision(l->options.stock))) {
        finish_loading(l, ST_OK);
    }
}

static void follow(struct kube_lookup *l)
{
    l->applied = false;
    enum status status = read_events(l, l->cursor, apply_to_stock);
    if (status == ST_COMPACTED || status == ST_DAMAGED) {
        /* Events are missing. If another thread has them, this one continues where that one is. */
        int64_t revision = watch_cursor_revision(l->cursor);
        close_cursor(l);
        l->lost = revision >= kube_stock_revision(l->options.stock);
        l->lost_generation = l->shelves->generation;
        open_objects(l);
        return;
    }
    if (l->applied && status == ST_END)
        kube_stock_complete(l->options.stock, l->shelves->generation,
                            watch_cursor_revision(l->cursor));
    /* There may be room for a namespace that is not held. */
    struct loop *loop = l->options.loop;
    if (l->applied && kube_lookup_ready(l) && l->shelves->may_fit && !l->reload.set)
        loop_timer_set(loop, &l->reload, clock_add(loop_now_ns(loop), RELOAD_NS));
}

static void look(struct deferred *deferred)
{
    struct kube_lookup *l = CONTAINER_OF(deferred, struct kube_lookup, look);
    if (kube_lookup_ready(l))
        follow(l);
    if (l->next_cursor)
        catch_up(l);
}

static void on_reload(struct timer *timer)
{
    struct kube_lookup *l = CONTAINER_OF(timer, struct kube_lookup, reload);
    if (kube_lookup_ready(l) && l->shelves->may_fit && !l->loading &&
        kube_stock_begin(l->options.stock))
        start_loading(l);
}

/* -- Use -- */

void kube_lookup_wait(struct kube_lookup *l, struct kube_lookup_wait *wait)
{
    if (l->stopped || kube_lookup_ready(l)) {
        wait->status = l->stopped ? ST_STOPPED : ST_OK;
        wait->go(wait);
        return;
    }
    list_push_back(&l->waiting, &wait->in_lookup);
    if (!l->poll.set)
        open_objects(l);
}

const struct kube_shelf *kube_lookup_shelf(struct kube_lookup *l, struct slice namespace)
{
    bool ready = kube_lookup_ready(l);
    assert(ready);
    return kube_shelves_find(l->shelves, namespace);
}

size_t kube_lookup_not_held(struct kube_lookup *l)
{
    return kube_lookup_ready(l) ? l->shelves->not_held : 0;
}

size_t kube_lookup_count(struct kube_lookup *l)
{
    return kube_lookup_ready(l) ? l->shelves->count : 0;
}

const struct kube_lookup_peek *kube_lookup_peek(const struct kube_lookup *l)
{
    return &l->peek;
}

int64_t kube_lookup_revision(const struct kube_lookup *l)
{
    return watch_cursor_revision(l->cursor);
}

/* -- Life -- */

struct kube_lookup *kube_lookup_new(const struct kube_lookup_options *options)
{
    struct kube_lookup *l = xcalloc(1, sizeof(*l));
    struct slice prefix = slice_from_text(kube_stock_kind(options->stock)->prefix);
    uint8_t *end = xmalloc(prefix.len);
    assert(prefix.len && prefix.ptr[prefix.len - 1] == '/');
    slice_copy(end, prefix);
    end[prefix.len - 1] = '/' + 1;
    l->options = *options;
    l->all = (struct pb_range_request){
        .key = prefix,
        .range_end = slice_of(end, prefix.len),
        .serializable = true, /* as the informers of kube-apiserver */
    };
    l->peek.version = kube_stock_version(options->stock);
    l->more.fn = read_more;
    l->look.fn = look;
    l->retire.fn = on_retire;
    l->reload.fn = on_reload;
    l->poll.fn = on_poll;
    list_init(&l->waiting);
    list_init(&l->reads_queued);
    list_init(&l->reads_running);
    return l;
}

void kube_lookup_stop(struct kube_lookup *l)
{
    if (!l || l->stopped)
        return;
    l->stopped = true;
    loop_timer_cancel(l->options.loop, &l->reload);
    loop_timer_cancel(l->options.loop, &l->poll);
    loop_defer_cancel(&l->look);
    close_cursor(l);
    kube_lookup_reads_stop(l);
    /* A range under way ends first, and then the waits. */
    if (l->loading && !l->reading)
        finish_loading(l, ST_STOPPED);
    else if (!l->loading)
        finish_waits(l, ST_STOPPED);
}

void kube_lookup_free(struct kube_lookup *l)
{
    if (!l)
        return;
    assert(l->stopped && !l->loading && list_empty(&l->waiting));
    assert(list_empty(&l->reads_queued) && list_empty(&l->reads_running));
    loop_defer_cancel(&l->retire);
    on_retire(&l->retire);
    kube_shelves_unref(l->shelves);
    free(l->retired);
    free((void *)(uintptr_t)l->all.range_end.ptr);
    free(l);
}

void kube_lookup_check(struct kube_lookup *l)
{
    if (l->shelves)
        kube_shelves_check(l->shelves);
    assert(l->loading || (!l->reading && !l->building && !l->next_cursor));
    assert(list_empty(&l->waiting) || l->loading || l->poll.set);
    assert(!kube_lookup_is_empty(&l->peek) ||
           (l->cursor && !l->shelves->count && !l->shelves->not_held));
}
