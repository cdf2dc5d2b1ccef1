#include "cmd/ctl/live/checks.h"

#include "base/clock.h"
#include "base/xalloc.h"
#include "cmd/ctl/decode/size_text.h"
#include "cmd/ctl/live/front.h"
#include "cmd/ctl/live/tier.h"

#include <inttypes.h>

#define MS(seconds) ((seconds)*1000)

/* Where something begins to be a warning, and where it is bad. */
struct limit {
    double warning, bad;
};

static const struct limit latency_s = {0.1, 1};
static const struct limit full_part = {0.8, 0.95};
static const struct limit sync_s = {0.01, 0.1};
static const struct limit commit_s = {0.025, 0.25};
static const struct limit files_part = {0.7, 0.9};
static const struct limit memory_part = {0.7, 0.9};
static const struct limit expiry_s = {30.0 * 86400, 3.0 * 86400}; /* less is worse */
enum {
    UNCOMPACTED_REVISIONS = 1000 * 1000,
    PENDING_PROPOSALS = 100,
    BEHIND_REVISIONS = 1000,
    APPLY_LAG = 5000,
    LEADER_CHANGES_PER_HOUR = 3,
};
#define FREE_BYTES_MIN (INT64_C(100) << 20) /* less is not worth a defragmentation */
#define DISK_BYTES_MIN (INT64_C(256) << 20) /* a few segments of the log */

static enum finding_level level_of(double value, const struct limit *limit)
{
    return value >= limit->bad       ? FINDING_BAD
           : value >= limit->warning ? FINDING_WARNING
                                     : FINDING_GOOD;
}

/* -- One server: its status -- */

static void check_leader(struct findings *f, const struct examined *s)
{
    if (s->status->leader == 0)
        findings_add(f, FINDING_BAD, "leader",
                     "Without a leader nothing can be written: see whether a majority of the "
                     "members runs and can reach each other.",
                     "the member knows no leader");
    else if (s->status->raft_index > s->status->raft_applied_index + APPLY_LAG)
        findings_add(f, FINDING_WARNING, "leader",
                     "The member cannot keep up: see its disk and its CPU.",
                     "%" PRIu64 " entries of the log are not applied yet",
                     s->status->raft_index - s->status->raft_applied_index);
    else
        findings_add(f, FINDING_GOOD, "leader", NULL, "there is a leader, in term %" PRIu64,
                     s->status->raft_term);
}

static void check_size(struct findings *f, const struct examined *s)
{
    char size[SIZE_TEXT_BYTES], quota_text[SIZE_TEXT_BYTES];
    /* The status has the quota since etcd 3.6; before that only the metrics do. */
    double quota = s->status->db_size_quota > 0
                       ? (double)s->status->db_size_quota
                       : metrics_sum(&s->metrics, "etcd_server_quota_backend_bytes", NULL);
    double used = (double)s->status->db_size;
    size_text((uint64_t)used, size);
    if (quota <= 0) {
        findings_add(f, FINDING_GOOD, "size", NULL, "%s, without a known quota", size);
        return;
    }
    findings_add(f, level_of(used / quota, &full_part), "size",
                 "Writes are refused when the quota is reached: compact old revisions, defragment "
                 "(vigil defrag), or raise --quota-backend-bytes.",
                 "%s of a quota of %s (%.0f %%)", size, size_text((uint64_t)quota, quota_text),
                 used / quota * 100);
}

static void check_fragments(struct findings *f, const struct examined *s)
{
    char free_text[SIZE_TEXT_BYTES];
    int64_t used = s->status->db_size_in_use, unused = s->status->db_size - used;
    if (used <= 0 || unused < FREE_BYTES_MIN || unused < s->status->db_size / 2)
        return;
    findings_add(f, FINDING_WARNING, "fragmentation",
                 "vigil defrag gives the space back; do it one member at a time.",
                 "%s of the store's file are free", size_text((uint64_t)unused, free_text));
}

/* -- One server: its metrics -- */

static void check_disk(struct findings *f, const struct metrics *m)
{
    double sync = metrics_quantile(NULL, m, "etcd_disk_wal_fsync_duration_seconds", 0.99);
    double commit = metrics_quantile(NULL, m, "etcd_disk_backend_commit_duration_seconds", 0.99);
    if (sync >= 0)
        findings_add(f, level_of(sync, &sync_s), "disk",
                     "The disk is slow: use a local SSD, and let nothing else write to it.",
                     "99 %% of the log's syncs took at most %.4g ms", MS(sync));
    if (commit >= 0)
        findings_add(f, level_of(commit, &commit_s), "disk",
                     "The disk is slow, or the store is very large.",
                     "99 %% of the commits took at most %.4g ms", MS(commit));
}

