#include "tier/face/role_watch.h"

#include "base/xalloc.h"
#include "watch/cursor.h"

#define OPENING_NS (600 * NS_PER_S) /* it is opened again after that, and if it is refused */
#define PAUSE_NS (30 * NS_PER_S)

static const char *const resources[] = {"roles", "rolebindings", "clusterroles",
                                        "clusterrolebindings"};

/* One of the resources. */
struct followed {
    struct tier_role_watch *watch;
    struct tier_collection *collection; /* a reference; NULL: not started */
    struct watch_cursor *cursor;        /* owned; NULL: opening */
    uint8_t key[TIER_PREFIX_BYTES], end[TIER_PREFIX_BYTES];
    uint64_t generation;
    struct tier_wait wait;
    struct timer again;
    struct deferred read;
    struct tier_change_listener listener;
};

struct tier_role_watch {
    struct tier_api *api;
    struct followed all[COUNT_OF(resources)];
};

static void open_later(struct followed *f)
{
    struct loop *loop = f->watch->api->loop;
    watch_cursor_free(TAKE(f->cursor));
    loop_timer_set(loop, &f->again, loop_now_ns(loop) + PAUSE_NS);
}

static void wake(void *ctx)
{
    struct followed *f = ctx;
    loop_defer(f->watch->api->loop, &f->read);
}

/* The end of the range of the prefix, whose last byte is part of a number that never is all ones.
 */
static void set_keys(struct followed *f, const struct tier_view *view)
{
    memcpy(f->key, view->prefix, sizeof(f->key));
    memcpy(f->end, view->prefix, sizeof(f->end));
    for (size_t i = sizeof(f->end); i-- > 0;)
        if (++f->end[i])
            break;
}

static void follow(struct followed *f)
{
    struct tier_view view;
    int64_t revision;
    tier_collection_look(f->collection, &view);
    if (!view.generation ||
        !tier_collection_revision(f->collection, view.generation, view.newest, &revision)) {
        open_later(f);
        return;
    }
    f->generation = view.generation;
    set_keys(f, &view);
    f->cursor = watch_cursor_new(
        engine_watch_hub(f->watch->api->shard),
        &(struct watch_cursor_options){.key = slice_of(f->key, sizeof(f->key)),
                                       .range_end = slice_of(f->end, sizeof(f->end)),
                                       .from = revision + 1,
                                       .own = true,
                                       .wake = wake,
                                       .ctx = f});
    if (!f->cursor)
        open_later(f);
}

/* What has changed before the cursor is there is not known. */
static void on_state(struct tier_wait *wait, enum status status)
{
    struct followed *f = CONTAINER_OF(wait, struct followed, wait);
    if (status == ST_OK)
        follow(f);
    else
        open_later(f);
    tier_rights_changed(f->watch->api->rights);
}

static void open_state(struct followed *f)
{
    f->wait =
        (struct tier_wait){.done = on_state, .kind = TIER_WAIT_STATE, .timeout_ns = OPENING_NS};
    tier_wait_start(f->watch->api->reader, &f->wait, f->collection);
}

static void on_again(struct timer *timer)
{
    open_state(CONTAINER_OF(timer, struct followed, again));
}

/* Keys are "name" or, of roles and bindings that belong to a namespace, "namespace/name". */
static void note_change(struct followed *f, const struct watch_event *event)
{
    struct tier_rights *rights = f->watch->api->rights;
    struct slice name =
        slice_sub(event->key, TIER_PREFIX_BYTES, event->key.len - TIER_PREFIX_BYTES);
    struct slice namespace = slice_cut(&name, '/');
    if (name.len)
        tier_rights_changed_in(rights, namespace);
    else
        tier_rights_changed(rights);
}

static void on_read(struct deferred *deferred)
{
    struct followed *f = CONTAINER_OF(deferred, struct followed, read);
    const struct watch_event *event;
    int64_t revision;
    enum status status = ST_END;
    while (f->cursor && (status = watch_cursor_next(f->cursor, &event, &revision)) == ST_OK) {
        note_change(f, event);
        watch_cursor_take(f->cursor);
    }
    if (status != ST_END && status != ST_AGAIN) {
        open_later(f);
        tier_rights_changed(f->watch->api->rights);
    }
}

/* Another generation: anything may have changed between the two. */
static void on_changed(struct tier_change_listener *listener)
{
    struct followed *f = CONTAINER_OF(listener, struct followed, listener);
    struct tier_view view;
    tier_collection_look(f->collection, &view);
    if (!f->cursor || view.generation == f->generation)
        return;
    watch_cursor_free(TAKE(f->cursor));
    open_state(f);
}

struct tier_role_watch *tier_role_watch_new(struct tier_api *api)
{
    struct tier_role_watch *watch = xcalloc(1, sizeof(*watch));
    watch->api = api;
    for (size_t i = 0; i < COUNT_OF(resources); i++) {
        struct followed *f = &watch->all[i];
        f->watch = watch;
        f->again.fn = on_again;
        f->read.fn = on_read;
        f->listener.changed = on_changed;
    }
    return watch;
}

void tier_role_watch_start(struct tier_role_watch *watch)
{
    for (size_t i = 0; i < COUNT_OF(resources); i++) {
        struct followed *f = &watch->all[i];
        struct tier_name name = {.group = SLICE_LITERAL("rbac.authorization.k8s.io"),
                                 .version = SLICE_LITERAL("v1"),
                                 .resource = slice_from_text(resources[i]),
                                 .encoding = TIER_METADATA_PROTOBUF};
        f->collection = tier_mirror_open(watch->api->settings->mirror, &name);
        if (!f->collection)
            continue;
        tier_reader_listen(watch->api->reader, &f->listener, f->collection);
        open_state(f);
    }
}

void tier_role_watch_stop(struct tier_role_watch *watch)
{
    for (size_t i = 0; i < COUNT_OF(resources); i++) {
        struct followed *f = &watch->all[i];
        tier_wait_cancel(&f->wait);
        loop_timer_cancel(watch->api->loop, &f->again);
        loop_defer_cancel(&f->read);
        tier_reader_unlisten(&f->listener);
        watch_cursor_free(TAKE(f->cursor));
        tier_collection_close(TAKE(f->collection));
    }
}

void tier_role_watch_free(struct tier_role_watch *watch)
{
    if (watch)
        tier_role_watch_stop(watch);
    free(watch);
}
