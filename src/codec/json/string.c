#include "codec/json/string.h"

#include "codec/utf8.h"

static unsigned hex_digit(uint8_t c)
{
    return c <= '9' ? (unsigned)c - '0' : ((unsigned)c | 0x20) - 'a' + 10;
}

static unsigned hex4(const uint8_t *p)
{
    return hex_digit(p[0]) << 12 | hex_digit(p[1]) << 8 | hex_digit(p[2]) << 4 | hex_digit(p[3]);
}

/* With dst NULL it only counts. */
static size_t put_char(uint8_t *dst, unsigned c)
{
    uint8_t bytes[4];
    size_t len = utf8_encode(c, bytes);
    if (dst)
        memcpy(dst, bytes, len);
    return len;
}

/* p is behind "\u". Returns the position behind the character, or NULL for half of a pair. */
static const uint8_t *take_unicode(const uint8_t *p, const uint8_t *end, unsigned *ret_char)
{
    unsigned c = hex4(p);
    p += 4;
    if (c >= 0xd800 && c < 0xe000) {
        if (c >= 0xdc00 || end - p < 6 || p[0] != '\\' || p[1] != 'u')
            return NULL;
        unsigned low = hex4(p + 2);
        if (low < 0xdc00 || low >= 0xe000)
            return NULL;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        p += 6;
    }
    *ret_char = c;
    return p;
}

static uint8_t short_escape(uint8_t c)
{
    switch (c) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return c; /* the quote and the slashes mean themselves */
    }
}

enum json_string_fault json_string_decode(struct slice raw, uint8_t *dst, size_t *ret_len)
{
    assert(raw.len >= 2);
    const uint8_t *p = raw.ptr + 1, *end = raw.ptr + raw.len - 1;
    size_t len = 0;
    while (p < end) {
        const uint8_t *backslash = memchr(p, '\\', (size_t)(end - p));
        struct slice plain = slice_of(p, (size_t)((backslash ? backslash : end) - p));
        if (!utf8_valid(plain))
            return JSON_STRING_NOT_UTF8;
        if (dst)
            slice_copy(dst + len, plain);
        len += plain.len;
        p += plain.len;
        if (p == end)
            break;
        unsigned c = short_escape(p[1]);
        p = p[1] == 'u' ? take_unicode(p + 2, end, &c) : p + 2;
        if (!p)
            return JSON_STRING_SURROGATE;
        len += put_char(dst ? dst + len : NULL, c);
    }
    *ret_len = len;
    return JSON_STRING_FINE;
}

enum json_string_fault json_string_get(const struct json_scanner *s, uint8_t *dst,
                                       struct slice *ret_text)
{
    struct slice inner = slice_sub(s->raw, 1, s->raw.len - 2);
    if (!s->escaped) {
        if (s->beyond_ascii && !utf8_valid(inner))
            return JSON_STRING_NOT_UTF8;
        *ret_text = inner;
        return JSON_STRING_FINE;
    }
    size_t len;
    enum json_string_fault fault = json_string_decode(s->raw, dst, &len);
    if (fault == JSON_STRING_FINE)
        *ret_text = slice_of(dst, len);
    return fault;
}

/* Removes the prefix from the text if it has it. */
static bool take_prefix(struct slice *text, struct slice prefix)
{
    if (!slice_has_prefix(*text, prefix))
        return false;
    *text = slice_sub(*text, prefix.len, text->len - prefix.len);
    return true;
}

bool json_escaped_is(struct slice inner, struct slice text)
{
    const uint8_t *p = inner.ptr, *end = inner.ptr + inner.len;
    while (p < end) {
        const uint8_t *backslash = memchr(p, '\\', (size_t)(end - p));
        size_t plain = (size_t)((backslash ? backslash : end) - p);
        if (!take_prefix(&text, slice_of(p, plain)))
            return false;
        p += plain;
        if (p == end)
            break;
        uint8_t bytes[4];
        unsigned c = short_escape(p[1]);
        p = p[1] == 'u' ? take_unicode(p + 2, end, &c) : p + 2;
        if (!p || !take_prefix(&text, slice_of(bytes, put_char(bytes, c))))
            return false;
    }
    return !text.len;
}

/* The decoded bytes of a string, one after the other. */
struct meaning {
    const uint8_t *at, *end;
    uint8_t held[4]; /* bytes of an escaped character */
    size_t held_at, held_len;
};

enum { NO_MORE = -1, NO_MEANING = -2 };

static int next_byte(struct meaning *m)
{
    if (m->held_at < m->held_len)
        return m->held[m->held_at++];
    if (m->at == m->end)
        return NO_MORE;
    if (*m->at != '\\')
        return *m->at++;
    unsigned c = short_escape(m->at[1]);
    m->at = m->at[1] == 'u' ? take_unicode(m->at + 2, m->end, &c) : m->at + 2;
    if (!m->at)
        return NO_MEANING;
    m->held_len = put_char(m->held, c);
    m->held_at = 1;
    return m->held[0];
}

bool json_escaped_equal(struct slice a, struct slice b)
{
    struct meaning x = {.at = a.ptr, .end = a.ptr + a.len}, y = {.at = b.ptr, .end = b.ptr + b.len};
    int byte;
    do {
        byte = next_byte(&x);
        if (byte == NO_MEANING || byte != next_byte(&y))
            return false;
    } while (byte != NO_MORE);
    return true;
}
