#include "kubeclient/data/received_event.h"

#include "base/failing_memory_test.h"
#include "kubeclient/data/samples_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* "type version object", or the error. */
static const char *read_event(const char *frame)
{
    static char text[1024];
    struct received_event event;
    struct error error;
    size_t len = strlen(frame);
    uint8_t *copy = malloc(len ? len : 1); /* the sanitizer finds a read past its end */
    assert_non_null(copy);
    slice_copy(copy, slice_of(frame, len));
    if (received_event_read(slice_of(copy, len), &event, &error) == ST_OK)
        snprintf(text, sizeof(text), "%d %.*s %.*s%s", (int)event.type, SLICE_ARGS(event.version),
                 SLICE_ARGS(event.object), event.ends_initial_events ? " end" : "");
    else
        snprintf(text, sizeof(text), "%s", error.text);
    free(copy);
    return text;
}

/* TestDecoder of rest/watch */
static void events_have_type_object_and_version(void **state)
{
    (void)state;
    assert_string_equal(
        read_event("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"12\"}}}"),
        "0 12 {\"metadata\":{\"resourceVersion\":\"12\"}}");
    assert_string_equal(read_event("{\"object\":{\"a\":1}, \"type\":\"MODIFIED\",\"x\":[]}\n"),
                        "1  {\"a\":1}");
    assert_string_equal(read_event("{\"type\":\"DELETED\",\"object\":{}}"), "2  {}");
    assert_string_equal(
        read_event("{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410}}"),
        "4  {\"kind\":\"Status\",\"code\":410}");
}

static void odd_members_are_read_as_elsewhere(void **state)
{
    (void)state;
    assert_string_equal(
        read_event("{\"type\":\"ADDED\",\"type\":\"DELETED\",\"object\":{},\"object\":[]}"),
        "0  {}");
    assert_string_equal(read_event("{\"\\u0074ype\":\"BOOKM\\u0041RK\",\"object\":{\"metadata\":{"
                                   "\"resourceVersion\":\"\\u0031\"}}}"),
                        "3  {\"metadata\":{\"resourceVersion\":\"\\u0031\"}}");
}

static void bookmark_may_end_the_initial_events(void **state)
{
    (void)state;
    assert_non_null(
        strstr(read_event("{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":"
                          "\"7\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}"),
               " end"));
    assert_null(strstr(read_event("{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{"
                                  "\"resourceVersion\":\"7\"}}}"),
                       " end"));
    assert_null(strstr(read_event("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"annotations\":{"
                                  "\"k8s.io/initial-events-end\":\"true\"}}}}"),
                       " end"));
}

/* TestDecoder and TestDecoder_SourceClose of client-go reject unknown types. */
static void what_is_not_an_event_is_an_error(void **state)
{
    (void)state;
    assert_string_equal(read_event("{\"type\":\"OTHER\",\"object\":{}}"),
                        "the watch sent an event of an unknown type: \"OTHER\"");
    assert_string_equal(read_event("{\"object\":{}}"),
                        "the watch sent an event of an unknown type: ");
    assert_string_equal(read_event("{\"type\":\"ADDED\"}"),
                        "the watch sent an event without an object");
    assert_string_equal(read_event("{\"type\":\"ADDED\",\"object\":null}"),
                        "the watch sent an event without an object");
    static const char *const malformed[] = {
        "", "[]", "12", "{\"type\":\"ADDED\",\"object\":{]}", "{\"type\":\"ADDED\",\"object\":{}}}",
        "{"};
    for (size_t i = 0; i < COUNT_OF(malformed); i++)
        assert_non_null(strstr(read_event(malformed[i]), "not JSON"));
}

/* -- Protobuf -- */

/* The same for protobuf, with the length of the object. */
static const char *read_message(struct slice frame)
{
    static char text[1024];
    struct received_event event;
    struct error error;
    uint8_t *copy = malloc(frame.len ? frame.len : 1);
    assert_non_null(copy);
    slice_copy(copy, frame);
    if (received_event_read_protobuf(slice_of(copy, frame.len), &event, &error) == ST_OK)
        snprintf(text, sizeof(text), "%d %.*s %zu%s", (int)event.type, SLICE_ARGS(event.version),
                 event.object.len, event.ends_initial_events ? " end" : "");
    else
        snprintf(text, sizeof(text), "%s", error.text);
    free(copy);
    return text;
}

