/*
 * A JSON string out of its quotes and escapes: what json_scanner returns for JSON_STRING and
 * JSON_KEY. The result is UTF-8 without exception: a string that is not, or that names half of a
 * surrogate pair, is refused.
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

/*
 * The token just returned as text: lies in the scanner's text if it has no escapes, else in dst,
 * which has as many bytes as the token.
 */
MUST_CHECK
enum json_string_fault json_string_get(const struct json_scanner *scanner, uint8_t *dst,
                                       struct slice *ret_text);

#endif
