/* Watches of a mirror: gaps, progress, states without history, and another history before its own.
 */
#include "engine/local/mirror/watch_test.h"
#include "engine/local/state/shared.h"

static const struct engine_local_options options = {
    .is_mirror = true,
    .compaction_wait_ns = 60 * NS_PER_S, /* longer than any pause of the machine */
};

static int setup(void **state)
{
    *state = fixture_new_fast(options);
    return 0;
}

struct seen {
    int64_t revisions[64];
    int count;
};

static void note_event(struct watching *w, const struct pb_event *event)
{
    struct seen *seen = w->ctx;
    assert_true(seen->count < (int)COUNT_OF(seen->revisions));
    seen->revisions[seen->count++] = event->kv->mod_revision;
}

static void turn_until(struct watching *w, const int *count, int at_least)
{
    while (*count < at_least)
        watching_turn(w, NS_PER_S);
}

static void a_live_watch_sees_revisions_with_gaps_and_what_was_reached(void **state)
{
    struct fixture *f = *state;
    struct seen seen = {0};
    struct watching w = {.f = f, .on_event = note_event, .ctx = &seen};
    watching_begin(&w, 0);
    while (!w.created)
        watching_turn(&w, 0);
    apply_one(f, 10, put_of("a", "1", 10, 1));
    apply_one(f, 25, put_of("b", "1", 25, 1));
    turn_until(&w, &seen.count, 2);
    assert_int_equal(seen.revisions[0], 10);
    assert_int_equal(seen.revisions[1], 25);
    apply_reach(f, 70);
    assert_int_equal(watch_stream_progress(w.stream, INT64_MAX), ST_OK);
    while (w.progress_revision < 70)
        watching_turn(&w, NS_PER_S);
    assert_int_equal(w.progress_revision, 70);
    apply_one(f, 71, delete_of("a"));
    turn_until(&w, &seen.count, 3);
    assert_int_equal(seen.revisions[2], 71);
    assert_false(w.canceled);
    watching_end(&w);
}

/* A comparison of two states does not show the changes between them. */
static void a_state_ends_watches_that_need_what_was_before(void **state)
{
    struct fixture *f = *state;
    struct seen seen = {0};
    struct watching w = {.f = f, .on_event = note_event, .ctx = &seen};
    apply_one(f, 10, put_of("a", "1", 10, 1));
    watching_begin(&w, 10);
    turn_until(&w, &seen.count, 1);
    struct imported_change change = put_of("b", "1", 30, 1);
    struct mirror_revision one = {.revision = 30, .changes = &change, .count = 1};
    struct mirror_batch batch = {.revisions = &one, .count = 1, .compact = 50, .is_part = true};
    assert_int_equal(apply_batch(f, batch), ST_OK);
    for (int i = 0; i < 3; i++)
        watching_turn(&w, 0);
    assert_false(w.canceled);
    assert_int_equal(apply_batch(f, (struct mirror_batch){.compact = 50}), ST_OK);
    while (!w.canceled)
        watching_turn(&w, NS_PER_S);
    assert_int_equal(w.compact_revision, 50);
    assert_int_equal(seen.count, 1);
    watching_end(&w);
}

static void a_compaction_waits_for_shards_and_nothing_waits_for_it(void **state)
{
    struct fixture *f = *state;
    struct seen seen = {0};
    struct watching w = {.f = f, .on_event = note_event, .ctx = &seen};
    watching_begin(&w, 0);
    while (!w.created)
        watching_turn(&w, 0);
    apply_one(f, 10, put_of("a", "1", 10, 1));
    apply_one(f, 20, put_of("a", "2", 10, 2));
    struct applying compaction = {.batch = {.compact = 20}};
    apply_start(f, &compaction);
    apply_one(f, 30, put_of("a", "3", 10, 3)); /* passes it */
    assert_false(atomic_load(&compaction.done));
    assert_int_equal(local_mirror_compact_revision(f->engine), -1);
    turn_until(&w, &seen.count, 3);
    assert_int_equal(apply_wait(&compaction), ST_OK);
    assert_int_equal(local_mirror_compact_revision(f->engine), 20);
    assert_false(w.canceled);
    watching_end(&w);
}

/* Until it has taken all batches. */
static void wait_for_writer(struct fixture *f)
{
    struct local_shared *shared = CONTAINER_OF(f->engine, struct local_shared, engine);
    while (!mailbox_empty(&shared->writer.requests))
        usleep(100);
}

