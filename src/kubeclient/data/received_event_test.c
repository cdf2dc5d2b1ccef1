#include "kubeclient/data/received_event.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_have_type_object_and_version),
        cmocka_unit_test(odd_members_are_read_as_elsewhere),
        cmocka_unit_test(bookmark_may_end_the_initial_events),
        cmocka_unit_test(what_is_not_an_event_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
