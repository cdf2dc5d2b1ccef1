#include "kube/api/shown.h"

#include "kube/api/custom.h"
#include "kube/storage/storage.h"

/* Before or after; matches: the selection takes it. */
struct side {
    struct kube_object object;
    bool matches;
};

static enum status look(const struct kube_kind *kind, const struct kube_selection *selection,
                        struct slice field, struct buf *bytes, struct side *side)
{
    struct kube_kv kv = kube_kv_of(field);
    struct slice json;
    TRY(kube_custom_convert(kind, kv.value, kv.mod_revision, bytes, &json));
    TRY(kube_object_look(json, &side->object));
    side->matches = kube_selection_matches(selection, &side->object);
    return ST_OK;
}

static enum kube_change change_of(bool created, bool matched, bool matches)
{
    if (!matches)
        return matched ? KUBE_CHANGE_DELETED : KUBE_CHANGE_NONE;
    return created || !matched ? KUBE_CHANGE_ADDED : KUBE_CHANGE_MODIFIED;
}

enum status kube_shown_look(struct kube_shown *shown, const struct kube_kind *kind,
                            const struct kube_selection *selection, struct watch_cursor *cursor,
                            const struct watch_event *event)
{
    struct side before = {0}, after = {0};
    if (!event->tombstone)
        TRY(look(kind, selection, event->field, &shown->after, &after));
    if (!event->created) {
        struct slice prev = watch_cursor_prev(cursor, event);
        if (!prev.len)
            return ST_MALFORMED;
        TRY(look(kind, selection, prev, &shown->before, &before));
    }
    shown->change = change_of(event->created, before.matches, after.matches);
    shown->object = shown->change == KUBE_CHANGE_DELETED ? before.object : after.object;
    return ST_OK;
}

void kube_shown_fini(struct kube_shown *shown)
{
    buf_fini(&shown->before);
    buf_fini(&shown->after);
}
