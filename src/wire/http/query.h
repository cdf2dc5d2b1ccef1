/*
 * The part of a target after '?', by Go's rules: pairs between '&', "%xx" and '+' decoded; a pair
 * that holds ';' or a broken escape is passed over.
 */
#ifndef VIGIL_WIRE_HTTP_QUERY_H
#define VIGIL_WIRE_HTTP_QUERY_H

#include "base/buf.h"
#include "wire/http/field.h"

/*
 * The next pair; the value of a name without '=' is empty. *ret_pair lives in scratch until the
 * next call with it. The caller has reserved room there for the whole query and one byte, so that
 * no pair is missed for want of memory. False: there is none.
 */
bool http_query_next(struct slice *rest, struct buf *scratch, struct http_field *ret_pair);

/* The first value of that name. False: it is not there. */
bool http_query_get(struct slice query, struct slice name, struct buf *scratch,
                    struct slice *ret_value);

/* Decodes "%xx" of a path. dst has as many bytes as path. False: an escape is broken. */
bool http_path_decode(struct slice path, uint8_t *dst, size_t *ret_len);

#endif
