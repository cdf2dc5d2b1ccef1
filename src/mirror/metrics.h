/* The metrics of the cluster engine, beside those of the mirror. */
#ifndef VIGIL_MIRROR_METRICS_H
#define VIGIL_MIRROR_METRICS_H

struct engine_shard;
struct metric_page;

void mirror_metrics_write(struct engine_shard *shard, struct metric_page *page);

#endif
