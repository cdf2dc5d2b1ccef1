#include "base/failing_memory_test.h"
#include "codec/pb/wire.h"
#include "kubeclient/data/object.h"
#include "kubeclient/data/protobuf.h"
#include "kubeclient/data/samples_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <vigil/kube/edit.h>

#include <cmocka.h>

/* The text of a result, which is freed, or the code. */
static const char *show(int code, vigil_bytes text)
{
    static char shown[512];
    if (code != VIGIL_OK) {
        snprintf(shown, sizeof(shown), "error %d", code);
        return shown;
    }
    snprintf(shown, sizeof(shown), "%.*s", VIGIL_ARGS(text));
    vigil_json_free(text);
    return shown;
}

/* -- JSON -- */

static const char *set(const char *json, const char *path, const char *value)
{
    vigil_bytes result;
    int code = vigil_json_set(vigil_text(json), path, vigil_text(value), &result);
    return show(code, result);
}

static void values_are_replaced(void **state)
{
    (void)state;
    assert_string_equal(set("{\"spec\":{\"replicas\":1,\"x\":[]},\"a\":2}", "spec.replicas", "3"),
                        "{\"spec\":{\"replicas\":3,\"x\":[]},\"a\":2}");
    assert_string_equal(set("{\"a\":[1,{\"b\":2},3]}", "a[1].b", "[ 4 ]"),
                        "{\"a\":[1,{\"b\":[ 4 ]},3]}");
    assert_string_equal(set("{\"a\":[1]}", "a[0]", " null "), "{\"a\":[null]}");
    assert_string_equal(set(" {\"\\u0061\" : 1 } \n", "a", "2"), "{\"\\u0061\" : 2 }");
    assert_string_equal(set("[1]", "", "{}"), "{}");
    assert_string_equal(set("{\"l\":{\"a.b/c\":\"x\"}}", "l['a.b/c']", "\"y\""),
                        "{\"l\":{\"a.b/c\":\"y\"}}");
}

static void members_are_added(void **state)
{
    (void)state;
    assert_string_equal(set("{}", "a", "1"), "{\"a\":1}");
    assert_string_equal(set("{ }", "a.b.c", "1"), "{ \"a\":{\"b\":{\"c\":1}}}");
    assert_string_equal(set("{\"a\":{\"x\":0}}", "a.b.c", "1"),
                        "{\"a\":{\"x\":0,\"b\":{\"c\":1}}}");
    assert_string_equal(set("{\"a\":[{}]}", "a[0]['q\"\\']", "true"),
                        "{\"a\":[{\"q\\\"\\\\\":true}]}");
}

