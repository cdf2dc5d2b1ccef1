#include "cmd/ctl/live/checks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A healthy server, which each test makes ill in one way. */
struct ward {
    vigil_header header;
    vigil_status_response status;
    struct examined server;
    struct findings findings;
};

static void ward_init(struct ward *w)
{
    *w = (struct ward){.header = {.cluster_id = 1, .member_id = 2, .revision = 10}};
    w->status = (vigil_status_response){.header = &w->header,
                                        .version = vigil_text("3.7.0"),
                                        .db_size = 1000,
                                        .db_size_in_use = 900,
                                        .db_size_quota = 10000,
                                        .leader = 2,
                                        .raft_index = 10,
                                        .raft_applied_index = 10,
                                        .raft_term = 3};
    w->server = (struct examined){
        .endpoint = "https://a:1", .status = &w->status, .latency_ns = 1000000, .wall_s = 1000000};
}

/* The worst finding about a thing. */
static const struct finding *worst(const struct ward *w, const char *what)
{
    const struct finding *found = NULL;
    for (size_t i = 0; i < w->findings.count; i++)
        if (strcmp(w->findings.all[i].what, what) == 0 &&
            (!found || w->findings.all[i].level > found->level))
            found = &w->findings.all[i];
    return found;
}

static void assert_level(struct ward *w, const char *what, int level)
{
    const struct finding *found = worst(w, what);
    if (level < 0) {
        assert_null(found);
    } else {
        assert_non_null(found);
        assert_int_equal(found->level, level);
        assert_true((found->advice != NULL) == (level != FINDING_GOOD));
    }
    findings_fini(&w->findings);
    w->findings = (struct findings){0};
    metrics_fini(&w->server.metrics);
}

static void examine_metrics(struct ward *w, const char *page)
{
    metrics_read(&w->server.metrics, slice_from_text(page), 1);
    check_server(&w->findings, &w->server);
}

static void a_healthy_server_is_only_praised(void **state)
{
    struct ward w;
    (void)state;
    ward_init(&w);
    examine_metrics(&w, "process_open_fds 10\nprocess_max_fds 1000\n"
                        "etcd_debugging_mvcc_current_revision 100\n");
    assert_true(w.findings.count > 5);
    assert_int_equal(findings_count(&w.findings, FINDING_GOOD), w.findings.count);
    assert_level(&w, "files", FINDING_GOOD);
}

static void the_status_shows_what_is_wrong(void **state)
{
    struct ward w;
    vigil_bytes error = vigil_text("memberID:1 alarm:NOSPACE");
    (void)state;
#define EXAMINE(change, what, level)          \
    do {                                      \
        ward_init(&w);                        \
        change;                               \
        check_server(&w.findings, &w.server); \
        assert_level(&w, what, level);        \
    } while (0)
    EXAMINE(w.server.latency_ns = 99000000, "answer", FINDING_GOOD);
    EXAMINE(w.server.latency_ns = 100000000, "answer", FINDING_WARNING);
    EXAMINE(w.server.latency_ns = 1000000000, "answer", FINDING_BAD);
    EXAMINE(w.status.leader = 0, "leader", FINDING_BAD);
    EXAMINE(w.status.raft_index = 6000, "leader", FINDING_WARNING);
    EXAMINE(w.status.db_size = 7999, "size", FINDING_GOOD);
    EXAMINE(w.status.db_size = 8000, "size", FINDING_WARNING);
    EXAMINE(w.status.db_size = 9500, "size", FINDING_BAD);
    EXAMINE(w.status.db_size_quota = 0, "size", FINDING_GOOD);
    EXAMINE(w.status.db_size = 1 << 30, "fragmentation", FINDING_WARNING);
    EXAMINE(w.status.db_size = 90 << 20, "fragmentation", -1);
    EXAMINE((w.status.errors = &error, w.status.error_count = 1), "error", FINDING_BAD);
    EXAMINE((w.server.is_plain = true), "transport", FINDING_WARNING);
    EXAMINE((w.server.is_plain = true, w.server.is_local = true), "transport", -1);
#undef EXAMINE
}

