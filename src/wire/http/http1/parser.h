/*
 * A strict parser of the heads of HTTP/1.1 requests and responses, and of chunk sizes. A lax one
 * would let a message hide inside another: no folded lines, no bare LF, no space before a colon, at
 * most one Content-Length and never together with Transfer-Encoding. No state; slices point into
 * the given bytes.
 */
#ifndef VIGIL_WIRE_HTTP_HTTP1_PARSER_H
#define VIGIL_WIRE_HTTP_HTTP1_PARSER_H

#include "wire/http/exchange.h"

enum { HTTP1_FIELDS_MAX = 128 }; /* http1_limits.fields_max is at most this */

struct http1_head {
    struct http_request request; /* without its body; the caller sets fields */
    struct http_field fields[HTTP1_FIELDS_MAX];
    size_t content_length;
    bool chunked;
    bool expects_continue;
};

/* The length of a complete head, including the empty line; 0: it is not complete. *from is where
 * the search continues, and is updated. */
size_t http1_head_length(struct slice bytes, size_t *from);

/* bytes: one complete head. 0 on success, otherwise the HTTP status to refuse it with. */
unsigned http1_head_parse(struct slice bytes, size_t fields_max, struct http1_head *head);

/* The head of a response. */
struct http1_response {
    unsigned status;
    uint8_t minor;
    bool keep_alive; /* the connection may be used for another request */
    bool chunked;
    bool has_length; /* neither this nor chunked: the body ends with the connection */
    size_t content_length;
    struct http_field fields[HTTP1_FIELDS_MAX];
    size_t field_count;
};

/* bytes: one complete head. NULL on success, otherwise what is wrong with it. */
const char *http1_response_parse(struct slice bytes, size_t fields_max,
                                 struct http1_response *ret_response);
/* The first field with that name, in any case of letters, or false. */
bool http1_response_get(const struct http1_response *response, struct slice name,
                        struct slice *ret_value);

/* A request of a client may contain these: a method or the name of a field, a target, the value of
 * a field. */
bool http1_is_token(struct slice text);
bool http1_is_target(struct slice text);
bool http1_is_field_value(struct slice text);

/* Parses a chunk-size line without its CRLF; extensions are ignored. False: it is malformed. */
bool http1_chunk_size(struct slice line, size_t *ret_size);

#endif
