#include "zip/gunzip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <zlib.h>

#include <cmocka.h>

enum { BYTES_MAX = 64 * 1024 };

/* Compresses as a client would. Returns the compressed length. */
/* NOLINTNEXTLINE(readability-non-const-parameter): zlib writes to it. */
static size_t compress_to(uint8_t *to, size_t room, struct slice bytes)
{
    z_stream stream = {
        .next_in = (Bytef *)(uintptr_t)bytes.ptr,
        .avail_in = (uInt)bytes.len,
        .next_out = to,
        .avail_out = (uInt)room,
    };
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    return room - stream.avail_out;
}

static const char *reason;

static enum status unpacked(struct slice bytes, size_t bytes_max, size_t *ret_len)
{
    struct buf out = {0};
    reason = "";
    enum status status = gunzip(bytes, bytes_max, NULL, &out, &reason);
    assert_true(out.len <= bytes_max + 1);
    for (size_t i = 0; i < out.len && status == ST_OK; i++)
        assert_int_equal(out.ptr[i], (uint8_t)(i % 7));
    *ret_len = out.len;
    buf_fini(&out);
    return status;
}

static uint8_t *pattern(size_t len)
{
    uint8_t *bytes = malloc(len + 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)(i % 7);
    return bytes;
}

static void messages_are_decompressed_up_to_the_limit(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 4095, 4096, 4097, BYTES_MAX - 1, BYTES_MAX};
    uint8_t packed[BYTES_MAX];
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        uint8_t *bytes = pattern(lengths[i]);
        size_t len = compress_to(packed, sizeof(packed), slice_of(bytes, lengths[i])), got;
        assert_int_equal(unpacked(slice_of(packed, len), BYTES_MAX, &got), ST_OK);
        assert_int_equal(got, lengths[i]);
        if (lengths[i] > 0)
            assert_int_equal(unpacked(slice_of(packed, len), lengths[i] - 1, &got), ST_LIMIT);
        free(bytes);
    }
}

/* gzip can expand a thousandfold. Decompression stops at the limit. */
static void decompression_bomb_stops_at_the_limit(void **state)
{
    (void)state;
    enum { BOMB = 32 << 20 };
    uint8_t *bytes = calloc(1, BOMB);
    assert_non_null(bytes);
    uint8_t *packed = malloc(BYTES_MAX);
    size_t len = compress_to(packed, BYTES_MAX, slice_of(bytes, BOMB)), got;
    assert_true(len < BYTES_MAX);
    assert_int_equal(unpacked(slice_of(packed, len), BYTES_MAX, &got), ST_LIMIT);
    free(packed);
    free(bytes);
}

static void members_are_concatenated(void **state)
{
    (void)state;
    uint8_t *bytes = pattern(14), packed[256];
    size_t first = compress_to(packed, sizeof(packed), slice_of(bytes, 7)), got;
    size_t second = compress_to(packed + first, sizeof(packed) - first, slice_of(bytes, 7));
    assert_int_equal(unpacked(slice_of(packed, first + second), BYTES_MAX, &got), ST_OK);
    assert_int_equal(got, 14);
    free(bytes);
}

static void every_cut_and_every_flipped_byte_is_an_error(void **state)
{
    (void)state;
    uint8_t *bytes = pattern(300), packed[512];
    size_t len = compress_to(packed, sizeof(packed), slice_of(bytes, 300)), got;
    for (size_t cut = 0; cut < len; cut++) {
        assert_int_equal(unpacked(slice_of(packed, cut), BYTES_MAX, &got), ST_MALFORMED);
        assert_string_equal(reason, cut == 0 ? "EOF" : "unexpected EOF");
    }
    for (size_t at = 0; at < len; at++) {
        packed[at] ^= 0x55;
        enum status status = unpacked(slice_of(packed, len), BYTES_MAX, &got);
        /* Bytes 4 to 9 of the header are the time and the system: every value is valid. */
        if (at < 4 || at > 9)
            assert_int_equal(status, ST_MALFORMED);
        packed[at] ^= 0x55;
    }
    assert_int_equal(unpacked(SLICE_LITERAL("no gzip at all"), BYTES_MAX, &got), ST_MALFORMED);
    assert_string_equal(reason, "gzip: invalid header");
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_decompressed_up_to_the_limit),
        cmocka_unit_test(decompression_bomb_stops_at_the_limit),
        cmocka_unit_test(members_are_concatenated),
        cmocka_unit_test(every_cut_and_every_flipped_byte_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
