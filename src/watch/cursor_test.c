#include "watch/cursor.h"

#include "base/clock.h"
#include "base/random.h"
#include "watch/history_test.h"
#include "watch/hub/hub_state.h"
#include "watch/stream/stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

enum { CURSORS = 12, CURSORS_MAX = 300, WATCHERS_MAX = 3000, TEXT_BYTES = 32 };

struct owner {
    struct watch_cursor *cursor;
    char key[TEXT_BYTES], end[TEXT_BYTES], tag[TEXT_BYTES];
    int64_t next_revision; /* what the model expects next */
    size_t next_event;
    unsigned wakes;
    unsigned given; /* events that were taken */
};

struct fixture {
    struct memory_history memory;
    struct watch_hub *hub;
    struct random random;
    int64_t now_ns;
    struct owner owners[CURSORS_MAX];
    _Atomic uint64_t watchers;
    unsigned tagged;
    const char *unknown; /* the key of events whose tags are unknown */
    bool one_range;      /* replace_one opens cursors of the same range, without tags */
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
        .watchers_all_max = WATCHERS_MAX,
        .progress_interval_ns = 1000,
        .seed = 1,
    });
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < CURSORS_MAX; i++)
        watch_cursor_free(f->owners[i].cursor);
    while (watch_hub_turn_begin(f->hub, ++f->now_ns))
        watch_hub_turn_end(f->hub);
    watch_hub_free(f->hub);
    memory_fini(&f->memory);
    free(f);
    return 0;
}

