#include "wire/http/http1/body.h"

#include "wire/http/http1/parser.h"

#define TO(state) (1u << HTTP1_BODY_##state)

/* Drawn in body.h. */
static const uint8_t moves[] = {
    [HTTP1_BODY_DONE] = 0,
    [HTTP1_BODY_LENGTH] = TO(DONE),
    [HTTP1_BODY_CHUNK_SIZE] = TO(CHUNK_DATA) | TO(TRAILERS),
    [HTTP1_BODY_CHUNK_DATA] = TO(CHUNK_END),
    [HTTP1_BODY_CHUNK_END] = TO(CHUNK_SIZE),
    [HTTP1_BODY_TRAILERS] = TO(DONE),
    [HTTP1_BODY_UNTIL_CLOSE] = 0,
};

static void move(struct http1_body *body, enum http1_body_state next)
{
    assert(moves[body->state] & (1u << next));
    body->state = next;
}

void http1_body_in_chunks(struct http1_body *body)
{
    *body = (struct http1_body){.state = HTTP1_BODY_CHUNK_SIZE};
}

void http1_body_until_close(struct http1_body *body)
{
    *body = (struct http1_body){.state = HTTP1_BODY_UNTIL_CLOSE};
}

static enum http1_body_result fail(struct http1_body *body, unsigned status, const char *fault)
{
    body->status = status;
    body->fault = fault;
    return HTTP1_BODY_IS_BAD;
}

/* HTTP1_BODY_HAS_PIECE: a line, which is given without its CRLF. */
static enum http1_body_result cut_line(struct http1_body *body, struct slice *in,
                                       struct slice *ret_line)
{
    size_t most = size_min(in->len, HTTP1_CHUNK_LINE_MAX + 2);
    const uint8_t *end = most ? memmem(in->ptr, most, "\r\n", 2) : NULL;
    if (!end)
        return most > HTTP1_CHUNK_LINE_MAX ? fail(body, 400, "chunk line too long")
                                           : HTTP1_BODY_WAITS;
    size_t len = (size_t)(end - in->ptr);
    *ret_line = slice_sub(*in, 0, len);
    *in = slice_sub(*in, len + 2, in->len - len - 2);
    return HTTP1_BODY_HAS_PIECE;
}

static enum http1_body_result read_size(struct http1_body *body, struct slice *in)
{
    struct slice line;
    enum http1_body_result result = cut_line(body, in, &line);
    if (result != HTTP1_BODY_HAS_PIECE)
        return result;
    if (!http1_chunk_size(line, &body->left))
        return fail(body, 400, "bad chunk size");
    /* The last chunk has size 0, and trailers follow it. */
    move(body, body->left ? HTTP1_BODY_CHUNK_DATA : HTTP1_BODY_TRAILERS);
    return result;
}

static enum http1_body_result read_chunk_end(struct http1_body *body, struct slice *in)
{
    if (in->len < 2)
        return HTTP1_BODY_WAITS;
    if (memcmp(in->ptr, "\r\n", 2) != 0)
        return fail(body, 400, "chunk longer than announced");
    *in = slice_sub(*in, 2, in->len - 2);
    move(body, HTTP1_BODY_CHUNK_SIZE);
    return HTTP1_BODY_HAS_PIECE;
}

static enum http1_body_result read_trailer(struct http1_body *body, struct slice *in,
                                           size_t trailers_max)
{
    struct slice line;
    enum http1_body_result result = cut_line(body, in, &line);
    if (result != HTTP1_BODY_HAS_PIECE)
        return result;
    /* Trailers are read and dropped, as no handler uses them. */
    body->trailer_bytes += line.len + 2;
    if (body->trailer_bytes > trailers_max)
        return fail(body, 431, "trailers too large");
    if (line.len == 0)
        move(body, HTTP1_BODY_DONE);
    return result;
}

static enum http1_body_result read_data(struct http1_body *body, struct slice *in,
                                        struct slice *ret_piece)
{
    if (in->len == 0)
        return HTTP1_BODY_WAITS;
    size_t n = body->state == HTTP1_BODY_UNTIL_CLOSE ? in->len : size_min(in->len, body->left);
    *ret_piece = slice_sub(*in, 0, n);
    *in = slice_sub(*in, n, in->len - n);
    /* Only the end of the connection ends such a body. */
    if (body->state == HTTP1_BODY_UNTIL_CLOSE)
        return HTTP1_BODY_HAS_PIECE;
    body->left -= n;
    if (body->left == 0)
        move(body, body->state == HTTP1_BODY_LENGTH ? HTTP1_BODY_DONE : HTTP1_BODY_CHUNK_END);
    return HTTP1_BODY_HAS_PIECE;
}

/* HTTP1_BODY_HAS_PIECE with an empty piece: something else than data was read. */
static enum http1_body_result step(struct http1_body *body, struct slice *in, size_t trailers_max,
                                   struct slice *ret_piece)
{
    switch (body->state) {
    case HTTP1_BODY_CHUNK_SIZE:
        return read_size(body, in);
    case HTTP1_BODY_CHUNK_END:
        return read_chunk_end(body, in);
    case HTTP1_BODY_TRAILERS:
        return read_trailer(body, in, trailers_max);
    case HTTP1_BODY_DONE:
        return HTTP1_BODY_IS_DONE;
    default:
        return read_data(body, in, ret_piece);
    }
}

enum http1_body_result http1_body_read(struct http1_body *body, struct slice in,
                                       size_t trailers_max, size_t *ret_used,
                                       struct slice *ret_piece)
{
    enum http1_body_result result;
    struct slice rest = in;
    *ret_piece = SLICE_EMPTY;
    do {
        result = step(body, &rest, trailers_max, ret_piece);
    } while (result == HTTP1_BODY_HAS_PIECE && ret_piece->len == 0);
    *ret_used = in.len - rest.len;
    return result;
}
