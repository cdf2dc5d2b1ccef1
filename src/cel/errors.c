#include "cel/errors.h"

#include "codec/utf8.h"

#include <stdarg.h>
#include <stdio.h>

void cel_errors_init(struct cel_errors *errors, struct arena *arena, struct slice source)
{
    *errors = (struct cel_errors){.arena = arena, .source = source};
}

void cel_error_add(struct cel_errors *errors, uint32_t offset, const char *format, ...)
{
    assert(offset == CEL_NO_PLACE || offset <= errors->source.len);
    uint32_t at = errors->count++;
    if (!errors->list)
        errors->list = arena_calloc(errors->arena, CEL_ERRORS_MAX, sizeof(*errors->list));
    if (!errors->list || at >= CEL_ERRORS_MAX)
        return;

    char text[CEL_ERROR_BYTES_MAX];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    size_t kept = length < 0 ? 0 : size_min((size_t)length, sizeof(text) - 1);
    /* A text that is cut off may end within a character, which would make the answer invalid. */
    while (kept && !utf8_valid(slice_of(text, kept)))
        kept--;
    errors->list[at].offset = offset;
    if (arena_dup(errors->arena, slice_of(text, kept), &errors->list[at].text) != ST_OK)
        errors->list[at].text = SLICE_LITERAL("no memory for the text of this error");
}

/* The line that contains an offset, and where in it. */
struct line {
    uint32_t number; /* from 1 */
    struct slice text;
    size_t bytes_before; /* bytes of the line before the place */
};

static struct line find_line(struct slice source, uint32_t offset)
{
    struct line line = {.number = 1};
    size_t begin = 0;
    for (size_t i = 0; i < offset; i++)
        if (source.ptr[i] == '\n') {
            line.number++;
            begin = i + 1;
        }
    size_t end = begin;
    while (end < source.len && source.ptr[end] != '\n')
        end++;
    line.text = slice_sub(source, begin, end - begin);
    line.bytes_before = offset - begin;
    return line;
}

/* The line of dots below a snippet. A character of several bytes gets a wide dot, as most of them
 * are wide in East Asian text. */
static enum status append_pointer(const struct line *line, struct buf *to)
{
    size_t at = 0;
    enum status status = buf_append_text(to, "\n | ");
    while (status == ST_OK && at < line->bytes_before) {
        size_t len = utf8_char_len(slice_sub(line->text, at, line->text.len - at));
        status = buf_append_text(to, len > 1 ? "\uff0e" : ".");
        at += len ? len : 1;
    }
    bool wide =
        at < line->text.len && utf8_char_len(slice_sub(line->text, at, line->text.len - at)) > 1;
    return status == ST_OK ? buf_append_text(to, wide ? "\uff3e" : "^") : status;
}

static enum status append_snippet(const struct line *line, struct buf *to)
{
    enum status status = buf_append_text(to, "\n | ");
    size_t from = to->len;
    if (status == ST_OK)
        status = buf_append(to, line->text);
    if (status != ST_OK)
        return status;
    for (size_t i = from; i < to->len; i++)
        if (to->ptr[i] == '\t')
            to->ptr[i] = ' ';
    return append_pointer(line, to);
}

static enum status display_one(const struct cel_errors *errors, const struct cel_error *error,
                               struct buf *to)
{
    if (error->offset == CEL_NO_PLACE)
        return buf_append_format(to, "ERROR: <input>:-1:0: %.*s", SLICE_ARGS(error->text));
    /* An empty text has no line. */
    if (errors->source.len == 0)
        return buf_append_format(to, "ERROR: <input>:1:0: %.*s", SLICE_ARGS(error->text));
    struct line line = find_line(errors->source, error->offset);
    size_t column = utf8_count(slice_sub(line.text, 0, line.bytes_before)) + 1;
    enum status status = buf_append_format(to, "ERROR: <input>:%u:%zu: %.*s", line.number, column,
                                           SLICE_ARGS(error->text));
    if (status != ST_OK || line.text.len > CEL_SNIPPET_BYTES_MAX)
        return status;
    return append_snippet(&line, to);
}

/* A stable insertion sort: there are few, and nearly all are in order. CEL_NO_PLACE comes first. */
static void sort_by_place(const struct cel_errors *errors, uint32_t count,
                          uint8_t order[CEL_ERRORS_MAX])
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;
        /* The addition makes CEL_NO_PLACE zero, and so smaller than every offset. */
        for (; at && errors->list[order[at - 1]].offset + 1 > errors->list[i].offset + 1; at--)
            order[at] = order[at - 1];
        order[at] = (uint8_t)i;
    }
}

enum status cel_errors_display(const struct cel_errors *errors, struct buf *to)
{
    uint8_t order[CEL_ERRORS_MAX];
    uint32_t shown = errors->list ? (uint32_t)size_min(errors->count, CEL_ERRORS_MAX) : 0;
    enum status status = ST_OK;
    sort_by_place(errors, shown, order);
    for (uint32_t i = 0; status == ST_OK && i < shown; i++) {
        if (i)
            status = buf_append_text(to, "\n");
        if (status == ST_OK)
            status = display_one(errors, &errors->list[order[i]], to);
    }
    if (status == ST_OK && errors->count > shown)
        status = buf_append_format(to, "%s%u more errors were truncated", shown ? "\n" : "",
                                   errors->count - shown);
    return status;
}
