/*
 * Finds the pieces and the end of an HTTP/1.1 body: of a known length, in chunks, or up to the end
 * of the connection. Both roles use it. Nothing is kept or copied; an incomplete line is left with
 * the caller until more has arrived.
 *
 *     length ─────────────────────────────┐
 *     chunk size ──► trailers ────────────┴──► done
 *       ▲  └──► chunk data ──► chunk end ─┐
 *       └─────────────────────────────────┘
 *     until close
 */
#ifndef VIGIL_WIRE_HTTP_HTTP1_BODY_H
#define VIGIL_WIRE_HTTP_HTTP1_BODY_H

#include "base/slice.h"

/* A line with a chunk size and its extensions. */
enum { HTTP1_CHUNK_LINE_MAX = 1024 };

enum http1_body_state {
    HTTP1_BODY_DONE,
    HTTP1_BODY_LENGTH,
    HTTP1_BODY_CHUNK_SIZE,
    HTTP1_BODY_CHUNK_DATA,
    HTTP1_BODY_CHUNK_END, /* the CRLF after a chunk */
    HTTP1_BODY_TRAILERS,  /* read and dropped */
    HTTP1_BODY_UNTIL_CLOSE,
};

struct http1_body {
    enum http1_body_state state;
    size_t left; /* rest of the body or chunk */
    size_t trailer_bytes;
    const char *fault; /* after HTTP1_BODY_IS_BAD */
    unsigned status;   /* the same: with which a server refuses it */
};

static inline void http1_body_of_length(struct http1_body *body, size_t length)
{
    *body =
        (struct http1_body){.state = length ? HTTP1_BODY_LENGTH : HTTP1_BODY_DONE, .left = length};
}
void http1_body_in_chunks(struct http1_body *body);
void http1_body_until_close(struct http1_body *body);

enum http1_body_result {
    HTTP1_BODY_WAITS,     /* for more input */
    HTTP1_BODY_HAS_PIECE, /* a part of the body */
    HTTP1_BODY_IS_DONE,
    HTTP1_BODY_IS_BAD,
};

/* Takes *ret_used bytes from the front of the input; *ret_piece is a part of them, and empty
 * without HTTP1_BODY_HAS_PIECE. trailers_max: in bytes. */
enum http1_body_result http1_body_read(struct http1_body *body, struct slice in,
                                       size_t trailers_max, size_t *ret_used,
                                       struct slice *ret_piece);

#endif