static void metrics_show_what_is_slow(void **state)
{
    static const struct {
        const char *page, *what;
        int level;
    } rows[] = {
        {"etcd_disk_wal_fsync_duration_seconds_bucket{le=\"0.008\"} "
         "100\netcd_disk_wal_fsync_duration_seconds_bucket{le=\"+Inf\"} 100\n",
         "disk", FINDING_GOOD},
        {"etcd_disk_wal_fsync_duration_seconds_bucket{le=\"0.008\"} "
         "90\netcd_disk_wal_fsync_duration_seconds_bucket{le=\"0.016\"} "
         "100\netcd_disk_wal_fsync_duration_seconds_bucket{le=\"+Inf\"} 100\n",
         "disk", FINDING_WARNING},
        {"etcd_disk_wal_fsync_duration_seconds_bucket{le=\"0.128\"} "
         "100\netcd_disk_wal_fsync_duration_seconds_bucket{le=\"+Inf\"} 100\n",
         "disk", FINDING_BAD},
        {"etcd_disk_backend_commit_duration_seconds_bucket{le=\"0.032\"} "
         "100\netcd_disk_backend_commit_duration_seconds_bucket{le=\"+Inf\"} 100\n",
         "disk", FINDING_WARNING},
        {"etcd_debugging_mvcc_current_revision 1000001\n", "compaction", FINDING_WARNING},
        {"etcd_debugging_mvcc_current_revision 1000001\netcd_debugging_mvcc_compact_revision 5\n",
         "compaction", FINDING_GOOD},
        {"etcd_debugging_mvcc_slow_watcher_total 1\n", "watches", FINDING_WARNING},
        {"etcd_debugging_mvcc_slow_watcher_total 1\nvigil_watch_behind_revisions 5\n", "watches",
         FINDING_GOOD},
        {"process_open_fds 700\nprocess_max_fds 1000\n", "files", FINDING_WARNING},
        {"process_open_fds 900\nprocess_max_fds 1000\n", "files", FINDING_BAD},
        {"vigil_client_held_bytes 9\nvigil_client_held_bytes_max 10\n", "memory", FINDING_BAD},
        {"vigil_client_held_bytes_max 10\nvigil_client_memory_refusals_total 1\n", "memory",
         FINDING_WARNING},
        {"a 1\n", "memory", -1},
        {"etcd_server_proposals_pending 101\n", "load", FINDING_WARNING},
        {"etcd_server_slow_apply_total 1\n", "load", FINDING_WARNING},
        {"etcd_server_leader_changes_seen_total 4\nprocess_start_time_seconds 999000\n",
         "stability", FINDING_WARNING},
        {"etcd_server_leader_changes_seen_total 4\nprocess_start_time_seconds 900000\n",
         "stability", -1},
        {"vigil_store_damaged_reads_total 1\n", "store", FINDING_BAD},
        {"vigil_disk_full 1\nvigil_disk_free_bytes 4096\n", "space", FINDING_BAD},
        {"vigil_disk_full 0\nvigil_disk_free_bytes 4096\n", "space", FINDING_WARNING},
        {"vigil_disk_full 0\nvigil_disk_free_bytes 1e12\n", "space", FINDING_GOOD},
        {"vigil_net_connections 1\n", "mirror", -1},
        {"vigil_cluster_connected 1\nvigil_cluster_synced 1\n"
         "vigil_cluster_mirror_lag_revisions 3\n",
         "mirror", FINDING_GOOD},
        {"vigil_cluster_connected 1\nvigil_cluster_synced 1\n"
         "vigil_cluster_mirror_lag_revisions 5000\n",
         "mirror", FINDING_WARNING},
        {"vigil_cluster_connected 1\nvigil_cluster_synced 0\n", "mirror", FINDING_WARNING},
        {"vigil_cluster_connected 0\nvigil_cluster_synced 0\n"
         "vigil_cluster_mirror_lag_revisions NaN\n",
         "mirror", FINDING_BAD},
        {"vigil_cluster_connected 1\nvigil_cluster_upstream_up{endpoint=\"http://a:1\"} 1\n"
         "vigil_cluster_upstream_info{endpoint=\"http://a:1\",role=\"learner\"} 1\n",
         "upstream", FINDING_GOOD},
        {"vigil_cluster_connected 1\nvigil_cluster_upstream_up{endpoint=\"http://a:1\"} 1\n"
         "vigil_cluster_upstream_up{endpoint=\"http://b:1\"} 0\n",
         "upstream", FINDING_WARNING},
        {"vigil_tls_certificate_expiry_seconds 1100000\n", "certificate", FINDING_BAD},
        {"vigil_tls_certificate_expiry_seconds 2000000\n", "certificate", FINDING_WARNING},
        {"vigil_tls_certificate_expiry_seconds 9000000\n", "certificate", FINDING_GOOD},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct ward w;
        ward_init(&w);
        examine_metrics(&w, rows[i].page);
        assert_level(&w, rows[i].what, rows[i].level);
    }
}

