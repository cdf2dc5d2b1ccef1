#include "kubeclient/data/status.h"

#include "base/buf.h"
#include "codec/pb/wire.h"
#include "kubeclient/data/protobuf.h"
#include "kubeclient/data/samples_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void status_of_a_server_is_read(void **state)
{
    (void)state;
    struct vigil_kube_status status;
    assert_true(kube_status_read(
        SLICE_LITERAL("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\","
                      "\"message\":\"Timeout: Too large resource version: 9, current: 2\","
                      "\"reason\":\"Timeout\",\"details\":{\"causes\":[{\"reason\":"
                      "\"ResourceVersionTooLarge\",\"message\":\"Too large resource version\","
                      "\"field\":\"a.b\"}],\"retryAfterSeconds\":1},\"code\":504}"),
        &status));
    assert_int_equal(status.code, 504);
    assert_int_equal(status.retry_after_s, 1);
    assert_string_equal(status.reason, "Timeout");
    assert_int_equal(status.cause_count, 1);
    assert_string_equal(status.causes[0].reason, "ResourceVersionTooLarge");
    assert_string_equal(status.causes[0].field, "a.b");
    assert_true(kube_status_is_too_large_version(&status));
    assert_false(kube_status_is_expired(&status));
}

static void expired_versions_are_recognised(void **state)
{
    (void)state;
    struct vigil_kube_status status;
    assert_true(kube_status_read(SLICE_LITERAL("{\"kind\":\"Status\",\"reason\":\"Expired\","
                                               "\"message\":\"too old resource version: 5 (469)\","
                                               "\"code\":410}"),
                                 &status));
    assert_true(kube_status_is_expired(&status));
    assert_int_equal(status.retry_after_s, -1);
    kube_status_from_http(410, SLICE_EMPTY, &status);
    assert_true(kube_status_is_expired(&status));
}

static void other_json_is_not_a_status(void **state)
{
    (void)state;
    struct vigil_kube_status status;
    assert_false(kube_status_read(SLICE_LITERAL("{\"kind\":\"Pod\"}"), &status));
    assert_false(kube_status_read(SLICE_LITERAL("not JSON"), &status));
    assert_false(kube_status_read(SLICE_EMPTY, &status));
}

/* What a server sends must not matter for our memory. */
static void long_and_odd_fields_are_cut_or_left_out(void **state)
{
    (void)state;
    struct vigil_kube_status status;
    char json[8192], *at = json;
    at += sprintf(at, "{\"kind\":\"Status\",\"code\":99999,\"message\":\"");
    for (int i = 0; i < 400; i++)
        at += sprintf(at, "\xc3\xa4");
    at += sprintf(at, "\",\"details\":{\"retryAfterSeconds\":-5,\"causes\":[");
    for (int i = 0; i < 20; i++)
        at += sprintf(at, "%s{\"message\":1}", i ? "," : "");
    at += sprintf(at, "]}}");
    assert_true(kube_status_read(slice_of(json, (size_t)(at - json)), &status));
    assert_int_equal(status.code, 0);
    assert_int_equal(status.retry_after_s, -1);
    assert_int_equal(status.cause_count, VIGIL_KUBE_CAUSES_MAX);
    assert_string_equal(status.causes[0].message, "");
    assert_int_equal(strlen(status.message), VIGIL_KUBE_MESSAGE_BYTES - 2); /* whole characters */
}

/* Validation of a large object easily has a message of several thousand bytes. */
static void long_messages_are_cut_and_not_lost(void **state)
{
    (void)state;
    static const char *const characters[] = {"x", "\xc3\xa4", "\\n", "\\u00e4", "\\ud83d\\ude00"};
    for (size_t i = 0; i < COUNT_OF(characters); i++) {
        for (size_t shift = 0; shift < 12; shift++) { /* so that any byte is at the end */
            struct vigil_kube_status status;
            AUTO(buf_fini) struct buf json = {0};
            assert_int_equal(buf_append_text(&json, "{\"kind\":\"Status\",\"message\":\""), ST_OK);
            assert_int_equal(buf_append(&json, slice_of("aaaaaaaaaaaa", shift)), ST_OK);
            for (int n = 0; n < 20000; n++)
                assert_int_equal(buf_append_text(&json, characters[i]), ST_OK);
            assert_int_equal(buf_append_text(&json, "\"}"), ST_OK);
            assert_true(kube_status_read(buf_slice(&json), &status));
            assert_in_range(strlen(status.message), VIGIL_KUBE_MESSAGE_BYTES - 4,
                            VIGIL_KUBE_MESSAGE_BYTES - 1);
        }
    }
}

