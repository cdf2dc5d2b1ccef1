#include "watch/stream/stream.h"

#include "base/clock.h"
#include "watch/client_test.h"
#include "watch/history_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { ROOM = 16384 };

struct bench {
    struct memory_history memory;
    struct watch_hub *hub;
    struct client client;
    int64_t now_ns;
};

static struct bench *bench_new(size_t fragment_bytes)
{
    struct bench *bench = xcalloc(1, sizeof(*bench));
    memory_init(&bench->memory);
    bench->hub = watch_hub_new(&(struct watch_hub_options){
        .history = &bench->memory.history,
        .identity = {.cluster_id = 11, .member_id = 22, .raft_term = 2},
        .fragment_bytes = fragment_bytes,
        .watchers_max = 100,
        .progress_interval_ns = 10 * NS_PER_S,
        .seed = 4,
    });
    client_open(&bench->client, bench->hub);
    return bench;
}

static void bench_free(struct bench *bench)
{
    client_close(&bench->client);
    watch_hub_free(bench->hub);
    assert_false(bench->memory.listening);
    memory_fini(&bench->memory);
    free(bench);
}

/* One turn of a loop: reads new revisions, pulls while there is something, ends the turn. */
static bool turn(struct bench *bench, struct client *client, size_t room)
{
    bool more = watch_hub_turn_begin(bench->hub, bench->now_ns);
    client_pull(client, room);
    watch_hub_turn_end(bench->hub);
    memory_turn_end(&bench->memory);
    watch_hub_check(bench->hub);
    return more || client->awake || watch_hub_next_ns(bench->hub) <= bench->now_ns;
}

static void run(struct bench *bench)
{
    while (turn(bench, &bench->client, ROOM))
        ;
}

static void create(struct bench *bench, struct watch_create create)
{
    assert_int_equal(watch_stream_create(bench->client.stream, &create), ST_OK);
}

/* The next response, which must exist. */
static struct pb_watch_response *expect(struct bench *bench, int64_t id, int64_t revision)
{
    struct pb_watch_response *response = client_next(&bench->client);
    assert_non_null(response);
    assert_int_equal(response->watch_id, id);
    assert_int_equal(response->header->cluster_id, 11);
    assert_int_equal(response->header->member_id, 22);
    assert_int_equal(response->header->raft_term, 2);
    assert_int_equal(response->header->revision, revision);
    return response;
}

static void expect_created(struct bench *bench, int64_t id, int64_t revision)
{
    struct pb_watch_response *response = expect(bench, id, revision);
    assert_true(response->created);
    assert_false(response->canceled);
    assert_int_equal(response->events_count, 0);
}

static void expect_refused(struct bench *bench, const char *reason)
{
    struct pb_watch_response *response = expect(bench, -1, bench->memory.published);
    assert_true(response->created);
    assert_true(response->canceled);
    assert_int_equal(response->compact_revision, 0);
    assert_true(slice_equal(response->cancel_reason, slice_from_text(reason)));
}

static void expect_put(const struct pb_event *event, const char *key, int64_t revision)
{
    assert_int_equal(event->type, 0);
    assert_true(slice_equal(event->kv->key, slice_from_text(key)));
    assert_int_equal(event->kv->mod_revision, revision);
}

static void expect_one_put(struct bench *bench, int64_t id, const char *key, int64_t revision)
{
    struct pb_watch_response *response = expect(bench, id, revision);
    assert_int_equal(response->events_count, 1);
    expect_put(&response->events[0], key, revision);
}

static void expect_nothing(struct bench *bench)
{
    assert_null(client_next(&bench->client));
    assert_int_equal(bench->client.bytes.len, 0);
}

static struct watch_create on_key(const char *key)
{
    return (struct watch_create){.key = slice_from_text(key)};
}

static struct watch_create on_range(const char *key, const char *end)
{
    return (struct watch_create){.key = slice_from_text(key), .range_end = slice_from_text(end)};
}

