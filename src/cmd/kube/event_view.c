#include "cmd/kube/event_view.h"

#include "base/clock.h"
#include "base/random.h"
#include "codec/json/diff.h"
#include "codec/json/writer.h"

#include <stdlib.h>
#include <time.h>

enum { VALUE_BYTES_SHOWN_MAX = 120, DIFFERENCES_SHOWN_MAX = 50, INDENT = 15 };

static const char *const type_names[] = {
    [VIGIL_KUBE_ADDED] = "ADDED",     [VIGIL_KUBE_MODIFIED] = "MODIFIED",
    [VIGIL_KUBE_DELETED] = "DELETED", [VIGIL_KUBE_BOOKMARK] = "BOOKMARK",
    [VIGIL_KUBE_ERROR] = "ERROR",     [VIGIL_KUBE_ENDED] = "ENDED",
};

static const char *const type_colors[] = {
    [VIGIL_KUBE_ADDED] = "\033[32m",   [VIGIL_KUBE_MODIFIED] = "\033[33m",
    [VIGIL_KUBE_DELETED] = "\033[31m", [VIGIL_KUBE_BOOKMARK] = "\033[2m",
    [VIGIL_KUBE_ERROR] = "\033[1;31m", [VIGIL_KUBE_ENDED] = "\033[2m",
};

void event_view_init(struct event_view *view, FILE *to)
{
    *view = (struct event_view){.to = to, .differences = true};
    indexer_init(&view->last, random_seed_system());
}

void event_view_fini(struct event_view *view)
{
    indexer_fini(&view->last);
}

/* Bytes of a server are not sent to a terminal as they are: escapes could control it. */
static void put_safe(FILE *to, struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        fputc(text.ptr[i] >= ' ' && text.ptr[i] != 0x7f ? text.ptr[i] : '?', to);
}

/* -- Times -- */

static int64_t read_time(vigil_bytes value)
{
    char text[64];
    struct tm parts = {0};
    if (!vigil_json_text(value, text, sizeof(text), NULL) ||
        !strptime(text, "%Y-%m-%dT%H:%M:%S", &parts))
        return 0;
    return timegm(&parts);
}

static void newest(vigil_bytes object, const char *path, int64_t *time_s)
{
    vigil_bytes value;
    int64_t found = vigil_json_find(object, path, &value) ? read_time(value) : 0;
    if (found > *time_s)
        *time_s = found;
}

int64_t event_view_age(vigil_bytes object, int64_t wall_s)
{
    int64_t time_s = 0;
    vigil_bytes managers, manager;
    newest(object, "metadata.creationTimestamp", &time_s);
    newest(object, "metadata.deletionTimestamp", &time_s);
    /* Each manager has the time of its last write; the greatest of them is the object's last
     * change. */
    if (vigil_json_find(object, "metadata.managedFields", &managers)) {
        vigil_json_iterator iterator = vigil_json_iterate(managers);
        while (vigil_json_next(&iterator, NULL, &manager))
            newest(manager, "time", &time_s);
    }
    if (!time_s)
        return -1;
    return wall_s > time_s ? wall_s - time_s : 0;
}