static void answers_without_a_status_get_one(void **state)
{
    (void)state;
    struct vigil_kube_status status;
    kube_status_from_http(404, SLICE_LITERAL("404 page not found\n"), &status);
    assert_string_equal(status.reason, "NotFound");
    assert_string_equal(status.message, "404 page not found");
    kube_status_from_http(502, SLICE_LITERAL(" \r\n"), &status);
    assert_non_null(strstr(status.message, "without an explanation"));
    kube_status_from_http(502, SLICE_LITERAL("\xff\xfe"), &status);
    assert_string_equal(status.reason, "InternalError");
    assert_non_null(strstr(status.message, "502"));
}

/* -- Protobuf -- */

static void status_in_protobuf_is_read(void **state)
{
    (void)state;
    struct vigil_kube_status status;
    assert_true(kube_status_read(SLICE_LITERAL(SAMPLE_STATUS), &status));
    assert_int_equal(status.code, 410);
    assert_int_equal(status.retry_after_s, 3);
    assert_string_equal(status.reason, "Expired");
    assert_string_equal(status.message, "too old");
    assert_int_equal(status.cause_count, 2);
    assert_string_equal(status.causes[0].reason, "ResourceVersionTooLarge");
    assert_string_equal(status.causes[0].message, "m");
    assert_string_equal(status.causes[0].field, "f");
    assert_string_equal(status.causes[1].reason, "Two");
    assert_string_equal(status.causes[1].field, "");
    assert_true(kube_status_is_expired(&status) && kube_status_is_too_large_version(&status));
}

static void other_protobuf_is_not_a_status(void **state)
{
    (void)state;
    struct vigil_kube_status status;
    assert_false(kube_status_read(SLICE_LITERAL(SAMPLE_POD), &status));
    assert_false(kube_status_read(SLICE_LITERAL("k8s\0"), &status));
    assert_false(kube_status_read(SLICE_LITERAL("k8s\0\xff"), &status));
    assert_true(kube_status_read(SLICE_LITERAL("k8s\0\x0a\x08\x12\x06Status"), &status));
    assert_int_equal(status.code, 0);
    assert_int_equal(status.retry_after_s, -1);
    assert_string_equal(status.message, "");
}

/* A status with this message, which has a number for its reason, ten causes and a code below 0. */
static struct buf make_status(struct slice message)
{
    struct buf to = {0};
    uint8_t *body = malloc(message.len + 200), *at = pb_bytes_write(body, 3, message);
    assert_non_null(body);
    at = pb_uint_write(at, 4, 7);
    at = pb_message_head_write(at, 5, 10 * 5 + 2);
    at = pb_uint_write(at, 4, 1); /* a cause that is a number */
    for (int i = 0; i < 10; i++)
        at = pb_bytes_write(pb_message_head_write(at, 4, 3), 1, SLICE_LITERAL("r"));
    at = pb_uint_write(at, 6, UINT64_MAX);
    struct slice whole = slice_of(body, (size_t)(at - body));
    assert_int_equal(envelope_append_head(&to, SLICE_EMPTY, SLICE_LITERAL("Status"), whole.len),
                     ST_OK);
    assert_int_equal(buf_append(&to, whole), ST_OK);
    free(body);
    return to;
}

static void long_and_odd_fields_of_protobuf_are_cut_or_left_out(void **state)
{
    (void)state;
    struct vigil_kube_status status;
    char message[4 * VIGIL_KUBE_MESSAGE_BYTES];
    for (size_t i = 0; i < sizeof(message); i++)
        message[i] = i % 2 ? '\xa4' : '\xc3'; /* characters of two bytes */
    struct buf sent = make_status(slice_of(message, sizeof(message)));
    assert_true(kube_status_read(buf_slice(&sent), &status));
    buf_fini(&sent);
    assert_int_equal(status.code, 0);
    assert_string_equal(status.reason, "");
    assert_int_equal(status.cause_count, VIGIL_KUBE_CAUSES_MAX);
    assert_string_equal(status.causes[0].reason, "r");
    assert_int_equal(strlen(status.message), VIGIL_KUBE_MESSAGE_BYTES - 2);
    sent = make_status(SLICE_LITERAL("\xff"));
    assert_true(kube_status_read(buf_slice(&sent), &status));
    buf_fini(&sent);
    assert_string_equal(status.message, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_of_a_server_is_read),
        cmocka_unit_test(expired_versions_are_recognised),
        cmocka_unit_test(other_json_is_not_a_status),
        cmocka_unit_test(long_and_odd_fields_are_cut_or_left_out),
        cmocka_unit_test(long_messages_are_cut_and_not_lost),
        cmocka_unit_test(answers_without_a_status_get_one),
        cmocka_unit_test(status_in_protobuf_is_read),
        cmocka_unit_test(other_protobuf_is_not_a_status),
        cmocka_unit_test(long_and_odd_fields_of_protobuf_are_cut_or_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
