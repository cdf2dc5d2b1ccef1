#include "codec/json/pretty.h"

enum {
    DEPTH_SHOWN_MAX = 64
}; /* deeper levels are not indented further, so that the output stays in proportion */

static enum status new_line(size_t depth, struct buf *to)
{
    static const char blanks[] = "                                                                "
                                 "                                                                ";
    if (to->len > JSON_PRETTY_BYTES_MAX)
        return ST_LIMIT;
    TRY(buf_append_text(to, "\n"));
    return buf_append(to, slice_of(blanks, 2 * size_min(depth, DEPTH_SHOWN_MAX)));
}

/* The position behind the closing quote of a string. */
static size_t string_end(struct slice text, size_t at)
{
    for (at++; at < text.len && text.ptr[at] != '"'; at++)
        at += text.ptr[at] == '\\';
    return size_min(at + 1, text.len);
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static size_t skip_blanks(struct slice text, size_t at)
{
    while (at < text.len && is_blank(text.ptr[at]))
        at++;
    return at;
}

/* Writes an opening bracket; an empty pair stays on its line. Returns where to continue. */
static size_t open_bracket(struct slice text, size_t at, size_t *depth, struct buf *to,
                           enum status *status)
{
    size_t next = skip_blanks(text, at + 1);
    bool empty = next < text.len && (text.ptr[next] == '}' || text.ptr[next] == ']');
    *status = buf_append(to, slice_sub(text, at, 1));
    if (*status == ST_OK && empty)
        *status = buf_append(to, slice_sub(text, next, 1));
    else if (*status == ST_OK)
        *status = new_line(++*depth, to);
    return empty ? next + 1 : next;
}

static size_t plain_end(struct slice text, size_t at)
{
    while (at < text.len && !is_blank(text.ptr[at]) && !strchr("{}[]:,\"", text.ptr[at]))
        at++;
    return at;
}

enum status json_pretty(struct slice text, struct buf *to)
{
    size_t depth = 0;
    enum status status = ST_OK;
    for (size_t at = skip_blanks(text, 0); at < text.len && status == ST_OK;
         at = skip_blanks(text, at)) {
        uint8_t c = text.ptr[at];
        if (c == '{' || c == '[') {
            at = open_bracket(text, at, &depth, to, &status);
            continue;
        }
        if (c == '}' || c == ']')
            TRY(new_line(depth ? --depth : 0, to));
        size_t end = c == '"' ? string_end(text, at) : plain_end(text, at);
        end = end > at ? end : at + 1;
        TRY(buf_append(to, slice_sub(text, at, end - at)));
        if (c == ':')
            TRY(buf_append_text(to, " "));
        else if (c == ',')
            TRY(new_line(depth, to));
        at = end;
    }
    TRY(status);
    return buf_append_text(to, "\n");
}
