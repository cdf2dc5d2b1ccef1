#include "kube/types/object/object.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define POD                                                                                     \
    "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\",\"namespace\":\"n\"," \
    "\"uid\":\"u-1\",\"labels\":{\"app\":\"web\"},\"annotations\":{\"name\":\"not this\"}},"    \
    "\"spec\":{\"nodeName\":\"node-1\",\"hostNetwork\":true,\"containers\":[{\"name\":\"c\"}]}}"

static struct kube_object parse(const char *json)
{
    struct kube_object object;
    assert_int_equal(kube_object_parse(slice_from_text(json), &object), ST_OK);
    return object;
}

static void assert_slice(struct slice slice, const char *text)
{
    assert_int_equal(slice.len, strlen(text));
    assert_memory_equal(slice.ptr, text, slice.len);
}

/* Checks the whole object, and the same copied in steps of several sizes. */
static void assert_wire(const struct kube_object *object, bool item, const char *expected)
{
    size_t size = kube_object_size(object, 1234, item);
    uint8_t *whole = malloc(size), *pieces = malloc(size);
    assert_int_equal(kube_object_copy(object, 1234, item, 0, whole, size), size);
    assert_slice(slice_of(whole, size), expected);
    for (size_t step = 1; step < 9; step++) {
        size_t at = 0;
        while (at < size)
            at += kube_object_copy(object, 1234, item, at, pieces + at, size_min(step, size - at));
        assert_memory_equal(whole, pieces, size);
    }
    free(whole);
    free(pieces);
}

static void fields_for_selectors_are_found(void **state)
{
    (void)state;
    struct kube_object o = parse(POD);
    assert_slice(o.kind, "Pod");
    assert_slice(o.api_version, "v1");
    assert_slice(o.name, "a");
    assert_slice(o.namespace, "n");
    assert_slice(o.uid, "u-1");
    assert_slice(o.labels, "{\"app\":\"web\"}");
}

static void fields_are_found_in_any_order(void **state)
{
    (void)state;
    struct kube_object o =
        parse("{ \"spec\" : { \"kind\" : \"no\" } , \"metadata\" : { \"labels\" : "
              "null , \"name\" : \"b\" } , \"apiVersion\" : \"v1\" , \"kind\" : "
              "\"X\" }");
    assert_slice(o.kind, "X");
    assert_slice(o.name, "b");
    assert_int_equal(o.labels.len, 0);
    assert_false(o.leading);
}

static void resource_version_is_inserted_when_sending(void **state)
{
    (void)state;
    struct kube_object o =
        parse("{\"kind\":\"X\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"b\"}}");
    assert_wire(&o, false,
                "{\"kind\":\"X\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"1234\","
                "\"name\":\"b\"}}");
    assert_wire(&o, true, "{\"metadata\":{\"resourceVersion\":\"1234\",\"name\":\"b\"}}");
    o = parse("{\"metadata\":{},\"kind\":\"X\",\"apiVersion\":\"v1\"}");
    assert_wire(
        &o, true,
        "{\"metadata\":{\"resourceVersion\":\"1234\"},\"kind\":\"X\",\"apiVersion\":\"v1\"}");
}

static void fields_are_found_by_path(void **state)
{
    (void)state;
    struct kube_object o = parse(POD);
    struct slice value;
    assert_true(kube_object_field(&o, SLICE_LITERAL("spec.nodeName"), &value));
    assert_slice(value, "node-1");
    assert_true(kube_object_field(&o, SLICE_LITERAL("spec.hostNetwork"), &value));
    assert_slice(value, "true");
    assert_false(kube_object_field(&o, SLICE_LITERAL("spec.containers"), &value));
    assert_false(kube_object_field(&o, SLICE_LITERAL("spec.nodeName.x"), &value));
    assert_false(kube_object_field(&o, SLICE_LITERAL("status.phase"), &value));
}

static void values_that_are_not_objects_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "[]",
        "{}",
        "{\"kind\":\"X\"}",
        "{\"metadata\":[]}",
        "{\"metadata\":{\"name\":\"a\"",
        "{\"metadata\":{\"name\":\"a\"}",
        "{\"metadata\":{\"name\":}}",
        "k8s\x01",
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct kube_object o;
        assert_int_equal(kube_object_parse(slice_from_text(texts[i]), &o), ST_MALFORMED);
    }
}

/* The scan stops after the last field that it needs: the rest was checked when it was written. */
static void the_scan_stops_when_all_fields_are_found(void **state)
{
    (void)state;
    parse("{\"kind\":\"X\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"},\"spec\":!!!");
}

static void parsing_the_head_sends_the_same_bytes(void **state)
{
    (void)state;
    static const char *const objects[] = {
        "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"},\"spec\":{}}",
        "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{}}",
        "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{ \"name\":\"a\"}}",
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}",
        "{ \"spec\":1,\"metadata\":{\"name\":\"a\"},\"kind\":\"Pod\",\"apiVersion\":\"v1\"}",
        "{\"kind\":\"P\\\"\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"}}",
        "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}",
    };
    for (size_t i = 0; i < COUNT_OF(objects); i++)
        for (int item = 0; item < 2; item++) {
            struct kube_object whole, head;
            uint8_t first[256], second[256];
            assert_int_equal(kube_object_parse(slice_from_text(objects[i]), &whole), ST_OK);
            assert_int_equal(kube_object_parse_head(slice_from_text(objects[i]), &head), ST_OK);
            size_t len = kube_object_size(&whole, 7, item);
            assert_int_equal(kube_object_size(&head, 7, item), len);
            assert_int_equal(kube_object_copy(&whole, 7, item, 0, first, sizeof(first)), len);
            assert_int_equal(kube_object_copy(&head, 7, item, 0, second, sizeof(second)), len);
            assert_memory_equal(first, second, len);
        }
    static const char *const broken[] = {
        "",
        "{",
        "{\"kind\":\"Pod",
        "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{",
        "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"",
        "k8s"};
    for (size_t i = 0; i < COUNT_OF(broken); i++) {
        struct kube_object object;
        assert_int_equal(kube_object_parse_head(slice_from_text(broken[i]), &object), ST_MALFORMED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parsing_the_head_sends_the_same_bytes),
        cmocka_unit_test(fields_for_selectors_are_found),
        cmocka_unit_test(fields_are_found_in_any_order),
        cmocka_unit_test(resource_version_is_inserted_when_sending),
        cmocka_unit_test(fields_are_found_by_path),
        cmocka_unit_test(values_that_are_not_objects_are_refused),
        cmocka_unit_test(the_scan_stops_when_all_fields_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
