/* The part of a watch that converts: whether it has to, and waiting for the webhook that does it.
 */
#include "kube/call/conversion.h"
#include "kube/handlers/read/watch_private.h"
#include "wire/http/exchange.h"

/* The objects of the event that comes next. */
struct watch_conversion {
    struct kube_watch *watch;
    struct kube_conversion_wait after, before;
};

void kube_watch_convert_init(struct kube_watch *w)
{
    if (!kube_conversion_has_webhook(w->shaping.kind))
        return;
    w->conversion = xcalloc(1, sizeof(*w->conversion));
    w->conversion->watch = w;
}

void kube_watch_convert_drop(struct kube_watch *w)
{
    if (!w->conversion)
        return;
    kube_conversion_wait_drop(w->api->event_conversions, &w->conversion->after);
    kube_conversion_wait_drop(w->api->event_conversions, &w->conversion->before);
}

void kube_watch_convert_fini(struct kube_watch *w)
{
    kube_watch_convert_drop(w);
    free(TAKE(w->conversion));
}

/* -- Events -- */

bool kube_watch_is_as_stored(const struct kube_watch *w, const struct watch_event *event,
                             int64_t revision)
{
    const struct kube_kind *kind = w->shaping.kind;
    if (!kube_watch_kind_converts(w))
        return true;
    struct slice prev = event->created ? SLICE_EMPTY : watch_cursor_prev(w->cursor, event);
    if (w->conversion &&
        ((!event->tombstone && kube_conversion_awaits(kind, kube_kv_of(event->field).value)) ||
         (prev.len && kube_conversion_awaits(kind, kube_kv_of(prev).value))))
        return false;
    return kube_conversion_is_plain(kind, revision) &&
           (!prev.len || kube_conversion_is_plain(kind, kube_kv_of(prev).mod_revision));
}

static void wake_after(struct kube_conversion_wait *wait)
{
    http_wake(CONTAINER_OF(wait, struct watch_conversion, after)->watch->exchange);
}

static void wake_before(struct kube_conversion_wait *wait)
{
    http_wake(CONTAINER_OF(wait, struct watch_conversion, before)->watch->exchange);
}

/* Replaces the object by the converted one, whose revision is 0. */
static enum status take_side(struct kube_watch *w, struct kube_conversion_wait *wait,
                             struct kube_kv *kv, struct kube_status *status)
{
    struct slice json;
    if (!kv->value.len || !kube_conversion_awaits(w->shaping.kind, kv->value))
        return ST_OK;
    TRY(kube_event_conversions_get(w->api->event_conversions, wait, kube_custom_of(w->shaping.kind),
                                   *kv, &json, status));
    kv->value = json;
    kv->mod_revision = 0;
    return ST_OK;
}

enum status kube_watch_await(struct kube_watch *w, struct kube_event_pair *pair)
{
    struct watch_conversion *c = w->conversion;
    struct kube_status status = {0};
    if (!c)
        return ST_OK;
    c->after.wake = wake_after;
    c->before.wake = wake_before;
    enum status after = take_side(w, &c->after, &pair->after, &status);
    enum status before =
        after == ST_CANCELED ? after : take_side(w, &c->before, &pair->before, &status);
    if (before == ST_CANCELED) {
        enum status made = kube_watch_fail(w, &status);
        kube_watch_convert_drop(w);
        return made == ST_OK ? ST_CANCELED : made;
    }
    return after == ST_OK ? before : after;
}

/* -- The objects of the beginning -- */

static void on_ready(struct kube_converted_range *range, enum status status)
{
    struct kube_converted_beginning *b =
        CONTAINER_OF(range, struct kube_converted_beginning, range);
    b->status = status;
    http_wake(b->watch->exchange);
}

void kube_watch_begin_converted(struct kube_watch *w, struct kube_converted_beginning *b,
                                const struct kube_converted_range *range)
{
    b->used = true;
    b->watch = w;
    b->range = *range;
    b->range.ready = on_ready;
}

static enum status fail_beginning(struct kube_watch *w, const struct kube_converted_beginning *b)
{
    if (b->status == ST_CANCELED)
        return kube_watch_fail(w, &w->call->status);
    if (kube_is_undecodable(b->status))
        return kube_watch_undecodable(w, b->range.bad, b->range.bad_revision, false, b->status);
    return kube_watch_fail_engine(w, b->status);
}

enum status kube_watch_step_converted(struct kube_watch *w, struct kube_converted_beginning *b)
{
    struct kube_conversion_batch *batch = b->range.batch;
    if (b->range.waits)
        return ST_AGAIN;
    if (b->status != ST_OK)
        return fail_beginning(w, b);
    if (batch && b->at < kube_conversion_batch_count(batch)) {
        struct kube_event_pair pair = {.created = true};
        pair.after = kube_conversion_batch_get(batch, b->at++, &pair.revision);
        pair.key = pair.after.key;
        return kube_watch_show(w, &pair);
    }
    kube_conversion_batch_free(TAKE(b->range.batch));
    b->at = 0;
    if (!b->range.left)
        return ST_END;
    kube_converted_range_next(&b->range);
    return ST_AGAIN;
}
