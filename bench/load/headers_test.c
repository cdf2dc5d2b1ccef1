#include "load/headers.h"

#include <nghttp2/nghttp2.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* A peer's encoder with its own table, whose output is decoded. */
static void encode(nghttp2_hd_deflater *deflater, const char *const *fields, size_t count,
                   struct buf *out)
{
    nghttp2_nv list[8];
    for (size_t i = 0; i < count; i++) {
        list[i] = (nghttp2_nv){(uint8_t *)(uintptr_t)fields[2 * i],
                               (uint8_t *)(uintptr_t)fields[2 * i + 1], strlen(fields[2 * i]),
                               strlen(fields[2 * i + 1]), NGHTTP2_NV_FLAG_NONE};
    }
    assert_int_equal(buf_reserve(out, 4096), ST_OK);
    ssize_t n = nghttp2_hd_deflate_hd(deflater, out->ptr, out->capacity, list, count);
    assert_true(n > 0);
    out->len = (size_t)n;
}

static bool decode(struct bench_header_decoder *decoder, const struct buf *block, bool end,
                   struct bench_verdict *verdict)
{
    bool good = false;
    assert_int_equal(bench_header_decode(decoder, buf_slice(block), end, &good, verdict), ST_OK);
    return good;
}

static void check_request_blocks(const char *token, struct slice rest_of_it)
{
    nghttp2_hd_inflater *inflater;
    assert_int_equal(nghttp2_hd_inflate_new(&inflater), 0);
    for (int round = 0; round < 3; round++) {
        struct buf block = {0}, text = {0};
        if (round == 0)
            assert_int_equal(bench_headers_append_first(&block, "/a.B/C", "127.0.0.1:1", token),
                             ST_OK);
        else
            assert_int_equal(bench_headers_append_next(&block, token), ST_OK);
        struct slice rest = buf_slice(&block);
        int flags = 0;
        while (!(flags & NGHTTP2_HD_INFLATE_FINAL)) {
            nghttp2_nv field;
            flags = 0;
            ssize_t n = nghttp2_hd_inflate_hd2(inflater, &field, &flags, rest.ptr, rest.len, 1);
            assert_true(n >= 0);
            rest = slice_sub(rest, (size_t)n, rest.len - (size_t)n);
            if (flags & NGHTTP2_HD_INFLATE_EMIT)
                assert_int_equal(
                    buf_append_format(&text, "%s=%s;", (char *)field.name, (char *)field.value),
                    ST_OK);
        }
        nghttp2_hd_inflate_end_headers(inflater);
        struct slice always =
            SLICE_LITERAL(":method=POST;:scheme=http;:path=/a.B/C;:authority=127.0.0.1:1;"
                          "content-type=application/grpc;user-agent=vigil-bench;te=trailers;");
        assert_int_equal(text.len, always.len + rest_of_it.len);
        assert_memory_equal(text.ptr, always.ptr, always.len);
        assert_true(slice_equal(slice_of(text.ptr + always.len, rest_of_it.len), rest_of_it));
        buf_fini(&block);
        buf_fini(&text);
    }
    nghttp2_hd_inflate_del(inflater);
}

static void request_blocks_decode_to_a_grpc_request(void **state)
{
    (void)state;
    check_request_blocks("", SLICE_EMPTY);
    check_request_blocks("abc.1", SLICE_LITERAL("token=abc.1;"));
}

static void a_plain_request_leaves_the_table_as_it_is(void **state)
{
    (void)state;
    char path[221];
    struct buf block = {0};
    memset(path, 'p', sizeof(path) - 1);
    path[sizeof(path) - 1] = 0;
    assert_int_equal(
        bench_headers_append_plain(&block, "PUT", path, "h:1", "application/json", "abc"), ST_OK);
    assert_true(bench_header_block_is_stateless(buf_slice(&block)));
    nghttp2_hd_inflater *inflater;
    assert_int_equal(nghttp2_hd_inflate_new(&inflater), 0);
    struct slice rest = buf_slice(&block);
    unsigned fields = 0;
    for (int flags = 0; !(flags & NGHTTP2_HD_INFLATE_FINAL);) {
        nghttp2_nv field;
        flags = 0;
        ssize_t n = nghttp2_hd_inflate_hd2(inflater, &field, &flags, rest.ptr, rest.len, 1);
        assert_true(n >= 0);
        rest = slice_sub(rest, (size_t)n, rest.len - (size_t)n);
        if (!(flags & NGHTTP2_HD_INFLATE_EMIT))
            continue;
        fields++;
        if (fields == 3)
            assert_string_equal((const char *)field.value, path);
        if (fields == 7)
            assert_string_equal((const char *)field.value, "Bearer abc");
    }
    assert_int_equal(fields, 7);
    nghttp2_hd_inflate_del(inflater);
    buf_fini(&block);
}

