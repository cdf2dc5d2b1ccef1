#include "kube/call/check_metrics.h"

#include "base/container/hash_map.h"
#include "base/container/list.h"
#include "base/lock.h"
#include "base/xalloc.h"

#include <stdio.h>

/* Kubernetes' buckets: 500 ns to 1 s. */
static const int64_t bounds[] = {500, 1000000, 10000000, 100000000, 1000000000};
static const struct metric_buckets durations = {bounds, COUNT_OF(bounds), 1000000000};

enum { NAME_BYTES = 256, LABELS_BYTES = 2048 };

struct row {
    struct list in_metrics; /* links kube_check_metrics.rows */
    uint64_t slots[METRIC_SLOTS];
    bool mutates;
    size_t len;
    char labels[]; /* its key */
};

struct kube_check_metrics {
    struct lock lock;
    struct list rows; /* in the order in which they were made */
    struct hash_map by_labels;
};

static struct slice labels_of(const void *value)
{
    const struct row *row = value;
    return slice_of(row->labels, row->len);
}

struct kube_check_metrics *kube_check_metrics_new(void)
{
    struct kube_check_metrics *metrics = xcalloc(1, sizeof(*metrics));
    lock_init(&metrics->lock);
    list_init(&metrics->rows);
    hash_map_init(&metrics->by_labels, labels_of, (uint64_t)(uintptr_t)metrics);
    return metrics;
}

void kube_check_metrics_free(struct kube_check_metrics *metrics)
{
    struct list *link;
    if (!metrics)
        return;
    while ((link = list_pop_front(&metrics->rows)) != NULL)
        free(LIST_ENTRY(link, struct row, in_metrics));
    hash_map_fini(&metrics->by_labels);
    lock_fini(&metrics->lock);
    free(metrics);
}

/* Clients of etcd can choose any name. */
static const char *escape(struct slice name, char to[2 * NAME_BYTES])
{
    char text[NAME_BYTES];
    snprintf(text, sizeof(text), "%.*s", SLICE_ARGS(name));
    return metric_page_escape(text, to, 2 * NAME_BYTES);
}

static void write_labels(const struct kube_check *check, struct slice policy, struct slice binding,
                         char to[LABELS_BYTES])
{
    char first[2 * NAME_BYTES], second[2 * NAME_BYTES], action[64] = "";
    if (check->action)
        snprintf(action, sizeof(action), ",enforcement_action=\"%s\"", check->action);
    snprintf(to, LABELS_BYTES, "policy=\"%s\",policy_binding=\"%s\",error_type=\"%s\"%s",
             escape(policy, first), escape(binding, second), check->error_type, action);
}

/* NULL: there are too many rows, or no memory. */
static struct row *find_row(struct kube_check_metrics *metrics, const char *labels, size_t most)
{
    struct slice key = slice_from_text(labels);
    struct row *row = hash_map_get(&metrics->by_labels, key);
    void *replaced;
    if (row || metrics->by_labels.count >= most)
        return row;
    row = xcalloc(1, sizeof(*row) + key.len);
    row->len = key.len;
    slice_copy(row->labels, key);
    if (hash_map_put(&metrics->by_labels, row, &replaced) != ST_OK) {
        free(row);
        return NULL;
    }
    list_push_back(&metrics->rows, &row->in_metrics);
    return row;
}

void kube_check_count(struct kube_check_metrics *metrics, const struct kube_check *check)
{
    char labels[LABELS_BYTES];
    write_labels(check, check->policy, check->binding, labels);
    LOCK_SCOPE(&metrics->lock);
    struct row *row = find_row(metrics, labels, KUBE_CHECK_ROWS_MAX);
    if (!row) {
        write_labels(check, SLICE_LITERAL("other"), SLICE_LITERAL("other"), labels);
        row = find_row(metrics, labels, SIZE_MAX);
    }
    if (!row)
        return;
    row->mutates = !check->action; /* only their rows have no action in their labels */
    unsigned slot = 0;
    while (slot < durations.count && check->elapsed_ns > durations.bounds[slot])
        slot++;
    row->slots[slot]++;
    row->slots[METRIC_SUM_SLOT] += (uint64_t)check->elapsed_ns;
}

static uint64_t count_of(const struct row *row)
{
    uint64_t count = 0;
    for (unsigned i = 0; i <= durations.count; i++)
        count += row->slots[i];
    return count;
}

/* The rows of one kind of policies. */
struct family {
    bool mutates;
    const char *total, *total_help, *seconds, *seconds_help;
};

static void write_family(const struct kube_check_metrics *metrics, const struct family *family,
                         struct metric_page *page)
{
    const struct row *row;
    char labels[LABELS_BYTES];
    metric_page_head(page, family->total, METRIC_COUNTER, family->total_help);
    LIST_FOREACH (row, &metrics->rows, in_metrics) {
        snprintf(labels, sizeof(labels), "%.*s", SLICE_ARGS(labels_of(row)));
        if (row->mutates == family->mutates)
            metric_page_row(page, family->total, labels, count_of(row));
    }
    metric_page_head(page, family->seconds, METRIC_HISTOGRAM, family->seconds_help);
    LIST_FOREACH (row, &metrics->rows, in_metrics) {
        snprintf(labels, sizeof(labels), "%.*s", SLICE_ARGS(labels_of(row)));
        if (row->mutates == family->mutates)
            metric_page_row_histogram(page, family->seconds, labels, &durations, row->slots);
    }
}

void kube_check_metrics_write(struct kube_check_metrics *metrics, struct metric_page *page)
{
    static const struct family families[] = {
        {false, "apiserver_validating_admission_policy_check_total",
         "Validations of admission policies that have failed, by what was done.",
         "apiserver_validating_admission_policy_check_duration_seconds",
         "The time that these validations took to evaluate."},
        {true, "apiserver_mutating_admission_policy_check_total",
         "Mutations of admission policies, by their errors.",
         "apiserver_mutating_admission_policy_check_duration_seconds",
         "The time that these mutations took."},
    };
    LOCK_SCOPE(&metrics->lock);
    for (size_t i = 0; i < COUNT_OF(families); i++)
        write_family(metrics, &families[i], page);
}
