/* A scanner's error in the words of Go's encoding/json. */
#include "codec/json/scanner.h"

#include <stdio.h>

static const char *const places[] = {
    [JSON_TOO_DEEP] = "exceeded max depth",
    [JSON_NO_VALUE] = "looking for beginning of value",
    [JSON_NO_KEY] = "looking for beginning of object key string",
    [JSON_NO_COLON] = "after object key",
    [JSON_NO_COMMA] = "after object key:value pair",
    [JSON_NO_COMMA_A] = "after array element",
    [JSON_TRAILING] = "after top-level value",
    [JSON_CONTROL] = "in string literal",
    [JSON_ESCAPE] = "in string escape code",
    [JSON_ESCAPE_HEX] = "in \\u hexadecimal character escape",
    [JSON_DIGITS] = "in numeric literal",
    [JSON_FRACTION] = "after decimal point in numeric literal",
    [JSON_EXPONENT] = "in exponent of numeric literal",
};

/* One byte as Go quotes it: as the character with that number. */
static const char *quote(uint8_t c, char to[8])
{
    static const char names[] = "abtnvfr"; /* from 7 on */
    if (c == '\'' || c == '\\')
        snprintf(to, 8, "\\%c", c);
    else if (c >= 7 && c <= 13)
        snprintf(to, 8, "\\%c", names[c - 7]);
    else if (c < ' ' || c == 0x7f)
        snprintf(to, 8, "\\x%02x", c);
    else if (c < 0x80)
        snprintf(to, 8, "%c", c);
    else if (c <= 0xa0 || c == 0xad)
        snprintf(to, 8, "\\u%04x", c);
    else
        snprintf(to, 8, "%c%c", 0xc0 | c >> 6, 0x80 | (c & 0x3f));
    return to;
}

const char *json_fault_text(const struct json_scanner *s, char text[JSON_FAULT_TEXT_BYTES])
{
    char quoted[8];
    switch (s->fault) {
    case JSON_FINE:
        return "";
    case JSON_EMPTY:
        return "EOF";
    case JSON_CUT_OFF:
        return "unexpected EOF";
    case JSON_LITERAL:
        snprintf(text, JSON_FAULT_TEXT_BYTES,
                 "invalid character '%s' in literal %s (expecting '%c')", quote(*s->at, quoted),
                 s->word, s->wanted);
        return text;
    default:
        snprintf(text, JSON_FAULT_TEXT_BYTES, "invalid character '%s' %s", quote(*s->at, quoted),
                 places[s->fault]);
        return text;
    }
}
