/* Revisions with very many events. */
#include "base/clock.h"
#include "watch/client_test.h"
#include "watch/history_test.h"

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

static void a_revision_with_very_many_events_is_measured_in_turns(void **state)
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
        bool hungry = watch_hub_next_ns(hub) <= 0;
        parked += hungry && !client.awake;
        more |= client.awake || hungry;
    }
    assert_true(parked >= 6); /* twice at least for each watcher */
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

/* False: nothing is left to do. */
static bool turn(struct watch_hub *hub, struct memory_history *memory, struct client *client)
{
    bool more = watch_hub_turn_begin(hub, 0);
    client_pull(client, ROOM);
    watch_hub_turn_end(hub);
    memory_turn_end(memory);
    return more || client->awake;
}

/* A full disk lets go of them; the length that was announced can then not be kept. */
static void a_message_whose_previous_values_go_meanwhile_ends_the_stream(void **state)
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
    assert_non_null(response); /* of the put; the other has begun, or will at the next turn */
    turn(hub, &memory, &client);
    assert_true(client.bytes.len > 0);
    memory.revisions[3].events[0].prev.len = 0;
    for (int i = 0; i < 1000 && turn(hub, &memory, &client); i++)
        ;
    assert_int_equal(watch_stream_status(client.stream), ST_COMPACTED);
    assert_null(client_next(&client)); /* nothing whole that is wrong */
    client_close(&client);
    watch_hub_free(hub);
    memory_fini(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_revision_with_very_many_events_is_measured_in_turns),
        cmocka_unit_test(a_message_whose_previous_values_go_meanwhile_ends_the_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