/* Runs after any pause is over. */
static void turn(struct fixture *f)
{
    int64_t rests_until = watch_hub_paused_until(f->hub);
    f->now_ns = f->now_ns + 1 > rests_until ? f->now_ns + 1 : rests_until;
    bool more = watch_hub_turn_begin(f->hub, f->now_ns);
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

#define EVERYTHING "e" /* the end of a range with all keys of the random tests */

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
                                                 .tag_within = strcmp(owner->end, EVERYTHING) == 0,
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

/* The last letter of a value is its tag. */
static uint8_t tag_of(struct slice field)
{
    return field.len ? field.ptr[field.len - 1] : 0;
}

static bool has_tag(const struct owner *owner, struct slice before, struct slice after)
{
    uint8_t tag = (uint8_t)owner->tag[1];
    return !owner->tag[0] || tag_of(before) == tag || tag_of(after) == tag;
}

static bool concerns(const struct owner *owner, const struct memory_event *event)
{
    return covers(owner, buf_slice(&event->key)) &&
           has_tag(owner, buf_slice(&event->prev),
                   event->tombstone ? SLICE_EMPTY : buf_slice(&event->field));
}

/* The next event for the owner according to the model, or NULL. */
static const struct memory_event *expected(struct fixture *f, struct owner *owner)
{
    for (; owner->next_revision <= f->memory.published; owner->next_revision++) {
        const struct memory_revision *r = &f->memory.revisions[owner->next_revision];
        for (; owner->next_revision > 1 && owner->next_event < r->count; owner->next_event++) {
            if (concerns(owner, &r->events[owner->next_event]))
                return &r->events[owner->next_event];
        }
        owner->next_event = 0;
    }
    return NULL;
}

/* Takes up to max events and compares each with the model; a cursor that catches up may also be
 * given events without its tag. Returns the last status. */
static enum status take(struct fixture *f, struct owner *owner, unsigned max)
{
    for (;;) {
        const struct watch_event *event;
        int64_t revision;
        enum status status = watch_cursor_next(owner->cursor, &event, &revision);
        if (status != ST_OK)
            return status;
        struct slice prev = watch_cursor_prev(owner->cursor, event);
        assert_true(covers(owner, event->key));
        if (!has_tag(owner, prev, event->tombstone ? SLICE_EMPTY : event->field)) {
            watch_cursor_take(owner->cursor);
            owner->given++;
            continue;
        }
        const struct memory_event *model = expected(f, owner);
        assert_non_null(model);
        assert_int_equal(revision, owner->next_revision);
        assert_true(slice_equal(event->field, buf_slice(&model->field)));
        assert_true(slice_equal(prev, buf_slice(&model->prev)));
        assert_true(watch_cursor_revision(owner->cursor) < revision);
        if (!max--)
            return ST_OK; /* it will be given again */
        watch_cursor_take(owner->cursor);
        owner->given++;
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

static void cursor_without_room_keeps_its_place_and_delays_no_other(void **state)
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

static void compacted_past_is_reported(void **state)
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

static void discarded_past_is_reported(void **state)
{
    struct fixture *f = *state;
    struct owner *lost = &f->owners[0], *present = &f->owners[1];
    memory_put(&f->memory, "a", "x");
    f->memory.void_until = 9;
    open_cursor(f, lost, "a", "", "", 9);
    open_cursor(f, present, "a", "", "", 3);
    turn(f);
    assert_int_equal(lost->wakes, 1);
    assert_int_equal(watch_hub_scan_stats(f->hub)->stats.behind_max, 0);
    assert_int_equal(take(f, lost, 100), ST_COMPACTED);
    assert_int_equal(take(f, present, 100), ST_END);
    turn_end(f);
}

static void cursors_are_limited(void **state)
{
    struct fixture *f = *state;
    f->watchers = WATCHERS_MAX;
    struct watch_cursor_options options = {.key = SLICE_LITERAL("a"), .wake = wake};
    assert_null(watch_cursor_new(f->hub, &options));
    options.own = true;
    struct watch_cursor *own = watch_cursor_new(f->hub, &options);
    assert_non_null(own);
    assert_int_equal(watch_hub_scan_stats(f->hub)->stats.watchers, 0);
    watch_cursor_free(own);
    assert_int_equal(f->watchers, WATCHERS_MAX);
    f->watchers = 0;
}

/* Touches its owner, as a prefetch does. */
static void soon(void *ctx)
{
    ((struct owner *)ctx)->given++;
}

/* The hub frees them over several turns; their owners are freed at once and must not be touched. */
static void owners_of_many_closed_cursors_are_not_touched(void **state)
{
    struct fixture *f = *state;
    struct owner **owners = xcalloc(WATCHERS_MAX, sizeof(owners[0]));
    for (int i = 0; i < WATCHERS_MAX; i++) {
        owners[i] = xcalloc(1, sizeof(*owners[i]));
        owners[i]->cursor = watch_cursor_new(f->hub, &(struct watch_cursor_options){
                                                         .key = SLICE_LITERAL("a"),
                                                         .wake = wake,
                                                         .soon = soon,
                                                         .ctx = owners[i],
                                                     });
        assert_non_null(owners[i]->cursor);
    }
    for (int i = 0; i < WATCHERS_MAX; i++) {
        watch_cursor_free(owners[i]->cursor);
        free(owners[i]);
    }
    free(owners);
    assert_int_not_equal(f->watchers, 0);
    while (f->watchers) {
        memory_put(&f->memory, "a", "x");
        watch_hub_check(f->hub);
        turn(f);
        turn_end(f);
    }
}

/* The tag of the event and of the version before it, which may be equal. */
static size_t tagger(void *ctx, struct watch_history *history, const struct watch_event *event,
                     struct slice ret_tags[WATCH_TAGS_MAX])
{
    static uint8_t tags[2][2];
    size_t count = 0;
    struct fixture *f = ctx;
    f->tagged++;
    if (f->unknown && slice_equal(event->key, slice_from_text(f->unknown)))
        return WATCH_TAGS_UNKNOWN;
    for (int i = 0; i < 2; i++) {
        if (i ? event->created : event->tombstone)
            continue;
        tags[i][0] = '#';
        tags[i][1] = tag_of(i ? history->ops->prev(history, event) : event->field);
        ret_tags[count++] = slice_of(tags[i], 2);
    }
    return count;
}

static void cursor_with_a_tag_is_woken_for_its_tag_only(void **state)
{
    struct fixture *f = *state;
    struct owner *owner = &f->owners[0];
    watch_hub_set_tagger(f->hub, tagger, f);
    open_cursor(f, &f->owners[1], "b", "c", "", 0);
    memory_put(&f->memory, "a1", "x");
    turn(f);
    turn_end(f);
    assert_int_equal(f->tagged, 0); /* not called without a cursor that has a tag */
    open_cursor(f, owner, "a", "b", "#x", 0);
    memory_put(&f->memory, "a2", "y");
    turn(f);
    turn_end(f);
    assert_int_equal(owner->wakes, 0);
    memory_put(&f->memory, "a1", "z"); /* its value was x before */
    memory_put(&f->memory, "a3", "y");
    turn(f);
    assert_int_equal(owner->wakes, 1);
    assert_int_equal(take(f, owner, 0), ST_OK);
    assert_int_equal(owner->next_revision, 4);
    assert_int_equal(take(f, owner, 1), ST_END);
    assert_int_equal(watch_cursor_revision(owner->cursor), 5);
    turn_end(f);
    assert_int_equal(owner->given, 1);
}

static void event_of_unknown_tags_is_given_to_all(void **state)
{
    struct fixture *f = *state;
    struct owner *other = &f->owners[2], *late = &f->owners[3];
    watch_hub_set_tagger(f->hub, tagger, f);
    f->unknown = "a9";
    memory_put(&f->memory, "a9", "x");
    open_cursor(f, &f->owners[0], "a", "b", "#x", 0);
    open_cursor(f, &f->owners[1], "a", "b", "#y", 0);
    open_cursor(f, other, "b", "c", "#x", 0);
    memory_put(&f->memory, "a1", "x");
    memory_put(&f->memory, "a1", "z");
    memory_delete(&f->memory, "a9"); /* revision 5 */
    memory_put(&f->memory, "a2", "x");
    memory_put(&f->memory, "a2", "y");
    open_cursor(f, late, "a", "b", "#x", 2);
    turn(f);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(take(f, &f->owners[i], 100), ST_END);
        assert_null(expected(f, &f->owners[i]));
    }
    turn_end(f);
    assert_int_equal(f->owners[0].given, 5);
    assert_int_equal(f->owners[1].given, 2); /* one of them has another tag */
    assert_int_equal(other->given, 0);
    assert_int_equal(late->given, 6);
    f->owners[0].given = f->owners[1].given = 0;
    memory_put(&f->memory, "a3", "y"); /* from here on the tag index is complete again */
    turn(f);
    assert_int_equal(take(f, &f->owners[0], 100), ST_END);
    assert_int_equal(take(f, &f->owners[1], 100), ST_END);
    turn_end(f);
    assert_int_equal(f->owners[0].given, 0);
    assert_int_equal(f->owners[1].given, 1);
}

/* However late a turn is, a cursor with a tag examines the events of its tag and no others. */
static void many_tags_share_a_late_turn_without_examining_each_others_events(void **state)
{
    enum { TAGS = 100, EVENTS = 1000, EACH = EVENTS / TAGS };
    struct fixture *f = *state;
    struct owner *owners = f->owners;
    watch_hub_set_tagger(f->hub, tagger, f);
    for (int i = 0; i < CURSORS_MAX; i++)
        open_cursor(f, &owners[i], "a", "b", (char[]){'#', (char)('!' + i % TAGS), 0}, 0);
    for (int i = 0; i < EVENTS; i++) {
        char key[] = {'a', (char)('!' + i % TAGS), 0};
        memory_put(&f->memory, key, key + 1);
    }
    turn(f);
    for (int i = 0; i < CURSORS_MAX; i++) {
        assert_int_equal(take(f, &owners[i], 3), ST_OK);
        assert_int_equal(take(f, &owners[i], EVENTS), ST_END);
        assert_null(expected(f, &owners[i]));
        assert_int_equal(owners[i].given, EACH);
        assert_int_equal(watch_cursor_revision(owners[i].cursor), f->memory.published);
    }
    turn_end(f);
    assert_int_equal(f->tagged, EVENTS);
    assert_true(f->hub->tag_index.steps <=
                CURSORS_MAX * 2 * EACH); /* for the first and for the last */
}

/* After a restart all cursors start in the past at once: the tags of each event are computed once,
 * and a turn is bounded. */
static void many_tags_read_the_past_and_compute_its_tags_once(void **state)
{
    enum { TAGS = 50, EVENTS = 2000, EACH = EVENTS / TAGS };
    struct fixture *f = *state;
    struct owner *owners = f->owners;
    unsigned turns = 0, left = CURSORS_MAX;
    watch_hub_set_tagger(f->hub, tagger, f);
    for (int i = 0; i < EVENTS; i++) {
        char key[] = {'a', (char)('!' + i % TAGS), 0};
        memory_put(&f->memory, key, key + 1);
    }
    turn(f);
    turn_end(f);
    f->tagged = 0;
    for (int i = 0; i < CURSORS_MAX; i++)
        open_cursor(f, &owners[i], "a", "b", (char[]){'#', (char)('!' + i % TAGS), 0}, 1);
    for (; left && turns < EVENTS; turns++) {
        unsigned tagged = f->tagged;
        turn(f);
        left = 0;
        for (int i = 0; i < CURSORS_MAX; i++) {
            if (!turns || owners[i].wakes)
                (void)!take(f, &owners[i], EVENTS);
            owners[i].wakes = 0;
            left += expected(f, &owners[i]) != NULL;
        }
        assert_true(f->tagged - tagged <= WATCH_WALK_EVENTS / WATCH_WALK_TAGGING + 1);
        turn_end(f);
    }
    assert_int_equal(left, 0);
    assert_true(turns > 1);
    for (int i = 0; i < CURSORS_MAX; i++) {
        assert_int_equal(owners[i].given, EACH); /* and no events of other tags */
    }
    assert_int_equal(f->tagged, EVENTS);
}

enum { OF_REVISION = 64 };

/* This many events of one key in one revision; the first of them have another value. */
static void put_many(struct fixture *f, int count, int first, struct slice value)
{
    memory_begin(&f->memory);
    for (int i = 0; i < count; i++)
        memory_add(&f->memory, SLICE_LITERAL("a"), i < first ? value : SLICE_LITERAL("y"), false);
    memory_publish(&f->memory);
}

static void cursor_with_a_replaced_index_entry_misses_nothing(void **state)
{
    struct fixture *f = *state;
    struct owner *owner = &f->owners[0], *other = &f->owners[1];
    watch_hub_set_tagger(f->hub, tagger, f);
    open_cursor(f, owner, "a", "b", "#x", 0);
    open_cursor(f, other, "a", "b", "#y", 0);
    put_many(f, OF_REVISION, 5, SLICE_LITERAL("x"));
    for (int i = 0; i < TAG_INDEX_EVENTS / OF_REVISION + 2; i++) {
        turn(f);
        if (i == 0)
            assert_int_equal(take(f, owner, OF_REVISION), ST_END);
        assert_int_equal(take(f, other, OF_REVISION), ST_END);
        turn_end(f);
        put_many(f, OF_REVISION, 0, SLICE_EMPTY);
    }
    assert_int_equal(owner->wakes, 1);
    assert_int_equal(owner->given, 6); /* one of them had x before */
    put_many(f, 1, 1, SLICE_LITERAL("x"));
    turn(f);
    assert_int_equal(take(f, owner, OF_REVISION), ST_END);
    turn_end(f);
    assert_int_equal(owner->given, 7);
}

static void cursor_behind_the_tag_index_reads_one_by_one_until_it_is_not(void **state)
{
    enum { REVISIONS = TAG_INDEX_EVENTS / OF_REVISION + 20 };
    struct fixture *f = *state;
    struct owner *owner = &f->owners[0], *other = &f->owners[1];
    watch_hub_set_tagger(f->hub, tagger, f);
    open_cursor(f, owner, "a", "b", "#x", 0);
    open_cursor(f, other, "a", "b", "#y", 0);
    for (int i = 0; i < REVISIONS; i++) {
        memory_begin(&f->memory);
        for (int k = 0; k < OF_REVISION; k++)
            memory_add(&f->memory, SLICE_LITERAL("a"),
                       k % 16 < 14 ? SLICE_LITERAL("y") : SLICE_LITERAL("x"), false);
        memory_publish(&f->memory);
        turn(f);
        assert_int_equal(take(f, owner, i == 0), ST_OK); /* it is in the middle of a revision */
        assert_int_equal(take(f, other, OF_REVISION), ST_END);
        turn_end(f);
    }
    assert_true(f->hub->tag_index.from > owner->next_revision);
    while (expected(f, owner)) {
        turn(f);
        (void)!take(f, owner, 100);
        turn_end(f);
    }
    assert_true(owner->given <= REVISIONS * OF_REVISION * 3 / 16); /* x, now or before */
    assert_true(owner->given > REVISIONS * OF_REVISION * 2 / 16);
}

enum { TAGS = 8 };

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
        char value[] = {(char)('p' + (char)(random_u64(&f->random) % TAGS)), 0};
        memory_add(&f->memory, slice_from_text(key), slice_from_text(value), deletes);
    }
    memory_publish(&f->memory);
}

