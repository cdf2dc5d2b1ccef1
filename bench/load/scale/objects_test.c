#include "load/scale/objects.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>
#include <vigil/kube/json.h>

static bool number_of(const char *name, uint32_t *ret_number)
{
    return scale_name_number(vigil_text(name), SCALE_POD_PREFIX, ret_number);
}

static void names_have_their_number(void **state)
{
    (void)state;
    char name[SCALE_NAME_BYTES];
    uint32_t number;
    scale_name_write(name, SCALE_POD_PREFIX, 99999);
    assert_string_equal(name, "scale-pod-0099999");
    assert_true(number_of(name, &number));
    assert_int_equal(number, 99999);
    assert_true(number_of("scale-pod-0000012-7-3", &number));
    assert_int_equal(number, 12);
    assert_false(number_of("scale-pod-000001", &number));
    assert_false(number_of("scale-pod-00000x1", &number));
    assert_false(number_of("other-pod-0000001", &number));
    assert_false(number_of("", &number));
}

/* What the server sends of a service: protobuf with an annotation. */
static bool sent_of(const char *text, size_t len, uint64_t *ret_sent_ns)
{
    /* The envelope: a TypeMeta, and the message, whose metadata has a name and this text. */
    uint8_t bytes[256];
    size_t at = 0;
    for (const char *c = "k8s"; at < 4; c++)
        bytes[at++] = (uint8_t)*c;
    bytes[at++] = 0x12;
    bytes[at++] = (uint8_t)(len + 5);
    bytes[at++] = 0x0a;
    bytes[at++] = (uint8_t)(len + 3);
    bytes[at++] = 0x0a;
    bytes[at++] = 1;
    bytes[at++] = 'n';
    memcpy(bytes + at, text, len);
    vigil_kube_object *object;
    assert_int_equal(vigil_kube_object_new(vigil_bytes_of(bytes, at + len), &object), 0);
    bool found = scale_object_sent(object, ret_sent_ns);
    vigil_kube_object_unref(object);
    return found;
}

#define ANNOTATION(digits) \
    "\x62\x22\x0a\x0a"     \
    "bench/sent"           \
    "\x12\x14" digits

static void time_of_a_change_is_read_from_its_annotation(void **state)
{
    (void)state;
    static const char whole[] = ANNOTATION("00000000012345678901");
    static const char wrong[] = ANNOTATION("0000000001234567890x");
    uint64_t sent_ns;
    assert_true(sent_of(whole, sizeof(whole) - 1, &sent_ns));
    assert_int_equal(sent_ns, UINT64_C(12345678901));
    assert_false(sent_of(wrong, sizeof(wrong) - 1, &sent_ns));
    assert_false(sent_of("", 0, &sent_ns));
}

/* A text that is one JSON object, about as long as the object is in a cluster. */
static void check_text(const struct buf *text, size_t least, size_t most)
{
    vigil_bytes json = vigil_bytes_of(text->ptr, text->len), key, value;
    vigil_json_iterator members = vigil_json_iterate(json);
    unsigned count = 0;
    while (vigil_json_next(&members, &key, &value))
        count++;
    assert_true(count > 0);
    assert_int_equal(vigil_json_type_of(json), VIGIL_JSON_OBJECT);
    assert_int_equal(text->ptr[text->len - 1], '}');
    if (text->len < least || text->len > most)
        fail_msg("%zu bytes: %.*s", text->len, (int)text->len, (const char *)text->ptr);
}

static void objects_are_as_long_as_real_ones(void **state)
{
    (void)state;
    struct buf text = {0};
    vigil_bytes value;
    scale_node_write(&text, "scale-node-0000001", 1);
    check_text(&text, 2000, 4000);
    scale_lease_write(&text, "n", "u", "");
    check_text(&text, 200, 500);
    assert_false(
        vigil_json_find(vigil_bytes_of(text.ptr, text.len), "metadata.resourceVersion", &value));
    scale_lease_write(&text, "n", "u", "17");
    assert_true(
        vigil_json_find(vigil_bytes_of(text.ptr, text.len), "metadata.resourceVersion", &value));
    assert_true(vigil_json_is(value, "17"));
    scale_node_status_write(&text);
    check_text(&text, 400, 1200);
    scale_pod_write(&text, "p");
    check_text(&text, 800, 2500);
    scale_binding_write(&text, "p", "n");
    check_text(&text, 80, 200);
    scale_pod_pending_write(&text, 1);
    check_text(&text, 400, 1500);
    scale_pod_ready_write(&text, 1);
    check_text(&text, 400, 1500);
    scale_pod_ended_write(&text);
    check_text(&text, 400, 1500);
    scale_service_write(&text, 3, "", 1);
    check_text(&text, 800, 1300);
    scale_slice_write(&text, 3, "9", 1);
    check_text(&text, 800, 1400);
    buf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_their_number),
        cmocka_unit_test(time_of_a_change_is_read_from_its_annotation),
        cmocka_unit_test(objects_are_as_long_as_real_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