static void what_cannot_be_set_is_an_error(void **state)
{
    (void)state;
    static const struct {
        const char *json, *path, *value;
    } rows[] = {
        {"{", "a", "1"},
        {"{} {}", "a", "1"},
        {"", "a", "1"},
        {"{\"a\":1}", "a", "x"},
        {"{\"a\":1}", "a", ""},
        {"{\"a\":1}", "a", "1,2"},
        {"{\"a\":1}", "a.b", "1"}, /* a number has no members */
        {"{\"a\":null}", "a.b", "1"},
        {"{\"a\":[]}", "a[0]", "1"}, /* there is no such item */
        {"{\"a\":{\"b\":1}}", "a[0]", "1"},
        {"{\"a\":[]}", "a.b", "1"},
        {"{}", "a[0]", "1"},
        {"{}", "a.b[0].c", "1"},
        {"{}", "a..b", "1"},
        {"{}", "a.", "1"},
        {"{}", "['a", "1"},
        {"{}", "a['b", "1"},
        {"{}", "\xff", "1"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_string_equal(set(rows[i].json, rows[i].path, rows[i].value), "error 2");
}

static void texts_are_escaped(void **state)
{
    (void)state;
    vigil_bytes result;
    int code = vigil_json_set_text(vigil_text("{\"a\":1}"), "a", "x\"\n\xc3\xa4", &result);
    assert_string_equal(show(code, result), "{\"a\":\"x\\\"\\n\xc3\xa4\"}");
    code = vigil_json_set_text(vigil_text("{}"), "a", "\xff", &result);
    assert_int_equal(code, VIGIL_ERROR_ARGUMENT);
    vigil_json_free(vigil_bytes_of(NULL, 0));
}

/* -- Objects in both formats -- */

static vigil_kube_object *make(struct slice sent)
{
    vigil_kube_object *object;
    memory_exempt = true;
    assert_int_equal(object_new(sent, &object), ST_OK);
    memory_exempt = false;
    return object;
}

static vigil_kube_object *make_json(const char *metadata)
{
    char json[512];
    int n = snprintf(json, sizeof(json), "{\"metadata\":{\"name\":\"a\"%s}}", metadata);
    return make(slice_of(json, (size_t)n));
}

/* An object with these fields of an ObjectMeta after the name "a". */
static vigil_kube_object *make_protobuf(struct slice fields)
{
    struct buf sent = {0};
    uint8_t head[32], *at;
    size_t metadata_bytes = 3 + fields.len;
    memory_exempt = true;
    assert_int_equal(envelope_append_head(&sent, SLICE_LITERAL("v1"), SLICE_LITERAL("Pod"),
                                          pb_message_head_size(1, metadata_bytes) + metadata_bytes),
                     ST_OK);
    at = pb_message_head_write(head, 1, metadata_bytes);
    at = pb_bytes_write(at, 1, SLICE_LITERAL("a"));
    assert_int_equal(buf_append(&sent, slice_of(head, (size_t)(at - head))), ST_OK);
    assert_int_equal(buf_append(&sent, fields), ST_OK);
    vigil_kube_object *object = make(buf_slice(&sent));
    buf_fini(&sent);
    memory_exempt = false;
    return object;
}

static void expect_deleting(vigil_kube_object *object, int expected)
{
    assert_int_equal(vigil_kube_object_is_deleting(object), expected);
    vigil_kube_object_unref(object);
}

static void objects_that_are_being_deleted_are_recognised(void **state)
{
    (void)state;
    expect_deleting(make_json(",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\""), 1);
    expect_deleting(make_json(",\"deletionTimestamp\":null"), 0);
    expect_deleting(make_json(""), 0);
    expect_deleting(make_protobuf(SLICE_LITERAL("\x4a\x02\x08\x05")), 1);
    expect_deleting(make(SLICE_LITERAL(SAMPLE_POD)), 0);
}

/* -- Finalizers -- */

#define IDENTITY ",\"uid\":\"u\",\"resourceVersion\":\"7\""
#define PB_IDENTITY     \
    "\x2a\x01u\x32\x01" \
    "7"

static const char *add(vigil_kube_object *object, const char *finalizer)
{
    vigil_bytes patch;
    int code = vigil_kube_add_finalizer(object, finalizer, &patch);
    vigil_kube_object_unref(object);
    return show(code, patch);
}

static const char *remove_one(vigil_kube_object *object, const char *finalizer)
{
    vigil_bytes patch;
    int code = vigil_kube_remove_finalizer(object, finalizer, &patch);
    vigil_kube_object_unref(object);
    return show(code, patch);
}

static void finalizers_are_added(void **state)
{
    (void)state;
    assert_string_equal(
        add(make_json(IDENTITY), "x/f"),
        "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\",\"finalizers\":[\"x/f\"]}}");
    assert_string_equal(add(make_json(IDENTITY ",\"finalizers\":[\"a\\u0062\",\"c\"]"), "d\""),
                        "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\",\"finalizers\":["
                        "\"a\\u0062\",\"c\",\"d\\\"\"]}}");
    assert_string_equal(add(make_json(IDENTITY ",\"finalizers\":[\"a\\u0062\"]"), "ab"), "");
    assert_string_equal(add(make_protobuf(SLICE_LITERAL(PB_IDENTITY "\x72\x01"
                                                                    "a")),
                            "b"),
                        "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\",\"finalizers\":["
                        "\"a\",\"b\"]}}");
    assert_string_equal(add(make_protobuf(SLICE_LITERAL(PB_IDENTITY "\x72\x01"
                                                                    "b")),
                            "b"),
                        "");
}

static void finalizers_are_removed(void **state)
{
    (void)state;
    assert_string_equal(remove_one(make_json(IDENTITY ",\"finalizers\":[\"b\",\"a\",\"b\"]"), "b"),
                        "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\",\"finalizers\":["
                        "\"a\"]}}");
    assert_string_equal(
        remove_one(make_json(IDENTITY ",\"finalizers\":[\"b\"]"), "b"),
        "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\",\"finalizers\":[]}}");
    assert_string_equal(remove_one(make_json(IDENTITY ",\"finalizers\":[\"a\"]"), "b"), "");
    assert_string_equal(
        remove_one(make_protobuf(SLICE_LITERAL(PB_IDENTITY "\x72\x01"
                                                           "a\x70\x05\x72\x01"
                                                           "b")),
                   "a"),
        "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\",\"finalizers\":[\"b\"]}}");
}

static void patches_need_an_identity(void **state)
{
    (void)state;
    assert_string_equal(add(make_json(""), "f"), "error 2");
    assert_string_equal(add(make_json(",\"uid\":\"u\""), "f"), "error 2");
    assert_string_equal(add(make_json(",\"resourceVersion\":\"7\""), "f"), "error 2");
    assert_string_equal(remove_one(make_json(",\"finalizers\":[\"f\"]"), "f"), "error 2");
}

static void odd_finalizers_are_kept(void **state)
{
    (void)state;
    assert_string_equal(add(make_json(IDENTITY ",\"finalizers\":[1,{\"a\":[]}]"), "f"),
                        "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\",\"finalizers\":[1,"
                        "{\"a\":[]},\"f\"]}}");
    assert_string_equal(
        add(make_json(IDENTITY ",\"finalizers\":\"f\""), "f"),
        "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\",\"finalizers\":[\"f\"]}}");
}

/* -- Owners -- */

static const char *controller_of(vigil_kube_object *object)
{
    static char text[128];
    vigil_kube_owner owner;
    snprintf(text, sizeof(text), "-");
    if (vigil_kube_object_controller(object, &owner))
        snprintf(text, sizeof(text), "%.*s %.*s %.*s %.*s", VIGIL_ARGS(owner.api_version),
                 VIGIL_ARGS(owner.kind), VIGIL_ARGS(owner.name), VIGIL_ARGS(owner.uid));
    vigil_kube_object_unref(object);
    return text;
}

static void controllers_are_found(void **state)
{
    (void)state;
    assert_string_equal(
        controller_of(make_json(",\"ownerReferences\":[{\"uid\":\"1\"},{\"controller\":false},"
                                "{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":"
                                "\"r\",\"uid\":\"2\",\"controller\":true},{\"controller\":true}]")),
        "apps/v1 ReplicaSet r 2");
    assert_string_equal(controller_of(make_json(",\"ownerReferences\":[{\"kind\":\"\\u0041\","
                                                "\"name\":1,\"controller\":true}]")),
                        "   ");
    assert_string_equal(
        controller_of(make_json(",\"ownerReferences\":[{\"controller\":\"true\"}]")), "-");
    assert_string_equal(controller_of(make_json(",\"ownerReferences\":{}")), "-");
    assert_string_equal(controller_of(make_json("")), "-");
    assert_string_equal(
        controller_of(make_protobuf(SLICE_LITERAL("\x6a\x05\x0a\x01K\x30\x00"
                                                  "\x6a\x0e\x0a\x01R\x1a\x01r\x22\x01"
                                                  "2\x2a\x01v\x30\x01"))),
        "v R r 2");
}

static void control_is_decided_by_the_uid(void **state)
{
    (void)state;
    vigil_kube_object *owner = make_json(",\"uid\":\"2\"");
    vigil_kube_object *other = make_json(",\"uid\":\"3\"");
    vigil_kube_object *unknown = make_json("");
    vigil_kube_object *owned =
        make_json(",\"ownerReferences\":[{\"uid\":\"3\"},{\"uid\":\"2\",\"controller\":true}]");
    vigil_kube_object *odd = make_json(",\"ownerReferences\":[{\"controller\":true}]");
    assert_true(vigil_kube_object_is_controlled_by(owned, owner));
    assert_false(vigil_kube_object_is_controlled_by(owned, other));
    assert_false(vigil_kube_object_is_controlled_by(owner, owned));
    assert_false(vigil_kube_object_is_controlled_by(odd, unknown));
    vigil_kube_object *const all[] = {owner, other, unknown, owned, odd};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        vigil_kube_object_unref(all[i]);
}

static const char *refer(vigil_kube_object *owner, const char *api_version, const char *kind,
                         int controller)
{
    vigil_bytes json;
    int code = vigil_kube_owner_reference(owner, api_version, kind, controller, &json);
    vigil_kube_object_unref(owner);
    return show(code, json);
}

static void references_name_the_owner(void **state)
{
    (void)state;
    assert_string_equal(refer(make_json(IDENTITY), "x.io/v1", "Website", 1),
                        "{\"apiVersion\":\"x.io/v1\",\"kind\":\"Website\",\"name\":\"a\",\"uid\":"
                        "\"u\",\"controller\":true,\"blockOwnerDeletion\":true}");
    assert_string_equal(refer(make(SLICE_LITERAL(SAMPLE_POD)), NULL, NULL, 0),
                        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"a\",\"uid\":\"u-1\"}");
    assert_string_equal(refer(make_json(IDENTITY), NULL, "Website", 1), "error 2");
    assert_string_equal(refer(make_json(IDENTITY), "v1", NULL, 1), "error 2");
    assert_string_equal(refer(make_json(""), "v1", "Pod", 1), "error 2");
}

/* -- Memory -- */

static void make_all(void *ctx)
{
    static int (*const makers[])(const vigil_kube_object *, const char *, vigil_bytes *) = {
        vigil_kube_add_finalizer, vigil_kube_remove_finalizer};
    const vigil_kube_object *object = ctx;
    bool fails = memory_fail_at > 0;
    int failures = 0;
    vigil_bytes text;
    for (size_t i = 0; i < COUNT_OF(makers); i++) {
        int code = makers[i](object, i ? "f" : "g", &text);
        failures += code != VIGIL_OK;
        show(code, text);
    }
    int code = vigil_kube_owner_reference(object, "v1", "Pod", 1, &text);
    failures += code != VIGIL_OK;
    show(code, text);
    code = vigil_json_set_text(vigil_kube_object_json(object), "spec.a.b", "text", &text);
    failures += code != VIGIL_OK;
    assert_true(code == VIGIL_OK || code == VIGIL_ERROR_MEMORY);
    show(code, text);
    assert_int_equal(fails, failures > 0);
}

static void missing_memory_is_reported(void **state)
{
    (void)state;
    vigil_kube_object *object = make_json(IDENTITY ",\"finalizers\":[\"f\"]");
    assert_true(each_allocation_fails(make_all, object) >= 5);
    vigil_kube_object_unref(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_replaced),
        cmocka_unit_test(members_are_added),
        cmocka_unit_test(what_cannot_be_set_is_an_error),
        cmocka_unit_test(texts_are_escaped),
        cmocka_unit_test(objects_that_are_being_deleted_are_recognised),
        cmocka_unit_test(finalizers_are_added),
        cmocka_unit_test(finalizers_are_removed),
        cmocka_unit_test(patches_need_an_identity),
        cmocka_unit_test(odd_finalizers_are_kept),
        cmocka_unit_test(controllers_are_found),
        cmocka_unit_test(control_is_decided_by_the_uid),
        cmocka_unit_test(references_name_the_owner),
        cmocka_unit_test(missing_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
