#include "mirror/backfill/fake_cluster_test.h"
#include "watch/client_test.h"

/* A hub over a past whose mirror begins behind all revisions that were written before `begin`. */
struct fixture {
    struct clock_sim clock;
    struct loop *loop;
    struct memory_history memory;
    struct backfill *backfill;
    struct watch_hub *hub;
};

static struct fixture f;

static void fill_memory(int revisions, size_t value_len)
{
    char key[16];
    uint8_t *value = xmalloc(value_len);
    memset(value, 'v', value_len);
    for (int i = 0; i < revisions; i++) {
        snprintf(key, sizeof(key), "k%d", (int)(f.memory.revision + 9) % 10);
        memory_begin(&f.memory);
        memory_add(&f.memory, slice_from_text(key), slice_of(value, value_len), false);
        memory_add(&f.memory, SLICE_LITERAL("other"), slice_of(value, value_len), false);
    }
    memory_publish(&f.memory);
    free(value);
}

static void begin(struct backfill_options options)
{
    struct backfill_calls calls = fake_calls();
    clock_sim_init(&f.clock, 0);
    assert_int_equal(loop_new(&f.clock.clock, &f.loop), ST_OK);
    fake_begin(&f.memory);
    f.memory.compacted = f.memory.published;
    atomic_store(&fake.known_oldest, f.memory.published + 1);
    options.loop = f.loop;
    options.cluster = fake_known();
    options.compacted = fake_compacted;
    f.backfill = backfill_new(&options);
    f.hub = watch_hub_new(&(struct watch_hub_options){
        .history = backfill_wrap(f.backfill, &f.memory.history),
        .fragment_bytes = 2 << 20,
        .watchers_max = 100000,
        .progress_interval_ns = 600 * NS_PER_S,
        .seed = 1,
    });
    backfill_start(f.backfill, &calls, f.hub);
}

static int set_up(void **state)
{
    (void)state;
    memset(&f, 0, sizeof(f));
    memory_init(&f.memory);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    backfill_stop(f.backfill);
    assert_int_equal(fake.count, 0);
    watch_hub_free(f.hub);
    backfill_free(f.backfill);
    loop_free(f.loop);
    memory_fini(&f.memory);
    return 0;
}

static void turn(int64_t ns)
{
    bool more = watch_hub_turn_begin(f.hub, f.clock.mono_ns);
    (void)more;
    watch_hub_turn_end(f.hub);
    memory_turn_end(&f.memory);
    backfill_flushed(f.backfill);
    clock_sim_advance(&f.clock, ns);
    loop_turn(f.loop, 0);
    backfill_check(f.backfill);
}

static void create(struct client *client, int64_t from)
{
    client_open(client, f.hub);
    struct watch_create made = {.key = SLICE_LITERAL("k"),
                                .range_end = SLICE_LITERAL("l"),
                                .start_revision = from,
                                .prev_kv = true};
    assert_int_equal(watch_stream_create(client->stream, &made), ST_OK);
}

/* What a client has received. */
struct received {
    int64_t next;    /* the revision that must come next */
    int64_t compact; /* it was ended by this compaction */
    int64_t progress;
};

static void receive(struct client *client, struct received *received)
{
    bool more = watch_hub_turn_begin(f.hub, f.clock.mono_ns);
    (void)more;
    for (int i = 0; i < 100 && client->awake; i++)
        client_pull(client, 1 << 20);
    watch_hub_turn_end(f.hub);
    memory_turn_end(&f.memory);
    backfill_flushed(f.backfill);
    struct pb_watch_response *response;
    while ((response = client_next(client)) != NULL) {
        if (response->compact_revision)
            received->compact = response->compact_revision;
        if (response->watch_id == -1)
            received->progress = response->header->revision;
        for (size_t i = 0; i < response->events_count; i++) {
            const struct pb_event *event = &response->events[i];
            assert_int_equal(event->kv->mod_revision, received->next);
            assert_int_equal(event->prev_kv != NULL, received->next > 11);
            if (event->prev_kv)
                assert_int_equal(event->prev_kv->mod_revision, received->next - 10);
            received->next++;
        }
    }
}

/* The cluster sends on, some revisions in a message. */
static void send_all(size_t revisions, size_t events)
{
    struct list *link = fake.calls.next;
    while (link != &fake.calls) {
        struct upstream_call *call = LIST_ENTRY(link, struct upstream_call, in_cluster);
        link = link->next;
        if (!call->paused)
            fake_step(call, revisions, events);
    }
}

