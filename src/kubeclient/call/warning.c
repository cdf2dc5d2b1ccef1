#include "kubeclient/call/warning.h"

#include "codec/utf8.h"

/* A program may print the text on a terminal, which control characters could change. U+0080 to
 * U+009F, which begin with the byte 0xc2, are control characters, too. */
static bool is_plain(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        bool second = i + 1 < text.len && text.ptr[i] == 0xc2 && text.ptr[i + 1] < 0xa0;
        if (text.ptr[i] < 0x20 || text.ptr[i] == 0x7f || second)
            return false;
    }
    return utf8_valid(text);
}

static struct slice after(struct slice text, size_t skipped)
{
    return slice_trim(slice_sub(text, skipped, text.len - skipped));
}

/* Appends the text of a quoted string, and removes it from *rest. */
static bool take_quoted(struct slice *rest, struct buf *text)
{
    bool escapes = false;
    if (rest->len == 0 || rest->ptr[0] != '"' || buf_reserve(text, rest->len) != ST_OK)
        return false;
    for (size_t i = 1; i < rest->len; i++) {
        uint8_t c = rest->ptr[i];
        if (c == '"' && !escapes) {
            *rest = after(*rest, i + 1);
            return true;
        }
        escapes = c == '\\' && !escapes;
        if (!escapes)
            text->ptr[text->len++] = c;
    }
    return false;
}

/* One warning of the form of RFC 7234: a code, an agent, a quoted text, and perhaps a date, which
 * is not used. A comma separates it from the next one. */
static bool take(struct slice *rest, struct buf *text)
{
    size_t before = text->len;
    uint64_t number;
    *rest = slice_trim(*rest);
    struct slice code = slice_cut(rest, ' '), agent = slice_cut(rest, ' ');
    if (code.len != 3 || !slice_decimal(code, &number) || agent.len == 0 || !is_plain(agent) ||
        !take_quoted(rest, text) ||
        !is_plain(slice_sub(buf_slice(text), before, text->len - before)))
        return false;
    if (rest->len && rest->ptr[0] == '"') {
        const uint8_t *end = memchr(rest->ptr + 1, '"', rest->len - 1);
        if (!end)
            return false;
        *rest = after(*rest, (size_t)(end - rest->ptr) + 1);
    }
    if (rest->len && rest->ptr[0] != ',')
        return false;
    if (rest->len)
        *rest = after(*rest, 1);
    return buf_append(text, slice_of("", 1)) == ST_OK;
}

bool warning_next(struct slice *rest, struct buf *text)
{
    bool taken = rest->len && take(rest, text);
    if (!taken)
        *rest = (struct slice){0};
    return taken;
}
