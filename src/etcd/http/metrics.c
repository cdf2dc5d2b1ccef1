#include "etcd/http/metrics.h"

#include "base/memory/budget.h"
#include "base/metric/turn.h"
#include "engine/forward.h"
#include "etcd/http/health_counts.h"
#include "etcd/shared/service.h"
#include "watch/hub/stats.h"

#include <stdio.h>

/* -- Calls -- */

static const char *const code_names[GRPC_CODES] = {
    "OK",       "Canceled",        "Unknown",          "InvalidArgument",   "DeadlineExceeded",
    "NotFound", "AlreadyExists",   "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
    "Aborted",  "OutOfRange",      "Unimplemented",    "Internal",          "Unavailable",
    "DataLoss", "Unauthenticated",
};

enum { LABELS_BYTES = 192 };

static const char *type_of(const struct grpc_method *method)
{
    if (method->client_streams)
        return method->server_streams ? "bidi_stream" : "client_stream";
    return method->server_streams ? "server_stream" : "unary";
}

/* From the path of the method: "/service/Method". */
static const char *labels_of(const struct grpc_row *row, const char *code, char to[LABELS_BYTES])
{
    struct slice path = row->path;
    const uint8_t *slash = memrchr(path.ptr, '/', path.len);
    int service_len = (int)(slash - path.ptr) - 1;
    int method_len = (int)path.len - service_len - 2;
    snprintf(to, LABELS_BYTES, "%s%s%sgrpc_method=\"%.*s\",grpc_service=\"%.*s\",grpc_type=\"%s\"",
             code ? "grpc_code=\"" : "", code ? code : "", code ? "\"," : "", method_len,
             (const char *)slash + 1, service_len, (const char *)path.ptr + 1,
             type_of(row->method));
    return to;
}

struct calls {
    const struct metric_set *set;
    const struct grpc_row *rows;
    size_t count;
};

static void write_calls(const struct calls *calls, struct metric_page *page, const char *name,
                        const char *help, unsigned what)
{
    char labels[LABELS_BYTES];
    metric_page_head(page, name, METRIC_COUNTER, help);
    for (size_t i = 0; i < calls->count; i++)
        metric_page_row(page, name, labels_of(&calls->rows[i], NULL, labels),
                        metric_sum(calls->set, calls->rows[i].first_count + what));
}

static void write_handled(const struct calls *calls, struct metric_page *page)
{
    static const char name[] = "grpc_server_handled_total";
    char labels[LABELS_BYTES];
    metric_page_head(page, name, METRIC_COUNTER, "Calls that have ended, by status code.");
    for (size_t i = 0; i < calls->count; i++) {
        const struct grpc_row *row = &calls->rows[i];
        for (unsigned code = 0; code < GRPC_CODES; code++)
            metric_page_row(page, name, labels_of(row, code_names[code], labels),
                            metric_sum(calls->set, row->first_count + GRPC_COUNT_HANDLED + code));
    }
}

static void write_seconds(const struct calls *calls, struct metric_page *page)
{
    static const char name[] = "grpc_server_handling_seconds";
    char labels[LABELS_BYTES];
    metric_page_head(page, name, METRIC_HISTOGRAM,
                     "Time from the start of a call to its last message, on the server.");
    for (size_t i = 0; i < calls->count; i++) {
        uint64_t slots[METRIC_SLOTS];
        metric_sum_histogram(calls->set, calls->rows[i].first_count + GRPC_COUNT_SECONDS, slots);
        metric_page_row_histogram(page, name, labels_of(&calls->rows[i], NULL, labels),
                                  &grpc_seconds, slots);
    }
}

static uint64_t sum_over_methods(const struct calls *calls, unsigned what)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < calls->count; i++)
        sum += metric_sum(calls->set, calls->rows[i].first_count + what);
    return sum;
}

static void write_grpc(const struct etcd_api *api, struct metric_page *page)
{
    struct calls calls = {.set = api->config->method_counts};
    if (!calls.set)
        return;
    calls.rows = grpc_services_rows(api->services, &calls.count);
    write_calls(&calls, page, "grpc_server_started_total", "Calls that were started.",
                GRPC_COUNT_STARTED);
    write_handled(&calls, page);
    write_calls(&calls, page, "grpc_server_msg_received_total", "Messages received.",
                GRPC_COUNT_RECEIVED);
    write_calls(&calls, page, "grpc_server_msg_sent_total", "Messages sent.", GRPC_COUNT_SENT);
    if (api->config->metrics_extensive)
        write_seconds(&calls, page);
    metric_page_counter(page, "etcd_network_client_grpc_received_bytes_total",
                        "Bytes of messages received from clients.",
                        sum_over_methods(&calls, GRPC_COUNT_RECEIVED_BYTES));
    metric_page_counter(page, "etcd_network_client_grpc_sent_bytes_total",
                        "Bytes of messages sent to clients.",
                        sum_over_methods(&calls, GRPC_COUNT_SENT_BYTES));
}

