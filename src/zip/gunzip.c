#include "zip/gunzip.h"

#include <stdlib.h>
#include <zlib.h>

enum { STEP_BYTES_MIN = 4096, WINDOW_BITS_GZIP_ONLY = 15 + 16 };

struct gunzip_stream {
    z_stream z;
};

static const char *reason_of(const z_stream *stream)
{
    const char *text = stream->msg ? stream->msg : "";
    if (strstr(text, "header"))
        return "gzip: invalid header";
    if (strstr(text, "check"))
        return "gzip: invalid checksum";
    return "flate: corrupt input";
}

/* Doubles the output for the next step, but reserves no more than one byte past the limit. */
static enum status make_room(z_stream *stream, size_t step_bytes, size_t bytes_max,
                             struct account *account, struct buf *out)
{
    size_t step = out->len < STEP_BYTES_MIN ? STEP_BYTES_MIN : out->len;
    step = size_min(size_min(step, step_bytes), bytes_max - out->len + 1);
    TRY(account_reserve(account, out, step));
    stream->next_out = out->ptr + out->len;
    stream->avail_out = (uInt)step;
    return ST_OK;
}

enum status gunzip_stream_step(struct gunzip_stream *gunzip, size_t step_bytes, size_t bytes_max,
                               struct account *account, struct buf *out, const char **ret_reason)
{
    z_stream *stream = &gunzip->z;
    TRY(make_room(stream, step_bytes, bytes_max, account, out));
    uInt room = stream->avail_out;
    int result = inflate(stream, Z_NO_FLUSH);
    out->len += room - stream->avail_out;
    if (out->len > bytes_max)
        return ST_LIMIT;
    if (result == Z_STREAM_END && stream->avail_in == 0)
        return ST_OK; /* the input ended with a complete member */
    if (result == Z_STREAM_END)
        return inflateReset(stream) == Z_OK ? ST_AGAIN : ST_INTERNAL;
    if (result == Z_MEM_ERROR)
        return ST_NOMEM;
    if (result == Z_OK && (stream->avail_in > 0 || stream->avail_out == 0))
        return ST_AGAIN;
    *ret_reason = result == Z_OK || result == Z_BUF_ERROR ? "unexpected EOF" : reason_of(stream);
    return ST_MALFORMED;
}

enum status gunzip_stream_new(struct slice bytes, struct gunzip_stream **ret_stream,
                              const char **ret_reason)
{
    if (bytes.len == 0) {
        *ret_reason = "EOF";
        return ST_MALFORMED;
    }
    if (bytes.len > UINT32_MAX)
        return ST_LIMIT;
    struct gunzip_stream *stream = calloc(1, sizeof(*stream));
    if (!stream)
        return ST_NOMEM;
    stream->z.next_in = (Bytef *)(uintptr_t)bytes.ptr;
    stream->z.avail_in = (uInt)bytes.len;
    if (inflateInit2(&stream->z, WINDOW_BITS_GZIP_ONLY) != Z_OK) {
        free(stream);
        return ST_NOMEM;
    }
    *ret_stream = stream;
    return ST_OK;
}

void gunzip_stream_free(struct gunzip_stream *stream)
{
    if (!stream)
        return;
    inflateEnd(&stream->z);
    free(stream);
}

enum status gunzip(struct slice bytes, size_t bytes_max, struct account *account, struct buf *out,
                   const char **ret_reason)
{
    struct gunzip_stream *stream;
    TRY(gunzip_stream_new(bytes, &stream, ret_reason));
    enum status status = ST_AGAIN;
    while (status == ST_AGAIN)
        status = gunzip_stream_step(stream, SIZE_MAX, bytes_max, account, out, ret_reason);
    gunzip_stream_free(stream);
    return status;
}
