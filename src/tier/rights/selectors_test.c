/*
 * Selectors as requirements of reviews. The rows are what Kubernetes' own code makes of the same
 * texts (labels.Parse, fields.ParseSelector and the webhook authorizer of k8s.io/apiserver).
 */
#include "tier/rights/selectors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ARENA_BYTES_MAX = 8 << 20 };

typedef void write_fn(struct json_writer *writer, struct arena *arena, struct slice text);

/* The member without its name and braces; "" if there is none. */
static void write_to(struct buf *to, write_fn *write, const char *name, struct slice selector)
{
    char begin[64];
    struct arena arena;
    struct json_writer w;
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    json_writer_init(&w, to);
    json_begin_object(&w);
    write(&w, &arena, selector);
    json_end_object(&w);
    assert_int_equal(json_writer_finish(&w), ST_OK);
    assert_false(arena_ran_out(&arena));
    arena_fini(&arena);
    if (to->len == 2) {
        to->len = 0;
        return;
    }
    int len = snprintf(begin, sizeof(begin), "{\"%s\":{\"requirements\":", name);
    assert_memory_equal(to->ptr, begin, (size_t)len);
    buf_consume(to, (size_t)len);
    to->len -= 2;
}

static void expect(write_fn *write, const char *name, const char *selector, const char *want)
{
    struct buf out = {0};
    write_to(&out, write, name, slice_from_text(selector));
    if (!slice_is(buf_slice(&out), want))
        fail_msg("%s: %.*s", selector, SLICE_ARGS(buf_slice(&out)));
    buf_fini(&out);
}

static void label_selectors_become_requirements(void **state)
{
    (void)state;
    static const struct {
        const char *selector, *want;
    } rows[] = {
        {"a", "[{\"key\":\"a\",\"operator\":\"Exists\"}]"},
        {"!a", "[{\"key\":\"a\",\"operator\":\"DoesNotExist\"}]"},
        {"a=b", "[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"b\"]}]"},
        {"a==b", "[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"b\"]}]"},
        {"a!=b", "[{\"key\":\"a\",\"operator\":\"NotIn\",\"values\":[\"b\"]}]"},
        {"a in (c,b,b)", "[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"b\",\"c\"]}]"},
        {"a notin (x)", "[{\"key\":\"a\",\"operator\":\"NotIn\",\"values\":[\"x\"]}]"},
        {"a in ()", "[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"\"]}]"},
        {"a in (,b,)", "[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"\",\"b\"]}]"},
        {"a=", "[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"\"]}]"},
        {"b=1,a=2,!c",
         "[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"2\"]},{\"key\":\"b\",\"operator\":"
         "\"In\",\"values\":[\"1\"]},{\"key\":\"c\",\"operator\":\"DoesNotExist\"}]"},
        {"a>1", ""},
        {"a<5,b", "[{\"key\":\"b\",\"operator\":\"Exists\"}]"},
        {"a>1,a<5", ""},
        {"a in (", ""},
        {"a=b=c", ""},
        {"-a=b", ""},
        {"a=-b", ""},
        {"x/y=z", "[{\"key\":\"x/y\",\"operator\":\"In\",\"values\":[\"z\"]}]"},
        {"a,a=b,a!=c",
         "[{\"key\":\"a\",\"operator\":\"Exists\"},{\"key\":\"a\",\"operator\":\"In\",\"values\":["
         "\"b\"]},{\"key\":\"a\",\"operator\":\"NotIn\",\"values\":[\"c\"]}]"},
        {" a = b , c ", "[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"b\"]},{\"key\":\"c\","
                        "\"operator\":\"Exists\"}]"},
        {"in in (in)", "[{\"key\":\"in\",\"operator\":\"In\",\"values\":[\"in\"]}]"},
        {"a!", ""},
        {",a", ""},
        {"a,", ""},
        {"a>x", ""},
        {"!a=b", ""},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        expect(tier_write_label_selector, "labelSelector", rows[i].selector, rows[i].want);
}

static const struct {
    const char *selector, *want, *name;
} field_rows[] = {
    {"metadata.name=x", "[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"x\"]}]",
     "x"},
    {"metadata.name==x", "[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"x\"]}]",
     "x"},
    {"metadata.name!=x", "[{\"key\":\"metadata.name\",\"operator\":\"NotIn\",\"values\":[\"x\"]}]",
     ""},
    {"b=1,a=2",
     "[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"2\"]},{\"key\":\"b\",\"operator\":"
     "\"In\",\"values\":[\"1\"]}]",
     ""},
    {"a=b\\,c", "[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"b,c\"]}]", ""},
    {"a=b\\=c,d=e",
     "[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"b=c\"]},{\"key\":\"d\",\"operator\":"
     "\"In\",\"values\":[\"e\"]}]",
     ""},
    {"a=b\\\\", "[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"b\\\\\"]}]", ""},
    {"a=b\\", "", ""},
    {"a=b\\x", "", ""},
    {"a=b=c", "", ""},
    {"a", "", ""},
    {"a=b,c", "", ""},
    {"=", "", ""},
    {"=,a=b", "[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"b\"]}]", ""},
    {"a=", "[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"\"]}]", ""},
    /* A review may not name an empty field: kube-apiserver would refuse to answer it. */
    {"!=b", "", ""},
    {",,a=b,", "[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"b\"]}]", ""},
    {"metadata.name=a/b", "[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"a/b\"]}]",
     ""},
    {"metadata.name=..", "[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"..\"]}]",
     ""},
    {"metadata.name=", "[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"\"]}]", ""},
    {"metadata.name=a,metadata.name=b",
     "[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"a\"]},{\"key\":\"metadata."
     "name\",\"operator\":\"In\",\"values\":[\"b\"]}]",
     "a"},
    {"metadata.name=z,metadata.name=b,spec.nodeName=n",
     "[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"b\"]},{\"key\":\"metadata."
     "name\",\"operator\":\"In\",\"values\":[\"z\"]},{\"key\":\"spec.nodeName\",\"operator\":"
     "\"In\",\"values\":[\"n\"]}]",
     "b"},
    {"a!b=c", "[{\"key\":\"a!b\",\"operator\":\"In\",\"values\":[\"c\"]}]", ""},
    {"a!!=c", "[{\"key\":\"a!\",\"operator\":\"NotIn\",\"values\":[\"c\"]}]", ""},
    {"metadata.name=a%b", "[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"a%b\"]}]",
     ""},
    {"a =b", "[{\"key\":\"a \",\"operator\":\"In\",\"values\":[\"b\"]}]", ""},
    {"metadata.name=a\\=b",
     "[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"a=b\"]}]", "a=b"},
    {"metadata.namespace=n,metadata.name!=q",
     "[{\"key\":\"metadata.name\",\"operator\":\"NotIn\",\"values\":[\"q\"]},{\"key\":"
     "\"metadata.namespace\",\"operator\":\"In\",\"values\":[\"n\"]}]",
     ""},
    {"metadata.name=/,metadata.name=z",
     "[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"/"
     "\"]},{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"z\"]}]",
     ""},
};

static void field_selectors_become_requirements(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(field_rows); i++) {
        struct arena arena;
        expect(tier_write_field_selector, "fieldSelector", field_rows[i].selector,
               field_rows[i].want);
        arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
        struct slice name = tier_selected_name(&arena, slice_from_text(field_rows[i].selector));
        if (!slice_is(name, field_rows[i].name))
            fail_msg("%s: %.*s", field_rows[i].selector, SLICE_ARGS(name));
        arena_fini(&arena);
    }
}

