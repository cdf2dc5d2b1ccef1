#include "kube/policy/webhooks/review_rows_test.h"

#include "base/failing_memory_test.h"
#include "kube/policy/access/rbac/user.h"

#include <stdio.h>
#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define WEBHOOK SLICE_LITERAL("w.example.com")
#define UID SLICE_LITERAL("u1")

static struct arena arena;

static int set_up(void **state)
{
    (void)state;
    arena_init(&arena, NULL, 0, 64 << 20);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_fini(&arena);
    return 0;
}

/* -- Writing -- */

static void assert_writes(const struct kube_webhook_review *review, const char *text)
{
    AUTO(buf_fini) struct buf to = {0};
    assert_int_equal(kube_webhook_review_write(&to, review), ST_OK);
    if (!slice_is(buf_slice(&to), text))
        fail_msg("%.*s", (int)to.len, (const char *)to.ptr);
}

/* Both texts are what Go's encoder writes for the same review. */
static void everything_is_written_in_the_order_of_go(void **state)
{
    (void)state;
    static const struct slice groups[] = {{(const uint8_t *)"a", 1}, {(const uint8_t *)"b\"", 2}};
    static const struct slice values[] = {{(const uint8_t *)"v", 1}};
    static const struct kube_user_extra extra[] = {{{(const uint8_t *)"z", 1}, {values, 1}},
                                                   {{(const uint8_t *)"k\n", 2}, {values, 1}}};
    static const struct kube_user_info user = {.name = {(const uint8_t *)"jane", 4},
                                               .uid = {(const uint8_t *)"7", 1},
                                               .groups = {groups, 2},
                                               .extra = extra,
                                               .extra_count = 2};
    const struct kube_webhook_review review = {
        .version = KUBE_REVIEW_V1BETA1,
        .uid = UID,
        .kind = {SLICE_LITERAL("autoscaling"), SLICE_LITERAL("v1"), SLICE_LITERAL("Scale")},
        .resource = {SLICE_LITERAL("apps"), SLICE_LITERAL("v1"), SLICE_LITERAL("deployments")},
        .subresource = SLICE_LITERAL("scale"),
        .request_kind = {SLICE_LITERAL("autoscaling"), SLICE_LITERAL("v2"), SLICE_LITERAL("Scale")},
        .request_resource = {SLICE_LITERAL("apps"), SLICE_LITERAL("v2"), SLICE_LITERAL("d")},
        .request_subresource = SLICE_LITERAL("scale"),
        .name = SLICE_LITERAL("n"),
        .namespace = SLICE_LITERAL("ns"),
        .operation = SLICE_LITERAL("UPDATE"),
        .user = &user,
        .object = SLICE_LITERAL("{\"kind\":\"Scale\"}"),
        .old_object = SLICE_LITERAL("{\"old\":1}"),
        .options = SLICE_LITERAL("{\"kind\":\"UpdateOptions\"}"),
        .dry_run = true,
    };
    assert_writes(
        &review,
        "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1beta1\",\"request\":{"
        "\"uid\":\"u1\",\"kind\":{\"group\":\"autoscaling\",\"version\":\"v1\",\"kind\":\"Scale\"},"
        "\"resource\":{\"group\":\"apps\",\"version\":\"v1\",\"resource\":\"deployments\"},"
        "\"subResource\":\"scale\",\"requestKind\":{\"group\":\"autoscaling\",\"version\":\"v2\","
        "\"kind\":\"Scale\"},\"requestResource\":{\"group\":\"apps\",\"version\":\"v2\","
        "\"resource\":\"d\"},\"requestSubResource\":\"scale\",\"name\":\"n\",\"namespace\":\"ns\","
        "\"operation\":\"UPDATE\",\"userInfo\":{\"username\":\"jane\",\"uid\":\"7\","
        "\"groups\":[\"a\",\"b\\\"\"],\"extra\":{\"k\\n\":[\"v\"],\"z\":[\"v\"]}},"
        "\"object\":{\"kind\":\"Scale\"},\"oldObject\":{\"old\":1},\"dryRun\":true,"
        "\"options\":{\"kind\":\"UpdateOptions\"}}}");
}

static void empty_fields_are_left_out_as_in_go(void **state)
{
    (void)state;
    const struct kube_webhook_review review = {.operation = SLICE_LITERAL("DELETE")};
    assert_writes(
        &review,
        "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{"
        "\"uid\":\"\",\"kind\":{\"group\":\"\",\"version\":\"\",\"kind\":\"\"},"
        "\"resource\":{\"group\":\"\",\"version\":\"\",\"resource\":\"\"},"
        "\"requestKind\":{\"group\":\"\",\"version\":\"\",\"kind\":\"\"},"
        "\"requestResource\":{\"group\":\"\",\"version\":\"\",\"resource\":\"\"},"
        "\"operation\":\"DELETE\",\"userInfo\":{},\"object\":null,\"oldObject\":null,"
        "\"dryRun\":false,\"options\":null}}");
}

