#include "kubeclient/data/object.h"

#include "kubeclient/data/protobuf.h"
#include "kubeclient/data/samples_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* "key name namespace uid version", or "-". */
static const char *show_bytes(vigil_bytes sent)
{
    static char text[512];
    vigil_kube_object *object;
    if (vigil_kube_object_new(sent, &object) != VIGIL_OK)
        return "-";
    vigil_bytes all[] = {vigil_kube_object_key(object), vigil_kube_object_name(object),
                         vigil_kube_object_namespace(object), vigil_kube_object_uid(object),
                         vigil_kube_object_version(object)};
    size_t n = 0;
    for (size_t i = 0; i < COUNT_OF(all); i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%.*s;", (int)all[i].size,
                              (const char *)all[i].data);
    assert_true(slice_equal(object_sent(object), slice_of(sent.data, sent.size)));
    vigil_bytes json = vigil_kube_object_json(object);
    vigil_bytes protobuf = vigil_kube_object_protobuf(object);
    assert_true(json.size == sent.size || (json.size == 0 && protobuf.size > 0));
    vigil_kube_object_unref(object);
    return text;
}

static const char *show(const char *json)
{
    return show_bytes(vigil_text(json));
}

static void metadata_is_found(void **state)
{
    (void)state;
    assert_string_equal(
        show("{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"namespace\":\"n\","
             "\"uid\":\"u-1\",\"resourceVersion\":\"12\",\"labels\":{\"name\":\"x\"}},"
             "\"spec\":{}}"),
        "n/a;a;n;u-1;12;");
    assert_string_equal(show("{\"metadata\":{\"name\":\"node1\"}}"), "node1;node1;;;;");
    assert_string_equal(
        show("{\"spec\":{\"metadata\":{\"name\":\"no\"}},"
             "\"metadata\":{\"labels\":{},\"resourceVersion\":\"7\",\"name\":\"a\"}}"),
        "a;a;;;7;");
    assert_string_equal(show("{\"metadata\":{\"name\":\"a\",\"name\":\"b\",\"uid\":\"1\",\"uid\":2,"
                             "\"uid\":\"3\"},\"metadata\":{\"name\":\"c\"}}"),
                        "a;a;;1;;");
}

static void escapes_are_decoded(void **state)
{
    (void)state;
    assert_string_equal(show("{\"metadata\":{\"name\":\"\\u0061b\",\"namespace\":\"n\\u002d\","
                             "\"uid\":\"\\u0075\",\"resourceVersion\":\"\\u0031\"}}"),
                        "n-/ab;ab;n-;u;1;");
}

static enum status make_with_long(const char *field, int bytes, size_t *ret_bytes)
{
    static char text[200000];
    int len = snprintf(text, sizeof(text), "{\"metadata\":{\"name\":\"a\",\"%s\":\"%0*d\"}}", field,
                       bytes, 7);
    struct vigil_kube_object *object;
    enum status status = object_new(slice_of(text, (size_t)len), &object);
    if (status != ST_OK)
        return status;
    *ret_bytes = vigil_kube_object_uid(object).size + vigil_kube_object_version(object).size;
    vigil_kube_object_unref(object);
    return ST_OK;
}

static void very_long_uids_and_versions_are_refused(void **state)
{
    (void)state;
    static const char *const fields[] = {"uid", "resourceVersion"};
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        size_t bytes;
        assert_int_equal(make_with_long(fields[i], 65535, &bytes), ST_OK);
        assert_int_equal(bytes, 65535);
        assert_int_equal(make_with_long(fields[i], 65536, &bytes), ST_LIMIT);
        assert_int_equal(make_with_long(fields[i], 131072, &bytes), ST_LIMIT);
    }
}

static void objects_without_a_name_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "12",
        "[]",
        "{}",
        "{\"metadata\":{}}",
        "{\"metadata\":null}",
        "{\"metadata\":{\"name\":\"\"}}",
        "{\"metadata\":{\"name\":1}}",
        "{\"metadata\":{\"name\":\"a\"",
        "{\"metadata\":{\"name\":\"\\ud800\"}}",
        "{\"metadata\":{\"name\":\"\xff\"}}",
        "{\"kind\":}",
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        assert_string_equal(show(texts[i]), "-");
}

