/*
 * How often health was asked for over HTTP and what was answered. Shared by the faces of all
 * shards, which add to it; any thread reads. Zeroed at first.
 */
#ifndef VIGIL_ETCD_HTTP_HEALTH_COUNTS_H
#define VIGIL_ETCD_HTTP_HEALTH_COUNTS_H

#include "base/metric/page.h"

enum etcd_health_row {
    ETCD_LIVEZ_SERIALIZABLE_READ,
    ETCD_READYZ_DATA_CORRUPTION,
    ETCD_READYZ_SERIALIZABLE_READ,
    ETCD_READYZ_LINEARIZABLE_READ,
    ETCD_READYZ_NON_LEARNER,
    ETCD_HEALTH_ROWS
};

struct etcd_health_counts {
    _Atomic uint64_t healthy, unhealthy; /* answers of /health */
    struct {
        _Atomic uint64_t passed, failed;
        _Atomic bool last; /* the latest passed */
    } rows[ETCD_HEALTH_ROWS];
};

/* Accept NULL. */
void etcd_health_count(struct etcd_health_counts *counts, bool healthy);
void etcd_health_count_row(struct etcd_health_counts *counts, enum etcd_health_row row,
                           bool passed);

/* Under etcd's names; as there, a check that never ran is not shown. */
void etcd_health_write(const struct etcd_health_counts *counts, struct metric_page *page);

#endif