/* -- Reading -- */

static void print_verdict(const struct kube_webhook_verdict *verdict, struct buf *to)
{
    assert_int_equal(buf_append_text(to, "allowed"), ST_OK);
    if (verdict->patch.len)
        assert_int_equal(buf_append_format(to, " %.*s %.*s", SLICE_ARGS(verdict->patch_type),
                                           SLICE_ARGS(verdict->patch)),
                         ST_OK);
    for (size_t i = 0; i < verdict->warning_count; i++)
        assert_int_equal(buf_append_format(to, " warning %.*s", SLICE_ARGS(verdict->warnings[i])),
                         ST_OK);
    if (verdict->has_annotations)
        assert_int_equal(buf_append_text(to, " annotations"), ST_OK);
}

/* The Status, without what is the same in all. */
static void print_refusal(const struct kube_webhook_verdict *verdict, struct buf *to)
{
    static const char head[] = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",";
    static const char denied[] = "admission webhook \\\"w.example.com\\\" denied the request";
    AUTO(buf_fini) struct buf text = {0};
    struct kube_status status;
    assert_false(kube_webhook_refuse(&arena, WEBHOOK, verdict, &status));
    assert_int_equal(kube_status_write(&status, &text), ST_OK);
    assert_true(slice_has_prefix(buf_slice(&text), slice_from_text(head)));
    const uint8_t *at = memmem(text.ptr, text.len, denied, strlen(denied)), *end = at;
    assert_non_null(at);
    const uint8_t *begin = text.ptr + strlen(head);
    end += strlen(denied);
    assert_int_equal(buf_append_format(to, "{%.*sDENIED%.*s", (int)(at - begin),
                                       (const char *)begin, (int)(text.ptr + text.len - end),
                                       (const char *)end),
                     ST_OK);
}

static void print_answer(struct slice answer, enum kube_webhook_version version, bool is_mutating,
                         struct buf *to)
{
    struct kube_webhook_verdict verdict;
    AUTO(buf_fini) struct buf error = {0};
    enum status status =
        kube_webhook_verdict_read(&arena, answer, version, UID, is_mutating, &verdict, &error);
    if (status != ST_OK) {
        assert_true(status == ST_MALFORMED || status == ST_LIMIT);
        assert_true(error.len);
        assert_int_equal(buf_append(to, buf_slice(&error)), ST_OK);
        return;
    }
    assert_int_equal(error.len, 0);
    if (verdict.allowed)
        print_verdict(&verdict, to);
    else
        print_refusal(&verdict, to);
}

