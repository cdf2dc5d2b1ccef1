/* A compressed message. It is decompressed within its limit or refused with a reason; two copies of
 * it in a row decompress to twice the bytes. The first byte of the input selects the limit. */
#include "cost.h"

#include "zip/gunzip.h"

#include <stdlib.h>

static const size_t limits[] = {0, 1, 4095, 64 * 1024, 2 * 1024 * 1024};
enum { STEP_BYTES = 4096 };

static enum status unpack(struct slice bytes, size_t bytes_max, struct buf *out)
{
    const char *reason = "";
    enum status status = gunzip(bytes, bytes_max, NULL, out, &reason);
    assert(status == ST_OK || status == ST_LIMIT || status == ST_MALFORMED);
    assert((status == ST_MALFORMED) == (reason[0] != '\0'));
    assert(out->len <= bytes_max + (status == ST_LIMIT));
    assert(out->capacity <= 2 * bytes_max + STEP_BYTES);
    return status;
}

static void unpack_twice(struct slice bytes, size_t bytes_max, struct slice once)
{
    AUTO(buf_fini) struct buf both = {0}, out = {0};
    if (buf_append(&both, bytes) != ST_OK || buf_append(&both, bytes) != ST_OK)
        abort();
    enum status status = unpack(buf_slice(&both), bytes_max, &out);
    if (2 * once.len > bytes_max) {
        assert(status == ST_LIMIT);
        return;
    }
    assert(status == ST_OK && out.len == 2 * once.len);
    assert(slice_equal(slice_sub(buf_slice(&out), 0, once.len), once));
    assert(slice_equal(slice_sub(buf_slice(&out), once.len, once.len), once));
}

FUZZ_INPUT()
{
    if (size == 0)
        return 0;
    size_t bytes_max = limits[data[0] % COUNT_OF(limits)];
    struct slice bytes = slice_of(data + 1, size - 1);
    AUTO(buf_fini) struct buf out = {0};
    if (unpack(bytes, bytes_max, &out) == ST_OK)
        unpack_twice(bytes, bytes_max, buf_slice(&out));
    return 0;
}
