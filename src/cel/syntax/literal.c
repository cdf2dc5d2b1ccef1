#include "cel/syntax/literal.h"

#include "codec/utf8.h"

#include <errno.h>
#include <stdlib.h>

/* -- Numbers -- */

static unsigned hex_digit(uint8_t c)
{
    return c <= '9' ? c - (unsigned)'0' : (c | 0x20u) - 'a' + 10;
}

/* False: it needs more than 64 bits. */
static bool read_integer(struct slice digits, uint64_t *ret_value)
{
    unsigned base = 10;
    if (digits.len > 2 && digits.ptr[1] == 'x') {
        base = 16;
        digits = slice_sub(digits, 2, digits.len - 2);
    }
    uint64_t value = 0;
    for (size_t i = 0; i < digits.len; i++)
        if (__builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, hex_digit(digits.ptr[i]), &value))
            return false;
    *ret_value = value;
    return true;
}

static bool read_int(struct slice digits, bool negative, int64_t *ret_value)
{
    uint64_t magnitude;
    if (!read_integer(digits, &magnitude) || magnitude > (uint64_t)INT64_MAX + negative)
        return false;
    *ret_value = (int64_t)(negative ? 0 - magnitude : magnitude);
    return true;
}

/* Digits without end are a number, too: its copy is in the arena. False: too large, or no memory.
 */
static bool read_double(struct arena *arena, struct slice digits, bool negative, double *ret_value)
{
    char *text = arena_alloc(arena, digits.len + 1);
    if (!text)
        return false;
    slice_copy(text, digits);
    text[digits.len] = 0;
    errno = 0;
    double value = strtod(text, NULL);
    /* ERANGE is also the answer for numbers near zero, which are valid. */
    if (errno == ERANGE && (value > 1 || value < -1))
        return false;
    *ret_value = negative ? -value : value;
    return true;
}

/* -- Texts -- */

static uint8_t plain_escape(uint8_t c)
{
    switch (c) {
    case 'a':
        return '\a';
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
    case 'v':
        return '\v';
    default:
        return c;
    }
}

/* A text while its escapes are decoded. The lexer has verified their form. */
struct decoding {
    const uint8_t *from, *end;
    uint8_t *to;
    bool is_bytes;
    const char *wrong; /* why it cannot be decoded, or NULL */
};

/* Decodes the escape whose letter is at d->from. */
static void decode_escape(struct decoding *d)
{
    uint8_t letter = *d->from++;
    bool is_octal = letter >= '0' && letter <= '3';
    int digits = letter == 'x' || letter == 'X' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
    if (!digits && !is_octal) {
        *d->to++ = plain_escape(letter);
        return;
    }
    uint32_t c = is_octal ? hex_digit(letter) : 0;
    for (int i = 0; i < (is_octal ? 2 : digits); i++)
        c = c * (is_octal ? 8 : 16) + hex_digit(*d->from++);
    if (d->is_bytes && digits > 2)
        d->wrong = "unable to unescape string";
    else if (!d->is_bytes && ((c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff))
        d->wrong = "invalid unicode code point";
    else if (d->is_bytes)
        *d->to++ = (uint8_t)c;
    else
        d->to += utf8_encode(c, d->to);
}

/* Decodes what is between the quotes. Carriage returns become line feeds in every text. */
static void decode(struct decoding *d, bool raw)
{
    while (d->from < d->end && !d->wrong) {
        uint8_t c = *d->from++;
        if (c == '\r') {
            *d->to++ = '\n';
            if (d->from < d->end && *d->from == '\n')
                d->from++;
        } else if (c == '\\' && !raw) {
            decode_escape(d);
        } else {
            *d->to++ = c;
        }
    }
}

static bool read_text(struct cel_errors *errors, const struct cel_token *token, uint32_t offset,
                      struct slice *ret_text)
{
    struct slice text = token->text;
    bool is_bytes = token->kind == CEL_TOKEN_BYTES;
    if (is_bytes)
        text = slice_sub(text, 1, text.len - 1);
    bool raw = text.ptr[0] == 'r' || text.ptr[0] == 'R';
    if (raw)
        text = slice_sub(text, 1, text.len - 1);
    bool triple = text.len >= 6 && text.ptr[1] == text.ptr[0] && text.ptr[2] == text.ptr[0];
    size_t quotes = triple ? 3 : 1;
    text = slice_sub(text, quotes, text.len - 2 * quotes);
    bool is_plain = text.len == 0 || (!memchr(text.ptr, '\r', text.len) &&
                                      (raw || !memchr(text.ptr, '\\', text.len)));
    if (is_plain) {
        *ret_text = text;
        return true;
    }

    /* No escape becomes longer than it was written. */
    uint8_t *decoded = arena_alloc(errors->arena, text.len);
    if (!decoded)
        return false;
    struct decoding d = {
        .from = text.ptr, .end = text.ptr + text.len, .to = decoded, .is_bytes = is_bytes};
    decode(&d, raw);
    if (d.wrong) {
        cel_error_add(errors, offset, "%s", d.wrong);
        return false;
    }
    *ret_text = slice_of(decoded, (size_t)(d.to - decoded));
    return true;
}

static bool check_number(struct cel_errors *errors, uint32_t offset, const char *kind, bool valid)
{
    if (!valid && !arena_ran_out(errors->arena))
        cel_error_add(errors, offset, "invalid %s literal", kind);
    return valid;
}

bool cel_read_literal(struct cel_errors *errors, const struct cel_token *token, bool negative,
                      uint32_t offset, struct cel_literal *ret_literal)
{
    switch (token->kind) {
    case CEL_TOKEN_INT:
        ret_literal->kind = CEL_LITERAL_INT;
        return check_number(errors, offset, "int",
                            read_int(token->text, negative, &ret_literal->i64));
    case CEL_TOKEN_UINT:
        ret_literal->kind = CEL_LITERAL_UINT;
        return check_number(
            errors, offset, "uint",
            read_integer(slice_sub(token->text, 0, token->text.len - 1), &ret_literal->u64));
    case CEL_TOKEN_DOUBLE:
        ret_literal->kind = CEL_LITERAL_DOUBLE;
        return check_number(
            errors, offset, "double",
            read_double(errors->arena, token->text, negative, &ret_literal->number));
    case CEL_TOKEN_TRUE:
    case CEL_TOKEN_FALSE:
        ret_literal->kind = CEL_LITERAL_BOOL;
        ret_literal->truth = token->kind == CEL_TOKEN_TRUE;
        return true;
    case CEL_TOKEN_NULL:
        ret_literal->kind = CEL_LITERAL_NULL;
        return true;
    case CEL_TOKEN_STRING:
    case CEL_TOKEN_BYTES:
        ret_literal->kind =
            token->kind == CEL_TOKEN_STRING ? CEL_LITERAL_STRING : CEL_LITERAL_BYTES;
        return read_text(errors, token, offset, &ret_literal->text);
    default:
        abort(); /* the caller passes only literals */
    }
}
