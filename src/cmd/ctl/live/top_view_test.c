#include "cmd/ctl/live/top_view.h"

#include "base/xalloc.h"
#include "cmd/ctl/live/screen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const char older_page[] =
    "grpc_server_started_total{grpc_method=\"Put\",grpc_service=\"etcdserverpb.KV\"} 10\n"
    "process_cpu_seconds_total 1\n"
    "etcd_debugging_mvcc_current_revision 10\n";
static const char now_page[] =
    "grpc_server_started_total{grpc_method=\"Put\",grpc_service=\"etcdserverpb.KV\"} 30\n"
    "grpc_server_started_total{grpc_method=\"Range\",grpc_service=\"etcdserverpb.KV\"} 100\n"
    "grpc_server_started_total{grpc_method=\"Txn\",grpc_service=\"etcdserverpb.KV\"} 0\n"
    "grpc_server_handled_total{grpc_code=\"OK\",grpc_method=\"Put\",grpc_service=\"etcdserverpb."
    "KV\"} 20\n"
    "grpc_server_handled_total{grpc_code=\"Unknown\",grpc_method=\"Put\",grpc_service="
    "\"etcdserverpb.KV\"} 4\n"
    "process_cpu_seconds_total 2\n"
    "process_start_time_seconds 900\n"
    "etcd_debugging_mvcc_current_revision 50\n"
    "vigil_net_connections 7\n"
    "vigil_watch_slowest_behind_revisions{rank=\"1\",peer=\"10.0.0.1:5\x1b\"} 12\n"
    "vigil_watch_slowest_held_bytes{rank=\"1\",peer=\"10.0.0.1:5\x1b\"} 2048\n";

static void make_report(struct top_report *report, bool has_older)
{
    struct metrics older = {0}, now = {0};
    struct top_status status = {
        .known = true, .version = "3.7.0", .revision = 50, .is_leader = true};
    if (has_older)
        metrics_read(&older, slice_from_text(older_page), INT64_C(1000000000));
    metrics_read(&now, slice_from_text(now_page), INT64_C(3000000000));
    top_report_make(report, &status, &older, &now, 1000);
    metrics_fini(&older);
    metrics_fini(&now);
}

static void rates_are_those_between_two_pages(void **state)
{
    struct top_report r;
    (void)state;
    make_report(&r, true);
    assert_true(r.is_vigil && r.has_metrics && !r.is_first);
    assert_int_equal(r.call_count, 2); /* one was never called */
    assert_string_equal(r.calls[0].name, "KV/Range");
    assert_true(r.calls[0].rate == 50);
    assert_string_equal(r.calls[1].name, "KV/Put");
    assert_true(r.calls[1].rate == 10 && r.calls[1].errors_rate == 2 && r.calls[1].total == 30);
    assert_true(r.cpu == 0.5 && r.revisions_rate == 20 && r.uptime_s == 100);
    assert_true(r.keys == -1 && r.sync_p99_s == -1);
    assert_int_equal(r.watcher_count, 1);
    assert_true(r.watchers_behind[0].behind == 12 && r.watchers_behind[0].held_bytes == 2048);
    make_report(&r, false);
    assert_true(r.is_first && r.calls[0].rate == 0);
}

static void assert_has(const struct buf *text, const char *expected)
{
    if (!memmem(text->ptr, text->len, expected, strlen(expected)))
        fail_msg("%.*s\nhas no: %s", SLICE_ARGS(buf_slice(text)), expected);
}

static void lines_are_safe_and_fit(void **state)
{
    AUTO(buf_fini) struct buf text = {0};
    struct top_report r;
    struct prefix_counts counts;
    (void)state;
    prefix_counts_init(&counts, SLICE_LITERAL("/"), 1);
    for (unsigned i = 0; i < 500; i++) {
        char key[32];
        snprintf(key, sizeof(key), "/\x1b%u/x", i);
        prefix_counts_add(&counts, slice_from_text(key), 10);
    }
    struct top_view view = {.endpoint = "e",
                            .metrics_error = "",
                            .prefixes_error = "",
                            .counts = &counts,
                            .counted_s = 2,
                            .rows = 30};
    make_report(&r, true);
    top_view_text(&text, &view, &r);
    assert_has(&text, "Vigil, as etcd 3.7.0  up 0 d 00:01:40\n");
    assert_has(&text,
               "KV/Range                                         50          0.0            100\n");
    assert_has(&text, "10.0.0.1:5? ");
    assert_has(&text, "/\\x1b0/");
    assert_null(memchr(text.ptr, '\x1b', text.len));
    size_t lines = 0;
    for (size_t i = 0; i < text.len; i++)
        lines += text.ptr[i] == '\n';
    assert_true(lines <= view.rows + 2);
    text.len = 0;
    view.rows = 0;
    top_view_text(&text, &view, &r);
    text.len = 0;
    top_view_json(&text, &view, &r);
    assert_has(
        &text,
        "\"calls\":[{\"method\":\"KV/Range\",\"per_s\":50,\"failed_per_s\":0,\"total\":100}");
    assert_has(&text, "\"changes_per_s\":0.5,\"bytes_per_s\":5,\"changes\":1}");
    prefix_counts_fini(&counts);
}

static void what_a_server_says_of_itself_is_safe(void **state)
{
    struct top_status status;
    vigil_header header = {.member_id = 1, .revision = 7};
    vigil_bytes error = vigil_text("a\x1b[2J");
    vigil_status_response response = {.header = &header,
                                      .version = vigil_text("3\x07"),
                                      .leader = 1,
                                      .errors = &error,
                                      .error_count = 1};
    (void)state;
    top_status_read(&status, &response);
    assert_string_equal(status.version, "3?");
    assert_string_equal(status.error, "a?[2J");
    assert_true(status.is_leader && status.known && status.revision == 7);
}

