/* Revisions with very many events. */
#include "base/clock.h"
#include "watch/client_test.h"
#include "watch/history_test.h"
#include "watch/hub/long_revision.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { EVENTS = 9000, ROOM = 16384 };

static struct watch_hub *new_hub(struct memory_history *memory)
{
    return watch_hub_new(&(struct watch_hub_options){
        .history = &memory->history,
        .identity = {.cluster_id = 11, .member_id = 22, .raft_term = 2},
        .fragment_bytes = 100000,
        .watchers_max = 100,
        .progress_interval_ns = 3600 * NS_PER_S,
        .seed = 4,
    });
}

static void revision_with_very_many_events_is_measured_over_several_turns(void **state)
{
    (void)state;
    struct memory_history memory;
    memory_init(&memory);
    struct watch_hub *hub = new_hub(&memory);
    struct client client;
    client_open(&client, hub);
    for (int i = 0; i < 3; i++) {
        struct watch_create create = {
            .key = SLICE_LITERAL("k"), .range_end = SLICE_LITERAL("l"), .fragment = i == 1};
        assert_int_equal(watch_stream_create(client.stream, &create), ST_OK);
    }
    client_pull(&client, ROOM);
    for (int i = 0; i < 3; i++)
        assert_true(client_next(&client)->created);
    memory_begin(&memory);
    for (int i = 0; i < EVENTS; i++) {
        char key[32];
        snprintf(key, sizeof(key), "%s%05d", i % 10 ? "k" : "other", i);
        memory_add(&memory, slice_from_text(key), SLICE_LITERAL("a value"), false);
    }
    memory_publish(&memory);
    unsigned parked = 0;
    for (bool more = true; more;) {
        more = watch_hub_turn_begin(hub, 0);
        client_pull(&client, ROOM);
        watch_hub_turn_end(hub);
        memory_turn_end(&memory);
        watch_hub_check(hub);
        bool deferred = watch_hub_next_ns(hub) <= 0;
        parked += deferred && !client.awake;
        more |= client.awake || deferred;
    }
    assert_true(parked >= 6); /* at least twice for each watcher */
    size_t events[3] = {0}, fragments = 0;
    struct pb_watch_response *response;
    while ((response = client_next(&client)) != NULL) {
        fragments += response->fragment;
        for (size_t i = 0; i < response->events_count; i++, events[response->watch_id]++) {
            char key[32];
            size_t at = events[response->watch_id];
            snprintf(key, sizeof(key), "k%05zu", at / 9 * 10 + at % 9 + 1);
            assert_true(slice_equal(response->events[i].kv->key, slice_from_text(key)));
        }
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(events[i], EVENTS / 10 * 9);
    assert_true(fragments >= 2);
    client_close(&client);
    watch_hub_free(hub);
    memory_fini(&memory);
}

/* False: there is nothing left to do. */
static bool turn(struct watch_hub *hub, struct memory_history *memory, struct client *client)
{
    bool more = watch_hub_turn_begin(hub, 0);
    client_pull(client, ROOM);
    watch_hub_turn_end(hub);
    memory_turn_end(memory);
    return more || client->awake;
}

/* On a full disk they are removed; then the announced length cannot be kept. */
static void message_whose_previous_values_disappear_ends_the_stream(void **state)
{
    (void)state;
    static uint8_t value[64 * ROOM];
    struct memory_history memory;
    memory_init(&memory);
    struct watch_hub *hub = new_hub(&memory);
    struct client client;
    client_open(&client, hub);
    struct watch_create create = {.key = SLICE_LITERAL("k"), .prev_kv = true};
    assert_int_equal(watch_stream_create(client.stream, &create), ST_OK);
    turn(hub, &memory, &client);
    assert_true(client_next(&client)->created);
    memory_begin(&memory);
    memory_add(&memory, SLICE_LITERAL("k"), slice_of(value, sizeof(value)), false);
    memory_begin(&memory);
    memory_add(&memory, SLICE_LITERAL("k"), SLICE_EMPTY, true);
    memory_publish(&memory);
    struct pb_watch_response *response = NULL;
    for (int i = 0; i < 1000 && !(response = client_next(&client)); i++)
        turn(hub, &memory, &client);
    assert_non_null(
        response); /* that of the put; the other has begun, or begins in the next turn */
    turn(hub, &memory, &client);
    assert_true(client.bytes.len > 0);
    memory.revisions[3].events[0].prev.len = 0;
    for (int i = 0; i < 1000 && turn(hub, &memory, &client); i++)
        ;
    assert_int_equal(watch_stream_status(client.stream), ST_COMPACTED);
    assert_null(client_next(&client)); /* no complete but wrong message */
    client_close(&client);
    watch_hub_free(hub);
    memory_fini(&memory);
}

/* -- Long revisions: how many events are examined in a turn -- */

enum { LONG_COUNT = 4000, LONG_WATCHERS = 40, LONG_CLIENTS = 2, UNITS = 300 };

static struct watch_hub *new_hub_of_small_turns(struct memory_history *memory)
{
    memory_init(memory);
    memory->long_from = 100;
    return watch_hub_new(&(struct watch_hub_options){
        .history = &memory->history,
        .fragment_bytes = 100000,
        .watchers_max = 100,
        .progress_interval_ns = 3600 * NS_PER_S,
        .turn_units = UNITS,
        .seed = 4,
    });
}

static void write_long(struct memory_history *memory, const char *prefix)
{
    memory_begin(memory);
    for (int i = 0; i < LONG_COUNT; i++) {
        char key[32];
        snprintf(key, sizeof(key), "%s%05d", prefix, i);
        memory_add(memory, slice_from_text(key), SLICE_LITERAL("a value"), false);
    }
    memory_publish(memory);
}

/* Ranges of all forms; each client's first watches everything, its last nothing that changes. */
static size_t create_watchers(struct client *client, int64_t from)
{
    char keys[LONG_WATCHERS][32];
    size_t wanted = 0;
    for (int i = 0; i < LONG_WATCHERS; i++) {
        snprintf(keys[i], sizeof(keys[i]), "k%05d", i * 100);
        struct watch_create create = {.key = slice_from_text(keys[i]),
                                      .start_revision = from,
                                      .fragment = i % 5 == 1,
                                      .prev_kv = i % 7 == 1,
                                      .no_put = i % 11 == 3};
        if (i == 0)
            create.key = SLICE_LITERAL("k");
        if (i % 3 == 0)
            create.range_end = SLICE_LITERAL("l");
        if (i == LONG_WATCHERS - 1)
            create.key = SLICE_LITERAL("kz");
        size_t covers = i == LONG_WATCHERS - 1 ? 0
                        : i % 3 == 0           ? (size_t)LONG_COUNT - 100 * (size_t)i
                                               : 1;
        wanted += create.no_put ? 0 : covers;
        assert_int_equal(watch_stream_create(client->stream, &create), ST_OK);
    }
    return wanted;
}

static size_t take_all(struct client *client)
{
    struct pb_watch_response *response;
    size_t events = 0;
    while ((response = client_next(client)) != NULL)
        events += response->events_count;
    return events;
}

/* Returns the number of turns it took. */
static unsigned settle(struct watch_hub *hub, struct memory_history *memory, struct client *clients)
{
    unsigned turns = 0;
    for (bool more = true; more; turns++) {
        memory->looks = 0;
        more = watch_hub_turn_begin(hub, 0);
        /* The units of the tail and of all others; the last step of each may take a few more. */
        for (size_t i = 0; i < LONG_CLIENTS; i++) {
            client_pull(&clients[i], ROOM);
            more |= clients[i].awake;
        }
        assert_true(memory->looks <= 2 * UNITS + 2);
        more |= watch_hub_next_ns(hub) <= 0;
        watch_hub_turn_end(hub);
        memory_turn_end(memory);
        watch_hub_check(hub);
        assert_true(turns < 1000000);
    }
    return turns;
}

static void only_few_events_of_a_long_revision_are_examined_in_a_turn(void **state)
{
    (void)state;
    struct memory_history memory;
    struct watch_hub *hub = new_hub_of_small_turns(&memory);
    struct client live[LONG_CLIENTS], past[LONG_CLIENTS];
    size_t wanted = 0;
    for (size_t i = 0; i < LONG_CLIENTS; i++) {
        client_open(&live[i], hub);
        wanted = create_watchers(&live[i], 0);
    }
    settle(hub, &memory, live);
    for (size_t i = 0; i < LONG_CLIENTS; i++)
        assert_int_equal(take_all(&live[i]), 0);
    write_long(&memory, "k");
    int64_t revision = memory.published;
    assert_true(settle(hub, &memory, live) > LONG_COUNT / UNITS);
    for (size_t i = 0; i < LONG_CLIENTS; i++)
        assert_int_equal(take_all(&live[i]), wanted);
    /* The same for watchers that are added later and start before it. */
    for (size_t i = 0; i < LONG_CLIENTS; i++) {
        client_open(&past[i], hub);
        assert_int_equal(create_watchers(&past[i], revision), wanted);
    }
    assert_true(settle(hub, &memory, past) > LONG_COUNT / UNITS);
    for (size_t i = 0; i < LONG_CLIENTS; i++) {
        assert_int_equal(take_all(&past[i]), wanted);
        assert_int_equal(take_all(&live[i]), 0);
        client_close(&past[i]);
        client_close(&live[i]);
    }
    watch_hub_free(hub);
    memory_fini(&memory);
}

/* The tail searches for the streams; watchers that are added meanwhile and need it get all of it.
 */
static void watchers_added_during_the_search_of_a_long_revision_get_all_of_it(void **state)
{
    (void)state;
    struct memory_history memory;
    struct watch_hub *hub = new_hub_of_small_turns(&memory);
    struct client clients[LONG_CLIENTS];
    for (size_t i = 0; i < LONG_CLIENTS; i++)
        client_open(&clients[i], hub);
    struct watch_create all = {.key = SLICE_LITERAL("k"), .range_end = SLICE_LITERAL("l")};
    assert_int_equal(watch_stream_create(clients[0].stream, &all), ST_OK);
    settle(hub, &memory, clients);
    write_long(&memory, "k");
    int64_t revision = memory.published;
    for (int i = 0; i < LONG_COUNT / UNITS * 2; i++) {
        assert_true(watch_hub_turn_begin(hub, 0));
        watch_hub_turn_end(hub);
        memory_turn_end(&memory);
    }
    assert_int_equal(watch_hub_revision(hub), revision - 1);
    struct watch_create one = {.key = SLICE_LITERAL("k00000"), .start_revision = revision};
    struct watch_create wide = {.key = SLICE_LITERAL("k0"),
                                .range_end = SLICE_LITERAL("l"),
                                .start_revision = revision - 1};
    assert_int_equal(watch_stream_create(clients[1].stream, &one), ST_OK);
    assert_int_equal(watch_stream_create(clients[1].stream, &wide), ST_OK);
    settle(hub, &memory, clients);
    assert_int_equal(watch_hub_revision(hub), revision);
    assert_int_equal(take_all(&clients[0]), LONG_COUNT);
    assert_int_equal(take_all(&clients[1]), LONG_COUNT + 1);
    for (size_t i = 0; i < LONG_CLIENTS; i++)
        client_close(&clients[i]);
    watch_hub_free(hub);
    memory_fini(&memory);
}

/* The damage is found at the end of the reading, before any event was sent. */
static void watchers_of_a_damaged_long_revision_are_ended(void **state)
{
    (void)state;
    struct memory_history memory;
    struct watch_hub *hub = new_hub_of_small_turns(&memory);
    struct client clients[LONG_CLIENTS];
    for (size_t i = 0; i < LONG_CLIENTS; i++)
        client_open(&clients[i], hub);
    struct watch_create all = {.key = SLICE_LITERAL("k"), .range_end = SLICE_LITERAL("l")};
    assert_int_equal(watch_stream_create(clients[0].stream, &all), ST_OK);
    settle(hub, &memory, clients);
    assert_true(client_next(&clients[0])->created);
    write_long(&memory, "k");
    memory.damaged = -memory.published;
    all.start_revision = memory.published;
    settle(hub, &memory, clients);
    assert_int_equal(watch_stream_create(clients[1].stream, &all), ST_OK);
    settle(hub, &memory, clients);
    assert_true(client_next(&clients[1])->created);
    for (size_t i = 0; i < LONG_CLIENTS; i++) {
        struct pb_watch_response *response = client_next(&clients[i]);
        assert_true(response->canceled && response->cancel_reason.len > 0);
        assert_int_equal(response->events_count, 0);
        assert_null(client_next(&clients[i]));
        client_close(&clients[i]);
    }
    watch_hub_free(hub);
    memory_fini(&memory);
}

/* -- Many readers of long revisions -- */

/* One turn; the clients are pulled in the order in which they were woken, as connections are. */
static void turn_in_order(struct watch_hub *hub, struct memory_history *memory,
                          struct client *clients, size_t count)
{
    bool more = watch_hub_turn_begin(hub, 0);
    (void)more; /* the next turn follows anyway */
    for (size_t pulled = 0; pulled < count; pulled++) {
        struct client *next = NULL;
        for (size_t i = 0; i < count; i++)
            if (clients[i].awake && (!next || clients[i].woken_at < next->woken_at))
                next = &clients[i];
        if (!next)
            break;
        client_pull(next, ROOM);
    }
    watch_hub_turn_end(hub);
    memory_turn_end(memory);
    watch_hub_check(hub);
}

/* Each needs a long revision of its own first, and then all that follow it. */
static void more_long_revisions_than_are_held_are_all_sent(void **state)
{
    (void)state;
    enum { READERS = LONG_REVISION_OPEN_MAX + 2, TURNS_MAX = 20000 };
    struct memory_history memory;
    struct watch_hub *hub = new_hub_of_small_turns(&memory);
    struct client clients[READERS];
    for (int i = 0; i < READERS; i++)
        write_long(&memory, (char[]){(char)('a' + i), 0});
    int64_t first = memory.published - READERS + 1;
    for (int i = 0; i < READERS; i++) {
        uint8_t key = (uint8_t)('a' + i), end = (uint8_t)(key + 1);
        struct watch_create create = {
            .key = slice_of(&key, 1), .range_end = slice_of(&end, 1), .start_revision = first + i};
        client_open(&clients[i], hub);
        assert_int_equal(watch_stream_create(clients[i].stream, &create), ST_OK);
    }
    size_t sent = 0, turns = 0;
    for (; sent < (size_t)READERS * LONG_COUNT; turns++) {
        assert_true(turns < TURNS_MAX);
        turn_in_order(hub, &memory, clients, READERS);
        for (int i = 0; i < READERS; i++)
            sent += take_all(&clients[i]);
    }
    for (int i = 0; i < READERS; i++)
        client_close(&clients[i]);
    watch_hub_free(hub);
    memory_fini(&memory);
}

/* One fill uses up the units of a turn: the next turn is another client's. */
static void readers_of_a_long_revision_take_turns(void **state)
{
    (void)state;
    enum { READERS = 5 };
    struct memory_history memory;
    struct watch_hub *hub = new_hub_of_small_turns(&memory);
    struct client clients[READERS];
    struct watch_create all = {
        .key = SLICE_LITERAL("k"), .range_end = SLICE_LITERAL("l"), .fragment = true};
    for (int i = 0; i < READERS; i++) {
        client_open(&clients[i], hub);
        for (int k = 0; k < 20; k++)
            assert_int_equal(watch_stream_create(clients[i].stream, &all), ST_OK);
    }
    for (int i = 0; i < 10; i++)
        turn_in_order(hub, &memory, clients, READERS);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(take_all(&clients[i]), 0);
    write_long(&memory, "k");
    /* Enough for each to receive about one response of twenty. */
    for (int i = 0; i < (4 + 2 * READERS) * LONG_COUNT / UNITS * 2; i++)
        turn_in_order(hub, &memory, clients, READERS);
    for (int i = 0; i < READERS; i++) {
        assert_in_range(take_all(&clients[i]), LONG_COUNT / 2, 5 * LONG_COUNT);
        client_close(&clients[i]);
    }
    watch_hub_free(hub);
    memory_fini(&memory);
}

/* What is known of ranges that were freed takes no memory. */
static void watches_created_and_canceled_during_a_long_revision_take_no_memory(void **state)
{
    (void)state;
    struct memory_history memory;
    struct watch_hub *hub = new_hub_of_small_turns(&memory);
    struct client clients[2]; /* the second one creates and cancels watches */
    struct watch_create all = {.key = SLICE_LITERAL("k"), .range_end = SLICE_LITERAL("l")};
    for (int i = 0; i < 2; i++)
        client_open(&clients[i], hub);
    assert_int_equal(watch_stream_create(clients[0].stream, &all), ST_OK);
    turn_in_order(hub, &memory, clients, 2);
    write_long(&memory, "k");
    while (watch_hub_revision(hub) < memory.published)
        turn_in_order(hub, &memory, clients, 2);
    assert_int_equal(hub->long_revisions.count, 1);
    for (int i = 0; i < 20000; i++) {
        char key[32];
        snprintf(key, sizeof(key), "k%05d", i);
        struct watch_create one = {
            .key = slice_from_text(key), .start_revision = memory.published, .watch_id = 1000 + i};
        assert_int_equal(watch_stream_create(clients[1].stream, &one), ST_OK);
        assert_int_equal(watch_stream_cancel(clients[1].stream, one.watch_id), ST_OK);
        if (i % 100 == 0)
            turn_in_order(hub, &memory, clients, 2);
    }
    const struct long_revision *held =
        LIST_ENTRY(hub->long_revisions.held.next, const struct long_revision, in_hub);
    assert_true(held->hit_capacity <= 64 && held->slot_count <= 256);
    for (int i = 0; i < 2; i++)
        client_close(&clients[i]);
    watch_hub_free(hub);
    memory_fini(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(revision_with_very_many_events_is_measured_over_several_turns),
        cmocka_unit_test(only_few_events_of_a_long_revision_are_examined_in_a_turn),
        cmocka_unit_test(watchers_added_during_the_search_of_a_long_revision_get_all_of_it),
        cmocka_unit_test(watchers_of_a_damaged_long_revision_are_ended),
        cmocka_unit_test(more_long_revisions_than_are_held_are_all_sent),
        cmocka_unit_test(readers_of_a_long_revision_take_turns),
        cmocka_unit_test(watches_created_and_canceled_during_a_long_revision_take_no_memory),
        cmocka_unit_test(message_whose_previous_values_disappear_ends_the_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