/* -- The store -- */

static uint64_t not_negative(int64_t n)
{
    return n > 0 ? (uint64_t)n : 0;
}

static void write_store(struct etcd_api *api, struct metric_page *page)
{
    struct engine_status status;
    engine_status_get(api->shard, &status);
    metric_page_gauge(
        page, "etcd_mvcc_db_total_size_in_bytes",
        "Size of the stored data, like the size of etcd's file: defragmentation reduces it.",
        not_negative(status.db_size_bytes));
    metric_page_gauge(page, "etcd_mvcc_db_total_size_in_use_in_bytes",
                      "Size of the stored data without what compaction has freed.",
                      not_negative(status.db_size_in_use_bytes));
    metric_page_gauge(page, "etcd_server_quota_backend_bytes",
                      "Limit of the size of the stored data; 0 means no limit.",
                      not_negative(status.quota_bytes));
    metric_page_gauge(page, "etcd_debugging_mvcc_current_revision", "The newest revision.",
                      not_negative(status.revision));
    metric_page_gauge(page, "etcd_debugging_mvcc_compact_revision",
                      "The revision of the last compaction.",
                      not_negative(status.compact_revision));
    struct engine_membership member = {.raft_index = status.raft_index,
                                       .applied_index = status.applied_index};
    if (engine_forwards(api->engine) && !engine_membership_get(api->engine, &member))
        return; /* they are the followed member's, which is not known yet */
    metric_page_gauge(page, "etcd_server_proposals_committed_total",
                      "Index of the last entry of the log, as in Status.", member.raft_index);
    metric_page_gauge(page, "etcd_server_proposals_applied_total",
                      "Index of the last entry that is visible.", member.applied_index);
}

/* -- The only member, or the one that is followed -- */

static void labelled_gauge(struct metric_page *page, const char *name, const char *label,
                           const char *value, const char *help)
{
    char labels[LABELS_BYTES], escaped[LABELS_BYTES / 2];
    snprintf(labels, sizeof(labels), "%s=\"%s\"", label,
             metric_page_escape(value, escaped, sizeof(escaped)));
    metric_page_head(page, name, METRIC_GAUGE, help);
    metric_page_row(page, name, labels, 1);
}

/* In front of a cluster they are the cluster's, as a member names them: clients conclude from them
 * what they may use. */
void etcd_versions(const struct etcd_api *api, struct engine_versions *ret_versions)
{
    const struct etcd_config *config = api->config;
    if (engine_versions_get(api->engine, ret_versions))
        return;
    bool is_front = engine_forwards(api->engine); /* whose cluster has not answered yet */
    *ret_versions = (struct engine_versions){0};
    snprintf(ret_versions->server, ENGINE_VERSION_BYTES, "%s", config->version);
    snprintf(ret_versions->cluster, ENGINE_VERSION_BYTES, "%s",
             is_front ? "not_decided" : config->cluster_version);
    if (!is_front)
        snprintf(ret_versions->storage, ENGINE_VERSION_BYTES, "%s", config->cluster_version);
}

/* A member that is alone knows all of them without asking. */
static void write_only_member(struct metric_page *page, const char *id)
{
    char peers[LABELS_BYTES];
    snprintf(peers, sizeof(peers), "Local=\"%s\",Remote=\"%s\"", id, id);
    metric_page_head(page, "etcd_network_known_peers", METRIC_GAUGE,
                     "Always 1: the only member knows itself.");
    metric_page_row(page, "etcd_network_known_peers", peers, 1);
    metric_page_gauge(page, "etcd_server_has_leader", "Always 1: the only member is the leader.",
                      1);
    metric_page_gauge(page, "etcd_server_is_leader", "Always 1: the only member is the leader.", 1);
    metric_page_gauge(page, "etcd_server_is_learner", "Always 0: the only member votes.", 0);
    metric_page_counter(page, "etcd_server_leader_changes_seen_total",
                        "Always 1: the only member has been the leader since the start.", 1);
    metric_page_counter(page, "etcd_server_heartbeat_send_failures_total",
                        "Always 0: there are no other members.", 0);
    metric_page_counter(page, "etcd_server_slow_read_indexes_total",
                        "Always 0: reads need no other member.", 0);
    metric_page_counter(page, "etcd_server_read_indexes_failed_total",
                        "Always 0: reads need no other member.", 0);
}

