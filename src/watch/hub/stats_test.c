#include "watch/hub/stats.h"

#include "base/clock.h"
#include "watch/client_test.h"
#include "watch/history_test.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { ROOM = 16384 };

struct bench {
    struct memory_history memory;
    struct watch_stats_snapshot snapshot;
    _Atomic uint64_t all;
    struct watch_hub *hub;
    int64_t now_ns;
};

static void bench_init(struct bench *bench)
{
    *bench = (struct bench){0};
    memory_init(&bench->memory);
    bench->hub = watch_hub_new(&(struct watch_hub_options){
        .history = &bench->memory.history,
        .identity = {.cluster_id = 11, .member_id = 22, .raft_term = 2},
        .fragment_bytes = 2 << 20,
        .watchers_max = 20000,
        .watchers_all = &bench->all,
        .watchers_all_max = 20000,
        .snapshot = &bench->snapshot,
        .progress_interval_ns = 3600 * NS_PER_S,
        .seed = 4,
    });
}

static void bench_fini(struct bench *bench)
{
    watch_hub_free(bench->hub);
    memory_fini(&bench->memory);
    assert_int_equal(bench->all, 0);
}

static void turn(struct bench *bench)
{
    while (watch_hub_turn_begin(bench->hub, bench->now_ns))
        ;
    watch_hub_turn_end(bench->hub);
    memory_turn_end(&bench->memory);
    watch_hub_check(bench->hub);
}

static void watch(struct client *client, const char *key, int64_t start)
{
    struct watch_create create = {.key = slice_from_text(key), .start_revision = start};
    assert_int_equal(watch_stream_create(client->stream, &create), ST_OK);
}

static void pull_all(struct client *client)
{
    while (client->awake)
        client_pull(client, ROOM);
}

static struct watch_report shown(const struct bench *bench)
{
    struct watch_report report;
    watch_stats_snapshot_read(&bench->snapshot, &report);
    return report;
}

static void watchers_are_counted_by_state_and_at_their_peak(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench);
    struct client a, b;
    client_open(&a, bench.hub);
    client_open(&b, bench.hub);
    for (int i = 0; i < 20; i++)
        memory_put(&bench.memory, "k", "value");
    for (int i = 0; i < 5; i++)
        watch(&a, "k", 0);
    watch(&b, "k", 2);
    watch(&b, "k", -1);
    turn(&bench);
    struct watch_stats stats = shown(&bench).stats;
    assert_int_equal(stats.streams, 2);
    assert_int_equal(stats.watchers, 6);
    assert_int_equal(stats.watchers_catching_up, 1);
    assert_int_equal(stats.refused, 1);
    bench.memory.compacted = 10;
    client_pull(&b, 60); /* created and refused responses; then the compaction is reported */
    pull_all(&b);
    pull_all(&a);
    turn(&bench);
    stats = shown(&bench).stats;
    assert_int_equal(stats.watchers, 5);
    assert_int_equal(stats.watchers_peak, 6);
    assert_int_equal(stats.watchers_catching_up + stats.watchers_compacted, 0);
    memory_put(&bench.memory, "k", "value");
    turn(&bench);
    pull_all(&a);
    turn(&bench);
    stats = shown(&bench).stats;
    assert_int_equal(stats.events_sent, 5);
    assert_true(stats.bytes_sent >= a.bytes.len);
    client_close(&a);
    client_close(&b);
    turn(&bench);
    stats = shown(&bench).stats;
    assert_int_equal(stats.streams + stats.watchers + stats.held_bytes + stats.streams_stopped, 0);
    assert_int_equal(stats.streams_peak, 2);
    bench_fini(&bench);
}

static void describe(void *ctx, char text[WATCH_PEER_BYTES])
{
    snprintf(text, WATCH_PEER_BYTES, "peer %d", *(const int *)ctx);
}

static void no_wake(void *ctx)
{
    (void)ctx;
}

