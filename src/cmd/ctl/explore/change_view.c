#include "cmd/ctl/explore/change_view.h"

#include "base/clock.h"
#include "cmd/ctl/decode/safe_text.h"
#include "cmd/ctl/decode/terminal.h"
#include "cmd/ctl/explore/kv_view.h"

#include <inttypes.h>
#include <time.h>

enum { TIME_BYTES = 40, INDENT = 14, OLD_INDENT = 22 };

void change_view_init(struct change_view *view, struct ctl *ctl)
{
    *view = (struct change_view){.ctl = ctl, .differences = true};
    value_view_init(&view->values, ctl, INDENT);
    view->json = ctl->globals.format == CTL_JSON || ctl->globals.format == CTL_JSONL;
}

static struct slice slice_from(vigil_bytes bytes)
{
    return slice_of(bytes.data, bytes.size);
}

/* -- Times -- */

static void time_text(int64_t wall_ns, bool for_people, char to[TIME_BYTES])
{
    char text[TIME_BYTES - 8];
    time_t seconds = (time_t)(wall_ns / NS_PER_S);
    struct tm parts;
    if (for_people)
        localtime_r(&seconds, &parts);
    else
        gmtime_r(&seconds, &parts);
    strftime(text, sizeof(text), for_people ? "%H:%M:%S" : "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(to, TIME_BYTES, "%s.%03d%s", text, (int)(wall_ns % NS_PER_S / NS_PER_MS),
             for_people ? "" : "Z");
}

/* Times of Kubernetes have one form, in which the later one is the greater text. */
static void later(const struct json_node *node, struct arena *arena, struct slice *latest)
{
    struct slice text;
    if (node && node->type == JSON_TYPE_STRING && json_node_text(node, arena, &text) == ST_OK &&
        text.len < TIME_BYTES && slice_compare(text, *latest) > 0)
        *latest = text;
}

/* When an object of Kubernetes was changed, as far as it says so; "": it does not. */
static void object_time(struct slice value, char to[TIME_BYTES])
{
    struct arena arena;
    struct decoded decoded;
    struct slice latest = SLICE_EMPTY;
    decode_arena_init(&arena);
    decode_value(&arena, DECODE_K8S, value, &decoded);
    const struct json_node *managers = json_node_path(decoded.tree, "metadata.managedFields");
    later(json_node_path(decoded.tree, "metadata.creationTimestamp"), &arena, &latest);
    later(json_node_path(decoded.tree, "metadata.deletionTimestamp"), &arena, &latest);
    for (const struct json_node *m = managers ? managers->first : NULL; m; m = m->next)
        later(json_node_named(m, "time"), &arena, &latest);
    bool usable = safe_text_is(latest, SAFE_ONE_LINE);
    snprintf(to, TIME_BYTES, "%.*s", usable ? (int)latest.len : 0, (const char *)latest.ptr);
    arena_fini(&arena);
}

/* -- Lines -- */

static const char *colour_of(const vigil_event *event)
{
    if (event->type == VIGIL_DELETE)
        return TERMINAL_RED;
    return event->kv->version == 1 ? TERMINAL_GREEN : TERMINAL_YELLOW;
}

static void show_head(struct change_view *view, const vigil_event *event, const char *time)
{
    FILE *to = view->values.to;
    const vigil_kv *kv = event->kv;
    fprintf(to, view->old_times ? "%-20s  " : "%s  ", *time ? time : "-");
    value_view_colour(&view->values, colour_of(event));
    fprintf(to, "%-6s", event->type == VIGIL_DELETE ? "DELETE" : "PUT");
    value_view_colour(&view->values, TERMINAL_PLAIN);
    fputs("  ", to);
    safe_text_put_short(to, slice_from(kv->key), VALUE_VIEW_COLUMNS_MAX);
    fprintf(to, "  revision %" PRId64, kv->mod_revision);
    if (event->type == VIGIL_PUT)
        fprintf(to, ", version %" PRId64, kv->version);
    if (kv->lease)
        fprintf(to, ", lease %" PRIx64, (uint64_t)kv->lease);
    fputc('\n', to);
}

static void show_value(struct change_view *view, const vigil_event *event)
{
    struct slice value = slice_from(event->kv->value);
    /* A deleted key has no value that could be shown. */
    if (event->type == VIGIL_DELETE)
        return;
    if (event->prev_kv)
        value_view_difference(&view->values, slice_from(event->prev_kv->value), value);
    else
        value_view_put(&view->values, event->kv->version == 1 ? LINE_ADDED : LINE_SAME, value);
}

static void show_json(struct change_view *view, const vigil_event *event, const char *time)
{
    AUTO(buf_fini) struct buf line = {0};
    struct json_writer w;
    enum decode_kind decode = (enum decode_kind)view->ctl->globals.decode;
    json_writer_init(&w, &line);
    json_begin_object(&w);
    if (*time) {
        json_member_text(&w, "time", time);
    }
    json_member_text(&w, "type", event->type == VIGIL_DELETE ? "DELETE" : "PUT");
    if (event->type == VIGIL_PUT) {
        kv_view_put_members(&w, decode, event->kv);
    } else {
        decode_put_member(&w, "key", DECODE_TEXT, slice_from(event->kv->key));
        json_member_i64(&w, "mod_revision", event->kv->mod_revision);
    }
    if (event->prev_kv)
        decode_put_member(&w, "prev_value", decode, slice_from(event->prev_kv->value));
    json_end_object(&w);
    kv_view_put_line(view->values.to, &w);
}

void change_view_show(struct change_view *view, const vigil_event *event, int64_t wall_ns)
{
    char time[TIME_BYTES];
    if (!view->old_times)
        time_text(wall_ns, !view->json, time);
    else
        object_time(slice_from(event->kv->value), time);
    view->values.indent = view->old_times ? OLD_INDENT : INDENT;
    if (view->json) {
        show_json(view, event, time);
    } else {
        show_head(view, event, time);
        if (view->differences)
            show_value(view, event);
    }
    fflush(view->values.to);
}
