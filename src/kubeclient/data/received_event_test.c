#include "kubeclient/data/received_event.h"

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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
