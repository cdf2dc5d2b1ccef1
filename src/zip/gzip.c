#include "zip/gzip.h"

#include <zlib.h>

enum { GZIP_WINDOW_BITS = 15 + 16, MEMORY_LEVEL = 8 };

/* "q=0", "q=0.0", "q=0.000". */
static bool is_zero_weight(struct slice weight)
{
    if (weight.len < 3 || (weight.ptr[0] | 0x20) != 'q' || weight.ptr[1] != '=')
        return false;
    for (size_t i = 2; i < weight.len; i++) {
        if (weight.ptr[i] != '0' && weight.ptr[i] != '.')
            return false;
    }
    return true;
}

bool http_accepts_gzip(const struct http_request *request)
{
    struct slice list;
    if (!http_request_get(request, SLICE_LITERAL("accept-encoding"), &list))
        return false;
    while (list.len) {
        struct slice weight = slice_cut(&list, ',');
        if (http_name_equal(slice_trim(slice_cut(&weight, ';')), SLICE_LITERAL("gzip")))
            return !is_zero_weight(slice_trim(weight));
    }
    return false;
}

static enum status deflate_all(z_stream *z, struct slice bytes, struct buf *out)
{
    uLong bound = deflateBound(z, bytes.len);
    TRY(buf_reserve(out, bound));
    z->next_in = (Bytef *)(uintptr_t)bytes.ptr;
    z->avail_in = (uInt)bytes.len;
    z->next_out = out->ptr + out->len;
    z->avail_out = (uInt)bound;
    int result = deflate(z, Z_FINISH);
    assert(result == Z_STREAM_END); /* deflateBound() is enough for any input */
    out->len += bound - z->avail_out;
    return ST_OK;
}

enum status gzip(struct slice bytes, struct buf *out)
{
    z_stream z = {0};
    if (bytes.len > INT32_MAX)
        return ST_LIMIT;
    if (deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW_BITS, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return ST_NOMEM;
    enum status status = deflate_all(&z, bytes, out);
    deflateEnd(&z);
    return status;
}