/* -- Live -- */

static void watch_from_now_gets_later_events(void **state)
{
    (void)state;
    struct bench *bench = bench_new(2 << 20);
    memory_put(&bench->memory, "a", "before");
    create(bench, on_key("a"));
    assert_true(bench->memory.listening);
    run(bench);
    expect_created(bench, 0, 2);
    memory_put(&bench->memory, "a", "x");
    run(bench);
    memory_put(&bench->memory, "b", "x");
    memory_delete(&bench->memory, "a");
    run(bench);
    expect_one_put(bench, 0, "a", 3);
    struct pb_watch_response *response = expect(bench, 0, 5);
    assert_int_equal(response->events[0].type, PB_EVENT_TYPE_DELETE);
    assert_int_equal(response->events[0].kv->mod_revision, 5);
    assert_int_equal(response->events[0].kv->version, 0);
    expect_nothing(bench);
    bench_free(bench);
}

static void stream_without_new_events_is_not_woken(void **state)
{
    (void)state;
    struct bench *bench = bench_new(2 << 20);
    create(bench, on_key("a"));
    run(bench);
    unsigned wakes = bench->client.wakes;
    for (int i = 0; i < 10; i++)
        memory_put(&bench->memory, "b", "x");
    run(bench);
    assert_int_equal(bench->client.wakes, wakes);
    memory_put(&bench->memory, "a", "x");
    memory_put(&bench->memory, "a", "x");
    run(bench);
    assert_int_equal(bench->client.wakes, wakes + 1);
    bench_free(bench);
}

static void all_events_of_a_transaction_come_in_one_response_in_its_order(void **state)
{
    (void)state;
    struct bench *bench = bench_new(2 << 20);
    create(bench, on_range("b", "c"));
    run(bench);
    expect_created(bench, 0, 1);
    memory_begin(&bench->memory);
    const char *keys[] = {"b2", "a", "b1", "c", "b"};
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        memory_add(&bench->memory, slice_from_text(keys[i]), SLICE_LITERAL("v"), false);
    memory_publish(&bench->memory);
    run(bench);
    struct pb_watch_response *response = expect(bench, 0, 2);
    assert_int_equal(response->events_count, 3);
    expect_put(&response->events[0], "b2", 2);
    expect_put(&response->events[1], "b1", 2);
    expect_put(&response->events[2], "b", 2);
    expect_nothing(bench);
    bench_free(bench);
}

static void each_watcher_has_its_own_filters_and_previous_values(void **state)
{
    (void)state;
    struct bench *bench = bench_new(2 << 20);
    memory_put(&bench->memory, "a", "old");
    create(bench, (struct watch_create){.key = SLICE_LITERAL("a"), .no_put = true});
    create(bench, (struct watch_create){.key = SLICE_LITERAL("a"), .no_delete = true});
    create(bench, (struct watch_create){.key = SLICE_LITERAL("a"), .prev_kv = true, .watch_id = 9});
    run(bench);
    for (int64_t i = 0; i < 2; i++)
        expect_created(bench, i, 2);
    expect_created(bench, 9, 2);
    unsigned puts = 0, deletes = 0;
    memory_put(&bench->memory, "a", "new");
    run(bench);
    memory_delete(&bench->memory, "a");
    run(bench);
    for (int i = 0; i < 4; i++) {
        struct pb_watch_response *response = client_next(&bench->client);
        assert_non_null(response);
        assert_int_equal(response->events_count, 1);
        const struct pb_event *event = &response->events[0];
        if (response->watch_id == 0)
            assert_int_equal(event->type, PB_EVENT_TYPE_DELETE);
        if (response->watch_id == 1)
            assert_int_equal(event->type, PB_EVENT_TYPE_PUT);
        assert_int_equal(event->prev_kv != NULL, response->watch_id == 9);
        if (response->watch_id == 9)
            assert_true(slice_equal(event->prev_kv->value,
                                    event->type ? SLICE_LITERAL("new") : SLICE_LITERAL("old")));
        puts += event->type == PB_EVENT_TYPE_PUT;
        deletes += event->type == PB_EVENT_TYPE_DELETE;
    }
    assert_int_equal(puts, 2);
    assert_int_equal(deletes, 2);
    expect_nothing(bench);
    bench_free(bench);
}

