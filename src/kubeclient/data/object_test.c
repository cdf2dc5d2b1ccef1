#include "kubeclient/data/object.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* "key name namespace uid version", or "-". */
static const char *show(const char *json)
{
    static char text[512];
    vigil_kube_object *object;
    if (vigil_kube_object_new(vigil_text(json), &object) != VIGIL_OK)
        return "-";
    vigil_bytes all[] = {vigil_kube_object_key(object), vigil_kube_object_name(object),
                         vigil_kube_object_namespace(object), vigil_kube_object_uid(object),
                         vigil_kube_object_version(object)};
    size_t n = 0;
    for (size_t i = 0; i < COUNT_OF(all); i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%.*s;", (int)all[i].size,
                              (const char *)all[i].data);
    vigil_bytes bytes = vigil_kube_object_json(object);
    assert_int_equal(bytes.size, strlen(json));
    assert_memory_equal(bytes.data, json, bytes.size);
    vigil_kube_object_unref(object);
    return text;
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
        cmocka_unit_test(objects_without_a_name_are_refused),
        cmocka_unit_test(object_lives_as_long_as_it_is_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
