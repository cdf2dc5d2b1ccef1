/* Objects as they arrive, in JSON and protobuf. */
#include "tier/mirror/arrived.h"

#include "kubeclient/data/protobuf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void assert_read(struct slice object, const char *key, uint64_t version, bool kind,
                        bool api_version)
{
    struct buf buf = {0};
    struct arrived arrived;
    assert_int_equal(arrived_read(object, &buf, &arrived), ST_OK);
    assert_true(slice_is(arrived.key, key));
    assert_int_equal(arrived.version, version);
    assert_int_equal(arrived.lacks_kind, !kind);
    assert_int_equal(arrived.lacks_api_version, !api_version);
    buf_fini(&buf);
}

static void assert_fault(struct slice object, enum status expected)
{
    struct buf buf = {0};
    struct arrived arrived;
    /* In memory of its own, so that the sanitizer sees what reads beyond it. */
    uint8_t *copy = malloc(object.len + 1);
    slice_copy(copy, object);
    assert_int_equal(arrived_read(slice_of(copy, object.len), &buf, &arrived), expected);
    free(copy);
    buf_fini(&buf);
}

static void reads_json(void **state)
{
    (void)state;
    assert_read(
        SLICE_LITERAL("{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\","
                      "\"namespace\":\"n\",\"resourceVersion\":\"12\"},\"spec\":{}}"),
        "n/a", 12, true, true);
    /* Any order, other members, and none that says what it is. */
    assert_read(SLICE_LITERAL("{\"spec\":{\"metadata\":{\"name\":\"x\"}},\"metadata\":{"
                              "\"annotations\":{\"name\":\"y\"},\"resourceVersion\":\"7\","
                              "\"name\":\"a\"}}"),
                "a", 7, false, false);
    assert_read(SLICE_LITERAL("{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"7\"},"
                              "\"status\":{},\"kind\":\"K\"}"),
                "a", 7, true, false);
    assert_read(SLICE_LITERAL("{\"apiVersion\":\"g/v1\",\"metadata\":{\"name\":\"a\","
                              "\"resourceVersion\":\"7\"}}"),
                "a", 7, false, true);
    /* Escapes, and null for what is not given. */
    assert_read(SLICE_LITERAL("{\"metadata\":{\"namespace\":null,\"n\\u0061me\":\"a\\u003cb\","
                              "\"resourceVersion\":\"\\u0037\"}}"),
                "a<b", 7, false, false);
    /* The first of equal members counts. */
    assert_read(SLICE_LITERAL("{\"metadata\":{\"name\":\"a\",\"name\":\"b\",\"resourceVersion\":"
                              "\"1\"},\"metadata\":{\"name\":\"c\"}}"),
                "a", 1, false, false);
}

static void refuses_json_without_a_name(void **state)
{
    static const char *const objects[] = {
        "",
        "{",
        "[]",
        "1",
        "{}",
        "{\"metadata\":{}}",
        "{\"metadata\":[]}",
        "{\"metadata\":{\"name\":\"\"}}",
        "{\"metadata\":{\"name\":1}}",
        "{\"metadata\":{\"name\":\"a\"",
        "{\"metadata\":{\"name\":\"\xff\"}}",
        "{\"metadata\":{\"name\":\"\\ud800\"}}",
        "{\"kind\":\"Pod\",\"name\":\"a\"}",
        "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"},\"spec\":{",
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(objects); i++)
        assert_fault(slice_from_text(objects[i]), ST_MALFORMED);
}

static void refuses_versions_that_are_not_numbers(void **state)
{
    static const char *const versions[] = {"", "0", "a", "1a", "-1", " 1", "1234567890123456789"};
    uint64_t version;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(versions); i++) {
        char text[200];
        snprintf(text, sizeof(text), "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"%s\"}}",
                 versions[i]);
        assert_fault(slice_from_text(text), ST_INVALID);
        assert_false(arrived_read_version(slice_from_text(versions[i]), &version));
    }
    assert_fault(SLICE_LITERAL("{\"metadata\":{\"name\":\"a\"}}"), ST_INVALID);
    assert_true(arrived_read_version(SLICE_LITERAL("123456789012345678"), &version));
    assert_int_equal(version, 123456789012345678);
}

