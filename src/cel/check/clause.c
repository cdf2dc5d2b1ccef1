#include "cel/check/clause.h"

#include "codec/go_quote.h"
#include "codec/utf8.h"

#include <stdarg.h>
#include <stdio.h>

#define KIND(name) (1u << CEL_TYPE_##name)

enum {
    WHOLE = KIND(INT) | KIND(UINT),
    PLAIN = WHOLE | KIND(DOUBLE) | KIND(BOOL) | KIND(STRING) | KIND(BYTES) | KIND(TIMESTAMP) |
            KIND(DURATION) | KIND(TYPE) | KIND(NULL),
};

static const struct verb {
    char letter;
    uint32_t kinds;
    const char *refusal;
} verbs[] = {
    {'s', PLAIN | KIND(LIST) | KIND(MAP),
     "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, "
     "durations, and timestamps"},
    {'d', WHOLE, "decimal clause can only be used on integers"},
    {'f', KIND(DOUBLE) | KIND(STRING), "fixed-point clause can only be used on doubles"},
    {'e', KIND(DOUBLE) | KIND(STRING), "scientific clause can only be used on doubles"},
    {'b', WHOLE | KIND(BOOL), "only integers and bools can be formatted as binary"},
    {'x', WHOLE | KIND(STRING) | KIND(BYTES),
     "only integers, byte buffers, and strings can be formatted as hex"},
    {'X', WHOLE | KIND(STRING) | KIND(BYTES),
     "only integers, byte buffers, and strings can be formatted as hex"},
    {'o', WHOLE, "octal clause can only be used on integers"},
};

static const struct verb *find_verb(uint8_t letter)
{
    for (size_t i = 0; i < COUNT_OF(verbs); i++)
        if ((uint8_t)verbs[i].letter == letter)
            return &verbs[i];
    return NULL;
}

enum cel_part cel_format_next(struct slice *rest, struct slice *ret_text)
{
    if (!rest->len)
        return CEL_PART_END;
    size_t length = 0;
    if (rest->ptr[0] != '%') {
        const uint8_t *at = memchr(rest->ptr, '%', rest->len);
        length = at ? (size_t)(at - rest->ptr) : rest->len;
        *ret_text = slice_sub(*rest, 0, length);
    } else if (rest->len > 1 && rest->ptr[1] == '%') {
        length = 2;
        *ret_text = slice_sub(*rest, 0, 1);
    } else {
        return CEL_PART_CLAUSE;
    }
    *rest = slice_sub(*rest, length, rest->len - length);
    return CEL_PART_TEXT;
}

/* A text in the arena. */
static struct slice explain(struct arena *arena, const char *format, ...) PRINTF_LIKE(2, 3);

static struct slice explain(struct arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = length < 0 ? NULL : arena_alloc(arena, (size_t)length + 1);
    if (!text)
        return SLICE_LITERAL("no memory for the text of this error");
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return slice_of(text, (size_t)length);
}

static const char *quoted(struct arena *arena, struct slice text)
{
    char *to = arena_alloc(arena, go_quote_room(text.len));
    if (to)
        go_quoted(text, to);
    return to ? to : "";
}

#define BAD_PRECISION "could not parse formatting clause: error while parsing precision: "

/* What strconv.Atoi reads from digits. */
static bool read_precision(struct arena *arena, struct slice digits, int64_t *ret_precision,
                           struct slice *ret_error)
{
    int64_t precision = 0;
    bool fits = true;
    for (size_t i = 0; i < digits.len; i++)
        fits = fits && !__builtin_mul_overflow(precision, 10, &precision) &&
               !__builtin_add_overflow(precision, digits.ptr[i] - '0', &precision);
    *ret_precision = precision;
    if (digits.len && fits)
        return true;
    *ret_error = explain(
        arena,
        BAD_PRECISION "error while converting precision to integer: strconv.Atoi: parsing %s: %s",
        quoted(arena, digits), digits.len ? "value out of range" : "invalid syntax");
    return false;
}

bool cel_clause_read(struct arena *arena, struct slice text, uint32_t index, uint32_t args,
                     struct cel_clause *ret_clause, struct slice *ret_error)
{
    size_t at = 1;
    if (text.len == 1)
        *ret_error = SLICE_LITERAL("unexpected end of string");
    if (index >= args)
        *ret_error = explain(arena, "index %u out of range", index);
    if (text.len == 1 || index >= args)
        return false;
    ret_clause->has_precision = text.ptr[at] == '.';
    if (ret_clause->has_precision) {
        size_t begin = ++at;
        while (at < text.len && text.ptr[at] >= '0' && text.ptr[at] <= '9')
            at++;
        if (at == text.len) {
            *ret_error = SLICE_LITERAL(BAD_PRECISION "could not find end of precision specifier");
            return false;
        }
        if (!read_precision(arena, slice_sub(text, begin, at - begin), &ret_clause->precision,
                            ret_error))
            return false;
    }
    if (!find_verb(text.ptr[at])) {
        /* The byte as a character of its own, even if it is a part of one. */
        uint8_t character[4];
        int length = (int)utf8_encode(text.ptr[at], character);
        *ret_error = explain(
            arena, "could not parse formatting clause: unrecognized formatting clause \"%.*s\"",
            length, (const char *)character);
        return false;
    }
    ret_clause->verb = (char)text.ptr[at];
    ret_clause->length = at + 1;
    return true;
}

bool cel_clause_accepts(char verb, const struct cel_type *type)
{
    return find_verb((uint8_t)verb)->kinds >> type->kind & 1;
}

struct slice cel_clause_refusal(struct arena *arena, char verb, const struct cel_type *type)
{
    return explain(arena, "error during formatting: %s, was given %s",
                   find_verb((uint8_t)verb)->refusal, type->name);
}
