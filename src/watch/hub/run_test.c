#include "watch/hub/run.h"

#include "base/clock.h"
#include "watch/client_test.h"
#include "watch/history_test.h"
#include "watch/hub/hub_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { ROOM = 1 << 20 };

static struct memory_history memory;
static struct watch_hub *hub;
static struct client client;

static int open_all(void **state)
{
    (void)state;
    memory_init(&memory);
    hub = watch_hub_new(&(struct watch_hub_options){
        .history = &memory.history,
        .fragment_bytes = 2 << 20,
        .watchers_max = 1000,
        .progress_interval_ns = 10 * NS_PER_S,
        .seed = 4,
    });
    client_open(&client, hub);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    client_close(&client);
    watch_hub_free(hub);
    memory_turn_end(&memory);
    memory_fini(&memory);
    return 0;
}

/* One turn. Returns whether there is more to do. */
static bool turn(size_t room)
{
    bool more = watch_hub_turn_begin(hub, 0);
    client_pull(&client, room);
    watch_hub_turn_end(hub);
    memory_turn_end(&memory);
    watch_hub_check(hub);
    return more || client.awake;
}

static void finish(void)
{
    while (turn(ROOM))
        ;
}

static void create(struct client *at, int count, struct watch_create wanted)
{
    for (int i = 0; i < count; i++)
        assert_int_equal(watch_stream_create(at->stream, &wanted), ST_OK);
}

static const struct watch_create all = {.key = SLICE_LITERAL("k"), .range_end = SLICE_LITERAL("l")};

static void expect_created(int count)
{
    finish();
    while (count--)
        assert_true(client_next(&client)->created);
    assert_null(client_next(&client));
}

static void put(int count, size_t value_bytes)
{
    char *value = xcalloc(1, value_bytes + 1);
    memset(value, 'v', value_bytes);
    while (count--)
        memory_put(&memory, "k", value);
    free(value);
}

/* The next response has the events of these revisions, one of each. */
static void expect(int64_t id, int64_t first, int64_t last)
{
    const struct pb_watch_response *response = client_next(&client);
    assert_non_null(response);
    if (id >= 0)
        assert_int_equal(response->watch_id, id);
    assert_int_equal(response->header->revision, last);
    assert_int_equal(response->events_count, last - first + 1);
    for (int64_t i = 0; i <= last - first; i++)
        assert_int_equal(response->events[i].kv->mod_revision, first + i);
}

static void revisions_of_one_turn_come_in_one_response_of_each_watcher(void **state)
{
    (void)state;
    static const int watchers[] = {1, 5, 100}; /* compared each, and looked up */
    int count = 0;
    int64_t next = 2;
    for (size_t i = 0; i < COUNT_OF(watchers); i++) {
        create(&client, watchers[i], all);
        expect_created(watchers[i]);
        count += watchers[i];
        put(16, 200);
        finish();
        for (int k = 0; k < count; k++)
            expect(-1, next, next + 15);
        assert_null(client_next(&client));
        next += 16;
    }
}

static void a_run_ends_at_its_events_and_bytes_and_before_a_long_revision(void **state)
{
    (void)state;
    create(&client, 1, all);
    expect_created(1);
    put(WATCH_RUN_EVENTS + 1, 1);
    finish();
    expect(0, 2, 1 + WATCH_RUN_EVENTS);
    expect(0, 2 + WATCH_RUN_EVENTS, 2 + WATCH_RUN_EVENTS);
    int64_t next = 3 + WATCH_RUN_EVENTS;
    put(3, WATCH_RUN_BYTES / 2 - 100);
    finish();
    expect(0, next, next + 1);
    expect(0, next + 2, next + 2);
    next += 3;
    memory.long_from = 2;
    put(2, 1);
    memory_begin(&memory);
    memory_add(&memory, SLICE_LITERAL("k1"), SLICE_LITERAL("v"), false);
    memory_add(&memory, SLICE_LITERAL("k2"), SLICE_LITERAL("v"), false);
    put(1, 1);
    finish();
    expect(0, next, next + 1);
    assert_int_equal(client_next(&client)->events_count, 2);
    expect(0, next + 3, next + 3);
    assert_null(client_next(&client));
}

