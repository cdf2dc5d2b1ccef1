/* A shard that pauses after sending to many watches gets no notices meanwhile, and misses nothing.
 */
#include "codec/pb/rpc.pb.h"
#include "engine/local/fixture_test.h"
#include "engine/local/state/shared.h"
#include "watch/cursor.h"

#define WAIT_NS_MAX (60 * NS_PER_S)

enum { CURSORS = 40, PUTS = 300 };

struct watching {
    struct watch_cursor *cursor;
    bool woken;
    unsigned events;
};

static void wake(void *ctx)
{
    ((struct watching *)ctx)->woken = true;
}

static int setup(void **state)
{
    *state = fixture_new((struct engine_local_options){0});
    return 0;
}

static void take_all(struct watching *w)
{
    const struct watch_event *event;
    int64_t revision;
    enum status status = ST_OK;
    while (w->woken && (status = watch_cursor_next(w->cursor, &event, &revision)) == ST_OK) {
        watch_cursor_take(w->cursor);
        w->events++;
    }
    assert_true(status == ST_OK || status == ST_END || status == ST_AGAIN);
    w->woken = false;
}

static void turn(struct fixture *f, struct watching *all, int64_t wait_ns)
{
    loop_turn(f->loop, wait_ns);
    engine_shard_turn_begin(f->shard);
    engine_shard_turn_end(f->shard);
    for (int i = 0; i < CURSORS; i++)
        take_all(&all[i]);
    engine_shard_flushed(f->shard);
}

static void put(struct fixture *f, struct watching *all)
{
    struct pb_put_request request = {.key = SLICE_LITERAL("k"), .value = SLICE_LITERAL("v")};
    struct engine_write write = {.op = new_op(f)};
    engine_put(f->shard, &write, &request);
    engine_shard_turn_end(f->shard);
    while (f->waiting)
        turn(f, all, WAIT_NS_MAX);
    assert_int_equal(write.op.status, ST_OK);
    engine_write_close(&write);
}

static bool have_all(const struct watching *all, unsigned events)
{
    for (int i = 0; i < CURSORS; i++)
        if (all[i].events < events)
            return false;
    return true;
}

/* Notices are not held back any more. */
static bool is_notified_again(struct fixture *f)
{
    struct revision_notice *notice =
        &CONTAINER_OF(f->engine, struct local_shared, engine)->notices[0];
    if (!revision_notice_hold(notice))
        return false;
    revision_notice_received(notice);
    return true;
}

static void revisions_published_during_a_pause_are_sent_after_it(void **state)
{
    struct fixture *f = *state;
    struct watching all[CURSORS] = {0};
    for (int i = 0; i < CURSORS; i++)
        all[i].cursor =
            watch_cursor_new(engine_watch_hub(f->shard),
                             &(struct watch_cursor_options){
                                 .key = SLICE_LITERAL("k"), .wake = wake, .ctx = &all[i]});
    for (unsigned i = 1; i <= PUTS; i++) {
        put(f, all);
        if (i % 3) /* other requests arrive during the pause */
            continue;
        while (!have_all(all, i)) {
            int64_t begin_ns = clock_mono_ns(clock_system());
            turn(f, all, WAIT_NS_MAX);
            assert_true(clock_mono_ns(clock_system()) - begin_ns < WAIT_NS_MAX);
        }
        while (watch_hub_paused_until(engine_watch_hub(f->shard)))
            turn(f, all, WAIT_NS_MAX);
        int64_t by_ns = clock_mono_ns(clock_system()) + WAIT_NS_MAX;
        while (!is_notified_again(f)) { /* the message of the last put may be in flight */
            assert_true(clock_mono_ns(clock_system()) < by_ns);
            turn(f, all, 10 * NS_PER_MS);
        }
    }
    for (int i = 0; i < CURSORS; i++) {
        assert_int_equal(all[i].events, PUTS);
        watch_cursor_free(all[i].cursor);
    }
    engine_shard_turn_begin(f->shard);
    engine_shard_flushed(f->shard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(revisions_published_during_a_pause_are_sent_after_it, setup,
                                        fixture_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
