/* Watchers of many streams that catch up over the same part of history. */
#include "base/clock.h"
#include "watch/client_test.h"
#include "watch/history_test.h"
#include "watch/stream/stream_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { STREAMS = 50, ROOM = 16384 };

struct bench {
    struct memory_history memory;
    struct watch_hub *hub;
    struct client clients[STREAMS];
    unsigned reads; /* revisions read */
    unsigned turns;
    size_t found_max; /* in one window */
};

static struct bench *bench;
static enum status (*memory_next_op)(struct watch_history *history, struct watch_place *place,
                                     int64_t last, struct watch_batch *ret_batch);

static enum status counting_next(struct watch_history *history, struct watch_place *place,
                                 int64_t last, struct watch_batch *ret_batch)
{
    bench->reads++;
    return memory_next_op(history, place, last, ret_batch);
}

static int setup(void **state)
{
    static struct watch_history_ops counting;
    bench = xcalloc(1, sizeof(*bench));
    memory_init(&bench->memory);
    counting = *bench->memory.history.ops;
    memory_next_op = counting.next;
    counting.next = counting_next;
    bench->memory.history.ops = &counting;
    bench->hub = watch_hub_new(&(struct watch_hub_options){
        .history = &bench->memory.history,
        .identity = {.cluster_id = 11, .member_id = 22, .raft_term = 2},
        .fragment_bytes = 2 << 20,
        .watchers_max = 1000,
        .progress_interval_ns = 3600 * NS_PER_S,
        .seed = 4,
    });
    for (int i = 0; i < STREAMS; i++)
        client_open(&bench->clients[i], bench->hub);
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < STREAMS; i++)
        client_close(&bench->clients[i]);
    watch_hub_free(bench->hub);
    memory_fini(&bench->memory);
    free(bench);
    return 0;
}

static void watch_key(int stream, const char *key, const char *end, int64_t start)
{
    struct watch_create create = {
        .key = slice_from_text(key), .range_end = slice_from_text(end), .start_revision = start};
    assert_int_equal(watch_stream_create(bench->clients[stream].stream, &create), ST_OK);
}

/* One turn; each stream is pulled once, with this much room. */
static void turn(size_t room)
{
    bool more = watch_hub_turn_begin(bench->hub, 0);
    (void)more; /* the next turn follows anyway */
    for (int i = 0; i < STREAMS; i++)
        client_pull(&bench->clients[i], room);
    for (int i = 0; i < WATCH_WINDOWS; i++)
        bench->found_max = size_max(bench->found_max, bench->hub->windows[i].found_count);
    watch_hub_turn_end(bench->hub);
    memory_turn_end(&bench->memory);
    watch_hub_check(bench->hub);
    bench->turns++;
}

static void catch_up(size_t room)
{
    while (watch_hub_scan_stats(bench->hub)->stats.watchers_catching_up) {
        turn(room);
        assert_true(bench->turns < 100000);
    }
}

static void put_n(const char *key, int n)
{
    for (int i = 0; i < n; i++)
        memory_put(&bench->memory, key, "x");
}

static size_t events_of(int stream)
{
    struct pb_watch_response *response;
    size_t events = 0;
    int64_t last = 0;
    while ((response = client_next(&bench->clients[stream])) != NULL)
        for (size_t i = 0; i < response->events_count; i++, events++) {
            assert_true(response->events[i].kv->mod_revision > last);
            last = response->events[i].kv->mod_revision;
        }
    return events;
}

static void streams_at_the_same_part_of_history_share_its_reading(void **state)
{
    (void)state;
    enum { REVISIONS = 10000 };
    put_n("other", REVISIONS);
    char key[16];
    for (int i = 0; i < STREAMS; i++) {
        snprintf(key, sizeof(key), "k%02d", i);
        memory_put(&bench->memory, key, "x");
        watch_key(i, key, "", 2 + i); /* near each other, not at the same place */
    }
    catch_up(ROOM);
    for (int i = 0; i < STREAMS; i++)
        assert_int_equal(events_of(i), 1);
    assert_true(bench->reads < 2 * REVISIONS);
}

static void stream_far_behind_reaches_those_ahead_and_continues_with_them(void **state)
{
    (void)state;
    enum { FIRST = 5000, APART = 4500, REVISIONS = 60000 };
    put_n("other", REVISIONS);
    memory_put(&bench->memory, "end", "x");
    /* Ten places, so that they cannot all be read in one turn. */
    for (int i = 0; i < 10; i++)
        watch_key(i, "end", "", i == 0 ? 2 : FIRST + APART * i);
    catch_up(ROOM);
    for (int i = 0; i < 10; i++)
        assert_int_equal(events_of(i), 1);
    /* Separately they would read 352,000. */
    assert_true(bench->reads < 250000);
}