static void events_of_protobuf_are_read(void **state)
{
    (void)state;
    assert_int_equal(sizeof(SAMPLE_POD) - 1, 172);
    assert_string_equal(read_message(SLICE_LITERAL(SAMPLE_ADDED)), "0 12 172");
    assert_string_equal(read_message(SLICE_LITERAL(SAMPLE_ERROR)), "4  119");
    assert_string_equal(read_message(SLICE_LITERAL(SAMPLE_BOOKMARK)), "3 99 127 end");
    uint8_t error_with_pod[sizeof(SAMPLE_ADDED) - 1];
    memcpy(error_with_pod, SAMPLE_ADDED, sizeof(error_with_pod));
    slice_copy(error_with_pod + 2, SLICE_LITERAL("ERROR"));
    assert_string_equal(read_message(slice_of(error_with_pod, sizeof(error_with_pod))), "4  172");
    struct received_event event;
    struct error error;
    struct slice frame = SLICE_LITERAL(SAMPLE_ADDED);
    assert_int_equal(received_event_read_protobuf(frame, &event, &error), ST_OK);
    assert_true(slice_equal(event.object, SLICE_LITERAL(SAMPLE_POD)));
}

static void only_a_bookmark_ends_the_initial_events(void **state)
{
    (void)state;
    uint8_t frame[sizeof(SAMPLE_BOOKMARK) - 1];
    memcpy(frame, SAMPLE_BOOKMARK, sizeof(frame));
    slice_copy(frame + 2, SLICE_LITERAL("MODIFIED"));
    assert_string_equal(read_message(slice_of(frame, sizeof(frame))), "1 99 127");
    memcpy(frame, SAMPLE_BOOKMARK, sizeof(frame));
    uint8_t *value = memmem(frame, sizeof(frame), "true", 4);
    assert_non_null(value);
    value[0] = 'T';
    assert_string_equal(read_message(slice_of(frame, sizeof(frame))), "3 99 127");
}

static void what_is_not_an_event_of_protobuf_is_an_error(void **state)
{
    (void)state;
    struct slice frame = SLICE_LITERAL(SAMPLE_ADDED);
    for (size_t len = 0; len < frame.len; len++)
        assert_string_equal(read_message(slice_sub(frame, 0, len)),
                            "the watch sent an event that is not protobuf");
    assert_string_equal(read_message(SLICE_LITERAL(SAMPLE_ADDED "\x0b")),
                        "the watch sent an event that is not protobuf");
    assert_string_equal(read_message(SLICE_LITERAL("\x12\x06\x0a\x04k8s\0\x0a\x05OTHER")),
                        "the watch sent an event of an unknown type: OTHER");
    assert_string_equal(read_message(SLICE_LITERAL("\x12\x06\x0a\x04k8s\0")),
                        "the watch sent an event of an unknown type: ");
    assert_string_equal(
        read_message(SLICE_LITERAL("\x12\x06\x0a\x04k8s\0\x0a\x05\xff\xff\xff\xff\xff")),
        "the watch sent an event of an unknown type: ");
    assert_string_equal(read_message(SLICE_LITERAL("\x0a\x05"
                                                   "ADDED\x12\x04\x0a\x02{}")),
                        "the watch sent an event that is not protobuf");
}

/* -- Streams -- */

/* "type version|" for each event of a body that comes in pieces, "limit|" for one that is too long,
 * and the error that ended it. */
static const char *read_stream(enum framer_format format, size_t bytes_max, struct slice body,
                               size_t piece_bytes)
{
    static char text[1024];
    size_t n = 0;
    enum status status = ST_AGAIN;
    struct framer framer;
    struct error error = {0};
    framer_init(&framer, format);
    framer.bytes_max = bytes_max;
    for (size_t at = 0; at < body.len && status == ST_AGAIN; at += piece_bytes) {
        struct received_event event;
        size_t len = size_min(piece_bytes, body.len - at);
        uint8_t *piece = malloc(len);
        assert_non_null(piece);
        slice_copy(piece, slice_sub(body, at, len));
        framer_feed(&framer, slice_of(piece, len));
        while ((status = received_event_next(&framer, &event, &error)) == ST_OK ||
               status == ST_LIMIT) {
            framer_check(&framer);
            n +=
                (size_t)(status == ST_LIMIT ? snprintf(text + n, sizeof(text) - n, "limit|")
                                            : snprintf(text + n, sizeof(text) - n, "%d %.*s|",
                                                       (int)event.type, SLICE_ARGS(event.version)));
        }
        framer_check(&framer);
        free(piece);
    }
    snprintf(text + n, sizeof(text) - n, "%s%s", error.text,
             framer_is_cut_off(&framer) ? "cut off" : "");
    framer_fini(&framer);
    return text;
}

static void expect_stream(enum framer_format format, size_t bytes_max, struct slice body,
                          const char *events)
{
    for (size_t piece_bytes = 1; piece_bytes <= body.len; piece_bytes++)
        assert_string_equal(read_stream(format, bytes_max, body, piece_bytes), events);
}

