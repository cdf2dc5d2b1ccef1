#include "watch/stream/stream_state.h"

#include "base/clock.h"
#include "watch/client_test.h"
#include "watch/history_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { WATCHERS = 16000, CHAIN_MAX = 32 };

struct bench {
    struct memory_history memory;
    struct watch_hub *hub;
    struct client client;
};

static void set_up(struct bench *bench)
{
    memory_init(&bench->memory);
    bench->hub = watch_hub_new(&(struct watch_hub_options){
        .history = &bench->memory.history,
        .fragment_bytes = 2 << 20,
        .watchers_max = WATCHERS,
        .progress_interval_ns = 10 * NS_PER_S,
        .seed = 4,
    });
    client_open(&bench->client, bench->hub);
}

static void turn(struct bench *bench)
{
    assert_false(watch_hub_turn_begin(bench->hub, 1));
    while (bench->client.awake)
        client_pull(&bench->client, 65536);
    watch_hub_turn_end(bench->hub);
}

static void tear_down(struct bench *bench)
{
    client_close(&bench->client);
    while (watch_hub_turn_begin(bench->hub, 1))
        watch_hub_turn_end(bench->hub);
    watch_hub_turn_end(bench->hub);
    watch_hub_free(bench->hub);
    memory_fini(&bench->memory);
}

static size_t longest_chain(const struct watch_stream *stream)
{
    size_t longest = 0;
    for (uint32_t i = 0; i < chain_table_buckets(&stream->ids); i++) {
        size_t length = 0;
        for (struct chain_link *link = chain_table_bucket(&stream->ids, i); link; link = link->next)
            length++;
        longest = length > longest ? length : longest;
    }
    return longest;
}

/* Creates watchers with the ids first, first + step and so on. Every one is found again. */
static void create_and_find(int64_t first, uint64_t step)
{
    struct bench bench;
    set_up(&bench);
    struct watch_stream *stream = bench.client.stream;
    for (uint64_t i = 0; i < WATCHERS; i++) {
        struct watch_create create = {.key = SLICE_LITERAL("a"),
                                      .watch_id =
                                          first ? (int64_t)((uint64_t)first + i * step) : 0};
        assert_int_equal(watch_stream_create(stream, &create), ST_OK);
    }
    turn(&bench);
    assert_in_range(longest_chain(stream), 1, CHAIN_MAX);
    for (uint64_t i = 0; i < WATCHERS; i++) {
        int64_t id = (int64_t)((uint64_t)first + i * step);
        const struct watcher *watcher = stream_find_watcher(stream, id);
        assert_non_null(watcher);
        assert_int_equal(watcher->id, id);
    }
    assert_null(stream_find_watcher(stream, (int64_t)((uint64_t)first + WATCHERS * step)));
    tear_down(&bench);
}

static void ids_in_order_are_spread(void **state)
{
    (void)state;
    create_and_find(0, 1); /* assigned by the server */
    create_and_find(1, 1);
    create_and_find(-WATCHERS / 2, 3); /* never 0, for which the server would assign an id */
}

/* A client that chooses ids for one bucket would make each of its requests slower than the last,
 * and all other clients of the thread would wait. */
static void chosen_ids_do_not_share_a_bucket(void **state)
{
    (void)state;
    create_and_find(1, 1 << 10);
    create_and_find(1, 1 << 20);
    create_and_find(1, (uint64_t)1 << 40);
    create_and_find(1, (uint64_t)1 << 50);
    /* The inverse of a multiplier that is common in hash functions, times a power of two. */
    create_and_find(1, 0xf1de83e19937733d << 48);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_in_order_are_spread),
        cmocka_unit_test(chosen_ids_do_not_share_a_bucket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