/* Only of a Vigil server. */
static void check_space(struct findings *f, const struct metrics *m)
{
    char text[SIZE_TEXT_BYTES];
    double left = metrics_sum(m, "vigil_disk_free_bytes", NULL);
    bool is_full = metrics_sum(m, "vigil_disk_full", NULL) > 0;
    size_text(left > 0 ? (uint64_t)left : 0, text);
    if (is_full)
        findings_add(f, FINDING_BAD, "space",
                     "Free space there or enlarge the disk, or delete keys and compact (vigil "
                     "compaction). If much is free, see its inodes and quotas. The alarm NOSPACE "
                     "ends by itself when there is space.",
                     "the disk of the data directory is full (%s are free): puts are refused",
                     text);
    else if (metrics_has(m, "vigil_disk_free_bytes"))
        findings_add(f, left < DISK_BYTES_MIN ? FINDING_WARNING : FINDING_GOOD, "space",
                     "Puts are refused when the disk is full: free space there, or enlarge it.",
                     "%s are free on the disk of the data directory", text);
}

static void check_compaction(struct findings *f, const struct metrics *m)
{
    double now = metrics_sum(m, "etcd_debugging_mvcc_current_revision", NULL);
    double compacted = metrics_sum(m, "etcd_debugging_mvcc_compact_revision", NULL);
    bool is_old = now - (compacted > 0 ? compacted : 0) > UNCOMPACTED_REVISIONS;
    findings_add(f, is_old ? FINDING_WARNING : FINDING_GOOD, "compaction",
                 "Old revisions take space: start the server with --auto-compaction-retention, or "
                 "compact (vigil compaction).",
                 "%.0f revisions are kept", now - (compacted > 0 ? compacted : 0));
}

static void check_watches(struct findings *f, const struct metrics *m)
{
    double slow = metrics_sum(m, "etcd_debugging_mvcc_slow_watcher_total", NULL);
    double behind = metrics_sum(m, "vigil_watch_behind_revisions", NULL);
    bool is_slow =
        slow > 0 && (!metrics_has(m, "vigil_watch_behind_revisions") || behind >= BEHIND_REVISIONS);
    findings_add(f, is_slow ? FINDING_WARNING : FINDING_GOOD, "watches",
                 "Clients do not read fast enough: vigil top shows the slowest of a Vigil server.",
                 "%.0f of %.0f watchers are behind", slow,
                 metrics_sum(m, "etcd_debugging_mvcc_watcher_total", NULL));
}

static void check_memory(struct findings *f, const struct metrics *m)
{
    double held = metrics_sum(m, "vigil_client_held_bytes", NULL);
    double max = metrics_sum(m, "vigil_client_held_bytes_max", NULL);
    double refused = metrics_sum(m, "vigil_client_memory_refusals_total", NULL);
    if (max <= 0)
        return;
    enum finding_level level = level_of(held / max, &memory_part);
    if (refused > 0 && level == FINDING_GOOD)
        level = FINDING_WARNING;
    findings_add(f, level, "memory", "Raise --max-client-bytes, or let clients read less at once.",
                 "clients hold %.0f %% of the memory for them; it was refused %.0f times",
                 held / max * 100, refused);
}

static void check_work(struct findings *f, const struct metrics *m)
{
    double pending = metrics_sum(m, "etcd_server_proposals_pending", NULL);
    double slow = metrics_sum(m, "etcd_server_slow_apply_total", NULL);
    if (pending > PENDING_PROPOSALS)
        findings_add(f, FINDING_WARNING, "load", "The cluster gets more writes than it can take.",
                     "%.0f proposals are pending", pending);
    if (slow > 0)
        findings_add(f, FINDING_WARNING, "load",
                     "See the log for the slow requests; large ranges and a slow disk are common "
                     "causes.",
                     "%.0f requests were slow since the start", slow);
}

static void check_stability(struct findings *f, const struct examined *s)
{
    const struct metrics *m = &s->metrics;
    double changes = metrics_sum(m, "etcd_server_leader_changes_seen_total", NULL);
    double start_s = metrics_sum(m, "process_start_time_seconds", NULL);
    double hours = start_s > 0 ? ((double)s->wall_s - start_s) / 3600 : 0;
    if (changes > 2 && changes > LEADER_CHANGES_PER_HOUR * (hours > 1 ? hours : 1))
        findings_add(f, FINDING_WARNING, "stability",
                     "Leaders change because of slow disks, lost packets or a busy CPU.",
                     "the leader has changed %.0f times in %.1f hours", changes, hours);
}