/* What is too long is left out as a whole. */
static void long_selectors_are_left_out(void **state)
{
    (void)state;
    enum { BYTES = 64 * 1024 };
    static char text[BYTES + 16];
    for (int over = 0; over < 2; over++) {
        struct buf out = {0};
        int len = sprintf(text, "a=");
        memset(text + len, 'x', BYTES);
        write_to(&out, tier_write_field_selector, "fieldSelector",
                 slice_of(text, BYTES + (size_t)over));
        assert_int_equal(out.len != 0, !over);
        buf_fini(&out);
        /* Terms: 1,024 of them are understood. */
        memset(text, 0, sizeof(text));
        for (int i = 0, at = 0; i < 1024 + over; i++)
            at += sprintf(text + at, "%sa=b", i ? "," : "");
        write_to(&out, tier_write_field_selector, "fieldSelector", slice_from_text(text));
        assert_int_equal(out.len != 0, !over);
        buf_fini(&out);
        memset(text, 0, sizeof(text));
        for (int i = 0, at = 0; i < 256 + over; i++)
            at += sprintf(text + at, "%sa", i ? "," : "");
        write_to(&out, tier_write_label_selector, "labelSelector", slice_from_text(text));
        assert_int_equal(out.len != 0, !over);
        buf_fini(&out);
    }
}

static void missing_memory_is_noticed(void **state)
{
    (void)state;
    struct buf out = {0};
    for (int i = 0; i < 3; i++) {
        struct arena arena;
        struct json_writer w;
        arena_init(&arena, NULL, 0, 0);
        json_writer_init(&w, &out);
        json_begin_object(&w);
        if (i == 0)
            tier_write_label_selector(&w, &arena, SLICE_LITERAL("a=b"));
        else if (i == 1)
            tier_write_field_selector(&w, &arena, SLICE_LITERAL("a=b"));
        else
            (void)tier_selected_name(&arena, SLICE_LITERAL("metadata.name=b"));
        json_end_object(&w);
        assert_true(arena_ran_out(&arena));
        arena_fini(&arena);
    }
    buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(label_selectors_become_requirements),
        cmocka_unit_test(field_selectors_become_requirements),
        cmocka_unit_test(long_selectors_are_left_out),
        cmocka_unit_test(missing_memory_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