/* In front of a cluster. What only a member can know is left out. */
static void write_followed(const struct etcd_api *api, struct metric_page *page)
{
    struct engine_membership member;
    if (!engine_membership_get(api->engine, &member))
        return;
    metric_page_gauge(page, "etcd_server_has_leader",
                      "1: a member of the cluster that answers knows of a leader.",
                      member.has_leader);
    metric_page_gauge(page, "etcd_server_is_leader",
                      "1: the member that is followed is the leader.", member.is_leader);
    metric_page_gauge(page, "etcd_server_is_learner",
                      "1: the member that is followed is a learner.", member.is_learner);
    metric_page_counter(page, "etcd_server_leader_changes_seen_total",
                        "Leaders of the cluster that were seen, one after the other.",
                        member.leader_changes);
}

static void write_member(const struct etcd_api *api, struct metric_page *page)
{
    char id[24], cluster[16] = "";
    snprintf(id, sizeof(id), "%llx",
             (unsigned long long)engine_identity_get(api->engine).member_id);
    struct engine_versions versions;
    etcd_versions(api, &versions);
    const char *last = strrchr(versions.cluster, '.'); /* "3.7.0" is shown as "3.7" */
    snprintf(cluster, sizeof(cluster), "%.*s", last ? (int)(last - versions.cluster) : 0,
             versions.cluster);
    labelled_gauge(page, "etcd_server_id", "server_id", id, "The member's id.");
    labelled_gauge(page, "etcd_server_version", "server_version", versions.server,
                   "The etcd version reported to clients.");
    labelled_gauge(page, "etcd_cluster_version", "cluster_version", cluster,
                   "The cluster version of etcd.");
    metric_page_counter(page, "etcd_server_slow_apply_total",
                        "Requests that took longer than --warning-apply-duration.",
                        api->config->method_counts
                            ? metric_sum(api->config->method_counts, ETCD_SLOW_APPLY_SLOT)
                            : 0);
    if (engine_forwards(api->engine))
        write_followed(api, page);
    else
        write_only_member(page, id);
}

/* -- Watches -- */

static void write_slowest(const struct etcd_api *api, struct metric_page *page)
{
    static const char behind[] = "vigil_watch_slowest_behind_revisions";
    static const char held[] = "vigil_watch_slowest_held_bytes";
    struct watch_stream_stats streams[WATCH_SLOWEST_MAX];
    size_t count = engine_watch_slowest(api->engine, streams, COUNT_OF(streams));
    char labels[LABELS_BYTES], peer[LABELS_BYTES / 2];
    for (unsigned family = 0; family < 2; family++) {
        const char *name = family ? held : behind;
        metric_page_head(page, name, METRIC_GAUGE,
                         family
                             ? "Bytes that the slowest watch streams could not send yet, by client."
                             : "How far the slowest watch streams are behind, by client.");
        for (size_t i = 0; i < count; i++) {
            snprintf(labels, sizeof(labels), "rank=\"%zu\",peer=\"%s\"", i + 1,
                     metric_page_escape(streams[i].peer, peer, sizeof(peer)));
            metric_page_row(page, name, labels, family ? streams[i].held_bytes : streams[i].behind);
        }
    }
}

static void write_watches(const struct etcd_api *api, struct metric_page *page)
{
    struct watch_stats stats;
    engine_watch_stats(api->engine, &stats);
    static const char states[] = "vigil_watch_watchers";
    uint64_t live = stats.watchers -
                    size_min(stats.watchers, stats.watchers_catching_up + stats.watchers_compacted);
    metric_page_gauge(page, "etcd_debugging_mvcc_watch_stream_total", "Watch streams.",
                      stats.streams);
    metric_page_gauge(page, "etcd_debugging_mvcc_watcher_total", "Watchers.", stats.watchers);
    metric_page_gauge(page, "etcd_debugging_mvcc_slow_watcher_total",
                      "Watchers that are behind the newest revision.",
                      size_max(stats.watchers_behind, stats.watchers_catching_up));
    metric_page_counter(page, "etcd_debugging_mvcc_events_total", "Events sent to watchers.",
                        stats.events_sent);
    metric_page_gauge(page, "etcd_debugging_mvcc_pending_events_total",
                      "Always 0: events are not queued, slow watchers read them later.", 0);
    metric_page_head(page, states, METRIC_GAUGE, "Watchers by state.");
    metric_page_row(page, states, "state=\"live\"", live);
    metric_page_row(page, states, "state=\"catching_up\"", stats.watchers_catching_up);
    metric_page_row(page, states, "state=\"compacted\"", stats.watchers_compacted);
    metric_page_gauge(page, "vigil_watch_watchers_peak", "Largest number of watchers so far.",
                      stats.watchers_peak);
    metric_page_gauge(page, "vigil_watch_streams_peak", "Largest number of streams so far.",
                      stats.streams_peak);
    metric_page_gauge(page, "vigil_watch_streams_stopped",
                      "Streams with events to send but no room in their transport.",
                      stats.streams_stopped);
    metric_page_gauge(page, "vigil_watch_streams_behind",
                      "Streams that are behind the newest revision.", stats.streams_behind);
    metric_page_gauge(page, "vigil_watch_behind_revisions",
                      "Revisions that the slowest stream is behind.", stats.behind_max);
    metric_page_gauge(page, "vigil_watch_behind_revisions_peak",
                      "Largest number of revisions that a stream was behind so far.",
                      stats.behind_peak);
    metric_page_gauge(page, "vigil_watch_held_bytes",
                      "Bytes of partly sent messages that are held for all streams.",
                      stats.held_bytes);
    metric_page_gauge(page, "vigil_watch_held_bytes_peak",
                      "Largest value of vigil_watch_held_bytes so far.", stats.held_bytes_peak);
    metric_page_counter(page, "vigil_watch_responses_total", "Responses sent to watchers.",
                        stats.responses_sent);
    metric_page_counter(page, "vigil_watch_sent_bytes_total", "Bytes sent to watchers.",
                        stats.bytes_sent);
    metric_page_counter(page, "vigil_watch_refused_total",
                        "Watches that were refused because of a limit or an invalid request.",
                        stats.refused);
    write_slowest(api, page);
}