static void watchers_left_out_of_a_full_window_get_everything_too(void **state)
{
    (void)state;
    enum { REVISIONS = 200, WATCHED = 10, EACH = 60 };
    put_n("m", REVISIONS);
    /* All ranges differ and contain the key: 600 times 200 events are far too many for a window. */
    for (int i = 0; i < WATCHED; i++)
        for (int k = 0; k < EACH; k++) {
            char key[16], end[16];
            snprintf(key, sizeof(key), "a%d", i);
            snprintf(end, sizeof(end), "z%d", k);
            watch_key(i, key, end, 2);
        }
    while (watch_hub_scan_stats(bench->hub)->stats.watchers_catching_up) {
        turn(3000);
        assert_true(bench->turns < 100000);
    }
    for (int i = 0; i < WATCHED; i++) {
        struct pb_watch_response *response;
        int64_t last[EACH] = {0};
        while ((response = client_next(&bench->clients[i])) != NULL)
            for (size_t k = 0; k < response->events_count; k++) {
                int64_t revision = response->events[k].kv->mod_revision;
                assert_int_equal(revision,
                                 last[response->watch_id] ? last[response->watch_id] + 1 : 2);
                last[response->watch_id] = revision;
            }
        for (int k = 0; k < EACH; k++)
            assert_int_equal(last[k], REVISIONS + 1);
    }
}

/* Revisions of many events are watched from the past by many watchers whose ranges overlap, miss
 * them, or whose filters exclude all of them: each gets its own events, complete and in order, and
 * no turn finds those of all. */
static void revisions_of_many_events_reach_many_watchers_some_at_a_time(void **state)
{
    (void)state;
    enum { EVENTS = 300, REVISIONS = 3, EACH = 400, FILTERING = 7, MISSING = 2 };
    static int64_t last[2][EACH];
    static unsigned seen[2][EACH];
    memset(last, 0, sizeof(last));
    memset(seen, 0, sizeof(seen));
    char key[16];
    for (int r = 0; r < REVISIONS; r++) {
        memory_begin(&bench->memory);
        for (int i = 0; i < EVENTS; i++) {
            snprintf(key, sizeof(key), "k%04d", i);
            memory_add(&bench->memory, slice_from_text(key), SLICE_LITERAL("value"), false);
        }
        memory_publish(&bench->memory);
        memory_put(&bench->memory, "other", "x");
    }
    for (int stream = 0; stream < 2; stream++)
        for (int k = 0; k < EACH; k++) {
            snprintf(key, sizeof(key), k % MISSING ? "k%04d" : "z%04d", k % EVENTS);
            struct watch_create create = {.key = slice_from_text(key),
                                          .range_end = SLICE_LITERAL("zz"),
                                          .no_put = k % FILTERING == 0,
                                          .start_revision = 2};
            assert_int_equal(watch_stream_create(bench->clients[stream].stream, &create), ST_OK);
        }
    catch_up(ROOM);
    for (int stream = 0; stream < 2; stream++) {
        struct pb_watch_response *response;
        while ((response = client_next(&bench->clients[stream])) != NULL)
            for (size_t i = 0; i < response->events_count; i++) {
                int64_t revision = response->events[i].kv->mod_revision;
                assert_true(revision >= last[stream][response->watch_id]);
                last[stream][response->watch_id] = revision;
                seen[stream][response->watch_id]++;
            }
        for (int k = 0; k < EACH; k++) {
            unsigned others = k % MISSING ? REVISIONS : 0; /* "other" sorts behind all "k…" */
            unsigned wanted = k % MISSING ? REVISIONS * (unsigned)(EVENTS - k % EVENTS) : 0;
            assert_int_equal(seen[stream][k], k % FILTERING ? wanted + others : 0);
        }
    }
    /* For all at once it would have been a hundred thousand. */
    assert_in_range(bench->found_max, EVENTS, WINDOW_FOUND_MAX + EVENTS);
}

static void live_watchers_do_not_wait_for_a_search_on_their_stream(void **state)
{
    (void)state;
    put_n("other", 45000);
    /* Many streams search, each at another place; one of them has a live watcher. */
    for (int i = 0; i < STREAMS; i++)
        watch_key(i, "never", "", 2 + 900 * i);
    watch_key(STREAMS - 1, "live", "", 0);
    turn(ROOM);
    turn(ROOM);
    (void)events_of(STREAMS - 1);
    memory_put(&bench->memory, "live", "x");
    turn(ROOM);
    assert_true(watch_hub_scan_stats(bench->hub)->stats.watchers_catching_up > 0);
    assert_int_equal(events_of(STREAMS - 1), 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(streams_at_the_same_part_of_history_share_its_reading),
        TEST(stream_far_behind_reaches_those_ahead_and_continues_with_them),
        TEST(watchers_left_out_of_a_full_window_get_everything_too),
        TEST(revisions_of_many_events_reach_many_watchers_some_at_a_time),
        TEST(live_watchers_do_not_wait_for_a_search_on_their_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