static void one_fetch_serves_all_watchers_of_a_revision(void **state)
{
    (void)state;
    enum { COUNT = 1000, REVISIONS = 300 };
    static struct client clients[COUNT];
    static struct received received[COUNT];
    memset(received, 0, sizeof(received));
    fill_memory(REVISIONS, 10);
    begin((struct backfill_options){0});
    for (size_t i = 0; i < COUNT; i++) {
        create(&clients[i], 1);
        received[i].next = 2;
    }
    for (int i = 0; i < 20; i++) {
        turn(NS_PER_MS);
        send_all(50, 1000);
        for (size_t k = 0; k < COUNT; k++)
            receive(&clients[k], &received[k]);
    }
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(received[i].next, f.memory.published + 1);
        client_close(&clients[i]);
    }
    assert_int_equal(fake.opened, 1);
    turn(0);
    assert_int_equal(backfill_stats(f.backfill).fetches, 0); /* it has reached the mirror */
}

static void few_fetches_run_at_once(void **state)
{
    (void)state;
    enum { COUNT = 12, APART = 4200 };
    struct client clients[COUNT];
    struct received received[COUNT] = {0};
    fill_memory(COUNT * APART, 0);
    begin((struct backfill_options){0});
    for (size_t i = 0; i < COUNT; i++) {
        received[i].next = (int64_t)(2 + i * APART);
        create(&clients[i], received[i].next);
    }
    for (int i = 0; i < 3000 && received[0].next + received[COUNT - 1].next < 2 * COUNT * APART;
         i++) {
        turn(20 * NS_PER_MS);
        send_all(1000, 3000);
        for (size_t k = 0; k < COUNT; k++)
            receive(&clients[k], &received[k]);
    }
    for (size_t i = 0; i < COUNT; i++) {
        receive(&clients[i], &received[i]);
        assert_int_equal(received[i].next, f.memory.published + 1);
        client_close(&clients[i]);
    }
    assert_int_equal(fake.started_at_most, BACKFILL_FETCHES_MAX);
    assert_true(fake.opened <= 2 * COUNT);
}

/* Whatever message is the last one before a break, the watch continues where it was. */
static void a_break_anywhere_loses_and_repeats_nothing(void **state)
{
    (void)state;
    enum { REVISIONS = 40 };
    fill_memory(REVISIONS, 10);
    begin((struct backfill_options){0});
    for (size_t at = 0; at < 100; at++) {
        struct client client;
        struct received received = {.next = 2};
        create(&client, 1);
        size_t steps = 0;
        for (int i = 0; i < 300 && received.next <= f.memory.published; i++) {
            turn(NS_PER_MS);
            if (fake.count && steps++ == at)
                fake_break(fake_call(0));
            send_all(3, 1 + at % 4); /* fragments that end within revisions */
            receive(&client, &received);
            if (steps > at)
                turn(200 * NS_PER_MS);
        }
        assert_int_equal(received.next, f.memory.published + 1);
        client_close(&client);
        for (int i = 0; i < 25; i++)
            turn(NS_PER_S); /* everything is idle and dropped */
        assert_int_equal(backfill_stats(f.backfill).bytes, 0);
        assert_int_equal(backfill_stats(f.backfill).fetches, 0);
    }
}

static void a_compaction_ends_the_watches_that_need_it(void **state)
{
    (void)state;
    struct client clients[2];
    struct received received[2] = {{.next = 2}, {.next = 90}};
    fill_memory(100, 10);
    begin((struct backfill_options){0});
    create(&clients[0], 1);
    create(&clients[1], 90);
    for (int i = 0; i < 20 && received[0].next == 2; i++) {
        turn(NS_PER_MS);
        send_all(5, 1000);
        for (size_t k = 0; k < 2; k++)
            receive(&clients[k], &received[k]);
    }
    assert_true(received[0].next > 2 && received[0].next < 50);
    fake.compacted = 80;
    for (int i = 0; i < 30; i++) {
        turn(NS_PER_MS);
        send_all(5, 1000);
        for (size_t k = 0; k < 2; k++)
            receive(&clients[k], &received[k]);
    }
    assert_int_equal(received[0].compact, 80);
    assert_int_equal(atomic_load(&fake.known_compacted), 80);
    assert_int_equal(received[1].compact, 0);
    assert_int_equal(received[1].next, f.memory.published + 1);
    /* A watch from before is refused without a fetch. */
    size_t opened = fake.opened;
    struct client late;
    struct received gone = {0};
    create(&late, 79);
    turn(0);
    receive(&late, &gone);
    assert_int_equal(gone.compact, 80);
    assert_int_equal(fake.opened, opened);
    client_close(&late);
    client_close(&clients[0]);
    client_close(&clients[1]);
}

