/*
 * Counts the health checks over HTTP and their results. Shared by the APIs of all shards, which
 * count in it; any thread may read. Zeroed memory is its initial state.
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
    ETCD_READYZ_MIRROR,
    ETCD_READYZ_DISK,
    ETCD_HEALTH_ROWS
};

struct etcd_health_counts {
    _Atomic uint64_t healthy, unhealthy; /* results of /health */
    struct {
        _Atomic uint64_t passed, failed;
        _Atomic bool last; /* the latest check passed */
    } rows[ETCD_HEALTH_ROWS];
};

/* Accept NULL. */
void etcd_health_count(struct etcd_health_counts *counts, bool healthy);
void etcd_health_count_row(struct etcd_health_counts *counts, enum etcd_health_row row,
                           bool passed);

/* Writes the metrics with etcd's names. As in etcd, a check that has never run is not shown. */
void etcd_health_write(const struct etcd_health_counts *counts, struct metric_page *page);

#endif
