#include "zip/gzip_source.h"

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <zlib.h>

#include <cmocka.h>

/* A source that gives its bytes in pieces of a chosen size and, if parks is set, parks before each.
 */
struct giver {
    struct http_source source;
    struct slice left;
    size_t piece;
    bool parks, parked;
};

static enum http_fill give(struct http_source *source, uint8_t *dst, size_t room, size_t *ret_len)
{
    struct giver *giver = CONTAINER_OF(source, struct giver, source);
    *ret_len = 0;
    giver->parked = giver->parks && !giver->parked;
    if (giver->parked)
        return HTTP_FILL_PARKED;
    size_t n = size_min(size_min(room, giver->piece), giver->left.len);
    slice_copy(dst, slice_sub(giver->left, 0, n));
    giver->left = slice_sub(giver->left, n, giver->left.len - n);
    *ret_len = n;
    return giver->left.len ? HTTP_FILL_MORE : HTTP_FILL_DONE;
}

static void unpack(const struct buf *packed, struct slice expected)
{
    uint8_t *plain = malloc(expected.len + 1);
    z_stream z = {.next_in = packed->ptr,
                  .avail_in = (uInt)packed->len,
                  .next_out = plain,
                  .avail_out = (uInt)expected.len + 1};
    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(z.avail_in, 0);
    assert_int_equal(z.total_out, expected.len);
    assert_memory_equal(plain, expected.ptr, expected.len);
    inflateEnd(&z);
    free(plain);
}

static void check(struct slice bytes, size_t piece, size_t room, bool parks)
{
    struct giver giver = {{give}, bytes, piece, parks, false};
    struct gzip_source *gzip;
    struct buf packed = {0};
    enum http_fill said;
    assert_int_equal(gzip_source_new(&giver.source, &gzip), ST_OK);
    do {
        size_t n = 0;
        assert_int_equal(buf_reserve(&packed, room), ST_OK);
        struct http_source *source = gzip_source_output(gzip);
        said = source->fill(source, packed.ptr + packed.len, room, &n);
        assert_true(n <= room);
        assert_true(said != HTTP_FILL_MORE || n); /* MORE implies progress */
        packed.len += n;
    } while (said != HTTP_FILL_DONE);
    unpack(&packed, bytes);
    buf_fini(&packed);
    gzip_source_free(gzip);
}

static void decompressed_output_equals_the_input(void **state)
{
    static uint8_t bytes[600 * 1024];
    (void)state;
    for (size_t i = 0; i < sizeof(bytes);
         i++) /* the first half does not compress, the second does */
        bytes[i] = i < sizeof(bytes) / 2 ? (uint8_t)(i * 2654435761u >> 13) : 'x';
    static const size_t pieces[] = {1000, 16384, 70000}, rooms[] = {100, 4096, 65536};
    for (size_t p = 0; p < COUNT_OF(pieces); p++)
        for (size_t r = 0; r < COUNT_OF(rooms); r++)
            check(slice_of(bytes, sizeof(bytes)), pieces[p], rooms[r], r & 1);
    check(slice_of(bytes, 3), 1, 1, true);
    check(SLICE_EMPTY, 1, 50, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decompressed_output_equals_the_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