/* -- Requests -- */

static void what_etcd_refuses_is_created_and_canceled_in_one_response(void **state)
{
    (void)state;
    struct bench *bench = bench_new(2 << 20);
    memory_put(&bench->memory, "a", "x");
    create(bench, on_range("b", "a"));
    create(bench, on_range("b", "b"));
    create(bench, (struct watch_create){.key = SLICE_LITERAL("a"), .start_revision = -1});
    create(bench, (struct watch_create){.key = SLICE_LITERAL("a"), .watch_id = 5});
    create(bench, (struct watch_create){.key = SLICE_LITERAL("a"), .watch_id = 5});
    assert_int_equal(watch_stream_refuse(bench->client.stream, SLICE_LITERAL("not you")), ST_OK);
    run(bench);
    expect_refused(bench, "mvcc: watcher range is empty");
    expect_refused(bench, "mvcc: watcher range is empty");
    expect_refused(bench, "etcdserver: mvcc: required revision has been compacted");
    expect_created(bench, 5, 2);
    expect_refused(bench, "mvcc: duplicate watch ID provided on the WatchStream");
    expect_refused(bench, "not you");
    expect_nothing(bench);
    bench_free(bench);
}

static void ids_are_chosen_from_zero_up_and_skip_those_in_use(void **state)
{
    (void)state;
    struct bench *bench = bench_new(2 << 20);
    create(bench, (struct watch_create){.key = SLICE_LITERAL("a"), .watch_id = 1});
    create(bench, (struct watch_create){.key = SLICE_LITERAL("a"), .watch_id = -7});
    create(bench, on_key("a"));
    create(bench, on_key("a"));
    run(bench);
    expect_created(bench, 1, 1);
    expect_created(bench, -7, 1);
    expect_created(bench, 0, 1);
    expect_created(bench, 2, 1);
    assert_int_equal(watch_stream_cancel(bench->client.stream, 1), ST_OK);
    assert_int_equal(watch_stream_cancel(bench->client.stream, 1), ST_OK);
    assert_int_equal(watch_stream_cancel(bench->client.stream, 77), ST_OK);
    create(bench, (struct watch_create){.key = SLICE_LITERAL("a"), .watch_id = 1});
    run(bench);
    struct pb_watch_response *response = expect(bench, 1, 1);
    assert_true(response->canceled);
    assert_false(response->created);
    assert_int_equal(response->cancel_reason.len, 0);
    expect_created(bench, 1, 1);
    expect_nothing(bench);
    bench_free(bench);
}

static void empty_key_is_the_smallest_and_a_zero_byte_means_no_end(void **state)
{
    (void)state;
    struct bench *bench = bench_new(2 << 20);
    create(bench, (struct watch_create){.range_end = slice_of("\0", 1)});
    create(bench, (struct watch_create){0});
    run(bench);
    expect_created(bench, 0, 1);
    expect_created(bench, 1, 1);
    memory_put(&bench->memory, "zz", "x");
    run(bench);
    expect_one_put(bench, 0, "zz", 2);
    expect_nothing(bench);
    bench_free(bench);
}

