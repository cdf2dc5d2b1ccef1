/* Watches on shards with separate threads, while another shard writes. */
#include "base/buf.h"
#include "engine/local/fixture_test.h"
#include "watch/hub.h"
#include "watch/stream/stream.h"

#include <pthread.h>
#include <unistd.h>

enum { SHARDS = 3, PUTS = 1500 };
#define WAIT_NS_MAX (60 * NS_PER_S)

static int open_with(void **state, int64_t compaction_wait_ns)
{
    *state = fixture_new((struct engine_local_options){
        .segment_bytes_first = 64 << 10,
        .segment_bytes_max = 256 << 10,
        .checkpoint_bytes = 128 << 10,
        .shards_max = SHARDS,
        .compaction_wait_ns = compaction_wait_ns,
    });
    return 0;
}

static int setup(void **state)
{
    return open_with(state, 0);
}

/* Compactions wait longer than any pause of the machine. */
static int setup_patient(void **state)
{
    return open_with(state, WAIT_NS_MAX);
}

static void compact(struct fixture *f, int64_t revision)
{
    struct pb_compaction_request request = {.revision = revision};
    struct engine_op op = new_op(f);
    engine_compact(f->shard, &op, &request);
    wait_for(f, 0);
    assert_int_equal(op.status, ST_OK);
}

/* -- A watching client on its own thread -- */

struct watching {
    struct fixture *f;
    pthread_t thread;
    struct loop *loop;
    struct engine_shard *shard;
    struct watch_stream *stream;
    bool woken;
    struct buf bytes; /* bytes of an incomplete message */
    _Atomic bool created;
    int64_t last_revision; /* revision of the last event */
    unsigned events;
    unsigned ended_after; /* number of events after which it disconnects; 0: after all */
    bool waited_in_vain;  /* it was not notified of a published revision */
};

static void wake(void *ctx)
{
    ((struct watching *)ctx)->woken = true;
}

static void watching_open(struct watching *w)
{
    assert_int_equal(loop_new(clock_system(), &w->loop), ST_OK);
    assert_int_equal(engine_shard_new(w->f->engine, w->loop, &w->shard), ST_OK);
}

static void watch_k(struct watching *w, int64_t start_revision)
{
    w->stream = watch_stream_new(engine_watch_hub(w->shard),
                                 (struct watch_stream_owner){.wake = wake, .ctx = w});
    struct watch_create create = {
        .key = SLICE_LITERAL("k"), .prev_kv = true, .start_revision = start_revision};
    assert_int_equal(watch_stream_create(w->stream, &create), ST_OK);
}

static void watching_close(struct watching *w)
{
    watch_stream_free(w->stream);
    engine_shard_free(w->shard);
    loop_free(w->loop);
    buf_fini(&w->bytes);
}

static void take_response(struct watching *w, struct slice message)
{
    struct arena arena;
    struct pb_watch_response r;
    arena_init(&arena, NULL, 0, 64 << 20);
    assert_int_equal(pb_decode(&pb_watch_response_table, message, &arena, &r), ST_OK);
    assert_false(r.canceled);
    if (r.created)
        w->created = true;
    for (size_t i = 0; i < r.events_count; i++) {
        const struct pb_event *event = &r.events[i];
        assert_int_equal(event->kv->mod_revision, w->last_revision + 1);
        w->last_revision = event->kv->mod_revision;
        /* Every previous version exists, whatever was compacted and cleaned meanwhile. */
        assert_int_equal(event->prev_kv != NULL, event->kv->version > 1);
        if (event->prev_kv)
            assert_int_equal(event->prev_kv->version, event->kv->version - 1);
        w->events++;
    }
    arena_fini(&arena);
}

static void take_bytes(struct watching *w)
{
    while (w->bytes.len >= 5) {
        const uint8_t *p = w->bytes.ptr;
        size_t len = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
        if (w->bytes.len < 5 + len)
            return;
        take_response(w, slice_of(p + 5, len));
        buf_consume(&w->bytes, 5 + len);
    }
}

static void fill(struct watching *w)
{
    uint8_t room[4096];
    bool more = true;
    while (w->woken && more) {
        size_t n = watch_stream_fill(w->stream, room, sizeof(room), &more);
        assert_int_equal(buf_append(&w->bytes, slice_of(room, n)), ST_OK);
        if (!more)
            w->woken = false;
        take_bytes(w);
    }
}

