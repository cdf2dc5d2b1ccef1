/* Examples and hostile input. tests/kube_oracle.py compares with Kubernetes. */
#include "kube/types/schema/protobuf.h"

#include "codec/json/tree_fixture_test.h"
#include "codec/kube_time.h"

#include <stdio.h>
#include <stdlib.h>

static int setup(void **state)
{
    *state = fixture_new(4 << 20);
    return 0;
}

static enum status encode(struct fixture *f, const char *json, struct buf *out)
{
    return kube_protobuf_encode(&f->arena, read_json(f, json), out, &f->error);
}

static void assert_decodes(struct fixture *f, struct slice bytes, const char *json)
{
    struct json_node *object;
    assert_int_equal(kube_protobuf_decode(&f->arena, bytes, &object, &f->error), ST_OK);
    assert_written(object, json);
}

static void decoded_objects_match_the_json_of_go(void **state)
{
    struct fixture *f = *state;
    struct buf out = {0};
    assert_int_equal(
        encode(f,
               "{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"metadata\":{\"name\":\"a\","
               "\"creationTimestamp\":\"2026-11-15T07:16:03+01:00\"},\"spec\":{"
               "\"ports\":[{\"port\":80,\"targetPort\":\"http\"}],\"unknown\":1}}",
               &out),
        ST_OK);
    assert_decodes(
        f, buf_slice(&out),
        "{\"kind\":\"Service\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\","
        "\"creationTimestamp\":\"2026-11-15T06:16:03Z\"},\"spec\":{\"ports\":[{\"port\":80,"
        "\"targetPort\":\"http\"}]},\"status\":{\"loadBalancer\":{}}}");
    buf_fini(&out);
}

static void watch_events_begin_with_their_length(void **state)
{
    struct fixture *f = *state;
    struct buf out = {0};
    struct json_node *object;
    struct slice json = SLICE_LITERAL("{\"apiVersion\":\"v1\",\"kind\":\"Namespace\"}");
    assert_int_equal(json_tree_read(&f->arena, json, &object, &f->error), ST_OK);
    assert_int_equal(kube_protobuf_encode_event(&f->arena, "ADDED", object, &out, &f->error),
                     ST_OK);
    assert_int_equal(out.ptr[3], out.len - 4);
    assert_memory_equal(out.ptr + 4,
                        "\x0a\x05"
                        "ADDED\x12",
                        8);
    buf_fini(&out);
}

static void values_of_wrong_types_are_refused(void **state)
{
    static const char *const bad[] = {
        "\"Service\",\"spec\":{\"ports\":{}}",
        "\"Service\",\"spec\":[]",
        "\"Service\",\"spec\":{\"ports\":[{\"port\":\"x\"}]}",
        "\"Service\",\"spec\":{\"ports\":[{\"port\":3000000000}]}",
        "\"Secret\",\"data\":{\"a\":\"!\"}",
        "\"Secret\",\"metadata\":{\"creationTimestamp\":\"today\"}",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct buf out = {0};
        char json[256];
        snprintf(json, sizeof(json), "{\"apiVersion\":\"v1\",\"kind\":%s}", bad[i]);
        assert_int_equal(encode(*state, json, &out), ST_INVALID);
        assert_int_equal(out.len, 0);
        buf_fini(&out);
    }
}

