#include "watch/cursor.h"

#include "base/random.h"
#include "watch/history_test.h"
#include "watch/watcher.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

enum { CURSORS = 6, TEXT_BYTES = 32 };

struct owner {
    struct watch_cursor *cursor;
    char key[TEXT_BYTES], end[TEXT_BYTES], tag[TEXT_BYTES];
    int64_t next_revision; /* what the model says comes next */
    size_t next_event;
    unsigned wakes;
};

struct fixture {
    struct memory_history memory;
    struct watch_hub *hub;
    struct random random;
    int64_t now_ns;
    struct owner owners[CURSORS];
    _Atomic uint64_t watchers;
    unsigned tagged;
};

static void wake(void *ctx)
{
    ((struct owner *)ctx)->wakes++;
}

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    memory_init(&f->memory);
    random_init(&f->random, 1);
    f->hub = watch_hub_new(&(struct watch_hub_options){
        .history = &f->memory.history,
        .fragment_bytes = 1 << 20,
        .watchers_max = 100,
        .watchers_all = &f->watchers,
        .watchers_all_max = 2 * CURSORS,
        .progress_interval_ns = 1000,
        .seed = 1,
    });
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < CURSORS; i++)
        watch_cursor_free(f->owners[i].cursor);
    while (watch_hub_turn_begin(f->hub, ++f->now_ns))
        watch_hub_turn_end(f->hub);
    watch_hub_free(f->hub);
    memory_fini(&f->memory);
    free(f);
    return 0;
}

static void turn(struct fixture *f)
{
    bool more = watch_hub_turn_begin(f->hub, ++f->now_ns);
    (void)more;
    if (f->memory.again_said) {
        f->memory.again_said = false;
        watch_hub_history_ready(f->hub);
    }
}

static void turn_end(struct fixture *f)
{
    watch_hub_turn_end(f->hub);
    memory_turn_end(&f->memory);
}

static void open_cursor(struct fixture *f, struct owner *owner, const char *key, const char *end,
                        const char *tag, int64_t from)
{
    *owner = (struct owner){0};
    snprintf(owner->key, TEXT_BYTES, "%s", key);
    snprintf(owner->end, TEXT_BYTES, "%s", end);
    snprintf(owner->tag, TEXT_BYTES, "%s", tag);
    owner->next_revision = from ? from : f->memory.published + 1;
    owner->cursor = watch_cursor_new(f->hub, &(struct watch_cursor_options){
                                                 .key = slice_from_text(owner->key),
                                                 .range_end = slice_from_text(owner->end),
                                                 .tag = slice_from_text(owner->tag),
                                                 .from = from,
                                                 .wake = wake,
                                                 .ctx = owner,
                                             });
    assert_non_null(owner->cursor);
}

static bool covers(const struct owner *owner, struct slice key)
{
    return watch_range_covers(slice_from_text(owner->key), slice_from_text(owner->end), key);
}

/* What the model has next for the owner, or NULL. */
static const struct memory_event *expected(struct fixture *f, struct owner *owner)
{
    for (; owner->next_revision <= f->memory.published; owner->next_revision++) {
        const struct memory_revision *r = &f->memory.revisions[owner->next_revision];
        for (; owner->next_revision > 1 && owner->next_event < r->count; owner->next_event++) {
            if (covers(owner, buf_slice(&r->events[owner->next_event].key)))
                return &r->events[owner->next_event];
        }
        owner->next_event = 0;
    }
    return NULL;
}

/* Takes up to max events and holds each against the model. Returns the last status. */
static enum status take(struct fixture *f, struct owner *owner, unsigned max)
{
    for (;;) {
        const struct watch_event *event;
        int64_t revision;
        enum status status = watch_cursor_next(owner->cursor, &event, &revision);
        if (status != ST_OK)
            return status;
        const struct memory_event *model = expected(f, owner);
        assert_non_null(model);
        assert_int_equal(revision, owner->next_revision);
        assert_true(slice_equal(event->field, buf_slice(&model->field)));
        assert_true(slice_equal(watch_cursor_prev(owner->cursor, event), buf_slice(&model->prev)));
        assert_true(watch_cursor_revision(owner->cursor) < revision);
        if (!max--)
            return ST_OK; /* it is given again */
        watch_cursor_take(owner->cursor);
        owner->next_event++;
    }
}