static void any_2xx_answer_is_good_without_grpc(void **state)
{
    (void)state;
    static const char *const made[] = {":status", "201"}, *const refused[] = {":status", "409"};
    nghttp2_hd_deflater *deflater;
    struct bench_header_decoder *decoder;
    struct bench_verdict verdict;
    struct buf block = {0};
    assert_int_equal(nghttp2_hd_deflate_new(&deflater, 4096), 0);
    assert_int_equal(bench_header_decoder_new(true, &decoder), ST_OK);
    encode(deflater, made, 1, &block);
    assert_true(decode(decoder, &block, false, &verdict));
    encode(deflater, refused, 1, &block);
    assert_false(decode(decoder, &block, true, &verdict));
    assert_int_equal(verdict.http_status, 409);
    bench_header_decoder_free(decoder);
    nghttp2_hd_deflate_del(deflater);
    buf_fini(&block);
}

static const char *const ok_head[] = {":status", "200", "content-type", "application/grpc"};
static const char *const ok_end[] = {"grpc-status", "0", "grpc-message", ""};
static const char *const bad_end[] = {"grpc-status", "11", "grpc-message", "no such revision"};
static const char *const bad_only[] = {":status", "200", "grpc-status", "12"};

static void errors_are_seen_among_good_answers_whatever_the_table_holds(void **state)
{
    (void)state;
    nghttp2_hd_deflater *deflater;
    assert_int_equal(nghttp2_hd_deflate_new(&deflater, 4096), 0);
    struct bench_header_decoder *decoder;
    assert_int_equal(bench_header_decoder_new(false, &decoder), ST_OK);

    for (int i = 0; i < 500; i++) {
        struct buf block = {0};
        struct bench_verdict verdict;
        encode(deflater, ok_head, 2, &block);
        assert_true(decode(decoder, &block, false, &verdict));
        if (i % 7 == 3) {
            encode(deflater, bad_end, 2, &block);
            assert_false(decode(decoder, &block, true, &verdict));
            assert_int_equal(verdict.grpc_status, 11);
            assert_string_equal(verdict.message, "no such revision");
        } else {
            encode(deflater, ok_end, 2, &block);
            assert_true(decode(decoder, &block, true, &verdict));
        }
        if (i % 50 == 49) {
            /* Evicts everything from the table, so that the same indexes mean other fields. */
            char name[32], value[1200];
            memset(value, 'x', sizeof(value) - 1);
            value[sizeof(value) - 1] = 0;
            for (int k = 0; k < 5; k++) {
                snprintf(name, sizeof(name), "filler-%d", k);
                const char *filler[] = {":status", "200", name, value};
                encode(deflater, filler, 2, &block);
                assert_true(decode(decoder, &block, false, &verdict));
            }
        }
        buf_fini(&block);
    }
    bench_header_decoder_free(decoder);
    nghttp2_hd_deflate_del(deflater);
}

static void an_answer_of_trailers_only_carries_its_error(void **state)
{
    (void)state;
    nghttp2_hd_deflater *deflater;
    assert_int_equal(nghttp2_hd_deflate_new(&deflater, 4096), 0);
    struct bench_header_decoder *decoder;
    assert_int_equal(bench_header_decoder_new(false, &decoder), ST_OK);
    struct buf block = {0};
    struct bench_verdict verdict;
    encode(deflater, bad_only, 2, &block);
    assert_false(decode(decoder, &block, true, &verdict));
    assert_int_equal(verdict.grpc_status, 12);
    buf_fini(&block);
    bench_header_decoder_free(decoder);
    nghttp2_hd_deflate_del(deflater);
}

