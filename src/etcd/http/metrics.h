/*
 * The page behind GET /metrics: everything that is counted anywhere, under the names that etcd's
 * dashboards and alerts use where they have one, and under vigil_ where they have none. Made on
 * demand, on the shard that was asked.
 */
#ifndef VIGIL_ETCD_HTTP_METRICS_H
#define VIGIL_ETCD_HTTP_METRICS_H

#include "base/metric/page.h"
#include "etcd/service.h"

/* etcd's faces have some sixty methods. */
enum { ETCD_METHODS_MAX = 96 };

/* The slots that the counters of all methods take: for etcd_config.method_counts. */
#define ETCD_SLOW_APPLY_SLOT ((unsigned)(ETCD_METHODS_MAX * GRPC_COUNTS))
#define ETCD_METHOD_SLOTS (ETCD_SLOW_APPLY_SLOT + 1)

void etcd_metrics_write(struct etcd_face *face, struct metric_page *page);

/* The part about the process, from /proc. */
void etcd_process_metrics_write(struct metric_page *page);

#endif