static void put_age(FILE *to, int64_t age_s)
{
    static const struct {
        int64_t seconds;
        const char *unit;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
    if (age_s < 1) {
        fputs("<1 s", to);
        return;
    }
    size_t i = 0;
    /* "90 min" says more than "1 h", so a unit is used from two of it on. */
    while (age_s < units[i].seconds * 2 && units[i].seconds > 1)
        i++;
    fprintf(to, "%lld %s", (long long)(age_s / units[i].seconds), units[i].unit);
}

static void put_time(FILE *to, int64_t wall_ns, const char *format)
{
    char text[64];
    time_t seconds = (time_t)(wall_ns / NS_PER_S);
    struct tm parts;
    localtime_r(&seconds, &parts);
    strftime(text, sizeof(text), format, &parts);
    fprintf(to, "%s.%03d", text, (int)(wall_ns % NS_PER_S / NS_PER_MS));
}

/* -- Differences -- */

struct shown {
    struct event_view *view;
    size_t count;
};

static void put_value(FILE *to, const struct json_node *node)
{
    struct buf text = {0};
    if (json_tree_write(node, &text) == ST_OK)
        put_safe(to, slice_of(text.ptr, size_min(text.len, VALUE_BYTES_SHOWN_MAX)));
    fputs(text.len > VALUE_BYTES_SHOWN_MAX ? "…" : "", to);
    buf_fini(&text);
}

static void show_difference(void *ctx, const struct json_difference *d)
{
    struct shown *shown = ctx;
    FILE *to = shown->view->to;
    /* These differ in every version. */
    if (slice_is(d->path, "metadata.resourceVersion") ||
        slice_has_prefix(d->path, SLICE_LITERAL("metadata.managedFields")) ||
        shown->count++ >= DIFFERENCES_SHOWN_MAX)
        return;
    fprintf(to, "%*s%c ", INDENT, "", !d->before ? '+' : !d->after ? '-' : '~');
    put_safe(to, d->path);
    fputs(": ", to);
    if (d->before)
        put_value(to, d->before);
    if (d->before && d->after)
        fputs(" > ", to);
    if (d->after)
        put_value(to, d->after);
    fputc('\n', to);
}

static enum status compare(struct arena *arena, struct slice before, struct slice after,
                           struct shown *shown)
{
    struct json_node *old, *now;
    struct error error;
    TRY(json_tree_read(arena, before, &old, &error));
    TRY(json_tree_read(arena, after, &now, &error));
    return json_diff(arena, old, now, show_difference, shown);
}

static void show_differences(struct event_view *view, const vigil_kube_object *object)
{
    const vigil_kube_object *before = indexer_get(&view->last, object_key(object));
    struct shown shown = {.view = view};
    struct arena arena;
    /* The object was first seen with this event, or was too large to be kept. */
    if (!before)
        return;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    if (compare(&arena, object_sent(before), object_sent(object), &shown) != ST_OK)
        fprintf(view->to, "%*s(the difference cannot be shown)\n", INDENT, "");
    if (shown.count > DIFFERENCES_SHOWN_MAX)
        fprintf(view->to, "%*s… and %zu more\n", INDENT, "", shown.count - DIFFERENCES_SHOWN_MAX);
    arena_fini(&arena);
}

static void remember(struct event_view *view, const vigil_kube_event *event)
{
    vigil_kube_object *old = NULL;
    if (event->type == VIGIL_KUBE_DELETED) {
        old = indexer_remove(&view->last, object_key(event->object));
    } else if (view->last.json_bytes + object_sent(event->object).len <= EVENT_VIEW_BYTES_MAX) {
        /* Beyond the limit no further version is kept: watching a large cluster must not exhaust
         * the memory. */
        vigil_kube_object *kept = vigil_kube_object_ref(event->object);
        /* Without memory for it, its next change is shown without differences. */
        if (indexer_put(&view->last, kept, &old) != ST_OK)
            old = NULL;
        vigil_kube_object_unref(kept);
    }
    vigil_kube_object_unref(old);
}

/* -- Lines -- */

static void put_version(FILE *to, vigil_bytes version)
{
    fputs(version.size ? "version " : "", to);
    put_safe(to, slice_of(version.data, version.size));
}

static void show_object(struct event_view *view, const vigil_kube_event *event, int64_t wall_ns)
{
    vigil_bytes json = vigil_kube_object_json(event->object);
    int64_t age_s = event_view_age(json, wall_ns / NS_PER_S);
    put_safe(view->to, object_key(event->object));
    fputs("  ", view->to);
    put_version(view->to, event->version);
    if (age_s >= 0) {
        fputs(", changed ", view->to);
        put_age(view->to, age_s);
        fputs(" ago", view->to);
    }
    fputc('\n', view->to);
    if (view->differences && event->type == VIGIL_KUBE_MODIFIED)
        show_differences(view, event->object);
}

static void show_other(struct event_view *view, const vigil_kube_event *event)
{
    FILE *to = view->to;
    if (event->type == VIGIL_KUBE_BOOKMARK) {
        put_version(to, event->version);
        fputs(event->initial_end ? ", the state is complete\n" : "\n", to);
    } else if (event->status) {
        fprintf(to, "%d ", event->status->code);
        put_safe(to, slice_from_text(event->status->reason));
        fputs(": ", to);
        put_safe(to, slice_from_text(event->status->message));
        fputc('\n', to);
    } else {
        put_safe(to, slice_from_text(event->reason ? event->reason : ""));
        fputc('\n', to);
    }
}

static void put_json(struct json_writer *w, const vigil_kube_event *event, int64_t wall_ns)
{
    json_begin_object(w);
    json_member_i64(w, "timeMs", wall_ns / NS_PER_MS);
    json_member_text(w, "type", type_names[event->type]);
    if (event->version.size) {
        json_member_string(w, "version", slice_of(event->version.data, event->version.size));
    }
    if (event->initial_end) {
        json_member_bool(w, "initialEnd", true);
    }
    if (event->status) {
        json_member_object(w, "status");
        json_member_i64(w, "code", event->status->code);
        json_member_text(w, "reason", event->status->reason);
        json_member_text(w, "message", event->status->message);
        json_end_object(w);
    }
    if (event->type == VIGIL_KUBE_ENDED) {
        json_member_text(w, "reason", event->reason ? event->reason : "");
    }
    if (event->object) {
        vigil_bytes object = vigil_kube_object_json(event->object);
        json_member_raw(w, "object", slice_of(object.data, object.size));
    }
    json_end_object(w);
}

void event_view_show(struct event_view *view, const vigil_kube_event *event, int64_t wall_ns)
{
    if (view->json) {
        struct buf line = {0};
        struct json_writer w;
        json_writer_init(&w, &line);
        put_json(&w, event, wall_ns);
        if (json_writer_finish(&w) == ST_OK)
            fprintf(view->to, "%.*s\n", SLICE_ARGS(buf_slice(&line)));
        buf_fini(&line);
    } else {
        const char *color = view->color ? type_colors[event->type] : "";
        put_time(view->to, wall_ns, "%H:%M:%S");
        fprintf(view->to, "  %s%-8s%s  ", color, type_names[event->type], *color ? "\033[0m" : "");
        if (event->object)
            show_object(view, event, wall_ns);
        else
            show_other(view, event);
    }
    if (event->object && view->differences && !view->json)
        remember(view, event);
    fflush(view->to);
}
