#include "kubeclient/data/protobuf.h"

#include "base/failing_memory_test.h"
#include "kubeclient/data/samples_test.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* The value at the path: a number, a text in quotes, or "-". The message is copied, so that the
 * sanitizer finds a read past its end. */
static const char *find(struct slice message, const char *path)
{
    static char text[256];
    vigil_pb_value value;
    uint8_t *copy = malloc(message.len ? message.len : 1);
    assert_non_null(copy);
    slice_copy(copy, message);
    if (!vigil_pb_find(vigil_bytes_of(copy, message.len), path, &value))
        snprintf(text, sizeof(text), "-");
    else if (value.type == VIGIL_PB_BYTES)
        snprintf(text, sizeof(text), "\"%.*s\"", VIGIL_ARGS(value.bytes));
    else
        snprintf(text, sizeof(text), "%" PRIu64, value.number);
    free(copy);
    return text;
}

static struct envelope read_envelope(struct slice bytes)
{
    struct envelope envelope;
    assert_true(envelope_read(bytes, &envelope));
    return envelope;
}

static void fields_are_found_by_path(void **state)
{
    (void)state;
    struct slice pod = read_envelope(SLICE_LITERAL(SAMPLE_POD)).message;
    assert_string_equal(find(pod, "1.1"), "\"a\"");
    assert_string_equal(find(pod, "1.6"), "\"12\"");
    assert_string_equal(find(pod, "3.1"), "\"Running\"");
    assert_string_equal(find(pod, "2.2.1"), "\"c1\"");
    assert_string_equal(find(pod, "2.2[0].2"), "\"i\"");
    assert_string_equal(find(pod, "2.2[1].1"), "\"c2\"");
    assert_string_equal(find(pod, "1.7"), "0"); /* generation */
    assert_string_equal(find(pod, "1.11['app']"), "\"x\"");
}

static void paths_may_lead_nowhere(void **state)
{
    (void)state;
    struct slice pod = read_envelope(SLICE_LITERAL(SAMPLE_POD)).message;
    static const char *const paths[] = {
        "4",         "1.100",       "2.2[2].1", "1.11['ap']", "1.11['']", "1.7.1", "1.1.1",
        "a",         "1.",          ".1",       "1..1",       "[0]",      "['a']", "1[0][0]",
        "0",         "4294967297",  "-1",       "1.11['app",  "2.2[x]",   "2.2[",  "1.7['a']",
        "536870912", "2.2[1][0].1", " 1",       "['1']",
    };
    for (size_t i = 0; i < COUNT_OF(paths); i++)
        assert_string_equal(find(pod, paths[i]), "-");
    vigil_pb_value whole;
    assert_true(vigil_pb_find(vigil_bytes_of(pod.ptr, pod.len), "", &whole));
    assert_ptr_equal(whole.bytes.data, pod.ptr);
    assert_int_equal(whole.bytes.size, pod.len);
}

static void every_kind_of_value_is_read(void **state)
{
    (void)state;
    struct slice message = SLICE_LITERAL("\x08\x96\x01"                         /* 1: 150 */
                                         "\x11\x01\x02\x03\x04\x05\x06\x07\x08" /* 2: fixed64 */
                                         "\x1d\x01\x02\x03\x04"                 /* 3: fixed32 */
                                         "\x22\x02\x68\x69"                     /* 4: "hi" */
                                         "\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" /* 5: -1 */
                                         "\xf8\xff\xff\xff\x0f\x07"); /* the largest number */
    vigil_pb_value value;
    assert_string_equal(find(message, "1"), "150");
    assert_string_equal(find(message, "2"), "578437695752307201");
    assert_string_equal(find(message, "3"), "67305985");
    assert_string_equal(find(message, "4"), "\"hi\"");
    assert_true(vigil_pb_find(vigil_bytes_of(message.ptr, message.len), "5", &value));
    assert_int_equal((int64_t)value.number, -1);
    assert_int_equal(value.type, VIGIL_PB_NUMBER);
    assert_true(vigil_pb_find(vigil_bytes_of(message.ptr, message.len), "2", &value));
    assert_int_equal(value.type, VIGIL_PB_FIXED);
    assert_string_equal(find(message, "536870911"), "7");
}

static void texts_are_compared(void **state)
{
    (void)state;
    vigil_pb_value value = {.type = VIGIL_PB_BYTES, .bytes = vigil_text("abc")};
    assert_true(vigil_pb_is(value, "abc"));
    assert_false(vigil_pb_is(value, "ab"));
    assert_false(vigil_pb_is(value, "abcd"));
    assert_false(vigil_pb_is((vigil_pb_value){.type = VIGIL_PB_NUMBER}, ""));
    assert_true(vigil_pb_is((vigil_pb_value){.type = VIGIL_PB_BYTES}, ""));
}

static void entries_of_maps_may_be_incomplete(void **state)
{
    (void)state;
    struct slice map = SLICE_LITERAL("\x08\x05"                   /* not an entry */
                                     "\x0a\x03\x0a\x01k"          /* k without a value */
                                     "\x0a\x06\x12\x01v\x0a\x01m" /* the value before the key m */
                                     "\x0a\x03\x12\x01w");        /* without a key */
    assert_string_equal(find(map, "1['k']"), "\"\"");
    assert_string_equal(find(map, "1['m']"), "\"v\"");
    assert_string_equal(find(map, "1['']"), "\"w\"");
    assert_string_equal(find(map, "1['v']"), "-");
}

