#include "kubeclient/data/framer.h"

#include "base/random.h"
#include "codec/json/scanner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* Frames as text with a bar after each; "<limit>" for one that was too long. Each piece is a
 * separate allocation, so that the sanitizer finds a read past its end. */
static enum status cut(struct framer *f, struct slice body, size_t piece_bytes, struct buf *out)
{
    enum status status = ST_AGAIN;
    for (size_t at = 0; at < body.len && status == ST_AGAIN; at += piece_bytes) {
        size_t n = size_min(piece_bytes, body.len - at);
        uint8_t *piece = malloc(n);
        assert_non_null(piece);
        slice_copy(piece, slice_sub(body, at, n));
        framer_feed(f, slice_of(piece, n));
        struct slice frame;
        while ((status = framer_next(f, &frame)) == ST_OK || status == ST_LIMIT) {
            framer_check(f);
            assert_int_equal(buf_append(out, status == ST_OK ? frame : SLICE_LITERAL("<limit>")),
                             ST_OK);
            assert_int_equal(buf_append_text(out, "|"), ST_OK);
        }
        framer_check(f);
        free(piece);
    }
    return status;
}

static void expect(enum framer_format format, size_t bytes_max, struct slice body,
                   const char *frames, enum status end, bool cut_off)
{
    for (size_t piece_bytes = 1; piece_bytes <= body.len; piece_bytes++) {
        struct framer f;
        struct buf out = {0};
        framer_init(&f, format);
        if (bytes_max)
            f.bytes_max = bytes_max;
        assert_int_equal(cut(&f, body, piece_bytes, &out), end);
        assert_int_equal(buf_append(&out, slice_of("", 1)), ST_OK);
        assert_string_equal((const char *)out.ptr, frames);
        assert_int_equal(framer_is_cut_off(&f), cut_off);
        buf_fini(&out);
        framer_fini(&f);
    }
}

#define EXPECT_JSON(body, frames) \
    expect(FRAMER_JSON, 0, SLICE_LITERAL(body), frames, ST_AGAIN, false)

static void values_may_be_cut_anywhere(void **state)
{
    (void)state;
    EXPECT_JSON("{\"a\":1}\n{\"b\":[{}]}\n", "{\"a\":1}|{\"b\":[{}]}|");
    EXPECT_JSON("{}{}[]", "{}|{}|[]|");
    EXPECT_JSON(" \r\n\t{ \"a\" : 1 } \n", "{ \"a\" : 1 }|");
    EXPECT_JSON("{\"a\":\"}\\\"{\\\\\"}{\"b\":\"\\u00e4[\"}", /* brackets and quotes in strings */
                "{\"a\":\"}\\\"{\\\\\"}|{\"b\":\"\\u00e4[\"}|");
    EXPECT_JSON("{\"a\":\"\xc3\xa4\xf0\x9f\x98\x80\"}", "{\"a\":\"\xc3\xa4\xf0\x9f\x98\x80\"}|");
}

/* TestJSONFrameReader */
static void scalar_values_are_frames_too(void **state)
{
    (void)state;
    EXPECT_JSON("{\"test\":true}\n1\n[\"a\"]", "{\"test\":true}|1|[\"a\"]|");
    EXPECT_JSON("\"a\\\"b\"{}\"\" 12 true{}null ", "\"a\\\"b\"|{}|\"\"|12|true|{}|null|");
}

/* TestReadInvalidFrame */
static void the_end_within_a_value_is_known(void **state)
{
    (void)state;
    expect(FRAMER_JSON, 0, SLICE_LITERAL("{}\n{\"a\":"), "{}|", ST_AGAIN, true);
    expect(FRAMER_JSON, 0, SLICE_LITERAL("{\"a\":\"}"), "", ST_AGAIN, true);
    expect(FRAMER_JSON, 0, SLICE_LITERAL("{}\n"), "{}|", ST_AGAIN, false);
    expect(FRAMER_PROTOBUF, 0, SLICE_LITERAL("\0\0"), "", ST_AGAIN, true);
    expect(FRAMER_PROTOBUF, 0, SLICE_LITERAL("\0\0\0\2a"), "", ST_AGAIN, true);
    expect(FRAMER_PROTOBUF, 0, SLICE_LITERAL("\0\0\0\4\1\2"), "", ST_AGAIN, true);
    expect(FRAMER_PROTOBUF, 0, SLICE_LITERAL("\0\0\0\2ab"), "ab|", ST_AGAIN, false);
}

