#include "kube/table/printers.h"

#include <stdio.h>
#include <time.h>

void kube_duration_text(int64_t seconds, char text[KUBE_DURATION_BYTES])
{
    long long s = seconds, m = s / 60, h = m / 60, d = h / 24;
    if (s < -1)
        snprintf(text, KUBE_DURATION_BYTES, "<invalid>");
    else if (s < 120)
        snprintf(text, KUBE_DURATION_BYTES, "%llds", s < 0 ? 0 : s);
    else if (m < 10 && s % 60)
        snprintf(text, KUBE_DURATION_BYTES, "%lldm%llds", m, s % 60);
    else if (m < 180)
        snprintf(text, KUBE_DURATION_BYTES, "%lldm", m);
    else if (h < 8 && m % 60)
        snprintf(text, KUBE_DURATION_BYTES, "%lldh%lldm", h, m % 60);
    else if (h < 48)
        snprintf(text, KUBE_DURATION_BYTES, "%lldh", h);
    else if (d < 8 && h % 24)
        snprintf(text, KUBE_DURATION_BYTES, "%lldd%lldh", d, h % 24);
    else if (d < 2 * 365)
        snprintf(text, KUBE_DURATION_BYTES, "%lldd", d);
    else if (d < 8 * 365 && d % 365)
        snprintf(text, KUBE_DURATION_BYTES, "%lldy%lldd", d / 365, d % 365);
    else
        snprintf(text, KUBE_DURATION_BYTES, "%lldy", d / 365);
}

bool kube_time_parse(struct slice text, int64_t *ret_s)
{
    char copy[40];
    struct tm tm = {0}, offset = {0};
    if (text.len < 20 || text.len >= sizeof(copy))
        return false;
    slice_copy(copy, text);
    copy[text.len] = '\0';
    const char *rest = strptime(copy, "%Y-%m-%dT%H:%M:%S", &tm);
    if (rest && *rest == '.')
        rest += 1 + strspn(rest + 1, "0123456789");
    if (!rest ||
        (*rest != 'Z' && !strptime(rest + (*rest == '-' || *rest == '+'), "%H:%M", &offset)))
        return false;
    int64_t ahead_s = offset.tm_hour * 3600 + offset.tm_min * 60;
    *ret_s = timegm(&tm) - (*rest == '-' ? -ahead_s : ahead_s);
    return true;
}

struct slice kube_cell_text(struct kube_cells *cells, const struct json_node *node,
                            const char *path)
{
    struct slice text = SLICE_EMPTY;
    if (json_node_text(json_node_path(node, path), &cells->arena, &text) != ST_OK)
        return SLICE_EMPTY;
    return text;
}

int64_t kube_cell_int(const struct json_node *node, const char *path)
{
    int64_t value;
    return json_node_int(json_node_path(node, path), &value) ? value : 0;
}

static struct slice text_at(struct kube_cells *cells, const char *path)
{
    return kube_cell_text(cells, cells->object, path);
}

static const struct json_node *first_of(const struct json_node *node, enum json_type type)
{
    return node && node->type == type ? node->first : NULL;
}

bool kube_cell_condition(struct kube_cells *cells, const char *type)
{
    const struct json_node *conditions = json_node_path(cells->object, "status.conditions");
    for (const struct json_node *at = first_of(conditions, JSON_TYPE_ARRAY); at; at = at->next)
        if (json_node_is_text(json_node_named(at, "type"), type))
            return json_node_is_text(json_node_named(at, "status"), "True");
    return false;
}

const struct json_node *kube_cell_map(struct kube_cells *cells, const char *path, const char *name,
                                      const char *member, const char *text)
{
    struct json_node *map = json_node_new(&cells->arena, JSON_TYPE_OBJECT);
    const struct json_node *items = json_node_path(cells->object, path);
    for (const struct json_node *at = first_of(items, JSON_TYPE_ARRAY); map && at; at = at->next) {
        struct slice key = kube_cell_text(cells, at, name);
        if (json_node_member(map, key))
            continue;
        struct json_node *value = json_node_new(&cells->arena, JSON_TYPE_BOOL);
        if (!value)
            return NULL;
        value->truth = json_node_is_text(json_node_named(at, member), text);
        if (json_node_set(&cells->arena, map, key, value) != ST_OK)
            return NULL;
    }
    return map;
}

