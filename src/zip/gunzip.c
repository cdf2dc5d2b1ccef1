#include "zip/gunzip.h"

#include <zlib.h>

enum { STEP_BYTES_MIN = 4096, WINDOW_BITS_GZIP_ONLY = 15 + 16 };

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
static enum status make_room(z_stream *stream, size_t bytes_max, struct account *account,
                             struct buf *out)
{
    size_t step = out->len < STEP_BYTES_MIN ? STEP_BYTES_MIN : out->len;
    step = size_min(step, bytes_max - out->len + 1);
    TRY(account_reserve(account, out, step));
    stream->next_out = out->ptr + out->len;
    stream->avail_out = (uInt)step;
    return ST_OK;
}

/* One call of inflate. *ret_end: the input ended with a complete member. */
static enum status step(z_stream *stream, size_t bytes_max, struct account *account,
                        struct buf *out, bool *ret_end, const char **ret_reason)
{
    TRY(make_room(stream, bytes_max, account, out));
    uInt room = stream->avail_out;
    int result = inflate(stream, Z_NO_FLUSH);
    out->len += room - stream->avail_out;
    if (out->len > bytes_max)
        return ST_LIMIT;
    if (result == Z_STREAM_END) {
        *ret_end = stream->avail_in == 0;
        return inflateReset(stream) == Z_OK ? ST_OK : ST_INTERNAL;
    }
    if (result == Z_MEM_ERROR)
        return ST_NOMEM;
    if (result == Z_OK && (stream->avail_in > 0 || stream->avail_out == 0))
        return ST_OK;
    *ret_reason = result == Z_OK || result == Z_BUF_ERROR ? "unexpected EOF" : reason_of(stream);
    return ST_MALFORMED;
}

enum status gunzip(struct slice bytes, size_t bytes_max, struct account *account, struct buf *out,
                   const char **ret_reason)
{
    if (bytes.len == 0) {
        *ret_reason = "EOF";
        return ST_MALFORMED;
    }
    if (bytes.len > UINT32_MAX)
        return ST_LIMIT;
    z_stream stream = {
        .next_in = (Bytef *)(uintptr_t)bytes.ptr,
        .avail_in = (uInt)bytes.len,
    };
    if (inflateInit2(&stream, WINDOW_BITS_GZIP_ONLY) != Z_OK)
        return ST_NOMEM;
    bool end = false;
    enum status status = ST_OK;
    while (!end && status == ST_OK)
        status = step(&stream, bytes_max, account, out, &end, ret_reason);
    inflateEnd(&stream);
    return status;
}
