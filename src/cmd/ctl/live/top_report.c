#include "cmd/ctl/live/top_report.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

void top_status_fail(struct top_status *status, const char *error)
{
    *status = (struct top_status){0};
    front_copy_visible(status->error, sizeof(status->error), slice_from_text(error));
}

void top_status_read(struct top_status *status, const vigil_status_response *response)
{
    *status = (struct top_status){
        .known = true,
        .revision = response->header->revision,
        .db_bytes = response->db_size,
        .db_used_bytes = response->db_size_in_use,
        .quota_bytes = response->db_size_quota,
        .term = response->raft_term,
        .is_leader = response->leader == response->header->member_id,
        .has_leader = response->leader != 0,
        .is_learner = response->is_learner != 0,
    };
    front_copy_visible(status->version, sizeof(status->version),
                       slice_of(response->version.data, response->version.size));
    if (response->error_count > 0)
        front_copy_visible(status->error, sizeof(status->error),
                           slice_of(response->errors[0].data, response->errors[0].size));
}

/* -- Figures -- */

static double value_of(const struct metrics *page, const char *name)
{
    return metrics_has(page, name) ? metrics_sum(page, name, NULL) : -1;
}

static double rate_of(const struct metrics *older, const struct metrics *now, const char *name)
{
    return metrics_has(now, name) ? metrics_rate(older, now, name, NULL) : -1;
}

static void read_process(struct top_report *r, const struct metrics *older,
                         const struct metrics *now, double wall_s)
{
    double start_s = value_of(now, "process_start_time_seconds");
    r->cpu = rate_of(older, now, "process_cpu_seconds_total");
    r->memory_bytes = value_of(now, "process_resident_memory_bytes");
    r->files = value_of(now, "process_open_fds");
    r->files_max = value_of(now, "process_max_fds");
    r->connections = value_of(now, "vigil_net_connections");
    r->uptime_s = start_s > 0 && wall_s > start_s ? wall_s - start_s : -1;
    r->received_rate = rate_of(older, now, "etcd_network_client_grpc_received_bytes_total");
    r->sent_rate = rate_of(older, now, "etcd_network_client_grpc_sent_bytes_total");
}

/* Without an older page: since the start of the server. */
static void read_disk(struct top_report *r, const struct metrics *older, const struct metrics *now)
{
    static const char sync[] = "etcd_disk_wal_fsync_duration_seconds";
    const struct metrics *since = older->time_ns ? older : NULL;
    r->sync_rate = rate_of(older, now, "etcd_disk_wal_fsync_duration_seconds_count");
    r->sync_p50_s = metrics_quantile(since, now, sync, 0.5);
    r->sync_p99_s = metrics_quantile(since, now, sync, 0.99);
    r->commit_p99_s =
        metrics_quantile(since, now, "etcd_disk_backend_commit_duration_seconds", 0.99);
}

static void read_store(struct top_report *r, const struct metrics *older, const struct metrics *now)
{
    r->keys = value_of(now, "etcd_debugging_mvcc_keys_total");
    r->compact_revision = value_of(now, "etcd_debugging_mvcc_compact_revision");
    r->revisions_rate = rate_of(older, now, "etcd_debugging_mvcc_current_revision");
    r->watchers = value_of(now, "etcd_debugging_mvcc_watcher_total");
    r->streams = value_of(now, "etcd_debugging_mvcc_watch_stream_total");
    r->slow_watchers = value_of(now, "etcd_debugging_mvcc_slow_watcher_total");
    r->events_rate = rate_of(older, now, "etcd_debugging_mvcc_events_total");
    r->behind_max = value_of(now, "vigil_watch_behind_revisions");
}

/* -- Calls -- */

static struct top_call *find_call(struct top_report *r, const char *name)
{
    for (size_t i = 0; i < r->call_count; i++)
        if (strcmp(r->calls[i].name, name) == 0)
            return &r->calls[i];
    if (r->call_count == TOP_CALLS_MAX)
        return NULL;
    struct top_call *call = &r->calls[r->call_count++];
    *call = (struct top_call){0};
    snprintf(call->name, sizeof(call->name), "%s", name);
    return call;
}