/* Some turns are late. */
static int changes_of_turn(struct fixture *f)
{
    return (int)(random_u64(&f->random) % (random_u64(&f->random) % 50 == 0 ? 100 : 2));
}

static void replace_one(struct fixture *f, struct owner *owner)
{
    static const char *const ranges[][2] = {
        {"a", "b"}, {"b0", ""}, {"a", "d"}, {"c", "\xff"}, {"a", EVERYTHING}};
    watch_cursor_free(owner->cursor);
    const char *const *range = ranges[f->one_range ? 2 : random_u64(&f->random) % COUNT_OF(ranges)];
    int64_t lowest = f->memory.compacted > 2 ? f->memory.compacted : 2;
    int64_t from = random_between(&f->random, lowest, f->memory.published + 3);
    char tag[] = {'#', (char)('p' + (char)(random_u64(&f->random) % TAGS)), 0};
    open_cursor(f, owner, range[0], range[1],
                !f->one_range && random_u64(&f->random) % 3 ? tag : "",
                random_u64(&f->random) % 4 ? from : 0);
}

static void random_cursors_miss_and_repeat_nothing(void **state)
{
    struct fixture *f = *state;
    watch_hub_set_tagger(f->hub, tagger, f);
    for (int step = 0; step < 4000; step++) {
        f->memory.again_every = step % 1000 < 500 ? 0 : 5;
        for (int changes = changes_of_turn(f); changes > 0; changes--)
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
    /* Without further changes, every owner with events left is woken until none are left. */
    f->memory.again_every = 0;
    for (int round = 0; round < 3000; round++) {
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

static void random_cursors_of_one_range_miss_and_repeat_nothing(void **state)
{
    struct fixture *f = *state;
    f->one_range = true;
    random_cursors_miss_and_repeat_nothing(state);
    assert_true(f->hub->wide_index.end > 100);
}

static void random_cursors_of_one_range_with_long_revisions(void **state)
{
    struct fixture *f = *state;
    f->one_range = true;
    f->memory.long_from = 2;
    f->hub->options.turn_units = 40;
    random_cursors_miss_and_repeat_nothing(state);
}

/* However late cursors of one range are, they examine the events of their range and no others. */
static void late_cursors_of_one_range_read_no_other_events(void **state)
{
    enum { EVENTS = 10, OTHERS = 1000 };
    struct fixture *f = *state;
    for (int i = 0; i < CURSORS; i++)
        open_cursor(f, &f->owners[i], "a", "b", "", 0);
    for (int i = 0; i < EVENTS; i++) {
        memory_put(&f->memory, "a1", "x");
        for (int k = 0; k < OTHERS; k++)
            memory_put(&f->memory, "c", "x");
    }
    while (watch_hub_revision(f->hub) < f->memory.published) {
        turn(f);
        turn_end(f);
    }
    turn(f);
    f->memory.again_every = INT32_MAX; /* calls are counted */
    f->memory.calls = 0;
    for (int i = 0; i < CURSORS; i++) {
        assert_int_equal(take(f, &f->owners[i], EVENTS + 1), ST_END);
        assert_int_equal(f->owners[i].given, EVENTS);
    }
    turn_end(f);
    assert_in_range(f->memory.calls, 1, CURSORS * (EVENTS + 1));
}

static void random_cursors_miss_and_repeat_nothing_of_long_revisions(void **state)
{
    struct fixture *f = *state;
    f->memory.long_from = 2;
    f->hub->options.turn_units = 40;
    random_cursors_miss_and_repeat_nothing(state);
}

static void idle_cursor_is_woken_for_new_events(void **state)
{
    struct fixture *f = *state;
    watch_hub_set_tagger(f->hub, tagger, f);
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

/* How many of so many cursors are woken by a change that follows another at once. */
static int woken_by_the_second(struct fixture *f, int cursors)
{
    int woken = 0;
    for (int i = 0; i < cursors; i++)
        open_cursor(f, &f->owners[i], "a", "", "", 0);
    memory_put(&f->memory, "a", "x");
    turn(f);
    for (int i = 0; i < cursors; i++) {
        assert_int_equal(f->owners[i].wakes, 1);
        assert_int_equal(take(f, &f->owners[i], 10), ST_END);
    }
    turn_end(f);
    memory_put(&f->memory, "a", "y");
    bool more = watch_hub_turn_begin(f->hub, ++f->now_ns);
    assert_false(more);
    for (int i = 0; i < cursors; i++)
        woken += f->owners[i].wakes == 2;
    turn_end(f);
    return woken;
}

static void few_cursors_are_woken_without_a_pause(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(woken_by_the_second(f, WATCH_PAUSE_FROM - 1), WATCH_PAUSE_FROM - 1);
    assert_int_equal(watch_hub_paused_until(f->hub), 0);
}

static void many_cursors_pause_before_they_are_woken_again(void **state)
{
    struct fixture *f = *state;
    enum { MANY = 100 };
    assert_int_equal(woken_by_the_second(f, MANY), 0);
    int64_t until = watch_hub_paused_until(f->hub);
    assert_true(until > f->now_ns && until <= f->now_ns + 4 * NS_PER_MS);
    assert_int_equal(watch_hub_next_ns(f->hub), until);
    memory_put(&f->memory, "a", "z");
    turn(f);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(f->owners[i].wakes, 2); /* once for both changes */
        assert_int_equal(take(f, &f->owners[i], 10), ST_END);
        assert_null(expected(f, &f->owners[i]));
        assert_int_equal(watch_cursor_revision(f->owners[i].cursor), f->memory.published);
    }
    turn_end(f);
}

static void wake_nobody(void *ctx)
{
    (void)ctx;
}

/* etcd's clients expect no such delay. */
static void cursors_do_not_pause_beside_an_etcd_stream(void **state)
{
    struct fixture *f = *state;
    struct watch_stream *stream =
        watch_stream_new(f->hub, (struct watch_stream_owner){.wake = wake_nobody});
    assert_int_equal(woken_by_the_second(f, 100), 100);
    watch_stream_free(stream);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(events_come_in_order_from_the_past_and_then_as_they_happen),
        TEST(cursor_without_room_keeps_its_place_and_delays_no_other),
        TEST(compacted_past_is_reported),
        TEST(discarded_past_is_reported),
        TEST(cursors_are_limited),
        TEST(owners_of_many_closed_cursors_are_not_touched),
        TEST(cursor_with_a_tag_is_woken_for_its_tag_only),
        TEST(event_of_unknown_tags_is_given_to_all),
        TEST(many_tags_share_a_late_turn_without_examining_each_others_events),
        TEST(many_tags_read_the_past_and_compute_its_tags_once),
        TEST(cursor_with_a_replaced_index_entry_misses_nothing),
        TEST(cursor_behind_the_tag_index_reads_one_by_one_until_it_is_not),
        TEST(random_cursors_miss_and_repeat_nothing),
        TEST(random_cursors_miss_and_repeat_nothing_of_long_revisions),
        TEST(random_cursors_of_one_range_miss_and_repeat_nothing),
        TEST(random_cursors_of_one_range_with_long_revisions),
        TEST(late_cursors_of_one_range_read_no_other_events),
        TEST(idle_cursor_is_woken_for_new_events),
        TEST(few_cursors_are_woken_without_a_pause),
        TEST(many_cursors_pause_before_they_are_woken_again),
        TEST(cursors_do_not_pause_beside_an_etcd_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