bool kube_cell_map_has(const struct json_node *map, struct slice key)
{
    const struct json_node *value = json_node_member(map, key);
    return value && value->truth;
}

void kube_joined_add(struct kube_joined *joined, struct slice part)
{
    if (joined->count++ >= joined->shown_max && joined->shown_max)
        return;
    if (joined->status == ST_OK && joined->text.len)
        joined->status =
            buf_append_text(&joined->text, joined->separator ? joined->separator : ",");
    if (joined->status == ST_OK)
        joined->status = buf_append(&joined->text, part);
}

void kube_joined_write(struct kube_joined *joined, struct kube_cells *cells, const char *fallback)
{
    if (joined->status == ST_OK && joined->shown_max && joined->count > joined->shown_max)
        joined->status = buf_append_format(&joined->text, " + %llu more...",
                                           (unsigned long long)(joined->count - joined->shown_max));
    if (joined->text.len || !fallback)
        json_string(cells->w, buf_slice(&joined->text));
    else
        json_text(cells->w, fallback);
    if (cells->w->status == ST_OK)
        cells->w->status = joined->status;
    buf_fini(&joined->text);
}

void kube_print_text(struct kube_cells *cells, const struct kube_column *column)
{
    struct slice text = text_at(cells, column->path);
    if (!text.len && column->fallback)
        text = slice_from_text(column->fallback);
    json_string(cells->w, text);
}

void kube_print_int(struct kube_cells *cells, const struct kube_column *column)
{
    int64_t value = 0;
    if (json_node_int(json_node_path(cells->object, column->path), &value) || !column->fallback)
        json_i64(cells->w, value);
    else
        json_text(cells->w, column->fallback);
}

void kube_print_age(struct kube_cells *cells, const struct kube_column *column)
{
    char text[KUBE_DURATION_BYTES];
    int64_t at_s;
    snprintf(text, sizeof(text), "%s", column->fallback ? column->fallback : "<unknown>");
    if (kube_time_parse(text_at(cells, column->path), &at_s))
        kube_duration_text(cells->now_s - at_s, text);
    json_text(cells->w, text);
}

void kube_print_count(struct kube_cells *cells, const struct kube_column *column)
{
    const struct json_node *node = json_node_path(cells->object, column->path);
    bool counts = node && (node->type == JSON_TYPE_ARRAY || node->type == JSON_TYPE_OBJECT);
    json_i64(cells->w, counts ? (int64_t)node->count : 0);
}

static void print_members(struct kube_cells *cells, const struct kube_column *column,
                          const char *member)
{
    struct kube_joined joined = {0};
    const struct json_node *items = json_node_path(cells->object, column->path);
    for (const struct json_node *at = first_of(items, JSON_TYPE_ARRAY); at; at = at->next)
        kube_joined_add(&joined, kube_cell_text(cells, at, member));
    kube_joined_write(&joined, cells, column->fallback);
}

void kube_print_names(struct kube_cells *cells, const struct kube_column *column)
{
    print_members(cells, column, "name");
}

void kube_print_images(struct kube_cells *cells, const struct kube_column *column)
{
    print_members(cells, column, "image");
}

void kube_print_labels(struct kube_cells *cells, const struct kube_column *column)
{
    struct kube_joined joined = {0};
    const struct json_node *labels = json_node_path(cells->object, column->path);
    for (const struct json_node *at = first_of(labels, JSON_TYPE_OBJECT); at; at = at->next) {
        struct buf part = {0};
        struct slice value = SLICE_EMPTY;
        if (json_node_text(at, &cells->arena, &value) != ST_OK ||
            buf_append_format(&part, "%.*s=%.*s", SLICE_ARGS(at->key), SLICE_ARGS(value)) != ST_OK)
            joined.status = ST_NOMEM;
        kube_joined_add(&joined, buf_slice(&part));
        buf_fini(&part);
    }
    kube_joined_write(&joined, cells, "<none>");
}

void kube_print_bool(struct kube_cells *cells, const struct kube_column *column)
{
    const struct json_node *node = json_node_path(cells->object, column->path);
    json_bool(cells->w, node && node->type == JSON_TYPE_BOOL && node->truth);
}
