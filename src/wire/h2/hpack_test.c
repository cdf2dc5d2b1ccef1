#include "wire/h2/hpack.h"

#include "base/buf.h"
#include "base/failing_memory_test.h"
#include "wire/h2/huffman.h"

#include <dirent.h>
#include <nghttp2/nghttp2.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct hpack_limits limits = {16384, 128};
static uint32_t seed;

static uint32_t next_random(void)
{
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

static struct h2_headers *decode(struct hpack_decoder *decoder, struct slice block)
{
    struct h2_headers *headers = NULL;
    assert_int_equal(hpack_decode(decoder, block, false, &limits, &headers), ST_OK);
    return headers;
}

static void assert_field(const struct h2_headers *headers, size_t i, const char *name,
                         const char *value)
{
    assert_true(i < headers->count);
    assert_true(slice_equal(headers->fields[i].name, slice_from_text(name)));
    assert_true(slice_equal(headers->fields[i].value, slice_from_text(value)));
}

/* RFC 7541 appendix C.4: three requests on one connection, Huffman-coded. */
static void examples_of_the_rfc_decode(void **state)
{
    (void)state;
    struct hpack_decoder decoder;
    hpack_decoder_init(&decoder);
    struct h2_headers *h =
        decode(&decoder, SLICE_LITERAL("\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab"
                                       "\x90\xf4\xff"));
    assert_int_equal(h->count, 4);
    assert_field(h, 0, ":method", "GET");
    assert_field(h, 3, ":authority", "www.example.com");
    h2_headers_unref(h);
    h = decode(&decoder, SLICE_LITERAL("\x82\x86\x84\xbe\x58\x86\xa8\xeb\x10\x64\x9c\xbf"));
    assert_field(h, 3, ":authority", "www.example.com");
    assert_field(h, 4, "cache-control", "no-cache");
    h2_headers_unref(h);
    h = decode(&decoder, SLICE_LITERAL("\x82\x87\x85\xbf\x40\x88\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f"
                                       "\x89\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf"));
    assert_field(h, 4, "custom-key", "custom-value");
    h2_headers_unref(h);
    assert_int_equal(decoder.entries.bytes, 164);
    hpack_decoder_fini(&decoder);
}

static void written_blocks_decode_with_both_decoders(void **state)
{
    (void)state;
    static char text[300];
    memset(text, 'x', sizeof(text) - 1);
    uint8_t block[1024];
    uint8_t *end = hpack_put_literal(block, SLICE_LITERAL("grpc-status"), SLICE_LITERAL("0"));
    end = hpack_put_literal(end, SLICE_LITERAL("long"), slice_from_text(text));
    struct hpack_decoder decoder;
    hpack_decoder_init(&decoder);
    struct h2_headers *h = decode(&decoder, slice_of(block, (size_t)(end - block)));
    assert_field(h, 0, "grpc-status", "0");
    assert_field(h, 1, "long", text);
    h2_headers_unref(h);
    hpack_decoder_fini(&decoder);
}

static void repeated_block_is_not_decoded_again_until_the_table_changes(void **state)
{
    (void)state;
    struct slice add = SLICE_LITERAL("\x83\x86\x84\x41\1x\x40\1a\1b");
    struct slice pure = SLICE_LITERAL("\x83\x86\x84\xbf\xbe");
    struct hpack_decoder decoder;
    hpack_decoder_init(&decoder);
    h2_headers_unref(decode(&decoder, add));
    struct h2_headers *first = decode(&decoder, pure);
    struct h2_headers *second = decode(&decoder, pure);
    assert_ptr_equal(first, second);
    assert_field(first, 4, "a", "b");
    /* Another entry moves the indices, so the same bytes mean something else. */
    h2_headers_unref(decode(&decoder, SLICE_LITERAL("\x83\x86\x84\x40\1c\1d")));
    struct h2_headers *third = decode(&decoder, SLICE_LITERAL("\x83\x86\x84\xbf\xbe"));
    assert_ptr_not_equal(first, third);
    assert_field(third, 3, "a", "b");
    assert_field(third, 4, "c", "d");
    h2_headers_unref(first);
    h2_headers_unref(second);
    h2_headers_unref(third);
    hpack_decoder_fini(&decoder);
}

/* -- Lists that do not fit on the stack -- */

/* A value of this many bytes 'a', whose Huffman code is the shortest: 00011. */
static uint8_t *put_coded_value(uint8_t *dst, size_t len)
{
    size_t code_bytes = (len * 5 + 7) / 8, rest = code_bytes - 127;
    *dst++ = 0xff;
    for (; rest >= 0x80; rest >>= 7)
        *dst++ = (uint8_t)(0x80 | (rest & 0x7f));
    *dst++ = (uint8_t)rest;
    memset(dst, 0, code_bytes);
    for (size_t bit = 0; bit < code_bytes * 8; bit++)
        if (bit >= len * 5 || bit % 5 >= 3)
            dst[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
    return dst + code_bytes;
}

static const struct hpack_limits largest = {HPACK_LIST_BYTES_MAX, HPACK_FIELDS_MAX};
static uint8_t long_block[2 * HPACK_LIST_BYTES_MAX];
static char long_value[HPACK_LIST_BYTES_MAX];

/* Two fields, the first short. */
static struct slice block_with_value(size_t value_len, bool coded)
{
    uint8_t *end = hpack_put_literal(long_block, SLICE_LITERAL("first"), SLICE_LITERAL("1"));
    if (!coded) {
        end = hpack_put_literal(end, SLICE_LITERAL("n"), slice_of(long_value, value_len));
    } else {
        *end++ = 0;
        *end++ = 1;
        *end++ = 'n';
        end = put_coded_value(end, value_len);
    }
    return slice_of(long_block, (size_t)(end - long_block));
}

static void assert_value_decodes(size_t value_len, bool coded)
{
    struct hpack_decoder decoder;
    struct h2_headers *h;
    hpack_decoder_init(&decoder);
    assert_int_equal(
        hpack_decode(&decoder, block_with_value(value_len, coded), false, &largest, &h), ST_OK);
    assert_false(h->too_large);
    assert_field(h, 0, "first", "1");
    assert_true(slice_equal(h->fields[1].value, slice_of(long_value, value_len)));
    h2_headers_unref(h);
    hpack_decoder_fini(&decoder);
}

static void values_of_any_length_decode(void **state)
{
    (void)state;
    static const size_t boundaries[] = {2048, 2560, 4096, 8192, 16384, 65000};
    memset(long_value, 'a', sizeof(long_value));
    for (size_t i = 0; i < sizeof(boundaries) / sizeof(boundaries[0]); i++)
        for (size_t len = boundaries[i] - 20; len <= boundaries[i] + 20; len++) {
            assert_value_decodes(len, false);
            assert_value_decodes(len, true);
        }
}

static void short_block_may_name_long_entries(void **state)
{
    (void)state;
    struct hpack_decoder decoder;
    struct h2_headers *h;
    memset(long_value, 'a', sizeof(long_value));
    hpack_decoder_init(&decoder);
    uint8_t *end = hpack_put_literal(long_block, SLICE_LITERAL("n"), slice_of(long_value, 2000));
    long_block[0] = 0x40; /* to be added to the table */
    h2_headers_unref(decode(&decoder, slice_of(long_block, (size_t)(end - long_block))));
    for (uint8_t count = 1; count <= 32; count++) {
        memset(long_block, 0xbe, count);
        assert_int_equal(hpack_decode(&decoder, slice_of(long_block, count), false, &largest, &h),
                         ST_OK);
        assert_false(h->too_large);
        assert_int_equal(h->count, count);
        for (size_t i = 0; i < count; i++)
            assert_true(slice_equal(h->fields[i].value, slice_of(long_value, 2000)));
        h2_headers_unref(h);
    }
    hpack_decoder_fini(&decoder);
}

static enum status decode_with_failure(struct slice block, size_t failing)
{
    struct hpack_decoder decoder;
    struct h2_headers *h = NULL;
    hpack_decoder_init(&decoder);
    memory_fail_at = failing;
    memory_exempt = false;
    enum status status = hpack_decode(&decoder, block, false, &largest, &h);
    memory_exempt = true;
    memory_fail_at = 0;
    h2_headers_unref(h);
    hpack_decoder_fini(&decoder);
    return status;
}

static void each_allocation_of_a_long_list_may_fail(void **state)
{
    (void)state;
    memset(long_value, 'a', sizeof(long_value));
    struct slice block = block_with_value(20000, true);
    for (size_t failing = 1; failing <= 3; failing++) /* the result, its bytes, decoded strings */
        assert_int_equal(decode_with_failure(block, failing), ST_NOMEM);
    assert_int_equal(decode_with_failure(block, 4), ST_OK);
}

static void malformed_blocks_are_refused(void **state)
{
    (void)state;
    static const struct slice broken[] = {
        {(const uint8_t *)"\x80", 1},                         /* index 0 */
        {(const uint8_t *)"\xbe", 1},                         /* an empty table */
        {(const uint8_t *)"\xff\xff\xff\xff\xff\xff\x0f", 7}, /* an integer that is too large */
        {(const uint8_t *)"\xff", 1},                         /* an incomplete integer */
        {(const uint8_t *)"\x40\x05"
                          "ab",
         4}, /* an incomplete string */
        {(const uint8_t *)"\x40\x01"
                          "a",
         3},                                                  /* no value */
        {(const uint8_t *)"\x3f\xe2\x1f", 3},                 /* a table of 4097 */
        {(const uint8_t *)"\x82\x20", 2},                     /* a resize after a field */
        {(const uint8_t *)"\x0f\x80", 2},                     /* a name that does not exist */
        {(const uint8_t *)"\x00\x81\x00\x00", 4},             /* padding of zeros */
        {(const uint8_t *)"\x00\x82\x1f\xff\x00", 5},         /* padding of more than seven bits */
        {(const uint8_t *)"\x00\x84\xff\xff\xff\xff\x00", 7}, /* the end symbol */
    };
    for (size_t i = 0; i < COUNT_OF(broken); i++) {
        struct hpack_decoder decoder;
        struct h2_headers *headers = NULL;
        hpack_decoder_init(&decoder);
        assert_int_equal(hpack_decode(&decoder, broken[i], false, &limits, &headers), ST_MALFORMED);
        hpack_decoder_fini(&decoder);
    }
}

/* ---- compared with nghttp2 ---- */

struct judged {
    struct buf text; /* name '\0' value '\n' ... */
    bool refused;
};

static void judge(nghttp2_hd_inflater *inflater, struct slice block, struct judged *j)
{
    j->text.len = 0;
    for (;;) {
        nghttp2_nv field;
        int flags = 0;
        ssize_t n = nghttp2_hd_inflate_hd2(inflater, &field, &flags, block.ptr, block.len, 1);
        j->refused = n < 0;
        if (n < 0)
            return;
        block = slice_sub(block, (size_t)n, block.len - (size_t)n);
        if (flags & NGHTTP2_HD_INFLATE_EMIT)
            assert_int_equal(buf_append_format(&j->text, "%zu %.*s %.*s\n", field.namelen,
                                               (int)field.namelen, field.name, (int)field.valuelen,
                                               field.value),
                             ST_OK);
        if (flags & NGHTTP2_HD_INFLATE_FINAL)
            break;
    }
    nghttp2_hd_inflate_end_headers(inflater);
}

static void ours(struct hpack_decoder *decoder, struct slice block, struct judged *j)
{
    struct h2_headers *h = NULL;
    j->text.len = 0;
    j->refused = hpack_decode(decoder, block, true, &limits, &h) != ST_OK;
    if (j->refused)
        return;
    for (uint32_t i = 0; i < h->count; i++)
        assert_int_equal(buf_append_format(&j->text, "%zu %.*s %.*s\n", h->fields[i].name.len,
                                           SLICE_ARGS(h->fields[i].name),
                                           SLICE_ARGS(h->fields[i].value)),
                         ST_OK);
    h2_headers_unref(h);
}

static bool judges_agree(struct hpack_decoder *decoder, nghttp2_hd_inflater *inflater,
                         struct slice block)
{
    struct judged theirs = {0}, mine = {0};
    judge(inflater, block, &theirs);
    ours(decoder, block, &mine);
    assert_int_equal(mine.refused, theirs.refused);
    if (!mine.refused)
        assert_true(slice_equal(buf_slice(&mine.text), buf_slice(&theirs.text)));
    buf_fini(&theirs.text);
    buf_fini(&mine.text);
    return !mine.refused;
}

/* Random fields, through nghttp2's encoder and both decoders, with a table that changes size. */
static void encoded_fields_decode_as_nghttp2_decodes_them(void **state)
{
    (void)state;
    seed = 7;
    struct hpack_decoder decoder;
    nghttp2_hd_inflater *inflater;
    nghttp2_hd_deflater *deflater;
    hpack_decoder_init(&decoder);
    assert_int_equal(nghttp2_hd_inflate_new(&inflater), 0);
    assert_int_equal(nghttp2_hd_deflate_new(&deflater, 4096), 0);
    for (size_t round = 0; round < 3000; round++) {
        static uint8_t names[10][20], values[10][400];
        nghttp2_nv fields[10];
        size_t count = 1 + next_random() % 10;
        for (size_t i = 0; i < count; i++) {
            size_t name_len = 1 + next_random() % 3, value_len = next_random() % 8;
            if (next_random() % 20 == 0)
                value_len = next_random() % sizeof(values[0]);
            for (size_t k = 0; k < name_len; k++)
                names[i][k] = (uint8_t)('a' + next_random() % 3);
            bool text = next_random() % 2;
            for (size_t k = 0; k < value_len; k++)
                values[i][k] =
                    text ? (uint8_t)('0' + next_random() % 4) : (uint8_t)(1 + next_random() % 255);
            fields[i] =
                (nghttp2_nv){names[i], values[i], name_len, value_len,
                             next_random() % 8 ? NGHTTP2_NV_FLAG_NONE : NGHTTP2_NV_FLAG_NO_INDEX};
        }
        if (next_random() % 50 == 0)
            nghttp2_hd_deflate_change_table_size(deflater, next_random() % 4097);
        uint8_t block[16384];
        ssize_t n = nghttp2_hd_deflate_hd(deflater, block, sizeof(block), fields, count);
        assert_true(n > 0);
        assert_true(judges_agree(&decoder, inflater, slice_of(block, (size_t)n)));
    }
    nghttp2_hd_deflate_del(deflater);
    nghttp2_hd_inflate_del(inflater);
    hpack_decoder_fini(&decoder);
}

/* Bytes that are nearly valid: both decoders refuse them, or both accept the same fields. */
static void random_blocks_decode_as_nghttp2_decodes_them(void **state)
{
    (void)state;
    static const uint8_t likely[] = {0x82, 0x84, 0x40, 0x00, 0x10, 0x01, 0x02, 'a',  'b',  0xbe,
                                     0xbf, 0xc0, 0x41, 0x81, 0x82, 0x1f, 0x3f, 0x0f, 0x20, 0x7f};
    size_t accepted = 0;
    seed = 11;
    for (size_t round = 0; round < 200000; round++) {
        struct hpack_decoder decoder;
        nghttp2_hd_inflater *inflater;
        hpack_decoder_init(&decoder);
        assert_int_equal(nghttp2_hd_inflate_new(&inflater), 0);
        uint8_t block[24];
        bool fine = true;
        for (size_t blocks = 0; fine && blocks < 3; blocks++) {
            size_t len = next_random() % sizeof(block);
            for (size_t i = 0; i < len; i++)
                block[i] = next_random() % 4 ? likely[next_random() % sizeof(likely)]
                                             : (uint8_t)next_random();
            fine = judges_agree(&decoder, inflater, slice_of(block, len));
            accepted += fine;
        }
        nghttp2_hd_inflate_del(inflater);
        hpack_decoder_fini(&decoder);
    }
    assert_true(accepted > 10000);
}

/* One file: blocks of one connection, each preceded by a byte with its length. */
static void judge_file(const char *path)
{
    uint8_t bytes[4096];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    struct slice input = slice_of(bytes, fread(bytes, 1, sizeof(bytes), file));
    fclose(file);
    struct hpack_decoder decoder;
    nghttp2_hd_inflater *inflater;
    hpack_decoder_init(&decoder);
    assert_int_equal(nghttp2_hd_inflate_new(&inflater), 0);
    while (input.len > 1) {
        size_t n = size_min(input.ptr[0], input.len - 1);
        if (!judges_agree(&decoder, inflater, slice_sub(input, 1, n)))
            break;
        input = slice_sub(input, 1 + n, input.len - 1 - n);
    }
    nghttp2_hd_inflate_del(inflater);
    hpack_decoder_fini(&decoder);
}

static void corpus_decodes_as_nghttp2_decodes_it(void **state)
{
    (void)state;
    char path[1024];
    size_t count = 0;
    int folder = snprintf(path, sizeof(path), VIGIL_SOURCE_DIR "/fuzz/corpus/wire_hpack/");
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path + folder, sizeof(path) - (size_t)folder, "%s", entry->d_name);
        judge_file(path);
        count++;
    }
    closedir(dir);
    assert_true(count >= 3);
}

