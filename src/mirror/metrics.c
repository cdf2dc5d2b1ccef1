#include "mirror/metrics.h"

#include "base/metric/page.h"
#include "mirror/link/phase.h"
#include "mirror/shard.h"
#include "watch/hub/stats.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static void gauge(struct metric_page *page, const char *name, const char *help, int64_t value)
{
    metric_page_gauge(page, name, help, value > 0 ? (uint64_t)value : 0);
}

static void write_mirror(struct metric_page *page, struct mirror_state *state)
{
    bool follows =
        atomic_load(&state->connected) && mirror_state_silence(state) <= MIRROR_SILENT_NS;
    gauge(page, "vigil_cluster_synced",
          "1: the mirror is complete, and the cluster is being followed.",
          follows && atomic_load(&state->synced));
    gauge(page, "vigil_cluster_connected", "1: the cluster is being followed.", follows);
    gauge(page, "vigil_cluster_silent_seconds",
          "Seconds since a member of the cluster last answered the follower or sent it something.",
          mirror_state_silence(state) / NS_PER_S);
    gauge(page, "vigil_cluster_mirrored_revision",
          "The revision up to which the mirror contains everything.",
          atomic_load(&state->mirrored));
    metric_page_head(page, "vigil_cluster_mirror_lag_revisions", METRIC_GAUGE,
                     "Revisions by which the mirror is behind the newest that the cluster has "
                     "answered with; NaN while it is not followed.");
    metric_page_row_real(page, "vigil_cluster_mirror_lag_revisions", "",
                         follows ? (double)mirror_state_lag(state) : NAN);
    metric_page_gauge(page, "vigil_cluster_upstream_watches", "Watches on the cluster.",
                      atomic_load(&state->upstream_watches));
}

/* The endpoints are those of a flag, so that the page cannot grow. */
static void write_upstreams(struct metric_page *page, struct mirror_state *state)
{
    static const char up[] = "vigil_cluster_upstream_up", info[] = "vigil_cluster_upstream_info";
    char labels[MEMBER_TABLE_ENDPOINT_BYTES * 2 + 256], endpoint[MEMBER_TABLE_ENDPOINT_BYTES * 2];
    uint64_t followed = atomic_load(&state->connected) ? atomic_load(&state->member_id) : 0;
    metric_page_head(page, up, METRIC_GAUGE, "1: the member at this endpoint answers.");
    for (size_t i = 0; i < state->member_table.count; i++) {
        struct member_table_row row = member_table_get(&state->member_table, i);
        snprintf(labels, sizeof(labels), "endpoint=\"%s\"",
                 metric_page_escape(row.endpoint, endpoint, sizeof(endpoint)));
        metric_page_row(page, up, labels, row.answers);
    }
    metric_page_head(page, info, METRIC_GAUGE,
                     "Always 1: what the member at this endpoint has last said of itself, and "
                     "whether the mirror follows it.");
    for (size_t i = 0; i < state->member_table.count; i++) {
        struct member_table_row row = member_table_get(&state->member_table, i);
        if (!row.member_id)
            continue;
        const char *role = row.is_learner ? "learner" : row.is_leader ? "leader" : "follower";
        snprintf(labels, sizeof(labels),
                 "endpoint=\"%s\",member=\"%" PRIx64
                 "\",version=\"%s\",role=\"%s\",followed=\"%s\"",
                 metric_page_escape(row.endpoint, endpoint, sizeof(endpoint)), row.member_id,
                 row.versions.server, role, row.member_id == followed ? "true" : "false");
        metric_page_row(page, info, labels, 1);
    }
}