/* The follower learns of the compaction before a fetch was started for the watch. */
static void a_compaction_before_the_fetch_ends_the_watch(void **state)
{
    (void)state;
    struct client client;
    struct received received = {.next = 50};
    fill_memory(100, 10);
    begin((struct backfill_options){0});
    create(&client, 50);
    receive(&client, &received);
    assert_int_equal(fake.opened, 0);
    atomic_store(&fake.known_compacted, 80);
    for (int i = 0; i < 10; i++) {
        turn(NS_PER_MS);
        receive(&client, &received);
    }
    assert_int_equal(received.compact, 80);
    assert_int_equal(fake.opened, 0);
    client_close(&client);
}

static void memory_is_bounded_and_the_cluster_waits(void **state)
{
    (void)state;
    enum { BYTES = 100 * 1000, VALUE = 2000, REVISIONS = 2000 };
    struct client slow;
    struct received received = {.next = 2};
    fill_memory(REVISIONS, VALUE);
    begin((struct backfill_options){.bytes_max = BYTES});
    create(&slow, 1);
    turn(NS_PER_MS);
    for (int i = 0; i < 5; i++) {
        receive(&slow, &received);
        turn(NS_PER_MS);
        send_all(1, 2);
    }
    for (int i = 0; i < 200; i++) { /* the client reads nothing */
        turn(NS_PER_MS);
        send_all(3, 1000);
        assert_true(backfill_stats(f.backfill).bytes < 2 * BYTES);
    }
    for (size_t i = 0; i < fake.count; i++)
        assert_true(fake_call(i)->paused);
    for (int i = 0; i < 5000 && received.next <= f.memory.published; i++) {
        turn(NS_PER_MS);
        send_all(3, 1000);
        receive(&slow, &received);
        assert_true(backfill_stats(f.backfill).bytes < 2 * BYTES);
    }
    assert_int_equal(received.next, f.memory.published + 1);
    client_close(&slow);
}

static void a_revision_beyond_the_limit_ends_the_watches_that_need_it(void **state)
{
    (void)state;
    struct client client, behind;
    struct received received = {.next = 2}, after = {.next = 7};
    fill_memory(3, 10);
    memory_begin(&f.memory); /* revision 5 */
    for (int i = 0; i < 100; i++) {
        char key[32];
        snprintf(key, sizeof(key), "kk%d", i);
        memory_add(&f.memory, slice_from_text(key), SLICE_LITERAL("0123456789"), false);
    }
    memory_publish(&f.memory);
    memory_put(&f.memory, "x", "");
    memory_put(&f.memory, "k7", "");
    begin((struct backfill_options){.revision_bytes_max = 2000});
    create(&client, 1);
    create(&behind, 6);
    struct pb_watch_response *ended = NULL;
    for (int i = 0; i < 20 && !ended; i++) {
        turn(NS_PER_MS);
        send_all(1000, 30);
        client_pull(&client, 1 << 20);
        receive(&behind, &after);
        struct pb_watch_response *response;
        while ((response = client_next(&client)) != NULL) {
            received.next += (int64_t)response->events_count;
            if (response->canceled)
                ended = response;
        }
    }
    assert_non_null(ended);
    assert_int_equal(ended->compact_revision, 0);
    assert_true(ended->cancel_reason.len > 0);
    assert_int_equal(received.next, 5);
    assert_int_equal(after.next, 8);
    client_close(&client);
    client_close(&behind);
}

/* Counts the events until the watch was canceled because of damage. */
struct until_damage {
    int64_t next;
    bool ended;
};

static void receive_until_damage(struct client *client, struct until_damage *received)
{
    struct pb_watch_response *response;
    client_pull(client, 1 << 20);
    while ((response = client_next(client)) != NULL) {
        received->next += (int64_t)response->events_count;
        received->ended |= response->canceled;
        if (response->canceled)
            assert_true(slice_equal(response->cancel_reason, FAKE_DAMAGE));
        assert_int_equal(response->compact_revision, 0);
    }
}