static void assert_rows(const struct review_row *rows, size_t count,
                        enum kube_webhook_version version, bool is_mutating)
{
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        AUTO(buf_fini) struct buf got = {0};
        print_answer(rows[i].answer, version, is_mutating, &got);
        if (slice_is(buf_slice(&got), rows[i].want))
            continue;
        print_error("%.*s\n  gives %.*s\n  not   %s\n", SLICE_ARGS(rows[i].answer), (int)got.len,
                    (const char *)got.ptr, rows[i].want);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

static void answers_are_read_as_by_kubernetes(void **state)
{
    (void)state;
    assert_rows(mutating_rows, COUNT_OF(mutating_rows), KUBE_REVIEW_V1, true);
    assert_rows(validating_rows, COUNT_OF(validating_rows), KUBE_REVIEW_V1, false);
    assert_rows(beta_mutating_rows, COUNT_OF(beta_mutating_rows), KUBE_REVIEW_V1BETA1, true);
    assert_rows(beta_validating_rows, COUNT_OF(beta_validating_rows), KUBE_REVIEW_V1BETA1, false);
}

static void assert_answer(struct slice answer, const char *want)
{
    AUTO(buf_fini) struct buf got = {0};
    print_answer(answer, KUBE_REVIEW_V1, true, &got);
    if (!slice_is(buf_slice(&got), want))
        fail_msg("%.*s", (int)got.len, (const char *)got.ptr);
}

/* A repetition of a text between two others. */
static struct buf repeated(const char *before, const char *text, size_t count, const char *after)
{
    struct buf to = {0};
    assert_int_equal(buf_append_text(&to, before), ST_OK);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(buf_append_text(&to, text), ST_OK);
    assert_int_equal(buf_append_text(&to, after), ST_OK);
    return to;
}

static void a_request_that_is_repeated_takes_no_memory(void **state)
{
    (void)state;
    AUTO(buf_fini)
    struct buf answer =
        repeated("{\"kind\":\"AdmissionReview\",\"request\":[0", ",0", 3000000,
                 "],\"apiVersion\":\"admission.k8s.io/v1\",\"response\":{\"uid\":\"u1\","
                 "\"allowed\":true}}");
    assert_answer(buf_slice(&answer), "allowed");
    assert_true(arena.held_bytes < 1 << 20);
}

static void answers_are_limited(void **state)
{
    (void)state;
    static const char head[] = "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/"
                               "v1\",\"response\":{\"uid\":\"u1\",\"allowed\":true,\"x\":[0";
    AUTO(buf_fini) struct buf dear = repeated(head, ",0", 1000000, "]}}");
    assert_answer(buf_slice(&dear), CALL "the answer takes too much memory");
    assert_false(arena_ran_out(&arena)); /* the write has lost nothing */
    AUTO(buf_fini) struct buf cheap = repeated(head, ",0", 10000, "]}}");
    assert_answer(buf_slice(&cheap), "allowed");
    AUTO(buf_fini) struct buf deep = repeated(head, "", 0, ",");
    AUTO(buf_fini) struct buf open = repeated("", "[", 300, "");
    assert_int_equal(buf_append(&deep, buf_slice(&open)), ST_OK);
    assert_answer(buf_slice(&deep),
                  CALL "couldn't get version/kind; json parse error: unexpected end of JSON input");
    AUTO(buf_fini) struct buf closed = repeated("", "]", 300, "]}}");
    assert_int_equal(buf_append(&deep, buf_slice(&closed)), ST_OK);
    assert_answer(buf_slice(&deep), CALL "json: exceeded max depth");
    AUTO(buf_fini) struct buf abyss = repeated("{\"request\":", "[", 10001, "");
    assert_answer(buf_slice(&abyss),
                  CALL "couldn't get version/kind; json parse error: exceeded max depth");
    AUTO(buf_fini) struct buf yaml = repeated("a: ", "x", KUBE_WEBHOOK_YAML_BYTES_MAX - 3, "");
    assert_answer(buf_slice(&yaml), INVALID "webhook response was absent");
    assert_int_equal(buf_append_text(&yaml, "x"), ST_OK);
    assert_answer(buf_slice(&yaml), CALL "yaml: the answer is longer than 262144 bytes");
    AUTO(buf_fini) struct buf huge = repeated("{", " ", KUBE_WEBHOOK_REVIEW_BYTES_MAX - 1, "}");
    assert_answer(buf_slice(&huge), CALL "the answer is longer than 8388608 bytes");
    huge.len--;
    assert_answer(buf_slice(&huge),
                  CALL "couldn't get version/kind; json parse error: unexpected end of JSON input");
}

static void warnings_are_limited(void **state)
{
    (void)state;
    static const char head[] = "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/"
                               "v1\",\"response\":{\"uid\":\"u1\",\"allowed\":true,\"warnings\":[";
    AUTO(buf_fini) struct buf many = repeated(head, "\"\",\"a\",", 5000, "\"b\"]}}");
    AUTO(buf_fini) struct buf error = {0};
    struct kube_webhook_verdict verdict;
    assert_int_equal(kube_webhook_verdict_read(&arena, buf_slice(&many), KUBE_REVIEW_V1, UID, false,
                                               &verdict, &error),
                     ST_OK);
    assert_int_equal(verdict.warning_count, KUBE_WEBHOOK_WARNINGS_MAX);
    AUTO(buf_fini) struct buf body = repeated(head, "", 0, "\"");
    AUTO(buf_fini) struct buf tail = repeated("", "x", 100000, "\"]}}");
    assert_int_equal(buf_append(&body, buf_slice(&tail)), ST_OK);
    assert_int_equal(kube_webhook_verdict_read(&arena, buf_slice(&body), KUBE_REVIEW_V1, UID, false,
                                               &verdict, &error),
                     ST_OK);
    assert_int_equal(verdict.warning_count, 1);
    assert_int_equal(verdict.warnings[0].len, KUBE_WEBHOOK_WARNING_BYTES_MAX);
}

static void long_texts_are_shown_in_part(void **state)
{
    (void)state;
    AUTO(buf_fini) struct buf kind = repeated("{\"kind\":\"", "x", 100000, "\"}");
    AUTO(buf_fini) struct buf version = repeated("{\"apiVersion\":\"", "x/", 100000, "\"}");
    AUTO(buf_fini)
    struct buf missing = repeated("{\"apiVersion\":\"a/\",\"b\":\"", "x", 9999, "\"}");
    const struct slice answers[] = {buf_slice(&kind), buf_slice(&version), buf_slice(&missing)};
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        AUTO(buf_fini) struct buf got = {0};
        print_answer(answers[i], KUBE_REVIEW_V1, true, &got);
        assert_in_range(got.len, 1024, 1300);
    }
}