#define EVENT(type, version) \
    "{\"type\":\"" type "\",\"object\":{\"metadata\":{\"resourceVersion\":\"" version "\"}}}"

static void streams_may_be_cut_anywhere(void **state)
{
    (void)state;
    expect_stream(FRAMER_JSON, FRAMER_BYTES_MAX,
                  SLICE_LITERAL(EVENT("ADDED", "1") "\n" EVENT("MODIFIED", "2")
                                    EVENT("DELETED", "3") " \r\n{\"type\""),
                  "0 1|1 2|2 3|cut off");
    expect_stream(FRAMER_JSON, FRAMER_BYTES_MAX, SLICE_LITERAL(EVENT("ADDED", "1") "\n"), "0 1|");
    expect_stream(FRAMER_PROTOBUF, FRAMER_BYTES_MAX,
                  SLICE_LITERAL("\0\0\0\xb9" SAMPLE_ADDED "\0\0\0\x8e" SAMPLE_BOOKMARK "\0"),
                  "0 12|3 99|cut off");
}

static void streams_end_where_they_are_malformed(void **state)
{
    (void)state;
    expect_stream(FRAMER_JSON, FRAMER_BYTES_MAX, SLICE_LITERAL(EVENT("ADDED", "1") ",{}"),
                  "0 1|the server sent bytes that are not an event");
    expect_stream(FRAMER_JSON, FRAMER_BYTES_MAX,
                  SLICE_LITERAL(EVENT("ADDED", "1") EVENT("OTHER", "2") EVENT("ADDED", "3")),
                  "0 1|the watch sent an event of an unknown type: \"OTHER\"");
    expect_stream(FRAMER_JSON, FRAMER_BYTES_MAX,
                  SLICE_LITERAL(EVENT("ADDED", "1") "{\"type\":\"ADDED\",\"object\":{]}}"),
                  "0 1|the watch sent an event that is not JSON: invalid character ']' looking for "
                  "beginning of object key string");
    expect_stream(FRAMER_PROTOBUF, FRAMER_BYTES_MAX, SLICE_LITERAL("\0\0\0\1x"),
                  "the watch sent an event that is not protobuf");
}

static void events_that_are_too_long_are_left_out(void **state)
{
    (void)state;
    expect_stream(FRAMER_JSON, sizeof(EVENT("ADDED", "1")) - 1,
                  SLICE_LITERAL(EVENT("ADDED", "1") EVENT("ADDED", "22") EVENT("ADDED", "3")),
                  "0 1|limit|0 3|");
    expect_stream(FRAMER_PROTOBUF, 0xb8, SLICE_LITERAL("\0\0\0\xb9" SAMPLE_ADDED), "limit|");
}

static void events_are_not_copied(void **state)
{
    (void)state;
    struct framer framer;
    struct received_event event;
    struct error error;
    struct slice body = SLICE_LITERAL(EVENT("ADDED", "1"));
    framer_init(&framer, FRAMER_JSON);
    framer_feed(&framer, body);
    assert_int_equal(received_event_next(&framer, &event, &error), ST_OK);
    assert_true(event.object.ptr > body.ptr && event.object.ptr < body.ptr + body.len);
    assert_int_equal(framer.held.capacity, 0);
    framer_fini(&framer);
}

static void read_with_failures(void *ctx)
{
    struct framer framer;
    struct received_event event;
    struct error error;
    (void)ctx;
    bool fails = memory_fail_at > 0;
    framer_init(&framer, FRAMER_JSON);
    framer_feed(&framer, SLICE_LITERAL("{\"type\":"));
    enum status status = received_event_next(&framer, &event, &error);
    assert_int_equal(status, fails ? ST_NOMEM : ST_AGAIN);
    framer_fini(&framer);
}

static void missing_memory_is_reported(void **state)
{
    (void)state;
    assert_int_equal(each_allocation_fails(read_with_failures, NULL), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_have_type_object_and_version),
        cmocka_unit_test(odd_members_are_read_as_elsewhere),
        cmocka_unit_test(bookmark_may_end_the_initial_events),
        cmocka_unit_test(what_is_not_an_event_is_an_error),
        cmocka_unit_test(events_of_protobuf_are_read),
        cmocka_unit_test(only_a_bookmark_ends_the_initial_events),
        cmocka_unit_test(what_is_not_an_event_of_protobuf_is_an_error),
        cmocka_unit_test(streams_may_be_cut_anywhere),
        cmocka_unit_test(streams_end_where_they_are_malformed),
        cmocka_unit_test(events_that_are_too_long_are_left_out),
        cmocka_unit_test(events_are_not_copied),
        cmocka_unit_test(missing_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