static void a_server_without_metrics_is_shown_too(void **state)
{
    AUTO(buf_fini) struct buf text = {0};
    struct top_report r;
    struct metrics none = {0};
    struct top_status status;
    struct top_view view = {.endpoint = "e", .metrics_error = "404\x1b", .prefixes_error = "no"};
    (void)state;
    top_status_fail(&status, "etcdserver: permission denied\x1b");
    top_report_make(&r, &status, &none, &none, 1000);
    top_view_text(&text, &view, &r);
    assert_has(&text, "Metrics   404\\x1b\n");
    assert_has(&text, "Status    etcdserver: permission denied?\n");
    assert_has(&text, "Store     revision - (-/s)");
    text.len = 0;
    top_view_json(&text, &view, &r);
    assert_has(&text, "\"metrics_error\":\"404\\u001b\"");
}

/* Numbers that are cut are worse than none. */
static void busy_server_fits_on_a_screen_of_80_columns(void **state)
{
    (void)state;
    static const char page[] =
        "vigil_net_connections 100000\n"
        "process_cpu_seconds_total 1000000\nprocess_start_time_seconds 900\n"
        "process_resident_memory_bytes 1072693248000\nprocess_open_fds 1000000\n"
        "process_max_fds 1048576\n"
        "etcd_debugging_mvcc_keys_total 100000000\n"
        "etcd_debugging_mvcc_compact_revision 999999999\n"
        "etcd_debugging_mvcc_current_revision 999999999\n"
        "etcd_debugging_mvcc_watcher_total 1000000\netcd_debugging_mvcc_watch_stream_total 100000\n"
        "etcd_debugging_mvcc_slow_watcher_total 1000000\n"
        "etcd_debugging_mvcc_events_total 1000000000\n"
        "vigil_watch_behind_revisions 999999999\n"
        "etcd_network_client_grpc_received_bytes_total 1072693248000\n"
        "etcd_network_client_grpc_sent_bytes_total 1072693248000\n"
        "etcd_disk_wal_fsync_duration_seconds_bucket{le=\"0.008192\"} 1000\n"
        "etcd_disk_wal_fsync_duration_seconds_bucket{le=\"+Inf\"} 1000\n"
        "etcd_disk_wal_fsync_duration_seconds_count 1000\n"
        "etcd_disk_backend_commit_duration_seconds_bucket{le=\"0.008192\"} 1000\n"
        "etcd_disk_backend_commit_duration_seconds_bucket{le=\"+Inf\"} 1000\n"
        "grpc_server_started_total{grpc_method=\"LeaseKeepAlive\",grpc_service=\"etcdserverpb."
        "Lease\"} 1999999\n"
        "vigil_watch_slowest_behind_revisions{rank=\"1\",peer=\"[fd00:1:2:3:4:5:6:7]:54321\"} "
        "999999999\n"
        "vigil_watch_slowest_held_bytes{rank=\"1\",peer=\"[fd00:1:2:3:4:5:6:7]:54321\"} "
        "1072693248000\n"
        "vigil_cluster_connected 1\nvigil_cluster_mirrored_revision 999999999\n"
        "vigil_cluster_mirror_lag_revisions 999999999\n"
        "vigil_cluster_upstream_up{endpoint=\"https://member-1.example.org:2379\"} 0\n"
        "vigil_cluster_upstream_info{endpoint=\"https://member-1.example.org:2379\",member=\"1\","
        "version=\"3.10.123\",role=\"follower\",followed=\"true\"} 1\n";
    AUTO(buf_fini) struct buf text = {0};
    struct metrics older = {0}, now = {0};
    struct top_report report;
    struct top_status status = {.known = true,
                                .version = "3.7.0",
                                .revision = 999999999,
                                .db_bytes = INT64_C(1072693248000),
                                .db_used_bytes = INT64_C(1072693248000),
                                .quota_bytes = INT64_C(1072693248000)};
    metrics_read(&older, slice_from_text("vigil_net_connections 1\n"), INT64_C(1000000000));
    metrics_read(&now, slice_from_text(page), INT64_C(3000000000));
    top_report_make(&report, &status, &older, &now, 1000);
    struct top_view view = {
        .endpoint = "10.0.0.1:2379", .rows = 40, .metrics_error = "", .prefixes_error = ""};
    top_view_server(&text, 0, true, "https://member-1.example.org:2379", &report);
    top_view_text(&text, &view, &report);
    assert_non_null(memmem(text.ptr, text.len, "999999999 behind the cluster", 28));
    assert_non_null(memmem(text.ptr, text.len, "https://member-1.example.org:23", 31));
    for (struct slice rest = buf_slice(&text); rest.len;) {
        struct slice line = slice_cut(&rest, '\n');
        if (line.len && line.ptr[0] == SCREEN_HEADING[0])
            line = slice_sub(line, 1, line.len - 1);
        if (line.len > 80)
            fail_msg("%zu columns: %.*s", line.len, SLICE_ARGS(line));
    }
    metrics_fini(&older);
    metrics_fini(&now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_those_between_two_pages),
        cmocka_unit_test(lines_are_safe_and_fit),
        cmocka_unit_test(what_a_server_says_of_itself_is_safe),
        cmocka_unit_test(a_server_without_metrics_is_shown_too),
        cmocka_unit_test(busy_server_fits_on_a_screen_of_80_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
