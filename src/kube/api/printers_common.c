#include "kube/api/printers.h"

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
    char copy[32];
    struct tm tm = {0};
    if (text.len < 20 || text.len >= sizeof(copy))
        return false;
    slice_copy(copy, text);
    copy[text.len] = '\0';
    const char *rest = strptime(copy, "%Y-%m-%dT%H:%M:%S", &tm);
    if (!rest || (*rest != 'Z' && *rest != '.'))
        return false;
    *ret_s = timegm(&tm);
    return true;
}

static struct slice text_at(struct kube_cells *cells, const char *path)
{
    struct slice text = SLICE_EMPTY;
    if (json_node_text(json_node_path(cells->object, path), &cells->arena, &text) != ST_OK)
        return SLICE_EMPTY;
    return text;
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
    char text[KUBE_DURATION_BYTES] = "<unknown>";
    int64_t at_s;
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
