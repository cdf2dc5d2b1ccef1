#include "zip/gzip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <zlib.h>

static bool accepts(const char *list)
{
    struct http_field field = {SLICE_LITERAL("Accept-Encoding"), slice_from_text(list)};
    struct http_request request = {.fields = &field, .field_count = 1};
    return http_accepts_gzip(&request);
}

static void gzip_is_accepted_when_named_with_a_weight(void **state)
{
    (void)state;
    assert_true(accepts("gzip"));
    assert_true(accepts("deflate, GZIP;q=0.5"));
    assert_true(accepts("br ,gzip ; q=1"));
    assert_false(accepts(""));
    assert_false(accepts("identity"));
    assert_false(accepts("gzip;q=0"));
    assert_false(accepts("gzip; q=0.000, x"));
    assert_false(accepts("xgzip, gzipx"));
    assert_false(http_accepts_gzip(&(struct http_request){0}));
}

static void decompressed_output_equals_the_input(void **state)
{
    (void)state;
    static uint8_t page[100000], back[100001];
    for (size_t i = 0; i < sizeof(page); i++)
        page[i] = (uint8_t)(i * i >> 7);
    static const size_t sizes[] = {0, 1, 1000, sizeof(page)};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        AUTO(buf_fini) struct buf out = {0};
        assert_int_equal(gzip(slice_of(page, sizes[i]), &out), ST_OK);
        z_stream z = {.next_in = out.ptr,
                      .avail_in = (uInt)out.len,
                      .next_out = back,
                      .avail_out = sizeof(back)};
        assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
        assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
        assert_int_equal(z.total_out, sizes[i]);
        assert_memory_equal(back, page, sizes[i]);
        inflateEnd(&z);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gzip_is_accepted_when_named_with_a_weight),
        cmocka_unit_test(decompressed_output_equals_the_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