static void check_store(struct findings *f, const struct metrics *m)
{
    double bad = metrics_sum(m, "vigil_store_check_bad_records_total", NULL) +
                 metrics_sum(m, "vigil_store_check_bad_versions_total", NULL) +
                 metrics_sum(m, "vigil_store_damaged_reads_total", NULL);
    if (bad > 0)
        findings_add(
            f, FINDING_BAD, "store",
            "The disk has damaged the store. Stop the server and run vigil repair --data-dir "
            "DIR, which shows what is lost and how to remove it. To continue without a stop, put "
            "the keys again that the server's log names, or delete them: then everything but "
            "snapshots works.",
            "%.0f records or versions were found damaged since the start", bad);
}

static void check_certificate(struct findings *f, const struct examined *s)
{
    double expiry = metrics_sum(&s->metrics, "vigil_tls_certificate_expiry_seconds", NULL);
    double left = expiry - (double)s->wall_s;
    if (expiry > 0)
        findings_add(f,
                     left < expiry_s.bad       ? FINDING_BAD
                     : left < expiry_s.warning ? FINDING_WARNING
                                               : FINDING_GOOD,
                     "certificate", "Renew it; the server uses changed files by itself.",
                     "the server's certificate expires in %.0f days", left / 86400);
}

/* -- One server in front of a cluster -- */

static void check_mirror(struct findings *f, const struct front *front)
{
    if (!front->is_followed)
        findings_add(f, FINDING_BAD, "mirror",
                     "Watches and serializable reads use the state of that time; nothing "
                     "can be written. See whether members of the cluster run and can be reached "
                     "from this server, and the line \"waiting for the cluster\" in its log.",
                     "no member of the cluster is followed; the last one answered %.0f s ago, and "
                     "the mirror has revision %.0f",
                     front->silent_s, front->revision);
    else if (!front->is_synced)
        findings_add(f, FINDING_WARNING, "mirror",
                     "Reads and watches are refused until it is complete; this ends by itself.",
                     "the mirror of the cluster is not complete yet");
    else
        findings_add(f, front->lag >= BEHIND_REVISIONS ? FINDING_WARNING : FINDING_GOOD, "mirror",
                     "The cluster delivers more slowly than it is written: reads are forwarded, "
                     "and watches are late until there are fewer writes.",
                     "the mirror has revision %.0f and is %.0f behind the cluster", front->revision,
                     front->lag);
}

static void check_upstream(struct findings *f, const struct front_upstream *u)
{
    const char *comma = *u->role ? ", " : "", *version = *u->version ? ", etcd " : "";
    if (u->answers)
        findings_add(f, FINDING_GOOD, "upstream", NULL, "%s answers%s%s%s%s%s", u->endpoint, comma,
                     u->role, version, u->version, u->is_followed ? "; it is followed" : "");
    else
        findings_add(f, FINDING_WARNING, "upstream",
                     "See whether that member runs and can be reached from this server.",
                     "%s does not answer%s%s", u->endpoint, *u->role ? "; it was the " : "",
                     u->role);
}

static void check_files(struct findings *f, const struct metrics *m)
{
    double open = metrics_sum(m, "process_open_fds", NULL);
    double max = metrics_sum(m, "process_max_fds", NULL);
    if (max > 0)
        findings_add(f, level_of(open / max, &files_part), "files",
                     "Raise the limit of open files (LimitNOFILE=), or close idle clients.",
                     "%.0f of %.0f descriptors are open", open, max);
}

/* It stores nothing of its own, and has no members. */
static void check_tier_metrics(struct findings *f, const struct examined *s)
{
    struct tier_report *report = xcalloc(1, sizeof(*report));
    struct metrics none = {0};
    check_space(f, &s->metrics);
    check_files(f, &s->metrics);
    check_memory(f, &s->metrics);
    check_certificate(f, s);
    tier_report_read(report, &none, &s->metrics);
    check_tier(f, report);
    free(report);
}

static void check_metrics(struct findings *f, const struct examined *s)
{
    check_disk(f, &s->metrics);
    check_space(f, &s->metrics);
    check_compaction(f, &s->metrics);
    check_watches(f, &s->metrics);
    check_files(f, &s->metrics);
    check_memory(f, &s->metrics);
    check_work(f, &s->metrics);
    check_stability(f, s);
    check_store(f, &s->metrics);
    check_certificate(f, s);
    struct front front;
    front_read(&front, &s->metrics);
    if (!front.is_front)
        return;
    check_mirror(f, &front);
    for (size_t i = 0; i < front.count; i++)
        check_upstream(f, &front.upstreams[i]);
}

