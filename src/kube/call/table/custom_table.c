#include "kube/call/table/custom_table.h"

#include <stdio.h>
#include <stdlib.h>

void kube_custom_columns(const struct kube_custom *custom, struct json_writer *w)
{
    for (size_t i = 0; i < custom->column_count; i++) {
        const struct kube_custom_column *column = &custom->columns[i];
        json_begin_object(w);
        json_member_text(w, "name", column->name);
        json_member_text(w, "type", column->type);
        json_member_text(w, "format", column->format);
        json_member_text(w, "description", column->description);
        json_member_i64(w, "priority", column->priority);
        json_end_object(w);
    }
}

/* Prints an integer; a number with a fraction is truncated. */
static void print_integer(struct kube_cells *cells, const struct json_node *value)
{
    char digits[64];
    int64_t whole;
    if (value->type != JSON_TYPE_NUMBER || value->text.len >= sizeof(digits)) {
        json_null(cells->w);
        return;
    }
    slice_copy(digits, value->text);
    digits[value->text.len] = '\0';
    if (json_node_int(value, &whole)) {
        json_i64(cells->w, whole);
        return;
    }
    double number = strtod(digits, NULL);
    json_i64(cells->w, number > -9e18 && number < 9e18 ? (int64_t)number : 0);
}

static void print_date(struct kube_cells *cells, const struct json_node *value)
{
    char text[KUBE_DURATION_BYTES];
    struct slice date;
    int64_t at_s;
    if (value->type != JSON_TYPE_STRING) {
        json_null(cells->w);
        return;
    }
    snprintf(text, sizeof(text), "<invalid>");
    if (json_node_text(value, &cells->arena, &date) == ST_OK && kube_time_parse(date, &at_s))
        kube_duration_text(cells->now_s - at_s, text);
    json_text(cells->w, text);
}

/* Prints strings as they are and other values as JSON, as Kubernetes' JSONPath does. */
static void print_text(struct kube_cells *cells, const struct json_node *value)
{
    AUTO(buf_fini) struct buf text = {0};
    struct slice plain;
    enum status status = ST_OK;
    if (value->type == JSON_TYPE_STRING) {
        status = json_node_text(value, &cells->arena, &plain);
    } else {
        status = json_tree_write(value, &text);
        plain = buf_slice(&text);
    }
    if (status == ST_OK)
        json_string(cells->w, plain);
    else
        json_null(cells->w);
}

static void print_plain(struct kube_cells *cells, const struct json_node *value,
                        enum json_type type)
{
    if (value->type != type)
        json_null(cells->w);
    else if (type == JSON_TYPE_BOOL)
        json_bool(cells->w, value->truth);
    else
        json_raw(cells->w, value->text);
}

static void print_cell(struct kube_cells *cells, const struct kube_custom_column *column)
{
    const struct json_node *value =
        column->path && cells->object ? jsonpath_find(column->path, cells->object) : NULL;
    if (!value || value->type == JSON_TYPE_NULL)
        json_null(cells->w);
    else if (strcmp(column->type, "string") == 0)
        print_text(cells, value);
    else if (strcmp(column->type, "integer") == 0)
        print_integer(cells, value);
    else if (strcmp(column->type, "number") == 0)
        print_plain(cells, value, JSON_TYPE_NUMBER);
    else if (strcmp(column->type, "boolean") == 0)
        print_plain(cells, value, JSON_TYPE_BOOL);
    else
        print_date(cells, value);
}

void kube_custom_cells(const struct kube_custom *custom, struct kube_cells *cells)
{
    for (size_t i = 0; i < custom->column_count; i++)
        print_cell(cells, &custom->columns[i]);
}