static void a_byte_that_begins_no_value_ends_the_frames(void **state)
{
    (void)state;
    struct framer framer;
    struct slice frame;
    framer_init(&framer, FRAMER_JSON);
    for (int i = 0; i < 2; i++) { /* the connection may have more bytes */
        framer_feed(&framer, SLICE_LITERAL("}{}"));
        assert_int_equal(framer_next(&framer, &frame), ST_MALFORMED);
        assert_int_equal(framer_next(&framer, &frame), ST_MALFORMED);
    }
    framer_fini(&framer);
    expect(FRAMER_JSON, 0, SLICE_LITERAL("{}}{}"), "{}|", ST_MALFORMED, false);
    expect(FRAMER_JSON, 0, SLICE_LITERAL("\x1f\x8b\x08"), "", ST_MALFORMED, false); /* gzip */
    expect(FRAMER_JSON, 0, SLICE_LITERAL("{} ,{}"), "{}|", ST_MALFORMED, false);
}

/* TestRead, TestReadLarge */
static void messages_have_a_length(void **state)
{
    (void)state;
    expect(FRAMER_PROTOBUF, 0, SLICE_LITERAL("\0\0\0\3abc\0\0\0\0\0\0\0\1x"), "abc||x|", ST_AGAIN,
           false);
    expect(FRAMER_PROTOBUF, 0, SLICE_LITERAL("\0\0\0\4\1\2\3\4\0\0\0\3\5\6\7\0\0\0\0\0\0\0\1x"),
           "\1\2\3\4|\5\6\7||x|", ST_AGAIN, false);
    uint8_t body[4 + 300] = {0, 0, 1, 44};
    memset(body + 4, 'y', 300);
    struct framer f;
    struct slice frame;
    framer_init(&f, FRAMER_PROTOBUF);
    framer_feed(&f, slice_of(body, sizeof(body)));
    assert_int_equal(framer_next(&f, &frame), ST_OK);
    assert_int_equal(frame.len, 300);
    assert_ptr_equal(frame.ptr, body + 4); /* not copied */
    framer_fini(&f);
}

/* TestDecoder of the streaming serializer */
static void frames_that_are_too_long_are_skipped(void **state)
{
    (void)state;
    expect(FRAMER_JSON, 5, SLICE_LITERAL("{\"a\"} {\"ab\"} {\"a\"}"), "{\"a\"}|<limit>|{\"a\"}|",
           ST_AGAIN, false);
    expect(FRAMER_PROTOBUF, 3, SLICE_LITERAL("\0\0\0\3abc\0\0\0\4abcd\0\0\0\1x"), "abc|<limit>|x|",
           ST_AGAIN, false);
}

static void nothing_is_held_between_frames(void **state)
{
    (void)state;
    struct framer f;
    struct slice frame;
    framer_init(&f, FRAMER_JSON);
    framer_feed(&f, SLICE_LITERAL("{\"a\":"));
    assert_int_equal(framer_next(&f, &frame), ST_AGAIN);
    assert_true(f.held.capacity > 0);
    framer_feed(&f, SLICE_LITERAL("1}\n"));
    assert_int_equal(framer_next(&f, &frame), ST_OK);
    assert_int_equal(framer_next(&f, &frame), ST_AGAIN);
    assert_int_equal(f.held.capacity, 0);
    framer_fini(&f);
}

static void one_buffer_serves_all_frames_that_are_cut(void **state)
{
    (void)state;
    struct framer f;
    struct slice frame;
    framer_init(&f, FRAMER_JSON);
    framer_feed(&f, SLICE_LITERAL("{\"a\":"));
    assert_int_equal(framer_next(&f, &frame), ST_AGAIN);
    const uint8_t *buffer = f.held.ptr;
    for (int i = 0; i < 100; i++) {
        framer_feed(&f, SLICE_LITERAL("1}{\"a\":"));
        assert_int_equal(framer_next(&f, &frame), ST_OK);
        assert_int_equal(framer_next(&f, &frame), ST_AGAIN);
        assert_ptr_equal(f.held.ptr, buffer);
    }
    framer_fini(&f);
}