/* What follows a state must not be applied before it. */
static void a_state_that_waits_for_shards_is_not_passed(void **state)
{
    struct fixture *f = *state;
    struct seen seen = {0};
    struct watching w = {.f = f, .on_event = note_event, .ctx = &seen};
    watching_begin(&w, 0);
    while (!w.created)
        watching_turn(&w, 0);
    apply_one(f, 10, put_of("a", "1", 10, 1));
    struct imported_change changes[] = {put_of("b", "1", 30, 1), put_of("c", "1", 60, 1)};
    struct mirror_revision revisions[] = {{.revision = 30, .changes = &changes[0], .count = 1},
                                          {.revision = 60, .changes = &changes[1], .count = 1}};
    struct applying load = {.batch = {.revisions = &revisions[0], .count = 1, .compact = 50}};
    struct applying after = {.batch = {.revisions = &revisions[1], .count = 1}};
    apply_start(f, &load);
    apply_start(f, &after);
    wait_for_writer(f);
    turn_until(&w, &seen.count, 1);
    while (!atomic_load(&load.done)) /* the shard reports what it has read at the end of a turn */
        watching_turn(&w, 0);
    assert_int_equal(apply_wait(&load), ST_OK);
    assert_int_equal(apply_wait(&after), ST_OK);
    assert_int_equal(local_mirror_revision(f->engine), 60);
    watching_end(&w);
}

/* -- Another history -- */

/* Has revision 5, which the mirror lacks, after it was made ready. */
struct older {
    struct watch_history base;
    struct watch_history *own;
    struct watch_event event;
    uint8_t field[64];
    size_t field_bytes;
    bool is_ready;
    int asked, wraps;
};

static struct older *older_of(struct watch_history *base)
{
    return CONTAINER_OF(base, struct older, base);
}

static enum status older_next(struct watch_history *base, struct watch_place *place, int64_t last,
                              struct watch_batch *ret_batch)
{
    struct older *older = older_of(base);
    if (place->revision > 5 && place->revision < 10)
        *place = (struct watch_place){.revision = 10}; /* the first that the mirror has */
    if (place->revision > 5)
        return older->own->ops->next(older->own, place, last, ret_batch);
    older->asked++;
    if (!older->is_ready)
        return ST_AGAIN;
    place->revision = 6;
    *ret_batch = (struct watch_batch){.revision = 5, .events = &older->event, .count = 1};
    return ST_OK;
}

static int64_t older_revision(struct watch_history *base)
{
    return older_of(base)->own->ops->revision(older_of(base)->own);
}

static int64_t older_compact_revision(struct watch_history *base)
{
    (void)base;
    return 2;
}

static void older_listen(struct watch_history *base, bool wanted)
{
    older_of(base)->own->ops->listen(older_of(base)->own, wanted);
}

static struct slice older_prev(struct watch_history *base, const struct watch_event *event)
{
    (void)base;
    (void)event;
    return SLICE_EMPTY;
}

static const struct watch_history_ops older_ops = {
    .next = older_next,
    .prev = older_prev,
    .revision = older_revision,
    .compact_revision = older_compact_revision,
    .listen = older_listen,
};

static struct watch_history *wrap(void *ctx, struct watch_history *own)
{
    struct older *older = ctx;
    older->base.ops = &older_ops;
    older->own = own;
    older->wraps++;
    return &older->base;
}

static void a_history_of_another_server_comes_before_the_mirrors_own(void **state)
{
    (void)state;
    struct older older = {.field = {0x12, 5, 0x0a, 1, 'k', 0x18, 5}};
    older.event = (struct watch_event){
        .key = SLICE_LITERAL("k"), .field = slice_of(older.field, 7), .tombstone = true};
    struct fixture *f = fixture_new_fast(options);
    local_mirror_wrap_history(f->shard, wrap, &older);
    apply_one(f, 10, put_of("a", "1", 10, 1));
    apply_compact(f, 10);
    struct seen seen = {0};
    struct watching w = {.f = f, .on_event = note_event, .ctx = &seen};
    watching_begin(&w, 3);
    for (int i = 0; i < 20; i++)
        watching_turn(&w, 0);
    assert_int_equal(seen.count, 0);
    assert_true(older.asked >= 1 && older.asked <= 3); /* it is not asked again and again */
    assert_int_equal(older.wraps, 1);
    older.is_ready = true;
    watch_hub_history_ready(engine_watch_hub(f->shard));
    turn_until(&w, &seen.count, 2);
    assert_int_equal(seen.revisions[0], 5);
    assert_int_equal(seen.revisions[1], 10);
    assert_false(w.canceled);
    watching_end(&w);
    fixture_free((void *[]){f});
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_live_watch_sees_revisions_with_gaps_and_what_was_reached),
        TEST(a_state_ends_watches_that_need_what_was_before),
        TEST(a_compaction_waits_for_shards_and_nothing_waits_for_it),
        TEST(a_state_that_waits_for_shards_is_not_passed),
        cmocka_unit_test(a_history_of_another_server_comes_before_the_mirrors_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
