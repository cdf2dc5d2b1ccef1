/* Texts in quotes, as Go's %q writes them. */
#include "cmd/ctl/print/print.h"
#include "codec/utf8.h"

#include <locale.h>
#include <wctype.h>

static uint32_t decode(struct slice rest, size_t len)
{
    uint32_t c = rest.ptr[0];
    if (len > 1)
        c &= 0x7fu >> len;
    for (size_t i = 1; i < len; i++)
        c = c << 6 | (rest.ptr[i] & 0x3fu);
    return c;
}

/* Letters, marks, digits, punctuation and symbols are printable for Go. The C library also counts
 * spaces, format characters and private ones. */
static bool is_printable(uint32_t c)
{
    static const uint32_t others[][2] = {
        {0x80, 0xa0},       {0xad, 0xad},       {0x600, 0x605},     {0x61c, 0x61c},
        {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x890, 0x891},     {0x8e2, 0x8e2},
        {0x1680, 0x1680},   {0x180e, 0x180e},   {0x2000, 0x200f},   {0x2028, 0x202f},
        {0x205f, 0x206f},   {0x3000, 0x3000},   {0xe000, 0xf8ff},   {0xfeff, 0xfeff},
        {0xfff9, 0xfffb},   {0x110bd, 0x110bd}, {0x110cd, 0x110cd}, {0x13430, 0x1343f},
        {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0001, 0xe007f}, {0xf0000, 0x10ffff},
    };
    static locale_t unicode;
    for (size_t i = 0; i < COUNT_OF(others); i++)
        if (c >= others[i][0] && c <= others[i][1])
            return false;
    if (!unicode)
        unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", 0);
    return unicode ? iswprint_l((wint_t)c, unicode) : true;
}

static void write_ascii(FILE *to, uint8_t c)
{
    static const char letters[] = "abtnvfr"; /* letters that escape the characters 7 to 13 */
    if (c >= 7 && c <= 13)
        fprintf(to, "\\%c", letters[c - 7]);
    else if (c == '"' || c == '\\')
        fprintf(to, "\\%c", c);
    else if (c < 32 || c >= 0x7f)
        fprintf(to, "\\x%02x", c);
    else
        fputc(c, to);
}

static size_t write_character(FILE *to, struct slice rest)
{
    size_t len = utf8_char_len(rest);
    if (rest.ptr[0] < 0x80 || len == 0) {
        write_ascii(to, rest.ptr[0]);
        return 1;
    }
    uint32_t c = decode(rest, len);
    if (is_printable(c))
        fwrite(rest.ptr, 1, len, to);
    else
        fprintf(to, c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
    return len;
}

void ctl_write_quoted(FILE *to, struct slice text)
{
    fputc('"', to);
    while (text.len) {
        size_t len = write_character(to, text);
        text = slice_sub(text, len, text.len - len);
    }
    fputc('"', to);
}
