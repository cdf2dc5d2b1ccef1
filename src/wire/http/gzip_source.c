#include "wire/http/gzip_source.h"

#include <stdlib.h>
#include <zlib.h>

/* A window of 8 KiB: a third of the memory of the largest, for nearly the same size of JSON. */
enum { WINDOW_BITS = 13 + 16, MEMORY_LEVEL = 7, PIECE_BYTES = 16 * 1024 };

struct http_packer {
    struct http_source source;
    struct http_source *inner;
    z_stream z;
    enum http_fill inner_said;
    uint8_t piece[PIECE_BYTES]; /* of the inner source; z.next_in points into it */
};

/* Takes the next piece from the inner source, which may have none for now. */
static void pull(struct http_packer *packer)
{
    size_t len = 0;
    packer->inner_said = packer->inner->fill(packer->inner, packer->piece, PIECE_BYTES, &len);
    packer->z.next_in = packer->piece;
    packer->z.avail_in = (uInt)len;
}

static enum http_fill fill(struct http_source *source, uint8_t *dst, size_t room, size_t *ret_len)
{
    struct http_packer *packer = CONTAINER_OF(source, struct http_packer, source);
    z_stream *z = &packer->z;
    size_t pulled = 0;
    room = size_min(room, UINT32_MAX);
    z->next_out = dst;
    z->avail_out = (uInt)room;
    packer->inner_said = packer->inner_said == HTTP_FILL_DONE ? HTTP_FILL_DONE : HTTP_FILL_MORE;
    while (z->avail_out) {
        if (!z->avail_in && packer->inner_said == HTTP_FILL_MORE && pulled < HTTP_PACKER_TURN) {
            pull(packer);
            pulled += z->avail_in;
        }
        bool done = packer->inner_said == HTTP_FILL_DONE;
        /* Enough for one go: what there is leaves, so that something does. */
        bool flush = !z->avail_in && packer->inner_said == HTTP_FILL_MORE && z->avail_out == room;
        int result = deflate(z, done ? Z_FINISH : flush ? Z_SYNC_FLUSH : Z_NO_FLUSH);
        *ret_len = room - z->avail_out;
        if (result == Z_STREAM_END)
            return HTTP_FILL_DONE;
        if (done || z->avail_in)
            continue;
        if (packer->inner_said == HTTP_FILL_PARKED)
            return HTTP_FILL_PARKED;
        if (pulled >= HTTP_PACKER_TURN && *ret_len)
            return HTTP_FILL_MORE;
    }
    *ret_len = room;
    return HTTP_FILL_MORE;
}

enum status http_packer_new(struct http_source *inner, struct http_packer **ret_packer)
{
    struct http_packer *packer = calloc(1, sizeof(*packer));
    if (!packer)
        return ST_NOMEM;
    if (deflateInit2(&packer->z, Z_BEST_SPEED, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        free(packer);
        return ST_NOMEM;
    }
    packer->inner = inner;
    packer->source.fill = fill;
    *ret_packer = packer;
    return ST_OK;
}

void http_packer_free(struct http_packer *packer)
{
    if (!packer)
        return;
    deflateEnd(&packer->z);
    free(packer);
}

struct http_source *http_packer_source(struct http_packer *packer)
{
    return &packer->source;
}