static void a_watcher_that_begins_within_a_run_gets_the_rest_of_it(void **state)
{
    (void)state;
    create(&client, 1, all);
    struct watch_create later = all;
    later.start_revision = 7;
    create(&client, 1, later);
    expect_created(2);
    put(10, 10);
    finish();
    for (int i = 0; i < 2; i++) {
        const struct pb_watch_response *response = client_next(&client);
        int64_t first = response->watch_id ? 7 : 2;
        assert_int_equal(response->events[0].kv->mod_revision, first);
        assert_int_equal(response->events_count, 12 - first);
    }
    assert_null(client_next(&client));
}

/* More revisions arrive while a run was written to some watchers: they are a run of their own. */
static void a_run_that_was_sent_to_some_watchers_is_the_same_for_the_others(void **state)
{
    (void)state;
    enum { WATCHERS = 50, FIRST = 8, MORE = 8 };
    int64_t next[WATCHERS], responses = 0;
    for (int i = 0; i < WATCHERS; i++)
        next[i] = 2;
    create(&client, WATCHERS, all);
    expect_created(WATCHERS);
    put(FIRST, 100);
    while (client.bytes.len < (size_t)WATCHERS * FIRST * 100 / 2)
        assert_true(turn(4000));
    put(MORE, 100);
    while (turn(4000))
        ;
    const struct pb_watch_response *response;
    for (; (response = client_next(&client)) != NULL; responses++) {
        int64_t *at = &next[response->watch_id];
        for (size_t i = 0; i < response->events_count; i++)
            assert_int_equal(response->events[i].kv->mod_revision, (*at)++);
        assert_int_equal(response->header->revision, *at - 1);
    }
    for (int i = 0; i < WATCHERS; i++)
        assert_int_equal(next[i], 2 + FIRST + MORE);
    /* Two of each watcher, and some revisions alone where a piece of output ends. */
    assert_true(responses < WATCHERS * (FIRST + MORE) / 2);
}

static void stopped_streams_hold_the_rest_of_one_revision_each(void **state)
{
    (void)state;
    enum { STREAMS = 200, REVISIONS = 300 };
    struct client *clients = xcalloc(STREAMS, sizeof(clients[0]));
    for (int i = 0; i < STREAMS; i++) {
        client_open(&clients[i], hub);
        create(&clients[i], 1, all);
        client_pull(&clients[i], ROOM);
    }
    for (int k = 0; k < REVISIONS; k++) {
        put(2, 1);
        turn(ROOM);
        for (int i = 0; k == 0 && i < STREAMS; i++)
            client_pull(&clients[i], 10);
    }
    struct watch_stats stats = watch_hub_scan_stats(hub)->stats;
    assert_int_equal(stats.streams_stopped, STREAMS);
    assert_int_equal(stats.behind_max, 2 * REVISIONS);
    assert_true(stats.held_bytes > 0 && stats.held_bytes < STREAMS * 64);
    for (int i = 0; i < STREAMS; i++) {
        while (clients[i].awake)
            client_pull(&clients[i], ROOM);
        assert_true(client_next(&clients[i])->created);
        for (size_t k = 0; k < 2 * REVISIONS;)
            k += client_next(&clients[i])->events_count;
        assert_null(client_next(&clients[i]));
        client_close(&clients[i]);
    }
    assert_int_equal(watch_hub_scan_stats(hub)->stats.held_bytes, 0);
    free(clients);
}

