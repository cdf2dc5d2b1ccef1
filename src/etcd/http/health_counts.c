#include "etcd/http/health_counts.h"

#include <stdio.h>

static const char *const row_labels[] = {
    [ETCD_LIVEZ_SERIALIZABLE_READ] = "name=\"serializable_read\",%stype=\"livez\"",
    [ETCD_READYZ_DATA_CORRUPTION] = "name=\"data_corruption\",%stype=\"readyz\"",
    [ETCD_READYZ_SERIALIZABLE_READ] = "name=\"serializable_read\",%stype=\"readyz\"",
    [ETCD_READYZ_LINEARIZABLE_READ] = "name=\"linearizable_read\",%stype=\"readyz\"",
    [ETCD_READYZ_NON_LEARNER] = "name=\"non_learner\",%stype=\"readyz\"",
    [ETCD_READYZ_MIRROR] = "name=\"mirror\",%stype=\"readyz\"",
    [ETCD_READYZ_DISK] = "name=\"disk\",%stype=\"readyz\"",
};

enum { LABELS_BYTES = 96 };

static void add(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static uint64_t get(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void etcd_health_count(struct etcd_health_counts *counts, bool healthy)
{
    if (counts)
        add(healthy ? &counts->healthy : &counts->unhealthy);
}

void etcd_health_count_row(struct etcd_health_counts *counts, enum etcd_health_row row, bool passed)
{
    if (!counts)
        return;
    add(passed ? &counts->rows[row].passed : &counts->rows[row].failed);
    atomic_store_explicit(&counts->rows[row].last, passed, memory_order_relaxed);
}

/* The labels of a row; status: `status="…",` or "". */
static const char *labels_of(size_t row, const char *status, char to[LABELS_BYTES])
{
    const char *format = row_labels[row], *mark = strstr(format, "%s");
    snprintf(to, LABELS_BYTES, "%.*s%s%s", (int)(mark - format), format, status, mark + 2);
    return to;
}

void etcd_health_write(const struct etcd_health_counts *counts, struct metric_page *page)
{
    static const char gauge[] = "etcd_server_healthcheck",
                      total[] = "etcd_server_healthchecks_total";
    char labels[LABELS_BYTES];
    metric_page_counter(page, "etcd_server_health_success",
                        "Number of times that /health was true.", get(&counts->healthy));
    metric_page_counter(page, "etcd_server_health_failures",
                        "Number of times that /health was false.", get(&counts->unhealthy));
    metric_page_head(page, gauge, METRIC_GAUGE, "1 if the last check of /livez or /readyz passed.");
    for (size_t i = 0; i < ETCD_HEALTH_ROWS; i++) {
        if (get(&counts->rows[i].passed) + get(&counts->rows[i].failed))
            metric_page_row(page, gauge, labels_of(i, "", labels),
                            atomic_load_explicit(&counts->rows[i].last, memory_order_relaxed));
    }
    metric_page_head(page, total, METRIC_COUNTER, "Checks of /livez and /readyz, by result.");
    for (size_t i = 0; i < ETCD_HEALTH_ROWS; i++) {
        uint64_t passed = get(&counts->rows[i].passed), failed = get(&counts->rows[i].failed);
        if (passed)
            metric_page_row(page, total, labels_of(i, "status=\"success\",", labels), passed);
        if (failed)
            metric_page_row(page, total, labels_of(i, "status=\"error\",", labels), failed);
    }
}
