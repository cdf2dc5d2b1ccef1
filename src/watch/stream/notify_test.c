#include "base/clock.h"
#include "watch/client_test.h"
#include "watch/history_test.h"
#include "watch/hub.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { ROOM = 16 << 10 };
static const int64_t interval_ns = 10 * NS_PER_S;

struct bench {
    struct memory_history memory;
    struct watch_hub *hub;
    struct client client;
    int64_t now_ns;
};

static void run(struct bench *bench)
{
    bool more;
    do {
        more = watch_hub_turn_begin(bench->hub, bench->now_ns);
        client_pull(&bench->client, ROOM);
        watch_hub_turn_end(bench->hub);
        memory_turn_end(&bench->memory);
        watch_hub_check(bench->hub);
    } while (more || bench->client.awake || watch_hub_next_ns(bench->hub) <= bench->now_ns);
}

static void bench_init(struct bench *bench)
{
    *bench = (struct bench){0};
    memory_init(&bench->memory);
    bench->hub = watch_hub_new(&(struct watch_hub_options){
        .history = &bench->memory.history,
        .fragment_bytes = 2 << 20,
        .watchers_max = 100,
        .progress_interval_ns = interval_ns,
        .seed = 4,
    });
    client_open(&bench->client, bench->hub);
}

static void bench_fini(struct bench *bench)
{
    client_close(&bench->client);
    watch_hub_free(bench->hub);
    memory_fini(&bench->memory);
}

static void expect_of(struct bench *bench, int64_t id)
{
    struct pb_watch_response *response = client_next(&bench->client);
    assert_non_null(response);
    assert_int_equal(response->watch_id, id);
    assert_int_equal(response->events_count, 0);
}

/* On an idle thread the hub's last turn may be long ago: the interval begins now, not then. */
static void first_progress_on_an_idle_hub_comes_after_the_interval(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench);
    run(&bench);
    for (int id = 0; id < 2; id++) {
        bench.now_ns += 10 * interval_ns; /* no watcher wants progress, and no turns run */
        struct watch_create create = {.key = SLICE_LITERAL("a"), .progress_notify = true};
        assert_int_equal(watch_stream_create(bench.client.stream, &create), ST_OK);
        run(&bench);
        expect_of(&bench, id); /* created */
        assert_null(client_next(&bench.client));
        bench.now_ns += interval_ns - 1;
        run(&bench);
        assert_null(client_next(&bench.client));
        bench.now_ns += interval_ns / 10 + 1; /* the largest random delay */
        run(&bench);
        expect_of(&bench, id); /* progress */
        assert_int_equal(watch_stream_cancel(bench.client.stream, id), ST_OK);
        run(&bench);
        expect_of(&bench, id); /* canceled */
    }
    bench_fini(&bench);
}

static void create_at(struct bench *bench, int64_t revision)
{
    struct watch_create create = {.key = SLICE_LITERAL("a"), .start_revision = revision};
    assert_int_equal(watch_stream_create(bench->client.stream, &create), ST_OK);
}

static void watch_that_begins_in_a_discarded_past_is_canceled(void **state)
{
    (void)state;
    struct bench bench;
    bench_init(&bench);
    for (int i = 0; i < 9; i++)
        memory_put(&bench.memory, "a", "x");
    bench.memory.void_until = 20;
    create_at(&bench, 11); /* the next one of the present */
    create_at(&bench, 12);
    create_at(&bench, 20);
    create_at(&bench, 21); /* newer than all that were discarded */
    run(&bench);
    for (int64_t id = 0; id < 4; id++)
        expect_of(&bench, id); /* created */
    for (int64_t id = 1; id < 3; id++) {
        struct pb_watch_response *response = client_next(&bench.client);
        assert_non_null(response);
        assert_int_equal(response->watch_id, id);
        assert_true(response->canceled);
        assert_int_equal(response->compact_revision, 10);
    }
    assert_null(client_next(&bench.client));
    memory_put(&bench.memory, "a", "x");
    run(&bench);
    assert_int_equal(client_next(&bench.client)->events_count, 1);
    assert_null(client_next(&bench.client));
    bench_fini(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_progress_on_an_idle_hub_comes_after_the_interval),
        cmocka_unit_test(watch_that_begins_in_a_discarded_past_is_canceled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