static void watches_and_waiting_requests_are_limited(void **state)
{
    (void)state;
    struct bench *bench = bench_new(2 << 20);
    for (int i = 0; i < 101; i++)
        create(bench, on_key("a"));
    run(bench);
    for (int i = 0; i < 100; i++)
        expect_created(bench, i, 1);
    expect_refused(bench, "vigil: too many watches on one stream");
    enum status status = ST_OK;
    size_t asked = 0;
    while (status == ST_OK && asked < 100000) {
        status = watch_stream_refuse(bench->client.stream, SLICE_LITERAL("no"));
        asked++;
    }
    assert_int_equal(status, ST_LIMIT);
    assert_int_equal(watch_stream_waiting(bench->client.stream), asked - 1);
    struct watch_create more = on_key("a");
    assert_int_equal(watch_stream_create(bench->client.stream, &more), ST_LIMIT);
    assert_int_equal(watch_stream_cancel(bench->client.stream, 3), ST_LIMIT);
    run(bench);
    assert_int_equal(watch_stream_waiting(bench->client.stream), 0);
    bench_free(bench);
}

/* -- The past and the future -- */

static void watch_from_the_past_catches_up_and_becomes_live(void **state)
{
    (void)state;
    struct bench *bench = bench_new(2 << 20);
    for (int i = 0; i < 5; i++)
        memory_put(&bench->memory, i % 2 ? "b" : "a", "x");
    create(bench, (struct watch_create){.key = SLICE_LITERAL("a"), .start_revision = 4});
    run(bench);
    expect_created(bench, 0, 6);
    struct pb_watch_response *response = expect(bench, 0, 6);
    assert_int_equal(response->events_count, 2);
    expect_put(&response->events[0], "a", 4);
    expect_put(&response->events[1], "a", 6);
    expect_nothing(bench);
    memory_put(&bench->memory, "a", "x");
    run(bench);
    expect_one_put(bench, 0, "a", 7);
    bench_free(bench);
}

static void watch_from_the_future_is_silent_until_then(void **state)
{
    (void)state;
    struct bench *bench = bench_new(2 << 20);
    create(bench, (struct watch_create){
                      .key = SLICE_LITERAL("a"), .start_revision = 4, .progress_notify = true});
    run(bench);
    expect_created(bench, 0, 1);
    memory_put(&bench->memory, "a", "x");
    run(bench);
    assert_int_equal(watch_stream_progress(bench->client.stream, INT64_MAX), ST_OK);
    bench->now_ns += 30 * NS_PER_S;
    run(bench);
    expect_nothing(bench);
    memory_put(&bench->memory, "a", "x");
    memory_put(&bench->memory, "a", "x");
    run(bench);
    expect_one_put(bench, 0, "a", 4);
    assert_int_equal(watch_stream_progress(bench->client.stream, INT64_MAX), ST_OK);
    run(bench);
    expect(bench, -1, 4);
    expect_nothing(bench);
    bench_free(bench);
}

static void watch_that_starts_below_a_compaction_is_canceled(void **state)
{
    (void)state;
    struct bench *bench = bench_new(2 << 20);
    for (int i = 0; i < 9; i++)
        memory_put(&bench->memory, "a", "x");
    bench->memory.compacted = 5;
    create(bench, (struct watch_create){.key = SLICE_LITERAL("a"), .start_revision = 4});
    create(bench, (struct watch_create){.key = SLICE_LITERAL("a"), .start_revision = 5});
    run(bench);
    expect_created(bench, 0, 10);
    expect_created(bench, 1, 10);
    struct pb_watch_response *response = client_next(&bench->client);
    assert_int_equal(response->watch_id, 0);
    assert_true(response->canceled);
    assert_false(response->created);
    assert_int_equal(response->compact_revision, 5);
    assert_int_equal(response->header->revision, 0);
    assert_int_equal(response->header->cluster_id, 11);
    assert_int_equal(response->cancel_reason.len, 0);
    response = expect(bench, 1, 10);
    assert_int_equal(response->events_count, 6);
    expect_put(&response->events[0], "a", 5);
    expect_nothing(bench);
    bench_free(bench);
}