static void malformed_messages_end(void **state)
{
    (void)state;
    static const struct slice messages[] = {
        {(const uint8_t *)"\x08", 1},     /* no value */
        {(const uint8_t *)"\x08\x80", 2}, /* half of one */
        {(const uint8_t *)"\x12\x05"
                          "ab",
         4},                                                                   /* too short */
        {(const uint8_t *)"\x11\x01\x02\x03\x04\x05\x06\x07", 8},              /* seven bytes */
        {(const uint8_t *)"\x1d\x01\x02\x03", 4},                              /* three bytes */
        {(const uint8_t *)"\x00\x01", 2},                                      /* the number 0 */
        {(const uint8_t *)"\x0b\x0c", 2},                                      /* a group */
        {(const uint8_t *)"\x0c", 1},                                          /* its end */
        {(const uint8_t *)"\x0e\x01", 2},                                      /* type 6 */
        {(const uint8_t *)"\x80\x80\x80\x80\x10\x01", 6},                      /* the number 2^29 */
        {(const uint8_t *)"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11}, /* 2^64 - 1 bytes */
        {(const uint8_t *)"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12}, /* 11 bytes */
    };
    for (size_t i = 0; i < COUNT_OF(messages); i++) {
        uint32_t field;
        vigil_pb_value value;
        uint8_t *copy = malloc(messages[i].len);
        slice_copy(copy, messages[i]);
        vigil_pb_iterator iterator = vigil_pb_iterate(vigil_bytes_of(copy, messages[i].len));
        assert_false(vigil_pb_next(&iterator, &field, &value));
        assert_true(iterator.malformed);
        assert_false(vigil_pb_next(&iterator, &field, &value));
        free(copy);
    }
    vigil_pb_iterator empty = vigil_pb_iterate(vigil_bytes_of(NULL, 0));
    assert_false(vigil_pb_next(&empty, NULL, NULL));
    assert_false(empty.malformed);
}

static void envelopes_have_a_kind(void **state)
{
    (void)state;
    struct envelope envelope = read_envelope(SLICE_LITERAL(SAMPLE_STATUS));
    assert_true(slice_equal(envelope.kind, SLICE_LITERAL("Status")));
    assert_true(slice_equal(envelope.api_version, SLICE_LITERAL("v1")));
    assert_string_equal(find(envelope.message, "4"), "\"Expired\"");
    assert_int_equal(read_envelope(SLICE_LITERAL("k8s\0")).message.len, 0);
}

static void other_contents_are_refused(void **state)
{
    (void)state;
    struct envelope envelope;
    assert_false(envelope_read(SLICE_EMPTY, &envelope));
    assert_false(envelope_read(SLICE_LITERAL("k8s"), &envelope));
    assert_false(envelope_read(SLICE_LITERAL("k8t\0"), &envelope));
    assert_false(envelope_read(SLICE_LITERAL("{}\0\0\0"), &envelope));
    assert_false(envelope_read(SLICE_LITERAL("k8s\0\x12\x01x\x1a\x04gzip"), &envelope));
    assert_false(envelope_read(SLICE_LITERAL("k8s\0\x22\x10"
                                             "application/json"),
                               &envelope));
    assert_true(envelope_read(SLICE_LITERAL("k8s\0\x22\x23"
                                            "application/vnd.kubernetes.protobuf"),
                              &envelope));
    struct slice pod = SLICE_LITERAL(SAMPLE_POD);
    for (size_t len = 0; len < 170; len++) /* the rest is two fields that are empty */
        assert_int_equal(envelope_read(slice_sub(pod, 0, len), &envelope),
                         len == 4 || len == 15 || len == 168);
}

static void append_head(void *ctx)
{
    struct buf *to = ctx;
    bool fails = memory_fail_at > 0;
    enum status status = envelope_append_head(to, SLICE_LITERAL("v1"), SLICE_LITERAL("Pod"), 150);
    assert_int_equal(status, fails ? ST_NOMEM : ST_OK);
    if (status == ST_OK)
        assert_memory_equal(to->ptr, SAMPLE_POD, to->len);
    buf_fini(to);
}

static void envelopes_are_made_as_by_kubernetes(void **state)
{
    (void)state;
    struct buf to = {0};
    append_head(&to);
    assert_true(each_allocation_fails(append_head, &to) >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_found_by_path),
        cmocka_unit_test(paths_may_lead_nowhere),
        cmocka_unit_test(every_kind_of_value_is_read),
        cmocka_unit_test(texts_are_compared),
        cmocka_unit_test(entries_of_maps_may_be_incomplete),
        cmocka_unit_test(malformed_messages_end),
        cmocka_unit_test(envelopes_have_a_kind),
        cmocka_unit_test(other_contents_are_refused),
        cmocka_unit_test(envelopes_are_made_as_by_kubernetes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