/* -- Refusals -- */

static void the_answer_has_code_and_time_of_the_webhook(void **state)
{
    (void)state;
    static const struct {
        const char *result;
        unsigned code, retry_after_s;
    } rows[] = {
        {"{}", 400, 0},
        {"{\"code\":399}", 400, 0},
        {"{\"code\":429,\"details\":{\"retryAfterSeconds\":7}}", 429, 7},
        {"{\"code\":999,\"details\":{\"retryAfterSeconds\":-7}}", 999, 0},
        {"{\"code\":1000}", 500, 0}, /* no code of HTTP */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct kube_webhook_verdict verdict = {.result = slice_from_text(rows[i].result)};
        struct kube_status status;
        assert_false(kube_webhook_refuse(&arena, WEBHOOK, &verdict, &status));
        assert_int_equal(kube_status_code(&status), rows[i].code);
        assert_int_equal(status.retry_after_s, rows[i].retry_after_s);
        assert_true(slice_is(status.long_message, "admission webhook \"w.example.com\" denied the "
                                                  "request without explanation"));
    }
}

static void an_event_has_the_status_of_the_webhook(void **state)
{
    (void)state;
    AUTO(buf_fini) struct buf text = {0};
    struct kube_webhook_verdict verdict = {.result = SLICE_LITERAL("{\"code\":418}")};
    struct kube_status status;
    assert_false(kube_webhook_refuse(&arena, WEBHOOK, &verdict, &status));
    assert_int_equal(kube_status_write_event(&status, &text), ST_OK);
    assert_int_equal(buf_append(&text, slice_of("", 1)), ST_OK);
    assert_string_equal(
        (const char *)text.ptr,
        "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
        "\"status\":\"Failure\",\"message\":\"admission webhook \\\"w.example.com\\\" denied the "
        "request without explanation\",\"code\":418}}\n");
}

/* -- Memory -- */

static void no_memory_is_reported_wherever_it_is_missing(void **state)
{
    (void)state;
    static const char *const answers[] = {
        V1("{\"uid\":\"u1\",\"allowed\":true,\"patch\":\"W10=\",\"patchType\":\"JSON\\u0050atch\","
           "\"warnings\":[\"a\\u0062\"],\"auditAnnotations\":{\"b\":\"2\\u0062\"}}"),
        V1("{\"uid\":\"u1\",\"status\":{\"message\":\"\\u0062\",\"details\":{\"causes\":[{}]}}}"),
        V1("{\"uid\":\"u\\u0032\"}"), "response: [a, b]", "{\"kind\":\"a\\u0062\"}"};
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        size_t failures = 0;
        for (bool failed = true; failed; failures++) {
            struct kube_webhook_verdict verdict;
            struct kube_status refusal = {0};
            struct buf error = {0};
            struct arena own;
            arena_init(&own, NULL, 0, 1 << 20);
            memory_fail_at = failures + 1;
            enum status status = kube_webhook_verdict_read(
                &own, slice_from_text(answers[i]), KUBE_REVIEW_V1, UID, true, &verdict, &error);
            if (status == ST_OK && !verdict.allowed)
                (void)!kube_webhook_refuse(&own, WEBHOOK, &verdict, &refusal);
            failed = memory_fail_at == 0;
            memory_fail_at = 0;
            if (failed)
                assert_true(status == ST_NOMEM || status == ST_LIMIT ||
                            refusal.reason == KUBE_TOO_MANY_REQUESTS);
            buf_fini(&error);
            arena_fini(&own);
        }
        assert_true(failures > 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_written_in_the_order_of_go),
        cmocka_unit_test(empty_fields_are_left_out_as_in_go),
        cmocka_unit_test(answers_are_read_as_by_kubernetes),
        cmocka_unit_test(a_request_that_is_repeated_takes_no_memory),
        cmocka_unit_test(answers_are_limited),
        cmocka_unit_test(warnings_are_limited),
        cmocka_unit_test(long_texts_are_shown_in_part),
        cmocka_unit_test(the_answer_has_code_and_time_of_the_webhook),
        cmocka_unit_test(an_event_has_the_status_of_the_webhook),
        cmocka_unit_test(no_memory_is_reported_wherever_it_is_missing),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