static void protobuf_has_the_same_fields(void **state)
{
    (void)state;
    assert_string_equal(show_bytes(vigil_bytes_of(SAMPLE_POD, sizeof(SAMPLE_POD) - 1)),
                        "n/a;a;n;u-1;12;");
    vigil_kube_object *object;
    assert_int_equal(object_new(SLICE_LITERAL(SAMPLE_POD), &object), ST_OK);
    vigil_pb_value phase;
    assert_true(vigil_pb_find(vigil_kube_object_protobuf(object), "3.1", &phase));
    assert_true(vigil_pb_is(phase, "Running"));
    assert_int_equal(vigil_kube_object_json(object).size, 0);
    assert_int_equal(vigil_kube_object_kind(object).size, 3);
    assert_memory_equal(vigil_kube_object_kind(object).data, "Pod", 3);
    assert_memory_equal(vigil_kube_object_api_version(object).data, "v1", 2);
    vigil_kube_object_unref(object);
}

#define ENVELOPE(len, message) SLICE_LITERAL("k8s\0\x12" len message)

static void expect_refused(struct slice sent)
{
    assert_string_equal(show_bytes(vigil_bytes_of(sent.ptr, sent.len)), "-");
}

static void malformed_protobuf_is_refused(void **state)
{
    (void)state;
    struct slice pod = SLICE_LITERAL(SAMPLE_POD);
    for (size_t len = 0; len < pod.len; len++) {
        if (len != 168 && len != 170) /* without empty fields at the end */
            expect_refused(slice_sub(pod, 0, len));
    }
    assert_string_equal(show_bytes(vigil_bytes_of("k8s\0\x12\x05\x0a\x03\x0a\x01z", 11)),
                        "z;z;;;;");
    assert_string_equal(show_bytes(vigil_bytes_of("k8s\0\x12\x08\x0a\x06\x0a\x01z\x0a\x01y", 14)),
                        "z;z;;;;"); /* as in vigil/kube/protobuf.h, the first counts */
    expect_refused(ENVELOPE("\x00", ""));
    expect_refused(ENVELOPE("\x02", "\x0a\x00"));                      /* no name */
    expect_refused(ENVELOPE("\x04", "\x0a\x02\x0a\x00"));              /* an empty one */
    expect_refused(ENVELOPE("\x04", "\x0a\x02\x08\x01"));              /* a number */
    expect_refused(ENVELOPE("\x05", "\x0a\x03\x0a\x01\xff"));          /* not UTF-8 */
    expect_refused(ENVELOPE("\x06", "\x0a\x04\x0a\x01z\x0b"));         /* a group in metadata */
    expect_refused(ENVELOPE("\x08", "\x0a\x06\x0a\x01z\x1a\x01\xff")); /* the namespace */
}

static const char *kind_of(const char *json)
{
    static char text[64];
    vigil_kube_object *object;
    assert_int_equal(vigil_kube_object_new(vigil_text(json), &object), VIGIL_OK);
    snprintf(text, sizeof(text), "%.*s %.*s", VIGIL_ARGS(vigil_kube_object_kind(object)),
             VIGIL_ARGS(vigil_kube_object_api_version(object)));
    vigil_kube_object_unref(object);
    return text;
}

static void kind_is_known_if_it_was_sent(void **state)
{
    (void)state;
    assert_string_equal(kind_of("{\"kind\":\"Deployment\",\"apiVersion\":\"apps/v1\","
                                "\"metadata\":{\"name\":\"a\"}}"),
                        "Deployment apps/v1");
    assert_string_equal(kind_of("{\"metadata\":{\"name\":\"a\"}}"), " ");
    assert_string_equal(kind_of("{\"kind\":7,\"apiVersion\":\"\\u0076\",\"metadata\":{"
                                "\"name\":\"a\"}}"),
                        " ");
}

static void object_lives_as_long_as_it_is_held(void **state)
{
    (void)state;
    vigil_kube_object *object;
    assert_int_equal(vigil_kube_object_new(vigil_text("{\"metadata\":{\"name\":\"a\"}}"), &object),
                     VIGIL_OK);
    vigil_kube_object *other = vigil_kube_object_ref(object);
    vigil_kube_object_unref(object);
    assert_int_equal(vigil_kube_object_name(other).size, 1);
    vigil_kube_object_unref(other);
    vigil_kube_object_unref(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metadata_is_found),
        cmocka_unit_test(escapes_are_decoded),
        cmocka_unit_test(very_long_uids_and_versions_are_refused),
        cmocka_unit_test(objects_without_a_name_are_refused),
        cmocka_unit_test(protobuf_has_the_same_fields),
        cmocka_unit_test(malformed_protobuf_is_refused),
        cmocka_unit_test(kind_is_known_if_it_was_sent),
        cmocka_unit_test(object_lives_as_long_as_it_is_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
