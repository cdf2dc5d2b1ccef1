#include "cmd/ctl/kv/words.h"

#include "base/xalloc.h"
#include "codec/utf8.h"

#include <ctype.h>

/* -- quoted texts -- */

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
}

/* A number of exactly this many digits; moves *at. */
static bool read_digits(const char **at, unsigned count, unsigned base, uint32_t *ret_number)
{
    uint32_t number = 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned digit = (unsigned)digit_of((*at)[i]);
        if (digit >= base)
            return false;
        number = number * base + digit;
    }
    *at += count;
    *ret_number = number;
    return true;
}

static bool is_character(uint32_t c)
{
    return c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
}

/* What follows a backslash. Escapes are never shorter than what they stand for. */
static bool read_escape(const char **at, uint8_t **to)
{
    static const char letters[] = "abtnvfr"; /* for 7 to 13 */
    char c = *(*at)++;
    uint32_t number;
    const char *letter = c ? strchr(letters, c) : NULL;
    if (letter)
        *(*to)++ = (uint8_t)(7 + (letter - letters));
    else if (c == '\\' || c == '"')
        *(*to)++ = (uint8_t)c;
    else if (c == 'x' && read_digits(at, 2, 16, &number))
        *(*to)++ = (uint8_t)number;
    else if ((c == 'u' && read_digits(at, 4, 16, &number) && is_character(number)) ||
             (c == 'U' && read_digits(at, 8, 16, &number) && is_character(number)))
        *to += utf8_encode(number, *to);
    else if (c >= '0' && c <= '3' && ((*at)--, read_digits(at, 3, 8, &number)))
        *(*to)++ = (uint8_t)number;
    else
        return false;
    return true;
}

static bool read_double(const char **at, const char *end, uint8_t *memory, struct slice *ret_text)
{
    uint8_t *to = memory;
    const char *from = *at + 1;
    while (*from != '"') {
        /* As in Go, a text in double quotes ends in its line. */
        if (from >= end || *from == '\n')
            return false;
        if (*from != '\\')
            *to++ = (uint8_t)*from++;
        else if (from++, !read_escape(&from, &to))
            return false;
    }
    *to = 0;
    *ret_text = slice_of(memory, (size_t)(to - memory));
    *at = from + 1;
    return true;
}

bool line_quoted(struct arena *arena, const char **at, const char *end, struct slice *ret_text)
{
    size_t room = (size_t)(end - *at) + 1;
    uint8_t *memory = xalloc_check(arena_alloc(arena, room), room);
    if (**at == '"')
        return read_double(at, end, memory, ret_text);
    const char *quote = **at == '`' ? memchr(*at + 1, '`', room - 2) : NULL;
    if (!quote)
        return false;
    size_t len = (size_t)(quote - *at) - 1;
    memcpy(memory, *at + 1, len);
    memory[len] = 0;
    *ret_text = slice_of(memory, len);
    *at = quote + 1;
    return true;
}

/* -- lines -- */

static struct slice copy(struct arena *arena, const char *from, size_t len)
{
    char *text = xalloc_check(arena_alloc(arena, len + 1), len);
    memcpy(text, from, len);
    text[len] = 0;
    return slice_of(text, len);
}

/* Whether a quote at this place has an end. */
static bool is_closed(const char *at, const char *end)
{
    const char *from = at + 1;
    for (; from < end && *from != *at; from++)
        if (*at == '"' && *from == '\\' && from + 1 < end)
            from++;
    return from < end;
}

/* The next word; moves *at. False: its escapes are wrong. */
static bool next_word(struct arena *arena, const char **at, const char *end, struct slice *ret_word)
{
    const char *from = *at;
    if (*from == '"')
        return line_quoted(arena, at, end, ret_word);
    if (*from == '\'') {
        const char *quote = memchr(from + 1, '\'', (size_t)(end - from) - 1);
        *at = quote + 1;
        *ret_word = copy(arena, from + 1, (size_t)(quote - from) - 1);
        return true;
    }
    while (*at < end && !isspace((unsigned char)**at))
        (*at)++;
    *ret_word = copy(arena, from, (size_t)(*at - from));
    return true;
}

bool line_split(struct arena *arena, struct slice line, struct line_words *ret_words)
{
    const char *at = (const char *)line.ptr, *end = at + line.len;
    ret_words->count = 0;
    while (at < end) {
        bool quote = *at == '"' || *at == '\'';
        /* As in etcdctl, a quote without an end is dropped. */
        if (isspace((unsigned char)*at) || (quote && !is_closed(at, end))) {
            at++;
            continue;
        }
        struct slice word;
        if (!next_word(arena, &at, end, &word) || ret_words->count == LINE_WORDS_MAX)
            return false;
        ret_words->words[ret_words->count] = (const char *)word.ptr;
        ret_words->lens[ret_words->count++] = word.len;
    }
    return true;
}