static void the_slowest_streams_are_named_about_once_a_second(void **state)
{
    (void)state;
    enum { STREAMS = 700 };
    struct bench bench;
    bench_init(&bench);
    struct watch_stream *streams[STREAMS];
    int numbers[STREAMS];
    uint8_t room[ROOM];
    bool more;
    for (int i = 0; i < STREAMS; i++) {
        numbers[i] = i;
        streams[i] = watch_stream_new(
            bench.hub,
            (struct watch_stream_owner){.wake = no_wake, .ctx = &numbers[i], .describe = describe});
    }
    /* Every tenth has a watcher, each one revision behind the next. */
    for (int i = 0; i < STREAMS; i += 10) {
        struct watch_create create = {.key = SLICE_LITERAL("k")};
        assert_int_equal(watch_stream_create(streams[i], &create), ST_OK);
        (void)watch_stream_fill(streams[i], room, ROOM, &more);
        if (i % 100 == 0)
            memory_put(&bench.memory, "k", "value");
        turn(&bench);
    }
    /* The current scan ends, then a complete one. */
    for (int slices = 0; slices < 6; slices++) {
        bench.now_ns += NS_PER_S;
        turn(&bench);
    }
    struct watch_report report = shown(&bench);
    assert_int_equal(report.stats.streams_behind,
                     STREAMS / 10 - 9); /* that were added after the last scan */
    assert_int_equal(report.stats.watchers_behind, STREAMS / 10 - 9);
    assert_int_equal(report.stats.behind_max, 7);
    assert_int_equal(report.stats.behind_peak, 7);
    assert_int_equal(report.slowest_count, WATCH_SLOWEST_MAX);
    assert_string_equal(report.slowest[0].peer, "peer 0");
    assert_int_equal(report.slowest[0].behind, 7);
    assert_int_equal(report.slowest[0].watchers, 1);
    assert_int_equal(report.slowest[1].behind, 6);
    /* Nothing changes: no scan runs. */
    bench.now_ns += 5 * NS_PER_S;
    turn(&bench);
    bench.now_ns += 5 * NS_PER_S;
    assert_int_equal(watch_hub_next_ns(bench.hub) > 1000 * NS_PER_S, true);
    /* They catch up or are closed: the next scan finds none. */
    for (int i = 0; i < STREAMS; i++) {
        if (i % 20 == 0)
            watch_stream_free(streams[i]);
        else
            (void)watch_stream_fill(streams[i], room, ROOM, &more);
    }
    for (int slices = 0; slices < 4; slices++) {
        bench.now_ns += NS_PER_S;
        turn(&bench);
    }
    report = shown(&bench);
    assert_int_equal(report.stats.streams_behind, 0);
    assert_int_equal(report.stats.behind_max, 0);
    assert_int_equal(report.stats.behind_peak, 7);
    assert_int_equal(report.slowest_count, 0);
    for (int i = 0; i < STREAMS; i++)
        if (i % 20 != 0)
            watch_stream_free(streams[i]);
    bench_fini(&bench);
}

static void watches_beyond_the_limit_of_all_hubs_are_refused(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench);
    struct client a;
    client_open(&a, bench.hub);
    bench.all += 19999; /* the watches of other hubs */
    watch(&a, "k", 0);
    watch(&a, "k", 0);
    assert_int_equal(watch_stream_cancel(a.stream, 0), ST_OK);
    watch(&a, "k", 0);
    pull_all(&a);
    assert_false(client_next(&a)->canceled);
    struct pb_watch_response *refused = client_next(&a);
    assert_true(refused->created && refused->canceled);
    assert_true(slice_equal(refused->cancel_reason,
                            slice_from_text("vigil: too many watches on this server")));
    assert_true(client_next(&a)->canceled);
    struct pb_watch_response *created = client_next(&a);
    assert_true(created->created && !created->canceled);
    client_close(&a);
    bench.all -= 19999;
    bench_fini(&bench);
}