static void members_must_agree(void **state)
{
    struct ward a, b;
    (void)state;
#define COMPARE(change, what, level)                             \
    do {                                                         \
        ward_init(&a);                                           \
        ward_init(&b);                                           \
        change;                                                  \
        struct examined servers[2] = {a.server, b.server};       \
        check_together(&a.findings, servers, COUNT_OF(servers)); \
        assert_level(&a, what, level);                           \
    } while (0)
    COMPARE((void)0, "leader", -1);
    COMPARE(b.status.leader = 9, "leader", FINDING_BAD);
    COMPARE(b.status.version = vigil_text("3.6.0"), "versions", FINDING_WARNING);
    COMPARE(b.header.cluster_id = 7, "members", FINDING_BAD);
    COMPARE(b.server.status = NULL, "leader", -1);
#undef COMPARE
}

/* Whether doctor says that a member should be started, of two members of which one is not. */
static bool asks_to_start(struct ward *w, const vigil_member *members, bool of_etcd)
{
    vigil_members_response two = {.members = members, .member_count = 2};
    metrics_read(&w->server.metrics,
                 slice_from_text(of_etcd ? "etcd_server_id 1\n" : "vigil_net_connections 1\n"), 1);
    check_members(&w->findings, &w->server, &two);
    const struct finding *found = worst(w, "members");
    bool asks = false;
    for (size_t i = 0; i < w->findings.count; i++)
        asks |= w->findings.all[i].advice && strstr(w->findings.all[i].advice, "Start");
    assert_int_equal(found->level, FINDING_WARNING);
    assert_level(w, "members", FINDING_WARNING);
    return asks;
}

static void members_and_alarms_are_counted(void **state)
{
    struct ward w;
    vigil_member members[4] = {{.name = vigil_text("a")},
                               {.name = vigil_text("b")},
                               {.name = vigil_text("c")},
                               {.name = vigil_text("d")}};
    vigil_members_response all = {.members = members, .member_count = 3};
    vigil_alarm alarm = {.member_id = 1, .type = VIGIL_ALARM_NO_SPACE};
    vigil_alarms_response alarms = {.alarms = &alarm};
    (void)state;
    ward_init(&w);
    check_members(&w.findings, &w.server, &all);
    assert_level(&w, "members", FINDING_GOOD);
    all.member_count = 4;
    check_members(&w.findings, &w.server, &all);
    assert_level(&w, "members", FINDING_WARNING);
    members[3].is_learner = 1;
    check_members(&w.findings, &w.server, &all);
    assert_level(&w, "members", FINDING_GOOD);
    members[0].name = vigil_text("");
    check_members(&w.findings, &w.server, &all);
    assert_level(&w, "members", FINDING_WARNING);
    assert_true(asks_to_start(&w, members, true));
    assert_false(asks_to_start(&w, members, false));
    check_alarms(&w.findings, &alarms);
    assert_level(&w, "alarm", FINDING_GOOD);
    alarms.alarm_count = 1;
    check_alarms(&w.findings, &alarms);
    assert_level(&w, "alarm", FINDING_BAD);
}

static void findings_are_bounded_and_safe(void **state)
{
    struct findings findings = {.where = "a\033[2Jb"};
    char *text;
    size_t len;
    (void)state;
    for (unsigned i = 0; i < FINDINGS_MAX + 10; i++)
        findings_add(&findings, i % 2 ? FINDING_GOOD : FINDING_BAD, "x", "Do it.", "\007%u", i);
    assert_int_equal(findings.count, FINDINGS_MAX);
    FILE *to = open_memstream(&text, &len);
    findings_write(&findings, to, false);
    findings_write_json(&findings, to);
    fclose(to);
    assert_null(strchr(text, '\033'));
    assert_null(strchr(text, '\007'));
    assert_non_null(strstr(text, "512 bad, 0 warnings, 512 good\n"));
    assert_memory_equal(text, "bad      a\\x1b[2Jb  x: \\x070\n         Do it.\n", 43);
    free(text);
    findings_fini(&findings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_healthy_server_is_only_praised),
        cmocka_unit_test(the_status_shows_what_is_wrong),
        cmocka_unit_test(metrics_show_what_is_slow),
        cmocka_unit_test(members_must_agree),
        cmocka_unit_test(members_and_alarms_are_counted),
        cmocka_unit_test(findings_are_bounded_and_safe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
