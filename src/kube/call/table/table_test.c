#include "kube/call/table/table.h"

#include "kube/call/table/printers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static void assert_cells(const char *group, const char *plural, const char *json,
                         const char *expected)
{
    struct buf text = {0};
    const struct kube_kind *kind =
        kube_builtin_find(slice_from_text(group), SLICE_LITERAL("v1"), slice_from_text(plural));
    assert_non_null(kind);
    assert_int_equal(kube_table_cells(kind, slice_from_text(json), 1000000, &text), ST_OK);
    assert_int_equal(buf_append(&text, slice_of("", 1)), ST_OK);
    assert_string_equal((const char *)text.ptr, expected);
    buf_fini(&text);
}

static void durations_are_written_as_in_kubectl(void **state)
{
    (void)state;
    static const struct {
        int64_t seconds;
        const char *text;
    } cases[] = {
        {-5, "<invalid>"},     {-1, "0s"},          {0, "0s"},
        {119, "119s"},         {120, "2m"},         {125, "2m5s"},
        {600, "10m"},          {3599 * 3, "179m"},  {3 * 3600 + 60, "3h1m"},
        {8 * 3600 + 60, "8h"}, {47 * 3600, "47h"},  {48 * 3600, "2d"},
        {50 * 3600, "2d2h"},   {8 * 86400, "8d"},   {700 * 86400, "700d"},
        {731 * 86400, "2y1d"}, {730 * 86400, "2y"}, {3000LL * 86400, "8y"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[KUBE_DURATION_BYTES];
        kube_duration_text(cases[i].seconds, text);
        assert_string_equal(text, cases[i].text);
    }
}

static void times_are_parsed(void **state)
{
    (void)state;
    int64_t at_s;
    assert_true(kube_time_parse(SLICE_LITERAL("1970-01-02T00:00:01Z"), &at_s));
    assert_int_equal(at_s, 86401);
    assert_true(kube_time_parse(SLICE_LITERAL("1970-01-01T00:00:01.123456Z"), &at_s));
    assert_int_equal(at_s, 1);
    assert_true(kube_time_parse(SLICE_LITERAL("1970-01-01T02:00:01.123456+02:00"), &at_s));
    assert_int_equal(at_s, 1);
    assert_true(kube_time_parse(SLICE_LITERAL("1969-12-31T22:30:01-01:30"), &at_s));
    assert_int_equal(at_s, 1);
    assert_false(kube_time_parse(SLICE_LITERAL("1970-01-01T02:00:01.123456"), &at_s));
    assert_false(kube_time_parse(SLICE_LITERAL("1970-01-01T02:00:01+soon"), &at_s));
    assert_false(kube_time_parse(SLICE_LITERAL("1970-01-01"), &at_s));
    assert_false(kube_time_parse(SLICE_LITERAL("yesterday, I should say"), &at_s));
    assert_false(kube_time_parse(SLICE_EMPTY, &at_s));
}

static void pod_status_is_derived_from_containers(void **state)
{
    (void)state;
    static const char meta[] = "{\"metadata\":{\"name\":\"p\"},";
    static const struct {
        const char *rest, *cells;
    } cases[] = {
        {"\"status\":{\"phase\":\"Pending\"}}", "\"0/0\",\"Pending\",\"0\""},
        {"\"spec\":{\"containers\":[{},{}]},\"status\":{\"phase\":\"Running\","
         "\"containerStatuses\":[{\"ready\":true,\"state\":{\"running\":{}}},{\"restartCount\":5,"
         "\"state\":{\"waiting\":{\"reason\":\"CrashLoopBackOff\"}}}]}}",
         "\"1/2\",\"CrashLoopBackOff\",\"5\""},
        {"\"spec\":{\"containers\":[{}],\"initContainers\":[{\"name\":\"i\"},{\"name\":\"j\"}]},"
         "\"status\":{\"phase\":\"Pending\",\"initContainerStatuses\":[{\"name\":\"i\",\"state\":{"
         "\"terminated\":{\"exitCode\":0}}},{\"name\":\"j\",\"restartCount\":2,\"state\":{"
         "\"running\":{}}}]}}",
         "\"0/1\",\"Init:1/2\",\"2\""},
        {"\"spec\":{\"containers\":[{}]},\"status\":{\"phase\":\"Succeeded\",\"containerStatuses\":"
         "[{"
         "\"state\":{\"terminated\":{\"exitCode\":0,\"reason\":\"Completed\"}}}]}}",
         "\"0/1\",\"Completed\",\"0\""},
        {"\"spec\":{\"containers\":[{}]},\"status\":{\"phase\":\"Failed\",\"containerStatuses\":[{"
         "\"state\":{\"terminated\":{\"exitCode\":3}}}]}}",
         "\"0/1\",\"ExitCode:3\",\"0\""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char json[1024], expected[256];
        snprintf(json, sizeof(json), "%s%s", meta, cases[i].rest);
        snprintf(expected, sizeof(expected),
                 "[\"p\",%s,\"<unknown>\",\"<none>\",\"<none>\",\"<none>\",\"<none>\"]",
                 cases[i].cells);
        assert_cells("", "pods", json, expected);
    }
}

/*
 * The texts are those that kubectl 1.36 prints with a real kube-apiserver
 * (tests/kube/same_kubectl_test.py).
 */
static void long_lists_in_cells_are_cut_and_counted(void **state)
{
    (void)state;
    assert_cells(
        "", "endpoints",
        "{\"metadata\":{\"name\":\"e\"},\"subsets\":[{\"addresses\":[{\"ip\":\"10.0.0.1\"},"
        "{\"ip\":\"::1\"}],\"ports\":[{\"port\":80},{\"port\":81}]}]}",
        "[\"e\",\"10.0.0.1:80,[::1]:80,10.0.0.1:81 + 1 more...\",\"<unknown>\"]");
    assert_cells(
        "networking.k8s.io", "ingresses",
        "{\"metadata\":{\"name\":\"i\"},\"spec\":{\"tls\":[{}],\"rules\":[{\"host\":\"a\"},{}]},"
        "\"status\":{\"loadBalancer\":{\"ingress\":[{\"ip\":\"1.1.1.1\"},{\"hostname\":\"h\"}]}}}",
        "[\"i\",\"<none>\",\"a\",\"1.1.1.1,h\",\"80, 443\",\"<unknown>\"]");
    assert_cells(
        "", "resourcequotas",
        "{\"metadata\":{\"name\":\"q\"},\"status\":{\"hard\":{\"cpu\":\"2\",\"limits.cpu\":\"4\","
        "\"pods\":\"9\"},\"used\":{\"cpu\":\"1\",\"limits.cpu\":\"3\"}}}",
        "[\"q\",\"cpu: 1/2, pods: 0/9\",\"limits.cpu: 3/4\",\"<unknown>\"]");
    assert_cells(
        "", "persistentvolumes",
        "{\"metadata\":{\"name\":\"v\",\"deletionTimestamp\":\"1970-01-01T00:00:01Z\"},\"spec\":{"
        "\"accessModes\":[\"ReadWriteMany\",\"ReadWriteOnce\"],\"claimRef\":{\"namespace\":\"a\","
        "\"name\":\"b\"}}}",
        "[\"v\",\"\",\"RWO,RWX\",\"\",\"Terminating\",\"a/b\",\"\",\"<unset>\",\"\",\"<unknown>\","
        "\"<unset>\"]");
    assert_cells("policy", "poddisruptionbudgets",
                 "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"maxUnavailable\":3}}",
                 "[\"p\",\"N/A\",\"3\",0,\"<unknown>\"]");
}

static void malformed_objects_are_printed(void **state)
{
    (void)state;
    static const char *const odd[] = {
        "",
        "{",
        "[]",
        "null",
        "{\"metadata\":5,\"spec\":[],\"status\":{\"conditions\":{}}}",
        "{\"status\":{\"containerStatuses\":[null,1,\"x\",[]],\"initContainerStatuses\":{}}}",
        "{\"status\":{\"addresses\":[7],\"loadBalancer\":[]}}",
        "{\"spec\":{\"ports\":[{}],\"containers\":7}}",
        ("{\"spec\":{\"metrics\":[7,{\"type\":\"Resource\"}],\"rules\":[1],\"claimRef\":1},"
         "\"subjects\":[[]],"
         "\"subsets\":[{\"addresses\":[1],\"ports\":[2]}],\"status\":{\"hard\":{\"a\":1}}}"),
    };
    size_t count;
    const struct kube_kind *kinds = kube_builtin_kinds(&count);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < COUNT_OF(odd); j++) {
            struct buf text = {0};
            assert_int_equal(kube_table_cells(&kinds[i], slice_from_text(odd[j]), 5, &text), ST_OK);
            assert_int_equal(text.ptr[text.len - 1], ']');
            buf_fini(&text);
        }
}

enum { LARGE_ITEMS = 1000000 };

/* The tree of this object takes more than 64 MiB. */
static void cells_of_a_large_object_are_printed(void **state)
{
    (void)state;
    struct buf json = {0}, text = {0};
    const struct kube_kind *kind =
        kube_builtin_find(SLICE_EMPTY, SLICE_LITERAL("v1"), SLICE_LITERAL("configmaps"));
    assert_int_equal(buf_append_text(&json, "{\"x\":[0"), ST_OK);
    for (int i = 0; i < LARGE_ITEMS; i++)
        assert_int_equal(buf_append_text(&json, ",0"), ST_OK);
    assert_int_equal(buf_append_text(&json, "],\"metadata\":{\"name\":\"large\"}}"), ST_OK);
    assert_int_equal(kube_table_cells(kind, buf_slice(&json), 5, &text), ST_OK);
    assert_true(slice_is(buf_slice(&text), "[\"large\",0,\"<unknown>\"]"));
    buf_fini(&json);
    buf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_are_written_as_in_kubectl),
        cmocka_unit_test(times_are_parsed),
        cmocka_unit_test(pod_status_is_derived_from_containers),
        cmocka_unit_test(long_lists_in_cells_are_cut_and_counted),
        cmocka_unit_test(cells_of_a_large_object_are_printed),
        cmocka_unit_test(malformed_objects_are_printed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
