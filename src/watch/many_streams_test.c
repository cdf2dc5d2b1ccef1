/* One event for very many streams of a thread: some are woken in each turn. */
#include "base/clock.h"
#include "watch/client_test.h"
#include "watch/history_test.h"
#include "watch/hub.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { STREAMS = 20000, WAKES = 4096, EVENTS = 3, ROOM = 4096 };

struct bench {
    struct memory_history memory;
    struct watch_hub *hub;
    struct client clients[STREAMS];
};

static void end_turn(struct bench *bench)
{
    watch_hub_turn_end(bench->hub);
    memory_turn_end(&bench->memory);
}

/* Returns how many were awake. */
static size_t pull_all(struct bench *bench)
{
    size_t awake = 0;
    for (size_t i = 0; i < STREAMS; i++) {
        awake += bench->clients[i].awake;
        while (bench->clients[i].awake)
            client_pull(&bench->clients[i], ROOM);
    }
    return awake;
}

/* Returns the largest number of streams that one turn has woken. */
static size_t run(struct bench *bench)
{
    size_t most = 0;
    bool more;
    do {
        more = watch_hub_turn_begin(bench->hub, 1);
        size_t awake = pull_all(bench);
        most = awake > most ? awake : most;
        end_turn(bench);
    } while (more);
    watch_hub_check(bench->hub);
    return most;
}

static void open_all(struct bench *bench)
{
    memory_init(&bench->memory);
    bench->hub = watch_hub_new(&(struct watch_hub_options){
        .history = &bench->memory.history,
        .fragment_bytes = 2 << 20,
        .watchers_max = 10,
        .progress_interval_ns = 10 * NS_PER_S,
        .seed = 4,
    });
    struct watch_create create = {.key = SLICE_LITERAL("a")};
    for (size_t i = 0; i < STREAMS; i++) {
        client_open(&bench->clients[i], bench->hub);
        assert_int_equal(watch_stream_create(bench->clients[i].stream, &create), ST_OK);
    }
    (void)run(bench);
    for (size_t i = 0; i < STREAMS; i++)
        assert_non_null(client_next(&bench->clients[i])); /* created */
}

static void close_all(struct bench *bench)
{
    for (size_t i = 0; i < STREAMS; i++)
        client_close(&bench->clients[i]);
    while (watch_hub_turn_begin(bench->hub, 1))
        end_turn(bench);
    end_turn(bench);
    watch_hub_free(bench->hub);
    memory_fini(&bench->memory);
    free(bench);
}

static size_t count_events(struct client *client)
{
    size_t events = 0;
    struct pb_watch_response *response;
    while ((response = client_next(client)) != NULL)
        events += response->events_count;
    return events;
}

static void one_event_wakes_some_streams_in_each_turn(void **state)
{
    (void)state;
    struct bench *bench = xcalloc(1, sizeof(*bench));
    open_all(bench);
    for (int i = 0; i < EVENTS; i++)
        memory_put(&bench->memory, "a", "x");
    assert_in_range(run(bench), WAKES / 2, WAKES);
    for (size_t i = 0; i < STREAMS; i++)
        assert_int_equal(count_events(&bench->clients[i]), EVENTS);
    close_all(bench);
}

/* Streams that wait for their turn may end, and may be filled for another reason. */
static void streams_may_end_before_they_are_woken(void **state)
{
    (void)state;
    struct bench *bench = xcalloc(1, sizeof(*bench));
    open_all(bench);
    memory_put(&bench->memory, "a", "x");
    assert_true(watch_hub_turn_begin(bench->hub, 1));
    (void)pull_all(bench);
    end_turn(bench);
    for (size_t i = 0; i < STREAMS; i += 3)
        client_close(&bench->clients[i]);
    struct watch_create create = {.key = SLICE_LITERAL("b")};
    for (size_t i = 1; i < STREAMS; i += 3)
        assert_int_equal(watch_stream_create(bench->clients[i].stream, &create), ST_OK);
    watch_hub_check(bench->hub);
    (void)run(bench);
    for (size_t i = 0; i < STREAMS; i++)
        if (i % 3)
            assert_int_equal(count_events(&bench->clients[i]), 1);
    close_all(bench);
}

/* Revisions are read some at a time; those that are too much work for a turn are read again in the
 * next one. */
static void events_that_are_too_much_for_one_turn_come_in_the_next(void **state)
{
    (void)state;
    enum { MARKS = 256 * 1024, MANY = 2 * MARKS / STREAMS };
    struct bench *bench = xcalloc(1, sizeof(*bench));
    open_all(bench);
    for (int i = 0; i < MANY; i++)
        memory_put(&bench->memory, "a", "x");
    assert_true(watch_hub_turn_begin(bench->hub, 1));
    int64_t reached = watch_hub_revision(bench->hub);
    assert_in_range(reached, 1 + MARKS / STREAMS, 2 + MARKS / STREAMS);
    (void)pull_all(bench);
    end_turn(bench);
    (void)run(bench);
    assert_int_equal(watch_hub_revision(bench->hub), 1 + MANY);
    for (size_t i = 0; i < STREAMS; i++)
        assert_int_equal(count_events(&bench->clients[i]), MANY);
    close_all(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_event_wakes_some_streams_in_each_turn),
        cmocka_unit_test(streams_may_end_before_they_are_woken),
        cmocka_unit_test(events_that_are_too_much_for_one_turn_come_in_the_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