static void stream_with_very_many_watchers_is_freed_in_steps(void **state)
{
    (void)state;
    enum { WATCHERS = 10000 };
    struct bench bench;
    bench_init(&bench);
    struct client gone, stays;
    client_open(&gone, bench.hub);
    client_open(&stays, bench.hub);
    for (int i = 0; i < 20; i++)
        memory_put(&bench.memory, "k", "value");
    for (int i = 0; i < WATCHERS; i++) {
        struct watch_create create = {
            .key = SLICE_LITERAL("k"),
            .start_revision = i % 3 == 0 ? 2 : 0,
            .progress_notify = i % 2 == 0,
        };
        assert_int_equal(watch_stream_create(gone.stream, &create), ST_OK);
        if (i % 500 == 0)
            pull_all(&gone);
    }
    watch(&stays, "k", 0);
    turn(&bench);
    pull_all(&stays);
    client_pull(&gone, 100);
    memory_put(&bench.memory, "k", "value");
    turn(&bench);
    client_close(&gone); /* the sanitizer would find a wake or a description after this */
    uint64_t left = watch_hub_scan_stats(bench.hub)->stats.watchers;
    assert_true(left > WATCHERS / 2);
    assert_int_equal(watch_hub_scan_stats(bench.hub)->stats.streams, 1);
    assert_true(watch_hub_next_ns(bench.hub) <= bench.now_ns);
    for (int turns = 0; left > 1; turns++) {
        assert_true(turns < 10);
        memory_put(&bench.memory, "k", "value");
        bool more = watch_hub_turn_begin(bench.hub, bench.now_ns);
        uint64_t now = watch_hub_scan_stats(bench.hub)->stats.watchers;
        assert_true(left - now <= 2048);
        assert_int_equal(more, now > 1);
        left = now;
        watch_hub_turn_end(bench.hub);
        watch_hub_check(bench.hub);
        pull_all(&stays);
        memory_turn_end(&bench.memory);
    }
    client_close(&stays);
    bench_fini(&bench);
}

static void *write_snapshot(void *ctx)
{
    struct watch_stats_snapshot *snapshot = ctx;
    struct watch_report report = {0};
    for (uint64_t i = 1; i <= 20000; i++) {
        report.stats.streams = report.stats.refused = i;
        report.slowest_count = i;
        report.slowest[WATCH_SLOWEST_MAX - 1].stopped = i;
        watch_stats_snapshot_write(snapshot, &report);
    }
    return NULL;
}

static void snapshot_is_read_whole_while_it_is_written(void **state)
{
    (void)state;
    static struct watch_stats_snapshot snapshot;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, write_snapshot, &snapshot), 0);
    struct watch_report report;
    do {
        watch_stats_snapshot_read(&snapshot, &report);
        assert_int_equal(report.stats.streams, report.stats.refused);
        assert_int_equal(report.stats.streams, report.slowest_count);
        assert_int_equal(report.stats.streams, report.slowest[WATCH_SLOWEST_MAX - 1].stopped);
    } while (report.stats.streams < 20000);
    pthread_join(thread, NULL);
}

static void snapshot_shows_what_was_written_last(void **state)
{
    (void)state;
    static struct watch_stats_snapshot snapshot;
    struct watch_report one = {.stats.streams = 1}, two = {.stats.streams = 2}, shown;
    watch_stats_snapshot_write_counters(&snapshot, &one.stats);
    watch_stats_snapshot_write_counters(&snapshot, &one.stats);
    watch_stats_snapshot_read(&snapshot, &shown);
    assert_int_equal(shown.stats.streams, 1);
    watch_stats_snapshot_write(&snapshot, &two);
    watch_stats_snapshot_write_counters(&snapshot, &one.stats); /* as it was before the report */
    watch_stats_snapshot_read(&snapshot, &shown);
    assert_int_equal(shown.stats.streams, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(watchers_are_counted_by_state_and_at_their_peak),
        cmocka_unit_test(the_slowest_streams_are_named_about_once_a_second),
        cmocka_unit_test(watches_beyond_the_limit_of_all_hubs_are_refused),
        cmocka_unit_test(stream_with_very_many_watchers_is_freed_in_steps),
        cmocka_unit_test(snapshot_is_read_whole_while_it_is_written),
        cmocka_unit_test(snapshot_shows_what_was_written_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
