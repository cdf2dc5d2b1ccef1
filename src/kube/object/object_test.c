#include "kube/object/object.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define POD                                                                                     \
    "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\",\"namespace\":\"n\"," \
    "\"uid\":\"u-1\",\"labels\":{\"app\":\"web\"},\"annotations\":{\"name\":\"not this\"}},"    \
    "\"spec\":{\"nodeName\":\"node-1\",\"hostNetwork\":true,\"containers\":[{\"name\":\"c\"}]}}"

static struct kube_object look(const char *json)
{
    struct kube_object object;
    assert_int_equal(kube_object_look(slice_from_text(json), &object), ST_OK);
    return object;
}

static void assert_slice(struct slice slice, const char *text)
{
    assert_int_equal(slice.len, strlen(text));
    assert_memory_equal(slice.ptr, text, slice.len);
}

/* The whole of it, and the same in pieces of every size. */
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

static void what_selectors_need_is_found(void **state)
{
    (void)state;
    struct kube_object o = look(POD);
    assert_slice(o.kind, "Pod");
    assert_slice(o.api_version, "v1");
    assert_slice(o.name, "a");
    assert_slice(o.namespace, "n");
    assert_slice(o.uid, "u-1");
    assert_slice(o.labels, "{\"app\":\"web\"}");
}

static void order_does_not_matter(void **state)
{
    (void)state;
    struct kube_object o =
        look("{ \"spec\" : { \"kind\" : \"no\" } , \"metadata\" : { \"labels\" : "
             "null , \"name\" : \"b\" } , \"apiVersion\" : \"v1\" , \"kind\" : "
             "\"X\" }");
    assert_slice(o.kind, "X");
    assert_slice(o.name, "b");
    assert_int_equal(o.labels.len, 0);
    assert_false(o.leading);
}

static void the_version_is_put_in_on_the_way_out(void **state)
{
    (void)state;
    struct kube_object o =
        look("{\"kind\":\"X\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"b\"}}");
    assert_wire(&o, false,
                "{\"kind\":\"X\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"1234\","
                "\"name\":\"b\"}}");
    assert_wire(&o, true, "{\"metadata\":{\"resourceVersion\":\"1234\",\"name\":\"b\"}}");
    o = look("{\"metadata\":{},\"kind\":\"X\",\"apiVersion\":\"v1\"}");
    assert_wire(
        &o, true,
        "{\"metadata\":{\"resourceVersion\":\"1234\"},\"kind\":\"X\",\"apiVersion\":\"v1\"}");
}

static void fields_are_found_by_path(void **state)
{
    (void)state;
    struct kube_object o = look(POD);
    struct slice value;
    assert_true(kube_object_field(&o, SLICE_LITERAL("spec.nodeName"), &value));
    assert_slice(value, "node-1");
    assert_true(kube_object_field(&o, SLICE_LITERAL("spec.hostNetwork"), &value));
    assert_slice(value, "true");
    assert_false(kube_object_field(&o, SLICE_LITERAL("spec.containers"), &value));
    assert_false(kube_object_field(&o, SLICE_LITERAL("spec.nodeName.x"), &value));
    assert_false(kube_object_field(&o, SLICE_LITERAL("status.phase"), &value));
}

static void what_is_no_object_is_refused(void **state)
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
        assert_int_equal(kube_object_look(slice_from_text(texts[i]), &o), ST_MALFORMED);
    }
}

/* It is read no farther than to what is asked for: the rest was checked when it was written. */
static void no_more_is_read_than_is_needed(void **state)
{
    (void)state;
    look("{\"kind\":\"X\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"},\"spec\":!!!");
}

static void a_peek_sends_the_same_as_a_look(void **state)
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
            struct kube_object looked, peeked;
            uint8_t first[256], second[256];
            assert_int_equal(kube_object_look(slice_from_text(objects[i]), &looked), ST_OK);
            assert_int_equal(kube_object_peek(slice_from_text(objects[i]), &peeked), ST_OK);
            size_t len = kube_object_size(&looked, 7, item);
            assert_int_equal(kube_object_size(&peeked, 7, item), len);
            assert_int_equal(kube_object_copy(&looked, 7, item, 0, first, sizeof(first)), len);
            assert_int_equal(kube_object_copy(&peeked, 7, item, 0, second, sizeof(second)), len);
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
        assert_int_equal(kube_object_peek(slice_from_text(broken[i]), &object), ST_MALFORMED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peek_sends_the_same_as_a_look),
        cmocka_unit_test(what_selectors_need_is_found),
        cmocka_unit_test(order_does_not_matter),
        cmocka_unit_test(the_version_is_put_in_on_the_way_out),
        cmocka_unit_test(fields_are_found_by_path),
        cmocka_unit_test(what_is_no_object_is_refused),
        cmocka_unit_test(no_more_is_read_than_is_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
