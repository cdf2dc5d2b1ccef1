/* Decodes JSON strings: the tokens that json_scanner returns for JSON_STRING and JSON_KEY. The
 * result is always UTF-8: a string that is not, or that has half of a surrogate pair, is refused.
 */
#ifndef VIGIL_CODEC_JSON_STRING_H
#define VIGIL_CODEC_JSON_STRING_H

#include "codec/json/scanner.h"

enum json_string_fault {
    JSON_STRING_FINE,
    JSON_STRING_NOT_UTF8,
    JSON_STRING_SURROGATE, /* half of a pair */
};

/* Writes at most raw.len bytes to dst, or none if it is NULL. raw was checked by a scanner. */
MUST_CHECK
enum json_string_fault json_string_decode(struct slice raw, uint8_t *dst, size_t *ret_len);

/* The token just returned, decoded: in the scanner's text if it has no escapes, else in dst, which
 * has as many bytes as the token. */
MUST_CHECK
enum json_string_fault json_string_get(const struct json_scanner *scanner, uint8_t *dst,
                                       struct slice *ret_text);

/* Whether the bytes between a string's quotes decode to this text; also works for numbers and
 * literals. Half of a surrogate pair equals nothing. */
bool json_escaped_is(struct slice inner, struct slice text);
/* Whether two such strings decode to the same text. Uses no memory, and time in proportion to the
 * shorter one. */
bool json_escaped_equal(struct slice a, struct slice b);
static inline bool json_inner_is(struct slice inner, struct slice text)
{
    /* An escape is longer than the character it encodes. */
    if (LIKELY(inner.len == text.len))
        return slice_equal(inner, text) && (!text.len || !memchr(text.ptr, '\\', text.len));
    return inner.len > text.len && memchr(inner.ptr, '\\', inner.len) &&
           json_escaped_is(inner, text);
}

/* Whether the key or string just returned decodes to this text. */
static inline bool json_token_is(const struct json_scanner *scanner, struct slice text)
{
    struct slice inner = slice_sub(scanner->raw, 1, scanner->raw.len - 2);
    return LIKELY(!scanner->escaped) ? slice_equal(inner, text) : json_escaped_is(inner, text);
}

#endif