/* "KV/Range", of "etcdserverpb.KV" and "Range" */
static void name_call(const struct metrics_sample *sample, char name[TOP_NAME_BYTES])
{
    struct slice service = metrics_label(sample, "grpc_service");
    struct slice method = metrics_label(sample, "grpc_method");
    const uint8_t *dot = service.len ? memrchr(service.ptr, '.', service.len) : NULL;
    size_t skip = dot ? (size_t)(dot - service.ptr) + 1 : 0;
    char text[TOP_NAME_BYTES];
    int len = snprintf(text, sizeof(text), "%.*s/%.*s", (int)size_min(service.len - skip, 24),
                       (const char *)service.ptr + skip, (int)size_min(method.len, 36),
                       (const char *)method.ptr);
    front_copy_visible(name, TOP_NAME_BYTES, slice_of(text, len > 0 ? (size_t)len : 0));
}

static double older_value(const struct metrics *older, const struct metrics_sample *sample)
{
    for (size_t i = 0; i < older->count; i++)
        if (slice_equal(older->samples[i].name, sample->name) &&
            slice_equal(older->samples[i].labels, sample->labels))
            return older->samples[i].value;
    return 0;
}

/* Streams do not end for long, so calls count when they begin, and errors when they end. */
static void add_call(struct top_report *r, const struct metrics *older,
                     const struct metrics_sample *sample)
{
    char name[TOP_NAME_BYTES];
    bool is_start = slice_is(sample->name, "grpc_server_started_total");
    if (sample->value <= 0 || (!is_start && !slice_is(sample->name, "grpc_server_handled_total")))
        return;
    if (!is_start && slice_is(metrics_label(sample, "grpc_code"), "OK"))
        return;
    name_call(sample, name);
    struct top_call *call = find_call(r, name);
    double change = sample->value - older_value(older, sample);
    /* A counter that went back belongs to a server that was restarted. */
    double rate = r->seconds > 0 && change > 0 ? change / r->seconds : 0;
    if (!call)
        return;
    call->rate += is_start ? rate : 0;
    call->errors_rate += is_start ? 0 : rate;
    call->total += is_start ? sample->value : 0;
}

static int compare_calls(const void *a, const void *b)
{
    const struct top_call *x = a, *y = b;
    if (x->rate != y->rate)
        return x->rate < y->rate ? 1 : -1;
    if (x->total != y->total)
        return x->total < y->total ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* -- Watchers -- */

static void add_watcher(struct top_report *r, const struct metrics *now,
                        const struct metrics_sample *sample)
{
    struct slice peer = metrics_label(sample, "peer");
    if (!slice_is(sample->name, "vigil_watch_slowest_behind_revisions") ||
        r->watcher_count == TOP_WATCHERS_MAX)
        return;
    struct top_watcher *watcher = &r->watchers_behind[r->watcher_count++];
    *watcher = (struct top_watcher){.behind = sample->value};
    front_copy_visible(watcher->peer, sizeof(watcher->peer), peer);
    for (size_t i = 0; i < now->count; i++)
        if (slice_is(now->samples[i].name, "vigil_watch_slowest_held_bytes") &&
            slice_equal(now->samples[i].labels, sample->labels))
            watcher->held_bytes = now->samples[i].value;
}

void top_report_make(struct top_report *report, const struct top_status *status,
                     const struct metrics *older, const struct metrics *now, double wall_s)
{
    *report = (struct top_report){.status = *status, .has_metrics = now->time_ns != 0};
    report->is_first = !older->time_ns || !now->time_ns;
    report->is_vigil = metrics_has(now, "vigil_net_connections");
    if (!report->is_first)
        report->seconds = (double)(now->time_ns - older->time_ns) / (double)NS_PER_S;
    read_process(report, older, now, wall_s);
    read_disk(report, older, now);
    read_store(report, older, now);
    front_read(&report->front, now);
    tier_report_read(&report->tier, older, now);
    for (size_t i = 0; i < now->count; i++) {
        add_call(report, older, &now->samples[i]);
        add_watcher(report, now, &now->samples[i]);
    }
    qsort(report->calls, report->call_count, sizeof(report->calls[0]), compare_calls);
}