static void limits_keys(void **state)
{
    char name[ARRIVED_KEY_BYTES_MAX + 10], text[ARRIVED_KEY_BYTES_MAX + 200];
    (void)state;
    memset(name, 'a', sizeof(name));
    name[ARRIVED_KEY_BYTES_MAX - 3] = 0;
    snprintf(text, sizeof(text),
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"n\",\"resourceVersion\":\"1\"}}",
             name);
    struct buf buf = {0};
    struct arrived arrived;
    assert_int_equal(arrived_read(slice_from_text(text), &buf, &arrived), ST_OK);
    assert_int_equal(arrived.key.len, ARRIVED_KEY_BYTES_MAX - 1);
    buf_fini(&buf);
    snprintf(text, sizeof(text),
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"nnn\",\"resourceVersion\":\"1\"}}",
             name);
    assert_fault(slice_from_text(text), ST_LIMIT);
    name[ARRIVED_KEY_BYTES_MAX - 3] = 'a';
    name[ARRIVED_KEY_BYTES_MAX + 5] = 0;
    snprintf(text, sizeof(text), "{\"metadata\":{\"name\":\"%s\",\"resourceVersion\":\"1\"}}",
             name);
    assert_fault(slice_from_text(text), ST_LIMIT);
}

/* "k8s\0", Pod v1, with metadata of these bytes. */
static struct buf make_pod(struct slice metadata)
{
    struct buf buf = {0};
    assert_true(metadata.len < 128);
    assert_int_equal(
        envelope_append_head(&buf, SLICE_LITERAL("v1"), SLICE_LITERAL("Pod"), 2 + metadata.len),
        ST_OK);
    uint8_t head[] = {0x0a, (uint8_t)metadata.len};
    assert_int_equal(buf_append(&buf, slice_of(head, 2)), ST_OK);
    assert_int_equal(buf_append(&buf, metadata), ST_OK);
    return buf;
}

static void reads_protobuf(void **state)
{
    (void)state;
    struct buf pod = make_pod(SLICE_LITERAL("\012\001a\032\001n2\00212"));
    assert_read(buf_slice(&pod), "n/a", 12, true, true);
    /* Cut off anywhere, it has no name or no version. */
    for (size_t len = 0; len < pod.len; len++) {
        struct buf buf = {0};
        struct arrived arrived;
        assert_int_not_equal(arrived_read(slice_of(pod.ptr, len), &buf, &arrived), ST_OK);
        buf_fini(&buf);
    }
    struct slice kind, api_version;
    arrived_read_kind(buf_slice(&pod), &kind, &api_version);
    assert_true(slice_is(kind, "Pod") && slice_is(api_version, "v1"));
    buf_fini(&pod);
    pod = make_pod(SLICE_LITERAL("\012\001a2\00212"));
    assert_read(buf_slice(&pod), "a", 12, true, true);
    buf_fini(&pod);
    pod = make_pod(SLICE_LITERAL("\012\001\xff\062\00212"));
    assert_fault(buf_slice(&pod), ST_MALFORMED);
    buf_fini(&pod);
    pod = make_pod(SLICE_LITERAL("\012\001a"));
    assert_fault(buf_slice(&pod), ST_INVALID);
    buf_fini(&pod);
}

static void reads_kinds(void **state)
{
    struct slice kind, api_version;
    (void)state;
    arrived_read_kind(SLICE_LITERAL("{\"apiVersion\":\"g/v1\",\"kind\":\"K\"}"), &kind,
                      &api_version);
    assert_true(slice_is(kind, "K") && slice_is(api_version, "g/v1"));
    arrived_read_kind(SLICE_LITERAL("{\"kind\":\"\\u0041\",\"apiVersion\":1}"), &kind,
                      &api_version);
    assert_int_equal(kind.len + api_version.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_json),
        cmocka_unit_test(refuses_json_without_a_name),
        cmocka_unit_test(refuses_versions_that_are_not_numbers),
        cmocka_unit_test(limits_keys),
        cmocka_unit_test(reads_protobuf),
        cmocka_unit_test(reads_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