/* One watcher is live, one catches up, and one begins behind the damage. */
static void watchers_that_reach_damage_are_canceled_and_those_past_it_continue(void **state)
{
    (void)state;
    struct bench *bench = bench_new(2 << 20);
    for (int i = 0; i < 4; i++)
        memory_put(&bench->memory, "a", "x");
    create(bench, (struct watch_create){.key = SLICE_LITERAL("a")});
    create(bench, (struct watch_create){.key = SLICE_LITERAL("a"), .start_revision = 2});
    create(bench, (struct watch_create){.key = SLICE_LITERAL("a"), .start_revision = 7});
    bench->memory.damaged = 6;
    memory_put(&bench->memory, "b", "x");
    memory_put(&bench->memory, "a", "x");
    run(bench);
    bool told[2] = {false, false}, went_on = false;
    for (struct pb_watch_response *r; (r = client_next(&bench->client)) != NULL;) {
        if (r->canceled) {
            assert_in_range(r->watch_id, 0, 1);
            assert_true(slice_equal(r->cancel_reason, slice_from_text(status_text(ST_CORRUPT))));
            assert_int_equal(r->compact_revision, 0);
            told[r->watch_id] = true;
        }
        went_on |= r->watch_id == 2 && r->events_count == 1;
        assert_true(r->watch_id != 0 || r->events_count == 0);
    }
    assert_true(told[0] && told[1] && went_on);
    bench_free(bench);
}

static void stopped_stream_resumes_without_gap_or_reports_the_compaction(void **state)
{
    (void)state;
    struct bench *bench = bench_new(2 << 20);
    create(bench, on_key("a"));
    create(bench, on_key("b"));
    run(bench);
    expect_created(bench, 0, 1);
    expect_created(bench, 1, 1);
    for (int i = 0; i < 3000; i++)
        memory_put(&bench->memory, "a", "x");
    while (turn(bench, &bench->client, 1) && bench->client.bytes.len < 100)
        ;
    /* Stopped in the middle of a message, while its past is compacted. */
    bench->memory.compacted = 2000;
    run(bench);
    struct pb_watch_response *response;
    int64_t next = 2;
    while ((response = client_next(&bench->client)) != NULL && !response->canceled)
        expect_put(&response->events[0], "a", next++);
    assert_true(next > 2 && next < 10);
    for (int i = 0; i < 2; i++) {
        assert_non_null(response);
        assert_int_equal(response->compact_revision, 2000);
        response = client_next(&bench->client);
    }
    assert_null(response);
    assert_int_equal(watch_stream_status(bench->client.stream), ST_OK);
    bench_free(bench);
}

/* -- Large responses -- */

static char *long_text(size_t len)
{
    char *text = xmalloc(len + 1);
    memset(text, 'v', len);
    text[len] = 0;
    return text;
}

static void put_three(struct bench *bench, size_t value_bytes)
{
    char *value = long_text(value_bytes);
    memory_begin(&bench->memory);
    const char *keys[] = {"a1", "a2", "a3"};
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        memory_add(&bench->memory, slice_from_text(keys[i]), slice_from_text(value), false);
    memory_publish(&bench->memory);
    free(value);
}

static void large_response_is_written_in_pieces_and_outlives_its_watcher(void **state)
{
    (void)state;
    struct bench *bench = bench_new(2 << 20);
    create(bench, on_range("a", "b"));
    run(bench);
    expect_created(bench, 0, 1);
    put_three(bench, 100000);
    put_three(bench, 100000);
    turn(bench, &bench->client, 1000);
    assert_int_equal(watch_stream_cancel(bench->client.stream, 0), ST_OK);
    while (turn(bench, &bench->client, 777))
        ;
    struct pb_watch_response *response = expect(bench, 0, 2);
    assert_int_equal(response->events_count, 3);
    assert_int_equal(response->events[2].kv->value.len, 100000);
    assert_true(expect(bench, 0, 3)->canceled);
    expect_nothing(bench);
    bench_free(bench);
}

