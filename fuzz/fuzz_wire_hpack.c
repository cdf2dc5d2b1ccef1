/* Header blocks of one connection, compared with nghttp2's decoder: both accept the same fields, or
 * both refuse the block. The first byte of each piece is its length. */
#include "cost.h"

#include "base/buf.h"
#include "wire/h2/hpack.h"

#include <nghttp2/nghttp2.h>
#include <stdlib.h>

static const struct hpack_limits limits = {16384, 128};

/* Compares field by field. False: both refuse the block, or it exceeds our limits. */
static bool same(struct hpack_decoder *decoder, nghttp2_hd_inflater *inflater, struct slice block)
{
    struct h2_headers *h = NULL;
    enum status status = hpack_decode(decoder, block, true, &limits, &h);
    uint32_t i = 0;
    bool fine = status == ST_OK && !h->too_large;
    for (bool done = false; !done && status != ST_LIMIT && !(h && h->too_large);) {
        nghttp2_nv field;
        int flags = 0;
        ssize_t n = nghttp2_hd_inflate_hd2(inflater, &field, &flags, block.ptr, block.len, 1);
        if (n < 0) {
            assert(status == ST_MALFORMED);
            break;
        }
        block = slice_sub(block, (size_t)n, block.len - (size_t)n);
        if ((flags & NGHTTP2_HD_INFLATE_EMIT) && status == ST_OK) {
            assert(i < h->count);
            assert(slice_equal(h->fields[i].name, slice_of(field.name, field.namelen)));
            assert(slice_equal(h->fields[i].value, slice_of(field.value, field.valuelen)));
            i++;
        }
        done = flags & NGHTTP2_HD_INFLATE_FINAL;
        assert(!done || (status == ST_OK && i == h->count));
    }
    if (fine)
        nghttp2_hd_inflate_end_headers(inflater);
    h2_headers_unref(h);
    return fine;
}

FUZZ_INPUT()
{
    struct hpack_decoder decoder;
    nghttp2_hd_inflater *inflater;
    struct slice input = slice_of(data, size);
    hpack_decoder_init(&decoder);
    if (nghttp2_hd_inflate_new(&inflater) != 0)
        abort();
    while (input.len > 1) {
        size_t n = size_min(input.ptr[0], input.len - 1);
        if (!same(&decoder, inflater, slice_sub(input, 1, n)))
            break;
        input = slice_sub(input, 1 + n, input.len - 1 - n);
    }
    nghttp2_hd_inflate_del(inflater);
    hpack_decoder_fini(&decoder);
    return 0;
}