static void a_frame_that_is_too_long_is_not_kept(void **state)
{
    (void)state;
    struct framer f;
    struct slice frame;
    static const uint8_t much[64 * 1024];
    framer_init(&f, FRAMER_PROTOBUF);
    framer_feed(&f, slice_of("\xff\xff\xff\xff", 4));
    assert_int_equal(framer_next(&f, &frame), ST_AGAIN);
    for (int i = 0; i < 1000; i++) {
        framer_feed(&f, slice_of(much, sizeof(much)));
        assert_int_equal(framer_next(&f, &frame), ST_AGAIN);
        assert_int_equal(f.held.capacity, 0);
    }
    framer_fini(&f);
}

/* -- Random values, compared with the scanner -- */

static void append_value(struct random *random, struct buf *to, int depth)
{
    static const char *const strings[] = {"\"\"",
                                          "\"a b\"",
                                          "\"\\\"\"",
                                          "\"\\\\\"",
                                          "\"}]\"",
                                          "\"\\ud83d\\ude00\"",
                                          "\"a text of more than sixteen bytes: {[\"",
                                          "\"\xc3\xa4\xf0\x9f\x98\x80\xff\""};
    uint64_t kind = random_below(random, depth > 4 ? 1 : 3);
    if (kind == 0) {
        assert_int_equal(buf_append_text(to, strings[random_below(random, COUNT_OF(strings))]),
                         ST_OK);
        return;
    }
    assert_int_equal(buf_append_text(to, kind == 1 ? "[" : "{"), ST_OK);
    for (uint64_t i = 0, n = random_below(random, 6); i < n; i++) {
        assert_int_equal(buf_append_text(to, i ? ", " : ""), ST_OK);
        if (kind == 2)
            assert_int_equal(buf_append_text(to, "\"k\":"), ST_OK);
        append_value(random, to, depth + 1);
    }
    assert_int_equal(buf_append_text(to, kind == 1 ? "]" : "}"), ST_OK);
}

static void frames_are_what_the_scanner_finds(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct random random;
        struct buf body = {0}, expected = {0}, found = {0};
        struct json_scanner scanner;
        struct slice value;
        struct framer f;
        random_init(&random, seed);
        for (int i = 0; i < 8; i++) {
            append_value(&random, &body, 0);
            assert_int_equal(buf_append_text(&body, random_chance(&random, 1, 2) ? "\n" : ""),
                             ST_OK);
        }
        json_scanner_init(&scanner, buf_slice(&body));
        while (json_next_value(&scanner, &value)) {
            assert_int_equal(buf_append(&expected, value), ST_OK);
            assert_int_equal(buf_append_text(&expected, "|"), ST_OK);
        }
        assert_int_equal(scanner.fault, JSON_EMPTY);
        framer_init(&f, FRAMER_JSON);
        /* Long pieces are examined in blocks. */
        size_t piece_bytes = 1 + (size_t)random_below(&random, seed % 2 ? 40 : 4000);
        assert_int_equal(cut(&f, buf_slice(&body), piece_bytes, &found), ST_AGAIN);
        assert_true(slice_equal(buf_slice(&found), buf_slice(&expected)));
        framer_fini(&f);
        buf_fini(&body);
        buf_fini(&expected);
        buf_fini(&found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_may_be_cut_anywhere),
        cmocka_unit_test(scalar_values_are_frames_too),
        cmocka_unit_test(the_end_within_a_value_is_known),
        cmocka_unit_test(a_byte_that_begins_no_value_ends_the_frames),
        cmocka_unit_test(messages_have_a_length),
        cmocka_unit_test(frames_that_are_too_long_are_skipped),
        cmocka_unit_test(nothing_is_held_between_frames),
        cmocka_unit_test(one_buffer_serves_all_frames_that_are_cut),
        cmocka_unit_test(a_frame_that_is_too_long_is_not_kept),
        cmocka_unit_test(frames_are_what_the_scanner_finds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
