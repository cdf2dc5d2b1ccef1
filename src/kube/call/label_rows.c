#include "kube/call/label_rows.h"

#include "base/container/hash_map.h"
#include "base/container/list.h"
#include "base/lock.h"
#include "base/xalloc.h"

#include <stdio.h>

enum {
    VALUE_BYTES = 256,
    LABEL_BYTES = 64 + 2 * VALUE_BYTES,
    LABELS_BYTES = KUBE_LABELS_MAX * LABEL_BYTES,
};

struct row {
    struct list in_rows;          /* links kube_label_rows.rows */
    uint64_t slots[METRIC_SLOTS]; /* a counter uses the first */
    uint8_t family;
    size_t len;
    char key[]; /* the number of the family, and the labels, which a zero byte ends */
};

struct kube_label_rows {
    struct lock lock;
    const struct kube_label_family *families;
    size_t family_count, rows_max;
    struct list rows; /* in the order in which they were made */
    struct hash_map by_key;
};

static struct slice key_of(const void *value)
{
    const struct row *row = value;
    return slice_of(row->key, row->len);
}

struct kube_label_rows *kube_label_rows_new(const struct kube_label_family *families, size_t count,
                                            size_t rows_max)
{
    struct kube_label_rows *rows = xcalloc(1, sizeof(*rows));
    assert(count <= UINT8_MAX);
    lock_init(&rows->lock);
    rows->families = families;
    rows->family_count = count;
    rows->rows_max = rows_max;
    list_init(&rows->rows);
    hash_map_init(&rows->by_key, key_of, (uint64_t)(uintptr_t)rows);
    return rows;
}

void kube_label_rows_free(struct kube_label_rows *rows)
{
    struct list *link;
    if (!rows)
        return;
    while ((link = list_pop_front(&rows->rows)) != NULL)
        free(LIST_ENTRY(link, struct row, in_rows));
    hash_map_fini(&rows->by_key);
    lock_fini(&rows->lock);
    free(rows);
}

/* Clients of etcd can choose any name. */
static const char *escape(struct slice value, char to[2 * VALUE_BYTES])
{
    char text[VALUE_BYTES];
    snprintf(text, sizeof(text), "%.*s", SLICE_ARGS(value));
    return metric_page_escape(text, to, 2 * VALUE_BYTES);
}

/* Returns the length of the key, without the zero byte that ends it. */
static size_t write_key(size_t family, const struct kube_label *labels, size_t count, bool named,
                        char to[LABELS_BYTES])
{
    char value[2 * VALUE_BYTES];
    size_t len = 1;
    to[0] = (char)family;
    for (size_t i = 0; i < count; i++) {
        struct slice shown = labels[i].is_name && !named ? SLICE_LITERAL("other") : labels[i].value;
        int more = snprintf(to + len, LABEL_BYTES, "%s%s=\"%s\"", i ? "," : "", labels[i].name,
                            escape(shown, value));
        assert(more > 0 && more < LABEL_BYTES);
        len += (size_t)more;
    }
    return len;
}

/* NULL: there are too many rows, or no memory. */
static struct row *find_row(struct kube_label_rows *rows, struct slice key, size_t most)
{
    struct row *row = hash_map_get(&rows->by_key, key);
    void *replaced;
    if (row || rows->by_key.count >= most)
        return row;
    row = xcalloc(1, sizeof(*row) + key.len + 1);
    row->family = key.ptr[0];
    row->len = key.len;
    slice_copy(row->key, key);
    if (hash_map_put(&rows->by_key, row, &replaced) != ST_OK) {
        free(row);
        return NULL;
    }
    list_push_back(&rows->rows, &row->in_rows);
    return row;
}

void kube_label_rows_add(struct kube_label_rows *rows, size_t family,
                         const struct kube_label *labels, size_t count, int64_t value)
{
    char key[LABELS_BYTES];
    assert(family < rows->family_count);
    assert(count <= KUBE_LABELS_MAX);
    size_t len = write_key(family, labels, count, true, key);
    LOCK_SCOPE(&rows->lock);
    struct row *row = find_row(rows, slice_of(key, len), rows->rows_max);
    if (!row) {
        len = write_key(family, labels, count, false, key);
        row = find_row(rows, slice_of(key, len), SIZE_MAX);
    }
    if (!row)
        return;
    const struct metric_buckets *buckets = rows->families[family].buckets;
    if (!buckets) {
        row->slots[0] += (uint64_t)value;
        return;
    }
    unsigned slot = 0;
    while (slot < buckets->count && value > buckets->bounds[slot])
        slot++;
    row->slots[slot]++;
    row->slots[METRIC_SUM_SLOT] += (uint64_t)value;
}

static uint64_t observed(const struct row *row, const struct metric_buckets *buckets)
{
    uint64_t count = 0;
    for (unsigned i = 0; i <= buckets->count; i++)
        count += row->slots[i];
    return count;
}

static void write_counter(const struct kube_label_rows *rows, size_t family, const char *name,
                          const char *help, struct metric_page *page)
{
    const struct metric_buckets *buckets = rows->families[family].buckets;
    const struct row *row;
    metric_page_head(page, name, METRIC_COUNTER, help);
    LIST_FOREACH (row, &rows->rows, in_rows)
        if (row->family == family)
            metric_page_row(page, name, row->key + 1,
                            buckets ? observed(row, buckets) : row->slots[0]);
}

static void write_histogram(const struct kube_label_rows *rows, size_t family,
                            struct metric_page *page)
{
    const struct kube_label_family *of = &rows->families[family];
    const struct row *row;
    metric_page_head(page, of->name, METRIC_HISTOGRAM, of->help);
    LIST_FOREACH (row, &rows->rows, in_rows)
        if (row->family == family)
            metric_page_row_histogram(page, of->name, row->key + 1, of->buckets, row->slots);
}

void kube_label_rows_write(struct kube_label_rows *rows, struct metric_page *page)
{
    LOCK_SCOPE(&rows->lock);
    for (size_t i = 0; i < rows->family_count; i++) {
        const struct kube_label_family *family = &rows->families[i];
        if (family->total)
            write_counter(rows, i, family->total, family->total_help, page);
        if (family->buckets)
            write_histogram(rows, i, page);
        else
            write_counter(rows, i, family->name, family->help, page);
    }
}