static void *watch_main(void *arg)
{
    struct watching *w = arg;
    unsigned want = w->ended_after ? w->ended_after : PUTS;
    watching_open(w);
    watch_k(w, 2);
    while (w->events < want) {
        engine_shard_turn_begin(w->shard);
        fill(w);
        engine_shard_flushed(w->shard);
        int64_t begin_ns = clock_mono_ns(clock_system());
        if (w->events < want)
            loop_turn(w->loop, WAIT_NS_MAX);
        w->waited_in_vain |= clock_mono_ns(clock_system()) - begin_ns >= WAIT_NS_MAX;
    }
    watching_close(w);
    return NULL;
}

static void watches_on_other_threads_get_every_event_once(void **state)
{
    struct fixture *f = *state;
    struct watching all[SHARDS - 1] = {{.f = f, .last_revision = 1},
                                       {.f = f, .last_revision = 1, .ended_after = PUTS / 2}};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        assert_int_equal(pthread_create(&all[i].thread, NULL, watch_main, &all[i]), 0);
    for (size_t i = 0; i < COUNT_OF(all); i++)
        while (!all[i].created)
            usleep(1000);
    for (int i = 0; i < PUTS; i++) {
        put_text(f, "k", "a value that is long enough to make segments fill now and then");
        if (i == PUTS / 2)
            compact(f, 2); /* below every watch, so none is canceled */
    }
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        assert_int_equal(pthread_join(all[i].thread, NULL), 0);
        assert_true(all[i].events >= (all[i].ended_after ? all[i].ended_after : PUTS));
        assert_false(all[i].waited_in_vain);
    }
    struct watch_stats stats; /* counts remain after the watches have ended */
    engine_watch_stats(f->engine, &stats);
    assert_true(stats.watchers_peak >= 2 && stats.streams_peak == 2 && stats.events_sent > 0);
}

static void a_shard_without_watches_is_not_woken(void **state)
{
    struct fixture *f = *state;
    struct watching w = {.f = f};
    watching_open(&w);
    put_text(f, "k", "1");
    assert_true(loop_next_ns(w.loop) == CLOCK_NEVER);

    watch_k(&w, 0);
    engine_shard_turn_begin(w.shard);
    fill(&w);
    engine_shard_flushed(w.shard);
    w.last_revision = 2;
    put_text(f, "k", "2");
    put_text(f, "k", "3");
    turn_shard(w.shard, w.loop, WAIT_NS_MAX);
    engine_shard_turn_begin(w.shard);
    fill(&w);
    engine_shard_flushed(w.shard);
    assert_int_equal(w.events, 2);

    assert_int_equal(watch_stream_cancel(w.stream, 0), ST_OK);
    turn_shard(w.shard, w.loop, 0);
    int64_t next_ns = loop_next_ns(w.loop); /* to check its streams once more */
    put_text(f, "k", "4");
    assert_true(loop_next_ns(w.loop) == next_ns);
    watching_close(&w);
}

static void compaction_does_not_wait_forever(void **state)
{
    struct fixture *f = *state;
    struct watching w = {.f = f, .last_revision = 1};
    watching_open(&w);
    watch_k(&w, 0);
    turn_shard(w.shard, w.loop, 0);
    put_text(f, "k", "a value");
    put_text(f, "k", "another");
    compact(f, 3);
    watching_close(&w);
}

static void a_compaction_waits_for_a_shard_that_has_not_read(void **state)
{
    struct fixture *f = *state;
    struct watching w = {.f = f, .last_revision = 1};
    watching_open(&w);
    watch_k(&w, 0);
    for (int rounds = 1; rounds <= 3; rounds++) {
        for (int i = 0; i < 100; i++)
            put_text(f, "k", "a value that is replaced at once");
        struct pb_compaction_request request = {.revision = 1 + 100 * rounds, .physical = true};
        struct engine_op op = new_op(f);
        engine_compact(f->shard, &op, &request);
        engine_shard_turn_end(f->shard);
        usleep(20000); /* enough time for the writer to do it */
        engine_shard_turn_begin(w.shard);
        fill(&w); /* no notice, and every previous version exists */
        engine_shard_flushed(w.shard);
        assert_int_equal(w.events, 100 * rounds);
        wait_for(f, 0);
        assert_int_equal(op.status, ST_OK);
        turn_shard(w.shard, w.loop, 0);
    }
    watching_close(&w);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, fixture_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(watches_on_other_threads_get_every_event_once),
        cmocka_unit_test_setup_teardown(a_compaction_waits_for_a_shard_that_has_not_read,
                                        setup_patient, fixture_free),
        TEST(compaction_does_not_wait_forever),
        TEST(a_shard_without_watches_is_not_woken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
