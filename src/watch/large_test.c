/* Revisions with very many events. */
#include "base/clock.h"
#include "watch/client_test.h"
#include "watch/history_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { EVENTS = 9000, ROOM = 16384 };

static void a_revision_with_very_many_events_is_measured_in_turns(void **state)
{
    (void)state;
    struct memory_history memory;
    memory_init(&memory);
    struct watch_hub *hub = watch_hub_new(&(struct watch_hub_options){
        .history = &memory.history,
        .identity = {.cluster_id = 11, .member_id = 22, .raft_term = 2},
        .fragment_bytes = 100000,
        .watchers_max = 100,
        .progress_interval_ns = 3600 * NS_PER_S,
        .seed = 4,
    });
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_revision_with_very_many_events_is_measured_in_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
