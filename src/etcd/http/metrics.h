/*
 * The page of GET /metrics: all counters of the server, with the names that etcd's dashboards and
 * alerts use, or with a name beginning with vigil_ where etcd has none. The page is made for each
 * request, on the shard that serves it.
 */
#ifndef VIGIL_ETCD_HTTP_METRICS_H
#define VIGIL_ETCD_HTTP_METRICS_H

#include "base/metric/page.h"

struct engine_versions;
struct etcd_api;

void etcd_metrics_write(struct etcd_api *api, struct metric_page *page);
/* The versions of etcd that /version and the metrics name. */
void etcd_versions(const struct etcd_api *api, struct engine_versions *ret_versions);

/* The part about the process, from /proc. */
void etcd_process_metrics_write(struct metric_page *page);

#endif
