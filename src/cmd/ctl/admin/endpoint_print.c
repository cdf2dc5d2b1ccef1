#include "cmd/ctl/admin/endpoint.h"

#include "cmd/ctl/print/print.h"

#include <stdarg.h>

/* Those of ASCII, and those of Latin-1 in UTF-8. */
void endpoint_tame(char *text)
{
    for (uint8_t *c = (uint8_t *)text; *c; c++)
        if (*c < ' ' || *c == 0x7f || (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0))
            *c = '?';
        else if (*c >= 0x80 && *c < 0xa0 && c > (uint8_t *)text && c[-1] == '?')
            *c = '?'; /* the rest of a character */
}

void endpoint_cell(struct endpoint_row *row, const char *format, ...)
{
    assert(row->count < ENDPOINT_CELLS_MAX);
    va_list values;
    va_start(values, format);
    vsnprintf(row->cells[row->count], ENDPOINT_CELL_BYTES, format, values);
    va_end(values);
    endpoint_tame(row->cells[row->count++]);
}

static bool is_shown(const struct endpoint_shape *shape, const struct asked *asked)
{
    return asked->response || shape->shows_errors;
}

static void write_line(struct ctl *ctl, const struct endpoint_shape *shape,
                       const struct asked *asked)
{
    if (shape->line) {
        shape->line(asked);
        return;
    }
    struct endpoint_row row = {.count = 0};
    shape->row(asked, &row);
    for (size_t i = 0; i < row.count; i++)
        fprintf(ctl->out, "%s%s", i ? ", " : "", row.cells[i]);
    fputc('\n', ctl->out);
}

static void write_each(struct ctl *ctl, const struct endpoint_shape *shape,
                       const struct asked_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct asked *asked = &list->items[i];
        if (!is_shown(shape, asked))
            continue;
        if (ctl->globals.format == CTL_FIELDS)
            shape->fields(asked);
        else
            write_line(ctl, shape, asked);
    }
}

static void write_table(struct ctl *ctl, const struct endpoint_shape *shape,
                        const struct asked_list *list)
{
    struct ctl_table *table = ctl_table_new(ctl, shape->heads, shape->head_count);
    for (size_t i = 0; i < list->count; i++) {
        struct endpoint_row row = {.count = 0};
        if (!is_shown(shape, &list->items[i]))
            continue;
        shape->row(&list->items[i], &row);
        for (size_t n = 0; n < row.count; n++)
            ctl_table_add(table, "%s", row.cells[n]);
    }
    ctl_table_write(table);
}

/* One array, or with -w jsonl one object per line. A list without items is null in 3.7, because
 * it is a slice that was never made. */
static void write_json(struct ctl *ctl, const struct endpoint_shape *shape,
                       const struct asked_list *list)
{
    bool lines = ctl->globals.format == CTL_JSONL;
    size_t written = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (!is_shown(shape, &list->items[i]))
            continue;
        if (!lines)
            fputc(written ? ',' : '[', ctl->out);
        shape->json(&list->items[i]);
        if (lines)
            fputc('\n', ctl->out);
        written++;
    }
    if (!lines && !written)
        fputs(ctl->style == CTL_ETCDCTL_3_4 ? "[]\n" : "null\n", ctl->out);
    else if (!lines)
        fputs("]\n", ctl->out);
}

int endpoint_print(struct ctl *ctl, const struct endpoint_shape *shape,
                   const struct asked_list *list)
{
    switch ((enum ctl_format)ctl->globals.format) {
    case CTL_PROTOBUF:
        return ctl_fail(ctl, CTL_BAD_FEATURE, "protobuf not supported as output format");
    case CTL_TABLE:
        write_table(ctl, shape, list);
        break;
    case CTL_JSON:
    case CTL_JSONL:
        write_json(ctl, shape, list);
        break;
    case CTL_SIMPLE:
    case CTL_FIELDS:
        write_each(ctl, shape, list);
        break;
    case CTL_UNKNOWN_FORMAT: /* there would be no client */
        break;
    }
    return ferror(ctl->out) ? CTL_IO : CTL_OK;
}