/* As a watch of the server itself ends. Others that begin behind the damage are served. */
static void damage_ends_the_watches_that_need_it(void **state)
{
    (void)state;
    struct client clients[3];
    fill_memory(100, 10);
    begin((struct backfill_options){0});
    fake.damaged = 50;
    for (int round = 0; round < 2; round++) {
        struct received behind = {.next = 51};
        struct until_damage before[2] = {{.next = 2}, {.next = 50}};
        fake.damaged_ends = round;
        create(&clients[0], 2);
        create(&clients[1], 50);
        create(&clients[2], 51);
        for (int i = 0; i < 60; i++) {
            turn(20 * NS_PER_MS);
            send_all(7, 1000);
            receive(&clients[2], &behind);
            for (size_t k = 0; k < 2; k++)
                receive_until_damage(&clients[k], &before[k]);
        }
        assert_int_equal(behind.next, f.memory.published + 1);
        for (size_t k = 0; k < 2; k++) {
            assert_true(before[k].ended);
            assert_int_equal(before[k].next, 50);
        }
        for (size_t k = 0; k < 3; k++)
            client_close(&clients[k]);
        for (int i = 0; i < 25; i++)
            turn(NS_PER_S);
        assert_int_equal(backfill_stats(f.backfill).fetches, 0);
    }
    assert_true(fake.opened < 20);
}

/* A watch that catches up gets no progress before its events, and then gets it. */
static void progress_follows_the_events_of_the_past(void **state)
{
    (void)state;
    struct client client;
    struct received received = {.next = 2};
    fill_memory(50, 10);
    begin((struct backfill_options){0});
    atomic_store(&fake.progress_reliable, true);
    create(&client, 1);
    assert_int_equal(watch_stream_progress(client.stream, INT64_MAX), ST_OK);
    for (int i = 0; i < 200; i++) {
        turn(NS_PER_MS);
        send_all(1, 1);
        receive(&client, &received);
        assert_true(!received.progress || received.next > received.progress);
        if (received.next <= f.memory.published)
            assert_int_equal(received.progress, 0);
    }
    assert_int_equal(received.next, f.memory.published + 1);
    assert_int_equal(received.progress, f.memory.published);
    client_close(&client);
}

/* The cluster has nothing more to send, and only its progress says so. */
static void a_quiet_range_is_known_to_be_complete(void **state)
{
    (void)state;
    static const struct slice prefixes[] = {SLICE_LITERAL("k"), SLICE_LITERAL("quiet")};
    struct client client;
    struct received received = {.next = 2};
    fill_memory(50, 10);
    begin((struct backfill_options){.prefixes = prefixes, .prefix_count = 2});
    atomic_store(&fake.progress_reliable, true);
    create(&client, 1);
    for (int i = 0; i < 100; i++) {
        turn(20 * NS_PER_MS);
        send_all(1000, 1000);
        receive(&client, &received);
    }
    assert_int_equal(fake.opened, 2);
    assert_true(fake.progress_asked > 0);
    assert_int_equal(received.next, f.memory.published + 1);
    assert_int_equal(backfill_stats(f.backfill).fetches, 0);
    client_close(&client);
}

/* As by etcd 3.4 when authentication was enabled after Vigil had connected. */
static void a_refused_watch_gets_another_token(void **state)
{
    (void)state;
    struct client client;
    struct received received = {.next = 2};
    fill_memory(50, 10);
    begin((struct backfill_options){0});
    fake.denies = true;
    create(&client, 1);
    for (int i = 0; i < 20; i++) {
        turn(200 * NS_PER_MS);
        send_all(1000, 1000);
        receive(&client, &received);
    }
    assert_int_equal(fake.renewals, 1);
    assert_int_equal(fake.opened, 2);
    assert_int_equal(received.next, f.memory.published + 1);
    client_close(&client);
}