static void events_come_in_order_from_the_past_and_then_as_they_happen(void **state)
{
    struct fixture *f = *state;
    struct owner *owner = &f->owners[0];
    memory_put(&f->memory, "a/1", "x");
    memory_put(&f->memory, "b/1", "x");
    memory_delete(&f->memory, "a/1");
    open_cursor(f, owner, "a/", "a0", "", 1);
    assert_int_equal(owner->wakes, 1);
    turn(f);
    assert_int_equal(take(f, owner, 100), ST_END);
    turn_end(f);
    assert_null(expected(f, owner));
    assert_int_equal(watch_cursor_revision(owner->cursor), 4);
    memory_put(&f->memory, "b/2", "x");
    turn(f);
    assert_int_equal(owner->wakes, 1);
    assert_int_equal(watch_cursor_revision(owner->cursor), 5);
    turn_end(f);
    memory_put(&f->memory, "a/2", "x");
    turn(f);
    assert_int_equal(owner->wakes, 2);
    assert_int_equal(take(f, owner, 100), ST_END);
    turn_end(f);
    assert_null(expected(f, owner));
}

static void one_without_room_stands_where_it_is_and_holds_nobody(void **state)
{
    struct fixture *f = *state;
    struct owner *slow = &f->owners[0], *quick = &f->owners[1];
    open_cursor(f, slow, "a", "", "", 0);
    open_cursor(f, quick, "a", "", "", 0);
    for (int i = 0; i < 50; i++) {
        memory_put(&f->memory, "a", "x");
        turn(f);
        assert_int_equal(take(f, slow, 0), ST_OK);
        assert_int_equal(take(f, quick, 100), ST_END);
        turn_end(f);
        assert_int_equal(slow->next_revision, 2);
        assert_int_equal(quick->next_revision, f->memory.published);
    }
    assert_int_equal(slow->wakes, 1);
    turn(f);
    assert_int_equal(take(f, slow, 1000), ST_END);
    turn_end(f);
    assert_null(expected(f, slow));
}

static void a_compacted_past_is_told(void **state)
{
    struct fixture *f = *state;
    struct owner *owner = &f->owners[0];
    for (int i = 0; i < 10; i++)
        memory_put(&f->memory, "a", "x");
    open_cursor(f, owner, "a", "", "", 3);
    f->memory.compacted = 6;
    turn(f);
    assert_int_equal(take(f, owner, 100), ST_COMPACTED);
    turn_end(f);
}

static void there_are_no_more_than_may_be(void **state)
{
    struct fixture *f = *state;
    f->watchers = 2 * CURSORS;
    struct watch_cursor_options options = {.key = SLICE_LITERAL("a"), .wake = wake};
    assert_null(watch_cursor_new(f->hub, &options));
    f->watchers = 0;
}

/* The second letter of a key is its tag. */
static size_t tagger(void *ctx, struct watch_history *history, const struct watch_event *event,
                     struct slice ret_tags[WATCH_TAGS_MAX])
{
    static char tag[4];
    (void)history;
    ((struct fixture *)ctx)->tagged++;
    if (event->key.len < 2)
        return 0;
    snprintf(tag, sizeof(tag), "#%c", event->key.ptr[1]);
    ret_tags[0] = slice_of(tag, 2);
    return 1;
}

static void a_tag_wakes_for_what_it_is_on_and_nothing_else(void **state)
{
    struct fixture *f = *state;
    struct owner *owner = &f->owners[0];
    watch_hub_set_tagger(f->hub, tagger, f);
    open_cursor(f, &f->owners[1], "b", "c", "", 0);
    memory_put(&f->memory, "ax", "1");
    turn(f);
    turn_end(f);
    assert_int_equal(f->tagged, 0); /* nobody asks */
    open_cursor(f, owner, "a", "b", "#x", 0);
    memory_put(&f->memory, "ay", "1");
    turn(f);
    turn_end(f);
    assert_int_equal(owner->wakes, 0);
    memory_put(&f->memory, "ax", "2");
    turn(f);
    assert_int_equal(owner->wakes, 1);
    const struct watch_event *event;
    int64_t revision;
    assert_int_equal(watch_cursor_next(owner->cursor, &event, &revision), ST_OK);
    assert_int_equal(revision, 4);
    watch_cursor_take(owner->cursor);
    assert_int_equal(watch_cursor_next(owner->cursor, &event, &revision), ST_END);
    turn_end(f);
}