static void an_answer_says_when_to_ask_again(void **state)
{
    (void)state;
    static const char *const busy[] = {":status", "429", "retry-after", "7"};
    static const char *const fine[] = {":status", "200"};
    nghttp2_hd_deflater *deflater;
    struct bench_header_decoder *decoder;
    struct buf block = {0};
    struct bench_verdict verdict;
    assert_int_equal(nghttp2_hd_deflate_new(&deflater, 4096), 0);
    assert_int_equal(bench_header_decoder_new(true, &decoder), ST_OK);
    encode(deflater, busy, 2, &block);
    assert_false(decode(decoder, &block, false, &verdict));
    assert_int_equal(verdict.http_status, 429);
    assert_int_equal(verdict.retry_after_s, 7);
    encode(deflater, fine, 1, &block);
    assert_true(decode(decoder, &block, false, &verdict));
    assert_int_equal(verdict.retry_after_s, 0);
    buf_fini(&block);
    bench_header_decoder_free(decoder);
    nghttp2_hd_deflate_del(deflater);
}

static void a_kept_number_is_forgotten_when_the_table_moves(void **state)
{
    (void)state;
    struct bench_header_decoder *decoder;
    assert_int_equal(bench_header_decoder_new(false, &decoder), ST_OK);
    struct bench_verdict verdict;
    bool good;
    static const uint8_t insert_ok[] = "\x40\x0bgrpc-status\x01"
                                       "0";
    static const uint8_t insert_bad[] = "\x40\x0bgrpc-status\x01"
                                        "5";
    static const uint8_t newest[] = {0xbe};
    for (int i = 0; i < 2; i++) {
        const uint8_t *insert = i == 0 ? insert_ok : insert_bad;
        assert_int_equal(bench_header_decode(decoder, slice_of(insert, sizeof(insert_ok) - 1), true,
                                             &good, &verdict),
                         ST_OK);
        for (int k = 0; k < 3; k++) {
            assert_int_equal(
                bench_header_decode(decoder, slice_of(newest, 1), true, &good, &verdict), ST_OK);
            assert_int_equal(good, i == 0);
        }
    }
    bench_header_decoder_free(decoder);
}

static void only_blocks_without_insertion_or_resize_are_stateless(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
        bool stateless;
    } cases[] = {
        {"\x88", 1, true},
        {"\x88\xff\x05", 3, true},
        {"\x00\x01k\x01v", 5, true},
        {"\x10\x01k\x01v", 5, true},
        {"\x0f\x10\x01v", 4, true},
        {"\x88\x40\x01k\x01v", 6, false},
        {"\x20", 1, false},
        {"\x00\x01k\x05v", 5, false},
        {"\x00\x7f\xff\xff\xff\xff\xff\xff", 8, false},
        {"\xff", 1, false},
        {"\x0f", 1, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(bench_header_block_is_stateless(slice_of(cases[i].bytes, cases[i].len)),
                         cases[i].stateless);
}

static void bytes_that_are_not_a_block_are_refused(void **state)
{
    (void)state;
    struct bench_header_decoder *decoder;
    assert_int_equal(bench_header_decoder_new(false, &decoder), ST_OK);
    struct bench_verdict verdict;
    bool good;
    static const uint8_t beyond_table[] = {0xfe};
    assert_int_equal(bench_header_decode(decoder, slice_of(beyond_table, 1), true, &good, &verdict),
                     ST_MALFORMED);
    bench_header_decoder_free(decoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request_blocks_decode_to_a_grpc_request),
        cmocka_unit_test(a_plain_request_leaves_the_table_as_it_is),
        cmocka_unit_test(any_2xx_answer_is_good_without_grpc),
        cmocka_unit_test(errors_are_seen_among_good_answers_whatever_the_table_holds),
        cmocka_unit_test(an_answer_of_trailers_only_carries_its_error),
        cmocka_unit_test(an_answer_says_when_to_ask_again),
        cmocka_unit_test(a_kept_number_is_forgotten_when_the_table_moves),
        cmocka_unit_test(only_blocks_without_insertion_or_resize_are_stateless),
        cmocka_unit_test(bytes_that_are_not_a_block_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