static void huffman_output_does_not_exceed_its_room(void **state)
{
    (void)state;
    uint8_t room[4];
    size_t len;
    struct slice four = SLICE_LITERAL("\x00\x00\x0f"); /* "0000" in 20 bits */
    assert_int_equal(huffman_decode(four, room, 4, &len), ST_OK);
    assert_int_equal(len, 4);
    assert_int_equal(huffman_decode(four, room, 3, &len), ST_LIMIT);
    assert_int_equal(huffman_decode(SLICE_EMPTY, room, 0, &len), ST_OK);
    assert_int_equal(len, 0);
}

int main(void)
{
    memory_exempt = true;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples_of_the_rfc_decode),
        cmocka_unit_test(written_blocks_decode_with_both_decoders),
        cmocka_unit_test(repeated_block_is_not_decoded_again_until_the_table_changes),
        cmocka_unit_test(values_of_any_length_decode),
        cmocka_unit_test(short_block_may_name_long_entries),
        cmocka_unit_test(each_allocation_of_a_long_list_may_fail),
        cmocka_unit_test(malformed_blocks_are_refused),
        cmocka_unit_test(encoded_fields_decode_as_nghttp2_decodes_them),
        cmocka_unit_test(random_blocks_decode_as_nghttp2_decodes_them),
        cmocka_unit_test(corpus_decodes_as_nghttp2_decodes_it),
        cmocka_unit_test(huffman_output_does_not_exceed_its_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