static void write_work(struct metric_page *page, struct mirror_state *state)
{
    metric_page_counter(page, "vigil_cluster_upstream_events_total",
                        "Events received from the cluster.", atomic_load(&state->upstream_events));
    metric_page_counter(page, "vigil_cluster_resumes_total",
                        "Times the watch on the cluster was resumed after it broke.",
                        atomic_load(&state->resumes));
    metric_page_counter(page, "vigil_cluster_loads_total",
                        "Times the whole state of the cluster was read.",
                        atomic_load(&state->loads));
    metric_page_counter(page, "vigil_cluster_forwarded_total", "Calls forwarded to the cluster.",
                        atomic_load(&state->forwarded));
    metric_page_counter(page, "vigil_cluster_probes_total",
                        "Questions for the cluster's newest revision.",
                        atomic_load(&state->probes));
    metric_page_counter(page, "vigil_cluster_permission_questions_total",
                        "Questions whether a caller may read a range.",
                        atomic_load(&state->grants_asked));
    metric_page_counter(page, "vigil_cluster_reads_mirrored_total",
                        "Reads answered from the mirror.", atomic_load(&state->reads_mirrored));
    metric_page_counter(page, "vigil_cluster_reads_forwarded_total",
                        "Reads forwarded to the cluster.", atomic_load(&state->reads_forwarded));
}

static void write_backfill(struct metric_page *page, struct mirror_state *state)
{
    gauge(page, "vigil_cluster_past_bytes",
          "History older than the mirror's that is kept for watches, in bytes.",
          atomic_load(&state->backfill_bytes));
    gauge(page, "vigil_cluster_past_fetches",
          "Parts of that history that are being fetched from the cluster.",
          atomic_load(&state->backfill_fetches));
    metric_page_counter(page, "vigil_cluster_past_fetches_total",
                        "Parts of that history whose fetching was started.",
                        atomic_load(&state->backfill_fetches_started));
}

/*
 * What etcd's grpc-proxy counts, under its names. Its cache holds answers; here the mirror takes
 * the cache's place.
 */
static void write_proxy(struct metric_page *page, struct mirror_shard *shard,
                        const struct watch_stats *watches)
{
    struct engine_status status;
    struct mirror_state *state = &shard->shared->state;
    uint64_t upstream = atomic_load(&state->upstream_watches);
    engine_status_get(shard->store_shard, &status);
    /* Events without a watcher make the difference smaller; a counter must not go back. */
    mirror_state_raise(&state->coalesced, (int64_t)watches->events_sent -
                                              (int64_t)atomic_load(&state->upstream_events));
    gauge(page, "etcd_grpc_proxy_watchers_coalescing_total",
          "Watchers that need no watch on the cluster of their own.",
          (int64_t)watches->watchers - (int64_t)upstream);
    metric_page_counter(page, "etcd_grpc_proxy_events_coalescing_total",
                        "Events sent to clients beyond those that the cluster has sent.",
                        (uint64_t)atomic_load(&state->coalesced));
    metric_page_gauge(page, "etcd_grpc_proxy_cache_keys_total", "Keys in the mirror.", status.keys);
    metric_page_gauge(page, "etcd_grpc_proxy_cache_hits_total", "Reads answered from the mirror.",
                      atomic_load(&state->reads_mirrored));
    metric_page_gauge(page, "etcd_grpc_proxy_cache_misses_total", "Reads forwarded to the cluster.",
                      atomic_load(&state->reads_forwarded));
    metric_page_head(page, "vigil_cluster_coalescing_factor", METRIC_GAUGE,
                     "Watchers of clients for each watch on the cluster.");
    metric_page_row_real(page, "vigil_cluster_coalescing_factor", "",
                         upstream ? (double)watches->watchers / (double)upstream : 0);
}

void mirror_metrics_write(struct engine_shard *base, struct metric_page *page)
{
    struct mirror_shard *shard = mirror_shard_of(base);
    engine_metrics_write(shard->store_shard, page);
    write_mirror(page, &shard->shared->state);
    write_upstreams(page, &shard->shared->state);
    write_work(page, &shard->shared->state);
    write_backfill(page, &shard->shared->state);
    struct watch_stats watches;
    engine_watch_stats(&shard->shared->engine, &watches);
    write_proxy(page, shard, &watches);
}
