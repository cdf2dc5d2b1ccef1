#include "zip/gzip_source.h"

#include <stdlib.h>
#include <zlib.h>

/* A window of 8 KiB takes a third of the memory of the largest, and JSON becomes nearly as small.
 */
enum { WINDOW_BITS = 13 + 16, MEMORY_LEVEL = 7, PIECE_BYTES = 16 * 1024 };

struct gzip_source {
    struct http_source source;
    struct http_source *inner;
    z_stream z;
    enum http_fill inner_said;
    uint8_t piece[PIECE_BYTES]; /* piece of the inner source; z.next_in points into it */
};

/* Takes the next piece from the inner source, which may have nothing to send now. */
static void pull(struct gzip_source *gzip)
{
    size_t len = 0;
    gzip->inner_said = gzip->inner->fill(gzip->inner, gzip->piece, PIECE_BYTES, &len);
    gzip->z.next_in = gzip->piece;
    gzip->z.avail_in = (uInt)len;
}

static enum http_fill fill(struct http_source *source, uint8_t *dst, size_t room, size_t *ret_len)
{
    struct gzip_source *gzip = CONTAINER_OF(source, struct gzip_source, source);
    z_stream *z = &gzip->z;
    size_t pulled = 0;
    room = size_min(room, UINT32_MAX);
    z->next_out = dst;
    z->avail_out = (uInt)room;
    gzip->inner_said = gzip->inner_said == HTTP_FILL_DONE ? HTTP_FILL_DONE : HTTP_FILL_MORE;
    while (z->avail_out) {
        if (!z->avail_in && gzip->inner_said == HTTP_FILL_MORE && pulled < GZIP_SOURCE_TURN) {
            pull(gzip);
            pulled += z->avail_in;
        }
        bool done = gzip->inner_said == HTTP_FILL_DONE;
        /* The limit of one fill is reached: flush, so that at least some bytes are written. */
        bool flush = !z->avail_in && gzip->inner_said == HTTP_FILL_MORE && z->avail_out == room;
        int result = deflate(z, done ? Z_FINISH : flush ? Z_SYNC_FLUSH : Z_NO_FLUSH);
        *ret_len = room - z->avail_out;
        if (result == Z_STREAM_END)
            return HTTP_FILL_DONE;
        if (done || z->avail_in)
            continue;
        if (gzip->inner_said == HTTP_FILL_PARKED)
            return HTTP_FILL_PARKED;
        if (pulled >= GZIP_SOURCE_TURN && *ret_len)
            return HTTP_FILL_MORE;
    }
    *ret_len = room;
    return HTTP_FILL_MORE;
}

enum status gzip_source_new(struct http_source *inner, struct gzip_source **ret_gzip)
{
    struct gzip_source *gzip = calloc(1, sizeof(*gzip));
    if (!gzip)
        return ST_NOMEM;
    if (deflateInit2(&gzip->z, Z_BEST_SPEED, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        free(gzip);
        return ST_NOMEM;
    }
    gzip->inner = inner;
    gzip->source.fill = fill;
    *ret_gzip = gzip;
    return ST_OK;
}

void gzip_source_free(struct gzip_source *gzip)
{
    if (!gzip)
        return;
    deflateEnd(&gzip->z);
    free(gzip);
}

struct http_source *gzip_source_output(struct gzip_source *gzip)
{
    return &gzip->source;
}