static void malformed_messages_are_survived(void **state)
{
    (void)state;
    struct client client;
    struct received received = {.next = 2};
    fill_memory(50, 10);
    begin((struct backfill_options){0});
    create(&client, 1);
    for (uint8_t bad = 1; received.next <= f.memory.published && bad < 200; bad++) {
        turn(200 * NS_PER_MS);
        send_all(2, 10);
        if (fake.count && bad % 4 == 0)
            backfill_source_received(fake_call(0)->source,
                                     slice_of((uint8_t[]){0x5a, bad, 0x12, bad, 1}, 5));
        receive(&client, &received);
    }
    assert_int_equal(received.next, f.memory.published + 1);
    assert_true(fake.opened > 2);
    client_close(&client);
}

static void reconnect(bool connected)
{
    atomic_fetch_add(&fake.times_connected, connected);
    atomic_store(&fake.connected, connected);
}

/* After a break the cluster may be restored, so its past must be compared with the mirror's before
 * a watch reads from the mirror what was received earlier. */
static void a_watch_waits_for_the_comparison_of_pasts(void **state)
{
    (void)state;
    struct client live, early;
    fill_memory(50, 10);
    begin((struct backfill_options){0});
    atomic_store(&fake.known_oldest, 2);
    f.memory.compacted = 1;
    client_open(&live, f.hub);
    struct watch_create made = {.key = SLICE_LITERAL("other")};
    assert_int_equal(watch_stream_create(live.stream, &made), ST_OK);
    turn(NS_PER_MS);
    for (int round = 0; round < 3; round++) {
        reconnect(false);
        struct received received = {.next = 2};
        create(&early, 2);
        for (int i = 0; i < 100; i++) {
            turn(NS_PER_MS);
            receive(&early, &received);
        }
        assert_int_equal(received.next, 2);
        /* It was received before the break, and becomes visible now. */
        fill_memory(1, 10);
        size_t events = 0;
        for (int i = 0; i < 5; i++) {
            turn(NS_PER_MS);
            client_pull(&live, 1 << 20);
            struct pb_watch_response *response;
            while ((response = client_next(&live)) != NULL)
                events += response->events_count;
        }
        assert_int_equal(events, 1);
        receive(&early, &received);
        assert_int_equal(received.next, 2);
        reconnect(true);
        turn(20 * NS_PER_MS);
        for (int i = 0; i < 3; i++) {
            turn(NS_PER_MS);
            receive(&early, &received);
        }
        assert_int_equal(received.next, f.memory.published + 1);
        client_close(&early);
    }
    assert_int_equal(fake.opened, 0);
    client_close(&live);
}

/* Without a quorum nothing is compared, and a member still has its past. What was fetched before
 * the break is not used any more. */
static void what_is_doubtful_for_long_is_fetched(void **state)
{
    (void)state;
    struct client early, late;
    struct received received = {.next = 2}, again = {.next = 2};
    fill_memory(50, 10);
    begin((struct backfill_options){0});
    create(&early, 2);
    for (int i = 0; i < 10; i++) {
        turn(NS_PER_MS);
        send_all(10, 1000);
        receive(&early, &received);
    }
    assert_int_equal(received.next, f.memory.published + 1);
    assert_int_equal(fake.opened, 1);
    reconnect(false);
    create(&late, 2);
    for (int i = 0; i < 90; i++) {
        turn(10 * NS_PER_MS);
        receive(&late, &again);
    }
    assert_int_equal(again.next, 2);
    assert_int_equal(fake.opened, 1);
    for (int i = 0; i < 20; i++) {
        turn(20 * NS_PER_MS);
        send_all(10, 1000);
        receive(&late, &again);
    }
    assert_int_equal(fake.opened, 2);
    assert_int_equal(again.next, f.memory.published + 1);
    client_close(&early);
    client_close(&late);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_fetch_serves_all_watchers_of_a_revision),
        TEST(few_fetches_run_at_once),
        TEST(a_break_anywhere_loses_and_repeats_nothing),
        TEST(a_compaction_before_the_fetch_ends_the_watch),
        TEST(a_compaction_ends_the_watches_that_need_it),
        TEST(memory_is_bounded_and_the_cluster_waits),
        TEST(a_revision_beyond_the_limit_ends_the_watches_that_need_it),
        TEST(damage_ends_the_watches_that_need_it),
        TEST(progress_follows_the_events_of_the_past),
        TEST(a_quiet_range_is_known_to_be_complete),
        TEST(a_refused_watch_gets_another_token),
        TEST(malformed_messages_are_survived),
        TEST(a_watch_waits_for_the_comparison_of_pasts),
        TEST(what_is_doubtful_for_long_is_fetched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