static void large_response_cut_by_a_compaction_ends_the_call(void **state)
{
    (void)state;
    struct bench *bench = bench_new(2 << 20);
    create(bench, on_range("a", "b"));
    run(bench);
    put_three(bench, 100000);
    turn(bench, &bench->client, 1000);
    memory_put(&bench->memory, "b", "x");
    bench->memory.compacted = 3;
    run(bench);
    assert_int_equal(watch_stream_status(bench->client.stream), ST_COMPACTED);
    bench_free(bench);
}

static void fragments_follow_each_other_with_nothing_between(void **state)
{
    (void)state;
    struct bench *bench = bench_new(2500);
    struct watch_create wanted = on_range("a", "b");
    wanted.fragment = true;
    create(bench, wanted);
    create(bench, on_range("a", "b"));
    run(bench);
    expect_created(bench, 0, 1);
    expect_created(bench, 1, 1);
    put_three(bench, 1000);
    put_three(bench, 1000);
    bool asked = false;
    while (turn(bench, &bench->client, 100)) {
        if (!asked)
            create(bench, on_key("q"));
        asked = true;
    }
    unsigned events = 0, pieces = 0, whole = 0, flagged = 0;
    bool open = false;
    struct pb_watch_response *response;
    while ((response = client_next(&bench->client)) != NULL) {
        if (open)
            assert_int_equal(response->watch_id, 0);
        open = response->fragment;
        flagged += open;
        if (response->watch_id == 0) {
            events += (unsigned)response->events_count;
            pieces++;
        }
        if (response->watch_id == 1) {
            assert_int_equal(response->events_count, 3);
            whole++;
        }
    }
    assert_false(open);
    assert_int_equal(flagged, 2);
    assert_int_equal(events, 6);
    assert_int_equal(pieces, 4);
    assert_int_equal(whole, 2);
    bench_free(bench);
}

/* -- Progress -- */

static void progress_by_interval_skips_a_watcher_that_had_an_event(void **state)
{
    (void)state;
    struct bench *bench = bench_new(2 << 20);
    for (int i = 0; i < 20; i++)
        create(bench, (struct watch_create){.key = i ? SLICE_LITERAL("a") : SLICE_LITERAL("b"),
                                            .progress_notify = i < 2});
    run(bench);
    for (int i = 0; i < 20; i++)
        expect_created(bench, i, 1);
    int64_t tick = watch_hub_next_ns(bench->hub);
    assert_true(tick >= 10 * NS_PER_S && tick <= 11 * NS_PER_S);
    bench->now_ns = tick - 1;
    run(bench);
    expect_nothing(bench);
    memory_put(&bench->memory, "b", "x");
    run(bench);
    expect_one_put(bench, 0, "b", 2);
    bench->now_ns = tick;
    run(bench);
    assert_int_equal(expect(bench, 1, 2)->events_count, 0);
    expect_nothing(bench);
    bench->now_ns = tick + 11 * NS_PER_S;
    run(bench);
    unsigned seen = 0;
    struct pb_watch_response *response;
    while ((response = client_next(&bench->client)) != NULL)
        seen |= 1u << response->watch_id;
    assert_int_equal(seen, 3);
    bench_free(bench);
}

static void requested_progress_comes_after_everything_up_to_its_revision(void **state)
{
    (void)state;
    struct bench *bench = bench_new(2 << 20);
    assert_int_equal(watch_stream_progress(bench->client.stream, INT64_MAX), ST_OK);
    run(bench);
    expect_nothing(bench);
    for (int i = 0; i < 100; i++)
        memory_put(&bench->memory, "a", "x");
    create(bench, (struct watch_create){.key = SLICE_LITERAL("a"), .start_revision = 2});
    assert_int_equal(watch_stream_progress(bench->client.stream, INT64_MAX), ST_OK);
    assert_int_equal(watch_stream_progress(bench->client.stream, INT64_MAX), ST_OK);
    while (turn(bench, &bench->client, 50))
        ;
    expect_created(bench, 0, 101);
    for (size_t events = 0; events < 100;)
        events += expect(bench, 0, 101)->events_count;
    expect(bench, -1, 101);
    expect_nothing(bench);
    bench_free(bench);
}