/* The ranges that cover the events of a run are found once for all streams of a turn. */
static void a_range_may_be_freed_between_the_fills_of_a_turn(void **state)
{
    (void)state;
    enum { WATCHERS = 20, LONG = 300 << 10 }; /* so long that the sanitizer sees it freed */
    struct client other;
    char *end = xmalloc(LONG);
    memset(end, 'l', LONG);
    client_open(&other, hub);
    create(&client, WATCHERS, all);
    expect_created(WATCHERS);
    struct watch_create wanted = {.key = SLICE_LITERAL("k"), .range_end = slice_of(end, LONG)};
    create(&other, WATCHERS, wanted);
    free(end);
    client_pull(&other, ROOM);
    put(3, 10);
    assert_false(watch_hub_turn_begin(hub, 0));
    client_pull(&client, 200);
    client_close(&other);
    while (client_pull(&client, 200))
        ;
    watch_hub_turn_end(hub);
    memory_turn_end(&memory);
    size_t events = 0;
    const struct pb_watch_response *response;
    while ((response = client_next(&client)) != NULL)
        events += response->events_count;
    assert_int_equal(events, 3 * WATCHERS);
}

/* Finding the watchers of revisions that concern other streams takes longer than skipping them. */
static void a_stream_skips_what_concerns_others_but_not_a_few_between_its_own(void **state)
{
    (void)state;
    enum { OTHERS = 3 * WATCH_GAP_MAX, SOME = 10 };
    struct client other;
    client_open(&other, hub);
    create(&other, 1, (struct watch_create){.key = SLICE_LITERAL("other")});
    client_pull(&other, ROOM);
    create(&client, SOME, (struct watch_create){.key = SLICE_LITERAL("k")});
    expect_created(SOME);
    for (int i = 0; i < OTHERS; i++)
        memory_put(&memory, i % 2 ? "other" : "unwatched", "v");
    put(1, 1);
    memory_put(&memory, "other", "v");
    put(1, 1);
    for (int i = 0; i < OTHERS; i++)
        memory_put(&memory, "other", "v");
    put(1, 1);
    assert_false(watch_hub_turn_begin(hub, 0));
    int64_t first = 2 + OTHERS, last = first + 3 + OTHERS;
    struct watch_place place = {.revision = 2};
    assert_int_equal(hub_skip_others(hub, client.stream, last, &place), first + 2);
    assert_int_equal(place.revision, first);
    place.revision = first + 3;
    assert_int_equal(hub_skip_others(hub, client.stream, last, &place), last);
    assert_int_equal(place.revision, last);
    place.revision = first + 1;
    assert_int_equal(hub_skip_others(hub, client.stream, first + 1, &place), first + 1);
    assert_int_equal(place.revision, first + 1);
    client_pull(&client, ROOM);
    client_pull(&other, ROOM);
    watch_hub_turn_end(hub);
    memory_turn_end(&memory);
    place.revision = 2; /* read in an earlier turn */
    assert_int_equal(hub_skip_others(hub, client.stream, last, &place), last);
    assert_int_equal(place.revision, 2);
    static const size_t counts[] = {2, 1};
    for (size_t i = 0; i < COUNT_OF(counts) * SOME; i++)
        assert_int_equal(client_next(&client)->events_count, counts[i / SOME]);
    assert_null(client_next(&client));
    assert_true(client_next(&other)->created);
    size_t events = 0;
    for (const struct pb_watch_response *r; (r = client_next(&other)) != NULL;)
        events += r->events_count;
    assert_int_equal(events, OTHERS / 2 + 1 + OTHERS);
    client_close(&other);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)
    const struct CMUnitTest tests[] = {
        TEST(revisions_of_one_turn_come_in_one_response_of_each_watcher),
        TEST(a_run_ends_at_its_events_and_bytes_and_before_a_long_revision),
        TEST(a_watcher_that_begins_within_a_run_gets_the_rest_of_it),
        TEST(a_run_that_was_sent_to_some_watchers_is_the_same_for_the_others),
        TEST(a_range_may_be_freed_between_the_fills_of_a_turn),
        TEST(a_stream_skips_what_concerns_others_but_not_a_few_between_its_own),
        TEST(stopped_streams_hold_the_rest_of_one_revision_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
