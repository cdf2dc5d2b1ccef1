#include "codec/go_quote.h"

#include "base/macros.h"
#include "codec/utf8.h"

#include <stdio.h>
#include <stdlib.h>

enum { ESCAPE_BYTES = 11 }; /* "\U0010ffff" and a zero byte */

struct range {
    uint32_t first, last;
};

static const struct range printable[] = {
#include "codec/printable.inc"
};

static int order(const void *key, const void *row)
{
    uint32_t character = *(const uint32_t *)key;
    const struct range *range = row;
    return character < range->first ? -1 : character > range->last;
}

/* The value of a valid character. */
static uint32_t decode(const uint8_t *bytes, size_t length)
{
    uint32_t character = length == 1 ? bytes[0] : bytes[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++)
        character = character << 6 | (bytes[i] & 0x3f);
    return character;
}

/* The length of the escape of a character, or 0 if it needs none. */
static size_t escape(uint32_t c, char *to)
{
    static const char letters[] = "abfnrtv\\\"", bytes[] = "\a\b\f\n\r\t\v\\\"";
    const char *at = c && c < 0x80 ? strchr(bytes, (int)c) : NULL;
    if (at)
        return (size_t)snprintf(to, ESCAPE_BYTES, "\\%c", letters[at - bytes]);
    if (c < 0x20 || c == 0x7f)
        return (size_t)snprintf(to, ESCAPE_BYTES, "\\x%02x", (unsigned)c);
    if (c < 0x7f || bsearch(&c, printable, COUNT_OF(printable), sizeof(printable[0]), order))
        return 0;
    return (size_t)snprintf(to, ESCAPE_BYTES, c < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)c);
}

size_t go_quoted(struct slice text, char *to)
{
    size_t at = 0;
    to[at++] = '"';
    while (text.len) {
        size_t length = utf8_char_len(text), written = 0;
        if (!length)
            written = (size_t)snprintf(to + at, ESCAPE_BYTES, "\\x%02x", text.ptr[0]);
        else
            written = escape(decode(text.ptr, length), to + at);
        length = length ? length : 1;
        if (!written) {
            memcpy(to + at, text.ptr, length);
            written = length;
        }
        at += written;
        text = slice_sub(text, length, text.len - length);
    }
    to[at++] = '"';
    to[at] = '\0';
    return at;
}