static void malformed_bytes_are_refused(void **state)
{
    struct fixture *f = *state;
    struct json_node *object;
    static const struct {
        struct slice bytes;
        enum status status;
    } cases[] = {
        {SLICE_LITERAL("{}"), ST_MALFORMED},
        {SLICE_LITERAL(""), ST_MALFORMED},
        {SLICE_LITERAL("k8s\0"), ST_NOT_FOUND},
        {SLICE_LITERAL("k8s\0\x0a\xff\xff\xff\xff\x0f"), ST_MALFORMED},
        {SLICE_LITERAL("k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x02\x0a\x05"), ST_MALFORMED},
        /* metadata is a number */
        {SLICE_LITERAL("k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x02\x08\x05"), ST_MALFORMED},
        /* a group that does not end; one that is a known field; an end without a beginning */
        {SLICE_LITERAL("k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x01\x7b"), ST_MALFORMED},
        {SLICE_LITERAL("k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x02\x0b\x0c"), ST_MALFORMED},
        {SLICE_LITERAL("k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x01\x7c"), ST_MALFORMED},
        /* the apiVersion is a number */
        {SLICE_LITERAL("k8s\0\x0a\x07\x08\x01\x12\x03Pod"), ST_MALFORMED},
        /* a label whose key is a number, and one that exceeds its entry */
        {SLICE_LITERAL("k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x06\x0a\x04\x5a\x02\x08\x01"),
         ST_MALFORMED},
        {SLICE_LITERAL("k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x08\x0a\x06\x5a\x02\x0a\x02xx"),
         ST_MALFORMED},
        /* field number 0 */
        {SLICE_LITERAL("k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x02\x00\x00"), ST_MALFORMED},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(kube_protobuf_decode(&f->arena, cases[i].bytes, &object, &f->error),
                         cases[i].status);
}

/* metadata twice with an unknown group between them, and twice a label in it. */
static void repeated_messages_are_merged(void **state)
{
    struct fixture *f = *state;
    struct json_node *object;
    struct slice bytes = SLICE_LITERAL("k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x28"
                                       "\x0a\x10\x0a\x01"
                                       "a\x12\x01g\x5a\x08\x0a\x01x\x12\x03one"
                                       "\x7b\x08\x01\x7c"
                                       "\x0a\x10\x0a\x01"
                                       "b\x2a\x01u\x5a\x08\x0a\x01y\x12\x03two");
    assert_int_equal(kube_protobuf_decode(&f->arena, bytes, &object, &f->error), ST_OK);
    const struct json_node *meta = json_node_named(object, "metadata");
    struct buf out = {0};
    assert_int_equal(json_tree_write(meta, &out), ST_OK);
    assert_true(slice_is(buf_slice(&out), "{\"name\":\"b\",\"generateName\":\"g\",\"uid\":\"u\","
                                          "\"labels\":{\"x\":\"one\",\"y\":\"two\"}}"));
    buf_fini(&out);
}

/* Wraps the bytes into a message with only that field. */
static void wrap(struct buf *bytes, int32_t field)
{
    uint8_t head[8];
    size_t at = 0;
    for (uint64_t tag = (uint64_t)field << 3 | 2; tag || !at; tag >>= 7)
        head[at++] = (uint8_t)((tag & 0x7f) | (tag >> 7 ? 0x80 : 0));
    for (uint64_t len = bytes->len, first = at; len || at == first; len >>= 7)
        head[at++] = (uint8_t)((len & 0x7f) | (len >> 7 ? 0x80 : 0));
    struct buf out = {0};
    assert_int_equal(buf_append(&out, slice_of(head, at)), ST_OK);
    assert_int_equal(buf_append(&out, buf_slice(bytes)), ST_OK);
    buf_fini(bytes);
    *bytes = out;
}

static enum status decode(struct fixture *f, const char *version, const char *kind,
                          struct buf *message)
{
    struct json_node *object;
    struct buf whole = {0};
    assert_int_equal(kube_protobuf_encode_head(slice_from_text(version), slice_from_text(kind),
                                               message->len, &whole),
                     ST_OK);
    assert_int_equal(buf_append(&whole, buf_slice(message)), ST_OK);
    assert_int_equal(buf_append(&whole, kube_protobuf_tail()), ST_OK);
    enum status status = kube_protobuf_decode(&f->arena, buf_slice(&whole), &object, &f->error);
    buf_fini(&whole);
    buf_fini(message);
    return status;
}

/* Decodes JSONSchemaProps nested by `not`, as deep as a definition. */
static enum status decode_nested(struct fixture *f, int levels)
{
    static const char *const path[] = {"spec", "versions", "schema", "openAPIV3Schema", "not"};
    const struct kube_type *type = kube_type_find(SLICE_LITERAL("apiextensions.k8s.io/v1"),
                                                  SLICE_LITERAL("CustomResourceDefinition"));
    int32_t numbers[COUNT_OF(path)];
    for (size_t i = 0; i < COUNT_OF(path); i++) {
        const struct kube_field *field = kube_type_field(type, slice_from_text(path[i]));
        numbers[i] = (int32_t)field->number;
        type = kube_field_type(field);
    }
    struct buf bytes = {0};
    for (int i = levels - 1; i > 0; i--) /* from the innermost */
        wrap(&bytes, numbers[i - 1 < 4 ? i - 1 : 4]);
    return decode(f, "apiextensions.k8s.io/v1", "CustomResourceDefinition", &bytes);
}

static void nesting_and_memory_have_limits(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(decode_nested(f, KUBE_PROTOBUF_DEPTH_MAX), ST_OK);
    assert_int_equal(decode_nested(f, KUBE_PROTOBUF_DEPTH_MAX + 1), ST_LIMIT);

    /* A million empty containers of two bytes each exceed the arena's limit, and are refused. */
    struct buf empty = {0};
    for (size_t i = 0; i < 1 << 20; i++)
        assert_int_equal(buf_append(&empty, slice_of("\x12", 2)), ST_OK);
    wrap(&empty, 2); /* a pod's spec */
    assert_int_equal(decode(f, "v1", "Pod", &empty), ST_NOMEM);
}

static void every_truncated_object_is_refused_or_decoded(void **state)
{
    struct fixture *f = *state;
    struct buf out = {0};
    assert_int_equal(encode(f,
                            "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\","
                            "\"labels\":{\"x\":\"y\"}},\"spec\":{\"containers\":[{\"name\":\"c\","
                            "\"resources\":{\"limits\":{\"cpu\":1}}}]}}",
                            &out),
                     ST_OK);
    for (size_t len = 0; len < out.len; len++) {
        uint8_t *cut = malloc(len + 1);
        struct json_node *object;
        memcpy(cut, out.ptr, len);
        enum status status =
            kube_protobuf_decode(&f->arena, slice_of(cut, len), &object, &f->error);
        assert_true(status == ST_OK || status == ST_MALFORMED || status == ST_NOT_FOUND);
        free(cut);
    }
    buf_fini(&out);
}

static void times_are_read_and_written(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t seconds;
        int32_t nanos;
    } good[] = {
        {"1970-01-01T00:00:00Z", 0, 0},
        {"0001-01-01T00:00:00Z", KUBE_TIME_NONE, 0},
        {"9999-12-31T23:59:59Z", 253402300799, 0},
        {"2024-02-29T12:00:00.5+02:00", 1709200800, 500000000},
        {"2024-02-29T9:00:00Z", 1709197200, 0},
    };
    static const char *const bad[] = {"",
                                      "2023-02-29T12:00:00Z",
                                      "2024-02-29T24:00:00Z",
                                      "2024-02-29 12:00:00Z",
                                      "2024-02-29T12:00:00",
                                      "2024-02-29T12:00:00.Z",
                                      "2024-13-01T12:00:00Z",
                                      "2024-02-29T12:00:00ZZ"};
    int64_t seconds;
    int32_t nanos;
    char text[KUBE_TIME_BYTES];
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        assert_true(kube_time_read(slice_from_text(good[i].text), &seconds, &nanos));
        assert_int_equal(seconds, good[i].seconds);
        assert_int_equal(nanos, good[i].nanos);
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(kube_time_read(slice_from_text(bad[i]), &seconds, &nanos));
    assert_true(kube_time_write(1709200800, 123456789, true, text));
    assert_string_equal(text, "2024-02-29T10:00:00.123456Z");
    assert_false(kube_time_write(INT64_MAX, 0, false, text));
    assert_false(kube_time_write(INT64_MIN, 0, false, text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(decoded_objects_match_the_json_of_go, setup, teardown),
        cmocka_unit_test_setup_teardown(watch_events_begin_with_their_length, setup, teardown),
        cmocka_unit_test_setup_teardown(values_of_wrong_types_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(malformed_bytes_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(repeated_messages_are_merged, setup, teardown),
        cmocka_unit_test_setup_teardown(nesting_and_memory_have_limits, setup, teardown),
        cmocka_unit_test_setup_teardown(every_truncated_object_is_refused_or_decoded, setup,
                                        teardown),
        cmocka_unit_test(times_are_read_and_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