/* -- Sharing -- */

static void live_watchers_are_not_delayed_by_one_that_catches_up(void **state)
{
    (void)state;
    struct bench *bench = bench_new(2 << 20);
    char *value = long_text(1000);
    for (int i = 0; i < 2000; i++)
        memory_put(&bench->memory, "past", value);
    free(value);
    create(bench, (struct watch_create){.key = SLICE_LITERAL("past"), .start_revision = 2});
    create(bench, on_key("live"));
    turn(bench, &bench->client, ROOM);
    memory_put(&bench->memory, "live", "x");
    run(bench);
    size_t before = 0, behind = 0;
    bool seen = false;
    struct pb_watch_response *response;
    while ((response = client_next(&bench->client)) != NULL) {
        bool live = response->watch_id == 1 && response->events_count;
        seen = seen || live;
        if (!live)
            *(seen ? &behind : &before) += response->events_count;
    }
    assert_true(seen);
    assert_int_equal(before + behind, 2000);
    assert_true(before < 200);
    bench_free(bench);
}

/* Many revisions of a key that is not watched. */
static void put_others(struct bench *bench, int revisions)
{
    for (int i = 0; i < revisions; i++) {
        memory_begin(&bench->memory);
        memory_publish(&bench->memory);
        struct memory_revision *revision = &bench->memory.revisions[bench->memory.revision];
        revision->events = xcalloc(1, sizeof(revision->events[0]));
        revision->count = 1;
        assert_int_equal(buf_append(&revision->events[0].key, SLICE_LITERAL("k")), ST_OK);
        assert_int_equal(buf_append(&revision->events[0].field, SLICE_LITERAL("\x12\0")), ST_OK);
    }
}

static void long_search_is_spread_over_turns(void **state)
{
    (void)state;
    struct bench *bench = bench_new(2 << 20);
    memory_put(&bench->memory, "first", "x");
    put_others(bench, 20000);
    memory_put(&bench->memory, "last", "x");
    create(bench, (struct watch_create){.key = SLICE_LITERAL("last"), .start_revision = 2});
    unsigned turns = 1;
    while (turn(bench, &bench->client, ROOM))
        turns++;
    assert_true(turns >= 5);
    expect_created(bench, 0, 20003);
    assert_int_equal(expect(bench, 0, 20003)->events_count, 1);
    bench_free(bench);
}

static void more_places_in_the_past_than_scans_of_a_stream_are_all_served(void **state)
{
    (void)state;
    enum { PLACES = 12, APART = 5000 };
    struct bench *bench = bench_new(2 << 20);
    int64_t at[PLACES];
    for (int i = 0; i < PLACES; i++) {
        put_others(bench, APART);
        memory_put(&bench->memory, "w", "x");
        at[i] = bench->memory.revision;
    }
    /* The newest first: those before it need places before all others. */
    for (int i = PLACES; i-- > 0;)
        create(bench, (struct watch_create){
                          .key = SLICE_LITERAL("w"), .start_revision = at[i], .watch_id = i + 1});
    run(bench);
    int next[PLACES];
    for (int i = 0; i < PLACES; i++)
        next[i] = i;
    struct pb_watch_response *response;
    while ((response = client_next(&bench->client)) != NULL) {
        int *of_watch = &next[response->watch_id - 1];
        for (size_t i = 0; i < response->events_count; i++)
            expect_put(&response->events[i], "w", at[(*of_watch)++]);
    }
    for (int i = 0; i < PLACES; i++)
        assert_int_equal(next[i], PLACES);
    assert_int_equal(watch_hub_scan_stats(bench->hub)->stats.watchers_catching_up, 0);
    bench_free(bench);
}