/* -- Connections -- */

static void write_net(const struct etcd_api *api, struct metric_page *page)
{
    if (!api->config->net_stats)
        return;
    struct net_stats stats = api->config->net_stats(api->config->net_ctx);
    metric_page_gauge(page, "vigil_net_connections", "Open connections.", stats.connections);
    metric_page_counter(page, "vigil_net_accepted_total", "Accepted connections.", stats.accepted);
    metric_page_counter(page, "vigil_net_refused_total",
                        "Connections that were closed at once because of --max-connections.",
                        stats.refused);
    metric_page_counter(page, "vigil_net_accept_failures_total",
                        "Connections not accepted because descriptors or memory ran out.",
                        stats.accept_failures);
    metric_page_counter(page, "vigil_net_stalled_total",
                        "Connections that were closed because their peer did not read.",
                        stats.stalled);
    metric_page_counter(page, "vigil_net_received_bytes_total", "Bytes received.", stats.bytes_in);
    metric_page_counter(page, "vigil_net_sent_bytes_total", "Bytes sent.", stats.bytes_out);
    metric_page_counter(page, "vigil_net_reads_total", "System calls that received bytes.",
                        stats.reads);
    metric_page_counter(page, "vigil_net_writes_total", "System calls that sent bytes.",
                        stats.writes);
    metric_page_gauge(page, "vigil_net_held_bytes", "Bytes that wait to be written to sockets.",
                      stats.held_bytes);
}

static void write_budget(const struct etcd_api *api, struct metric_page *page)
{
    if (!api->config->budget)
        return;
    struct budget_stats stats = budget_stats(api->config->budget);
    metric_page_gauge(page, "vigil_client_held_bytes",
                      "Memory that the server holds for clients, which --max-client-bytes limits.",
                      stats.held_bytes);
    metric_page_gauge(page, "vigil_client_held_bytes_max", "The value of --max-client-bytes.",
                      stats.limit_bytes);
    metric_page_counter(page, "vigil_client_memory_refusals_total",
                        "Number of times that --max-client-bytes refused memory to a client.",
                        stats.refusals);
    metric_page_counter(page, "vigil_client_memory_reclaims_total",
                        "Connections that were closed because they held memory that others needed.",
                        stats.reclaims);
}

static void write_tls(const struct etcd_api *api, struct metric_page *page)
{
    struct tls_stats stats;
    if (!api->config->tls_stats || !api->config->tls_stats(api->config->net_ctx, &stats))
        return;
    metric_page_counter(page, "vigil_tls_rejections_total",
                        "Clients that were rejected in a TLS handshake.", stats.rejections);
    metric_page_counter(page, "vigil_tls_reloads_total",
                        "Number of times that changed TLS files were loaded.", stats.reloads);
    metric_page_counter(page, "vigil_tls_reload_failures_total",
                        "Number of times that changed TLS files could not be loaded.",
                        stats.reload_failures);
    metric_page_gauge(page, "vigil_tls_certificate_expiry_seconds",
                      "When the server's certificate expires, in seconds since 1970.",
                      stats.expires_s > 0 ? (uint64_t)stats.expires_s : 0);
}

void etcd_metrics_write(struct etcd_api *api, struct metric_page *page)
{
    write_grpc(api, page);
    engine_metrics_write(api->shard, page);
    write_store(api, page);
    write_member(api, page);
    write_watches(api, page);
    write_net(api, page);
    write_budget(api, page);
    write_tls(api, page);
    if (api->config->health_counts)
        etcd_health_write(api->config->health_counts, page);
    if (api->config->turns)
        turns_write(api->config->turns, page);
    etcd_process_metrics_write(page);
    if (api->config->more_metrics)
        api->config->more_metrics(api->config->more_metrics_ctx, page);
}
