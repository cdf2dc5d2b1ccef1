#include "kubeclient/call/warning.h"

#include "codec/utf8.h"

static bool is_code(struct slice text)
{
    uint64_t code;
    return text.len == 3 && slice_decimal(text, &code);
}

/* U+0080 to U+009F are control characters, too. */
static bool has_control(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        bool second = i + 1 < text.len && text.ptr[i] == 0xc2 && text.ptr[i + 1] < 0xa0;
        if (text.ptr[i] < 0x20 || text.ptr[i] == 0x7f || second)
            return true;
    }
    return false;
}

static bool is_plain(struct slice text)
{
    return utf8_valid(text) && !has_control(text);
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

/* The date is not used. */
static bool skip_date(struct slice *rest)
{
    if (rest->len == 0 || rest->ptr[0] != '"')
        return true;
    const uint8_t *end = memchr(rest->ptr + 1, '"', rest->len - 1);
    if (!end)
        return false;
    *rest = after(*rest, (size_t)(end - rest->ptr) + 1);
    return true;
}

static bool skip_comma(struct slice *rest)
{
    if (rest->len == 0)
        return true;
    if (rest->ptr[0] != ',')
        return false;
    *rest = after(*rest, 1);
    return true;
}

static bool take(struct slice *rest, struct buf *text)
{
    size_t before = text->len;
    *rest = slice_trim(*rest);
    struct slice code = slice_cut(rest, ' '), agent = slice_cut(rest, ' ');
    if (!is_code(code) || agent.len == 0 || !is_plain(agent) || !take_quoted(rest, text))
        return false;
    return is_plain(slice_sub(buf_slice(text), before, text->len - before)) && skip_date(rest) &&
           skip_comma(rest) && buf_append(text, slice_of("", 1)) == ST_OK;
}

bool warning_next(struct slice *rest, struct buf *text)
{
    bool taken = rest->len && take(rest, text);
    if (!taken)
        *rest = (struct slice){0};
    return taken;
}