void check_server(struct findings *findings, const struct examined *server)
{
    findings->where = server->endpoint;
    if (server->status) {
        double seconds = (double)server->latency_ns / (double)NS_PER_S;
        findings_add(findings, level_of(seconds, &latency_s), "answer",
                     "See how busy the server and the network are: vigil top shows the server.",
                     "version %.*s answered in %.1f ms", VIGIL_ARGS(server->status->version),
                     MS(seconds));
        check_leader(findings, server);
        check_size(findings, server);
        check_fragments(findings, server);
        for (size_t i = 0; i < server->status->error_count; i++)
            findings_add(findings, FINDING_BAD, "error", "See the log of the server.", "%.*s",
                         VIGIL_ARGS(server->status->errors[i]));
        if (server->is_plain && !server->is_local)
            findings_add(
                findings, FINDING_WARNING, "transport",
                "Use certificates (--cert-file, --key-file, --trusted-ca-file of the server).",
                "the connection is not encrypted");
    }
    if (server->metrics.time_ns && tier_report_is_of(&server->metrics))
        check_tier_metrics(findings, server);
    else if (server->metrics.time_ns)
        check_metrics(findings, server);
}

/* -- All servers -- */

void check_together(struct findings *findings, const struct examined *servers, size_t count)
{
    const vigil_status_response *first = NULL;
    bool leaders = false, versions = false, clusters = false;
    for (size_t i = 0; i < count; i++) {
        const vigil_status_response *status = servers[i].status;
        first = first ? first : status;
        if (!status || status == first)
            continue;
        clusters = clusters || status->header->cluster_id != first->header->cluster_id;
        leaders = leaders || status->leader != first->leader;
        versions = versions || !slice_equal(slice_of(status->version.data, status->version.size),
                                            slice_of(first->version.data, first->version.size));
    }
    findings->where = "cluster";
    if (clusters)
        findings_add(findings, FINDING_BAD, "members", "Give endpoints of one cluster.",
                     "the endpoints belong to different clusters");
    else if (leaders)
        findings_add(findings, FINDING_BAD, "leader",
                     "Some members cannot reach the others: see the network between them.",
                     "members know different leaders");
    if (versions && !clusters)
        findings_add(findings, FINDING_WARNING, "versions", "Finish the upgrade of all members.",
                     "members have different versions");
}

void check_members(struct findings *findings, const struct examined *server,
                   const vigil_members_response *members)
{
    size_t voters = 0, learners = 0, unstarted = 0;
    for (size_t i = 0; i < members->member_count; i++) {
        const vigil_member *member = &members->members[i];
        learners += member->is_learner != 0;
        voters += member->is_learner == 0;
        unstarted += member->name.size == 0;
    }
    findings->where = "cluster";
    if (metrics_are_of_single_vigil(&server->metrics)) {
        /* A member that was added is only listed. */
        findings_add(findings, unstarted > 0 ? FINDING_WARNING : FINDING_GOOD, "members",
                     "Remove them (vigil member remove): a single Vigil has no peers. For a "
                     "cluster, run members of etcd and Vigil in front of them "
                     "(--upstream-endpoints).",
                     "one server with a store of its own; members that can never join it: %zu",
                     unstarted);
        return;
    }
    if (unstarted > 0)
        findings_add(findings, FINDING_WARNING, "members",
                     "Start the member, or remove it (vigil member remove): it counts for the "
                     "majority.",
                     "%zu members have never started", unstarted);
    findings_add(findings, voters > 1 && voters % 2 == 0 ? FINDING_WARNING : FINDING_GOOD,
                 "members", "An even number tolerates no more failures than one member fewer.",
                 "voting members: %zu, learners: %zu; members that may fail: %zu", voters, learners,
                 voters > 0 ? (voters - 1) / 2 : 0);
}

void check_alarms(struct findings *findings, const vigil_alarms_response *alarms)
{
    findings->where = "cluster";
    for (size_t i = 0; i < alarms->alarm_count; i++) {
        bool is_space = alarms->alarms[i].type == VIGIL_ALARM_NO_SPACE;
        findings_add(findings, FINDING_BAD, "alarm",
                     is_space ? "If the quota is reached: compact, defragment, then lower the "
                                "alarm (vigil alarm disarm). If the disk is full: free space, and "
                                "it ends by itself."
                              : "Replace the member, whose data differs from that of the others.",
                     "member %" PRIx64 " has raised %s", alarms->alarms[i].member_id,
                     is_space ? "NOSPACE: nothing can be written" : "CORRUPT");
    }
    if (alarms->alarm_count == 0)
        findings_add(findings, FINDING_GOOD, "alarm", NULL, "no alarm is raised");
}
