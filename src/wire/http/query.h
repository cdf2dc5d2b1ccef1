/*
 * The part of a target after '?', parsed as Go does: pairs are separated by '&', "%xx" and '+' are
 * decoded, and a pair with ';' or a malformed escape is skipped.
 */
#ifndef VIGIL_WIRE_HTTP_QUERY_H
#define VIGIL_WIRE_HTTP_QUERY_H

#include "base/buf.h"
#include "wire/http/field.h"

/*
 * The next pair; the value of a name without '=' is empty. *ret_pair lives in scratch until the
 * next call. The caller has reserved room in scratch for the whole query and one byte more, so that
 * no pair is lost because there is no memory. False: there are no more.
 */
bool http_query_next(struct slice *rest, struct buf *scratch, struct http_field *ret_pair);

/* The first value of that name. False: there is no such name. */
bool http_query_get(struct slice query, struct slice name, struct buf *scratch,
                    struct slice *ret_value);

/* Decodes "%xx" in a path. dst has room for as many bytes as path. False: an escape is malformed.
 */
bool http_path_decode(struct slice path, uint8_t *dst, size_t *ret_len);

/* Appends a text with "%XX" for all bytes but letters, digits, "-", "_", "." and "~", and those of
 * `kept`. ST_NOMEM. */
MUST_CHECK
enum status http_escape_append(struct buf *to, struct slice text, const char *kept);

#endif