static void stream_waits_for_a_history_that_is_not_ready(void **state)
{
    (void)state;
    struct bench *bench = bench_new(2 << 20);
    for (int i = 0; i < 10; i++)
        memory_put(&bench->memory, "a", "x");
    bench->memory.again_every = 1;
    create(bench, (struct watch_create){.key = SLICE_LITERAL("a"), .start_revision = 2});
    create(bench, on_key("a"));
    run(bench);
    expect_created(bench, 0, 11);
    expect_created(bench, 1, 11);
    memory_put(&bench->memory, "a", "x");
    run(bench);
    expect_nothing(bench);
    bench->memory.again_every = 0;
    watch_hub_history_ready(bench->hub);
    run(bench);
    size_t events[2] = {0};
    struct pb_watch_response *response;
    while ((response = client_next(&bench->client)) != NULL)
        events[response->watch_id] += response->events_count;
    assert_int_equal(events[0], 11);
    assert_int_equal(events[1], 1);
    bench_free(bench);
}

static void progress_waits_for_a_history_that_is_not_ready(void **state)
{
    (void)state;
    struct bench *bench = bench_new(2 << 20);
    create(bench, on_key("a"));
    run(bench);
    expect_created(bench, 0, 1);
    memory_put(&bench->memory, "b", "x");
    bench->memory.again_every = 1;
    assert_int_equal(watch_stream_progress(bench->client.stream, INT64_MAX), ST_OK);
    for (int i = 0; i < 3; i++)
        (void)turn(bench, &bench->client, ROOM);
    assert_false(turn(bench, &bench->client, ROOM)); /* there is nothing to do */
    expect_nothing(bench);
    bench->memory.again_every = 0;
    watch_hub_history_ready(bench->hub);
    run(bench);
    struct pb_watch_response *response = client_next(&bench->client);
    assert_non_null(response);
    assert_int_equal(response->watch_id, -1);
    assert_int_equal(response->header->revision, 2);
    bench_free(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(watch_from_now_gets_later_events),
        cmocka_unit_test(stream_without_new_events_is_not_woken),
        cmocka_unit_test(all_events_of_a_transaction_come_in_one_response_in_its_order),
        cmocka_unit_test(each_watcher_has_its_own_filters_and_previous_values),
        cmocka_unit_test(what_etcd_refuses_is_created_and_canceled_in_one_response),
        cmocka_unit_test(ids_are_chosen_from_zero_up_and_skip_those_in_use),
        cmocka_unit_test(empty_key_is_the_smallest_and_a_zero_byte_means_no_end),
        cmocka_unit_test(watches_and_waiting_requests_are_limited),
        cmocka_unit_test(watch_from_the_past_catches_up_and_becomes_live),
        cmocka_unit_test(watch_from_the_future_is_silent_until_then),
        cmocka_unit_test(watch_that_starts_below_a_compaction_is_canceled),
        cmocka_unit_test(watchers_that_reach_damage_are_canceled_and_those_past_it_continue),
        cmocka_unit_test(stopped_stream_resumes_without_gap_or_reports_the_compaction),
        cmocka_unit_test(large_response_is_written_in_pieces_and_outlives_its_watcher),
        cmocka_unit_test(large_response_cut_by_a_compaction_ends_the_call),
        cmocka_unit_test(fragments_follow_each_other_with_nothing_between),
        cmocka_unit_test(progress_by_interval_skips_a_watcher_that_had_an_event),
        cmocka_unit_test(requested_progress_comes_after_everything_up_to_its_revision),
        cmocka_unit_test(live_watchers_are_not_delayed_by_one_that_catches_up),
        cmocka_unit_test(long_search_is_spread_over_turns),
        cmocka_unit_test(more_places_in_the_past_than_scans_of_a_stream_are_all_served),
        cmocka_unit_test(stream_waits_for_a_history_that_is_not_ready),
        cmocka_unit_test(progress_waits_for_a_history_that_is_not_ready),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
