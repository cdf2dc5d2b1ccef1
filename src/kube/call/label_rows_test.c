#include "kube/call/label_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { THINGS, TIMES, FAMILIES };

static const int64_t bounds[] = {10, 100};
static const struct metric_buckets buckets = {bounds, COUNT_OF(bounds), 1};
static const struct kube_label_family families[FAMILIES] = {
    [THINGS] = {.name = "things", .help = "Things."},
    [TIMES] = {"times", "Times.", &buckets, "times_total", "How many."},
};

static struct kube_label_rows *rows;

static void add(size_t family, const char *name, const char *type, int64_t value)
{
    const struct kube_label labels[] = {{"name", slice_from_text(name), true},
                                        {"type", slice_from_text(type), false}};
    kube_label_rows_add(rows, family, labels, COUNT_OF(labels), value);
}

static void assert_page(const char *text)
{
    struct metric_page page = {0};
    kube_label_rows_write(rows, &page);
    assert_int_equal(page.status, ST_OK);
    assert_int_equal(buf_append(&page.text, slice_of("", 1)), ST_OK);
    assert_string_equal((const char *)page.text.ptr, text);
    metric_page_fini(&page);
    kube_label_rows_free(rows);
}

#define THINGS_HEAD "# HELP things Things.\n# TYPE things counter\n"
#define TOTAL_HEAD "# HELP times_total How many.\n# TYPE times_total counter\n"
#define TIMES_HEAD "# HELP times Times.\n# TYPE times histogram\n"

static void families_are_written_in_their_order(void **state)
{
    (void)state;
    rows = kube_label_rows_new(families, FAMILIES, 10);
    add(TIMES, "b", "t", 10);
    add(TIMES, "b", "t", 11);
    add(TIMES, "b", "t", 1000);
    add(THINGS, "b", "t", 2);
    add(THINGS, "a", "t", 1);
    add(THINGS, "b", "t", 3);
    assert_page(THINGS_HEAD "things{name=\"b\",type=\"t\"} 5\n"
                            "things{name=\"a\",type=\"t\"} 1\n" TOTAL_HEAD
                            "times_total{name=\"b\",type=\"t\"} 3\n" TIMES_HEAD
                            "times_bucket{name=\"b\",type=\"t\",le=\"10\"} 1\n"
                            "times_bucket{name=\"b\",type=\"t\",le=\"100\"} 2\n"
                            "times_bucket{name=\"b\",type=\"t\",le=\"+Inf\"} 3\n"
                            "times_sum{name=\"b\",type=\"t\"} 1021\n"
                            "times_count{name=\"b\",type=\"t\"} 3\n");
}

static void beyond_the_limit_names_share_rows(void **state)
{
    (void)state;
    rows = kube_label_rows_new(families, FAMILIES, 2);
    add(THINGS, "a", "t", 1);
    add(THINGS, "b", "t", 1);
    add(THINGS, "c", "t", 1);
    add(THINGS, "d", "t", 1);
    add(THINGS, "d", "u", 1); /* a label with few values is kept */
    add(THINGS, "a", "t", 1);
    assert_page(THINGS_HEAD "things{name=\"a\",type=\"t\"} 2\n"
                            "things{name=\"b\",type=\"t\"} 1\n"
                            "things{name=\"other\",type=\"t\"} 2\n"
                            "things{name=\"other\",type=\"u\"} 1\n" TOTAL_HEAD TIMES_HEAD);
}

static void long_names_are_truncated_and_escaped(void **state)
{
    (void)state;
    char name[1000], line[2000];
    memset(name, '"', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    const struct kube_label labels[KUBE_LABELS_MAX] = {{"a", slice_from_text(name), true},
                                                       {"b", slice_from_text(name), true},
                                                       {"c", slice_from_text(name), true},
                                                       {"d", slice_from_text(name), true},
                                                       {"e", slice_from_text(name), true}};
    struct metric_page page = {0};
    rows = kube_label_rows_new(families, FAMILIES, 10);
    kube_label_rows_add(rows, THINGS, labels, COUNT_OF(labels), 1);
    kube_label_rows_write(rows, &page);
    assert_int_equal(buf_append(&page.text, slice_of("", 1)), ST_OK);
    size_t len = (size_t)snprintf(line, sizeof(line), "things{a=\"");
    for (size_t i = 0; i < 255; i++)
        len += (size_t)snprintf(line + len, sizeof(line) - len, "\\\"");
    snprintf(line + len, sizeof(line) - len, "\",b=\"\\\"");
    assert_non_null(strstr((const char *)page.text.ptr, line));
    metric_page_fini(&page);
    kube_label_rows_free(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_are_written_in_their_order),
        cmocka_unit_test(beyond_the_limit_names_share_rows),
        cmocka_unit_test(long_names_are_truncated_and_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
