#include "kube/request/field_faults.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define U(path) "unknown field \"" path "\""
#define D(path) "duplicate field \"" path "\""

/* json NULL: by name. */
static void assert_sorted(const char *json, const char *given, const char *expected)
{
    struct buf faults = {0};
    assert_int_equal(buf_append_text(&faults, given), ST_OK);
    assert_int_equal(json ? field_faults_sort(slice_from_text(json), &faults)
                          : field_faults_sort_by_name(&faults),
                     ST_OK);
    assert_int_equal(faults.len, strlen(expected));
    assert_memory_equal(faults.ptr, expected, faults.len);
    buf_fini(&faults);
}

static void errors_are_in_the_order_of_go(void **state)
{
    (void)state;
    /* A duplicate is found where it occurs again. */
    assert_sorted("{\"a\":1,\"x\":2,\"a\":3}", D("a") ", " U("x"), U("x") ", " D("a"));
    assert_sorted("{\"a\":1,\"a\":3,\"x\":2}", U("x") ", " D("a"), D("a") ", " U("x"));
    assert_sorted("{\"l\":[{\"b\":1},{\"b\":1,\"y\":[[0]],\"b\":1}],\"x\":{}}",
                  D("l[1].b") ", " U("x") ", " U("l[1].y"),
                  U("l[1].y") ", " D("l[1].b") ", " U("x"));
}

/* Keys are escaped in errors: they are found in the text, and cannot pretend to be more errors. */
static void keys_with_escapes_are_found(void **state)
{
    (void)state;
    assert_sorted("{\"\\u0061\":1,\"\\u0061\":3,\"x\":2}", U("x") ", " D("a"), D("a") ", " U("x"));
    assert_sorted("{\"q\\\"\\u000a\\\\\":{\"b\":1},\"a\":2}", U("a") ", " U("q\\\"\\n\\\\.b"),
                  U("q\\\"\\n\\\\.b") ", " U("a"));
    struct slice faults = SLICE_LITERAL(U("a\\\", unknown field \\\"b") ", " D("c"));
    struct slice first = field_faults_take(&faults);
    assert_true(slice_is(first, U("a\\\", unknown field \\\"b")));
    assert_true(slice_is(faults, D("c")));
}

static void each_error_is_reported_once(void **state)
{
    (void)state;
    assert_sorted("{\"a\":1,\"a\":2,\"a\":3,\"x\":0}", D("a") ", " D("a") ", " U("x"),
                  D("a") ", " U("x"));
    /* Fields within an unknown field are not reported. */
    assert_sorted("{\"x\":{\"b\":1,\"b\":2},\"x\":1,\"xb\":1,\"xb\":1}",
                  D("x.b") ", " D("x") ", " D("xb") ", " U("x"), U("x") ", " D("xb"));
}

static void errors_that_are_not_found_in_the_text_come_last(void **state)
{
    (void)state;
    assert_sorted("{\"\\u0061\":1,\"x\":2,\"\\u0061\":3}", D("a") ", " U("x"), U("x") ", " D("a"));
    assert_sorted("{\"\xff\":1,\"\xff\":1,\"x\":1}", D("a") ", " U("x"), U("x") ", " D("a"));
    assert_sorted("{", D("a") ", " U("x"), D("a") ", " U("x"));
    assert_sorted("{\"x\":1}", U("x"), U("x"));
    assert_sorted("{}", "", "");
}

static void errors_of_a_map_are_sorted_by_name(void **state)
{
    (void)state;
    assert_sorted(NULL, U("z") ", " U("a"), U("a") ", " U("z"));
    assert_sorted(NULL, U("s-b") ", " U("s.c[10].z") ", " U("s.c[9].a") ", " U("s.c") ", " U("s.b"),
                  U("s.b") ", " U("s.c") ", " U("s.c[9].a") ", " U("s.c[10].z") ", " U("s-b"));
    /* Duplicates come first, in the order of the text, also within unknown fields. */
    assert_sorted(NULL, U("b") ", " D("z") ", " D("b.a") ", json patch " D("[0].op") ", " U("a"),
                  D("z") ", " D("b.a") ", json patch " D("[0].op") ", " U("a") ", " U("b"));
    assert_sorted(NULL, U("") ", " U(".") ", " U("a."), U("") ", " U(".") ", " U("a."));
    assert_sorted(NULL, "", "");
}

/* More than are sorted, and deeper than a body may be. */
static void limits_hold(void **state)
{
    (void)state;
    struct buf faults = {0}, json = {0};
    for (size_t i = 0; i < FIELD_FAULTS_MAX + 5; i++)
        assert_int_equal(buf_append_format(&faults, "%s" U("f%zu"), i ? ", " : "", i), ST_OK);
    size_t len = faults.len;
    assert_int_equal(field_faults_sort(SLICE_LITERAL("{}"), &faults), ST_OK);
    assert_int_equal(faults.len, len);
    assert_int_equal(field_faults_sort_by_name(&faults), ST_OK);
    assert_int_equal(faults.len, len);
    for (size_t i = 0; i < 5000; i++)
        assert_int_equal(buf_append_text(&json, "["), ST_OK);
    assert_int_equal(field_faults_sort(buf_slice(&json), &faults), ST_LIMIT);
    assert_int_equal(faults.len, len);
    buf_fini(&faults);
    buf_fini(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_in_the_order_of_go),
        cmocka_unit_test(errors_of_a_map_are_sorted_by_name),
        cmocka_unit_test(keys_with_escapes_are_found),
        cmocka_unit_test(each_error_is_reported_once),
        cmocka_unit_test(errors_that_are_not_found_in_the_text_come_last),
        cmocka_unit_test(limits_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