static void change_something(struct fixture *f)
{
    memory_begin(&f->memory);
    unsigned events = 1 + (unsigned)(random_u64(&f->random) % 4);
    for (unsigned i = 0; i < events; i++) {
        char key[4];
        snprintf(key, sizeof(key), "%c%u", 'a' + (char)(random_u64(&f->random) % 4),
                 (unsigned)(random_u64(&f->random) % 3));
        bool exists = memory_newest(&f->memory, slice_from_text(key)).len > 0;
        bool deletes = exists && random_u64(&f->random) % 3 == 0;
        memory_add(&f->memory, slice_from_text(key), SLICE_LITERAL("v"), deletes);
    }
    memory_publish(&f->memory);
}

static void replace_one(struct fixture *f, struct owner *owner)
{
    static const char *const ranges[][2] = {{"a", "b"}, {"b0", ""}, {"a", "d"}, {"c", "\xff"}};
    watch_cursor_free(owner->cursor);
    const char *const *range = ranges[random_u64(&f->random) % COUNT_OF(ranges)];
    int64_t lowest = f->memory.compacted > 2 ? f->memory.compacted : 2;
    int64_t from = random_between(&f->random, lowest, f->memory.published + 3);
    open_cursor(f, owner, range[0], range[1], "", random_u64(&f->random) % 4 ? from : 0);
}

static void whatever_happens_nothing_is_missed_or_told_twice(void **state)
{
    struct fixture *f = *state;
    for (int step = 0; step < 4000; step++) {
        f->memory.again_every = step % 1000 < 500 ? 0 : 5;
        if (random_u64(&f->random) % 2)
            change_something(f);
        if (random_u64(&f->random) % 200 == 0)
            f->memory.compacted = f->memory.published - (int64_t)(random_u64(&f->random) % 20);
        turn(f);
        for (int i = 0; i < CURSORS; i++) {
            struct owner *owner = &f->owners[i];
            if (!owner->cursor || random_u64(&f->random) % 50 == 0)
                replace_one(f, owner);
            if (random_u64(&f->random) % 3 == 0)
                continue;
            enum status status = take(f, owner, (unsigned)(random_u64(&f->random) % 6));
            if (status == ST_COMPACTED)
                replace_one(f, owner);
            else if (status == ST_END)
                assert_true(!expected(f, owner) ||
                            owner->next_revision > watch_cursor_revision(owner->cursor));
        }
        turn_end(f);
        watch_hub_check(f->hub);
    }
    /* Left alone, everybody who is owed something is woken until nothing is owed. */
    f->memory.again_every = 0;
    for (int round = 0; round < 100; round++) {
        turn(f);
        for (int i = 0; i < CURSORS; i++)
            if (take(f, &f->owners[i], 1000) == ST_COMPACTED)
                replace_one(f, &f->owners[i]);
        turn_end(f);
    }
    for (int i = 0; i < CURSORS; i++) {
        assert_null(expected(f, &f->owners[i]));
        assert_int_equal(watch_cursor_revision(f->owners[i].cursor), f->memory.published);
    }
}

static void who_rests_is_woken_for_what_comes(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < CURSORS; i++)
        replace_one(f, &f->owners[i]);
    for (int step = 0; step < 2000; step++) {
        change_something(f);
        turn(f);
        for (int i = 0; i < CURSORS; i++) {
            struct owner *owner = &f->owners[i];
            bool owed = expected(f, owner) != NULL;
            assert_true(!owed || owner->wakes > 0);
            if (owner->wakes) {
                assert_int_equal(take(f, owner, 1000), ST_END);
                owner->wakes = 0;
            }
        }
        turn_end(f);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(events_come_in_order_from_the_past_and_then_as_they_happen),
        TEST(one_without_room_stands_where_it_is_and_holds_nobody),
        TEST(a_compacted_past_is_told),
        TEST(there_are_no_more_than_may_be),
        TEST(a_tag_wakes_for_what_it_is_on_and_nothing_else),
        TEST(whatever_happens_nothing_is_missed_or_told_twice),
        TEST(who_rests_is_woken_for_what_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
