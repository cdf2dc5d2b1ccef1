#include "codec/json/field_fault.h"

#include <stdio.h>

/* The escape of a byte, or NULL if it needs none. */
static const char *escape_of(uint8_t c, char text[8])
{
    static const char letters[] = "abfnrtv", bytes[] = "\a\b\f\n\r\t\v";
    const char *at = c ? strchr(bytes, c) : NULL;
    if (c == '"' || c == '\\')
        snprintf(text, 8, "\\%c", c);
    else if (at)
        snprintf(text, 8, "\\%c", letters[at - bytes]);
    else if (c < 0x20 || c == 0x7f)
        snprintf(text, 8, "\\x%02x", c);
    else
        return NULL;
    return text;
}

enum status go_escape(struct slice text, struct buf *to)
{
    char escape[8];
    size_t plain = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (!escape_of(text.ptr[i], escape))
            continue;
        TRY(buf_append(to, slice_sub(text, plain, i - plain)));
        TRY(buf_append_text(to, escape));
        plain = i + 1;
    }
    return buf_append(to, slice_sub(text, plain, text.len - plain));
}

enum status field_fault_append(struct buf *to, const char *what, struct slice path)
{
    TRY(buf_append_format(to, "%s%s \"", to->len ? ", " : "", what));
    TRY(go_escape(path, to));
    return buf_append_text(to, "\"");
}
