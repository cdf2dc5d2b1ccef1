/* The local engine's history over a store on a simulated disk. */
#include "engine/local/shard/history.h"

#include "base/random.h"
#include "store/fixture_test.h"
#include "store/upkeep/cleaner.h"

struct bed {
    struct fixture *f;
    struct revision_notice notice;
    struct local_history *h;
    struct watch_history *history;
};

static void no_damage(void *ctx, enum status status)
{
    (void)ctx;
    fail_msg("damage: %s", status_text(status));
}

static void bed_open(struct bed *bed)
{
    bed->h = local_history_new(&(struct local_history_options){
        .store = bed->f->store,
        .slot = epoch_slot_add(store_epoch(bed->f->store)),
        .notice = &bed->notice,
        .on_damage = no_damage,
    });
    bed->history = local_history_base(bed->h);
}

static void bed_restart(struct bed *bed)
{
    local_history_free(bed->h);
    fixture_restart(bed->f);
    bed_open(bed);
}

static int setup(void **state)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    assert_non_null(bed);
    assert_int_equal(fixture_setup((void **)&bed->f), 0);
    bed_open(bed);
    *state = bed;
    return 0;
}

static int teardown(void **state)
{
    struct bed *bed = *state;
    local_history_free(bed->h);
    fixture_teardown((void **)&bed->f);
    free(bed);
    return 0;
}

static void begin(struct bed *bed)
{
    fixture_commit(bed->f);
    local_history_turn_begin(bed->h);
}

static void end(struct bed *bed)
{
    local_history_flushed(bed->h);
}

static enum status next(struct bed *bed, struct watch_place *place, struct watch_batch *ret_batch)
{
    int64_t last = bed->history->ops->revision(bed->history);
    return bed->history->ops->next(bed->history, place, last, ret_batch);
}

static const char *field_text(struct bed *bed, struct slice field)
{
    return field.len ? fixture_text(bed->f, field) : "none";
}

/* "revision: event event", an event as "key=value@create.mod.version<previous". */
static const char *batch_text(struct bed *bed, const struct watch_batch *batch)
{
    struct buf text = {0};
    assert_int_equal(buf_append_format(&text, "%lld:", (long long)batch->revision), ST_OK);
    for (size_t i = 0; i < batch->count; i++) {
        const struct watch_event *event = &batch->events[i];
        struct slice prev = bed->history->ops->prev(bed->history, event);
        assert_int_equal(buf_append_format(&text, " %s%s%s<%s", event->tombstone ? "-" : "",
                                           event->created ? "+" : "", field_text(bed, event->field),
                                           field_text(bed, prev)),
                         ST_OK);
    }
    struct slice copy;
    assert_int_equal(buf_append(&text, slice_of("", 1)), ST_OK);
    assert_int_equal(arena_dup(&bed->f->arena, buf_slice(&text), &copy), ST_OK);
    buf_fini(&text);
    return (const char *)copy.ptr;
}

static void assert_next(struct bed *bed, struct watch_place *place, const char *text)
{
    struct watch_batch batch;
    assert_int_equal(next(bed, place, &batch), ST_OK);
    assert_string_equal(batch_text(bed, &batch), text);
    assert_int_equal(place->revision, batch.revision + 1);
}

static void assert_end(struct bed *bed, struct watch_place *place)
{
    struct watch_batch batch;
    assert_int_equal(next(bed, place, &batch), ST_END);
    assert_int_equal(place->revision, bed->history->ops->revision(bed->history) + 1);
}

/* -- Order -- */

static void revisions_come_in_order_and_whole(void **state)
{
    struct bed *bed = *state;
    fixture_put(bed->f, "b", "1");
    fixture_put(bed->f, "a", "2");
    fixture_put(bed->f, "a", "3");
    fixture_delete(bed->f, "a", "z");
    fixture_put(bed->f, "a", "4");
    struct watch_place place = {.revision = 1};
    begin(bed);
    assert_next(bed, &place, "2: +b=1@2.2.1<none");
    assert_next(bed, &place, "3: +a=2@3.3.1<none");
    assert_next(bed, &place, "4: a=3@3.4.2<a=2@3.3.1");
    assert_next(bed, &place, "5: -a=@0.5.0<a=3@3.4.2 -b=@0.5.0<b=1@2.2.1");
    assert_next(bed, &place, "6: +a=4@6.6.1<none");
    assert_end(bed, &place);
    end(bed);
}

static void write_rows(struct bed *bed, int count)
{
    for (int64_t id = 0; id < count; id++) {
        struct row row = {.table = ROW_LEASE, .key = slice_of(&id, sizeof(id))};
        enum status status = applier_rows(store_applier(bed->f->store), &row, 1, NULL, 0, NULL);
        assert_int_equal(status, ST_OK);
        if (id % 100 == 0)
            fixture_commit(bed->f);
    }
}

/* Many segments: readers that continue, and readers that start at other places. */
static void gaps_without_revisions_are_skipped(void **state)
{
    struct bed *bed = *state;
    struct watch_place from_start = {.revision = 1}, standing = {.revision = 1};
    const int counts[] = {0, 1, 255, 256, 257, 511, 512, 5000};
    char expected[8][64];
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        int64_t revision = fixture_put(bed->f, "a", "x");
        snprintf(expected[i], sizeof(expected[i]), "%lld: %sa=x@2.%lld.%zu<", (long long)revision,
                 i ? "" : "+", (long long)revision, i + 1);
        write_rows(bed, counts[i]);
        begin(bed);
        struct watch_batch batch;
        assert_int_equal(next(bed, &standing, &batch), ST_OK);
        assert_int_equal(batch.revision, revision);
        assert_end(bed, &standing);
        end(bed);
    }
    begin(bed);
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        struct watch_batch batch;
        assert_int_equal(next(bed, &from_start, &batch), ST_OK);
        assert_memory_equal(batch_text(bed, &batch), expected[i], strlen(expected[i]));
    }
    assert_end(bed, &from_start);
    end(bed);
    /* The same after a compaction, and when the rows are no longer in the log. */
    assert_int_equal(applier_compact(store_applier(bed->f->store), 5), ST_OK);
    fixture_settle(bed->f);
    assert_int_equal(store_view(bed->f->store)->trimmed, 5);
    assert_int_equal(applier_compact(store_applier(bed->f->store), 9), ST_OK);
    fixture_settle(bed->f);
    assert_int_equal(store_view(bed->f->store)->trimmed, 9);
    assert_int_equal(store_view(bed->f->store)->db_bytes_in_use, applier_db_bytes(14));
}

static void a_place_at_the_end_continues_with_new_revisions(void **state)
{
    struct bed *bed = *state;
    struct watch_place place = {.revision = 2};
    begin(bed);
    assert_end(bed, &place);
    end(bed);
    for (int i = 0; i < 300; i++) {
        char value[16], want[64];
        snprintf(value, sizeof(value), "%d", i);
        int64_t revision = fixture_put(bed->f, "k", value);
        begin(bed);
        if (i == 0)
            snprintf(want, sizeof(want), "2: +k=0@2.2.1<none");
        else
            snprintf(want, sizeof(want), "%d: k=%d@2.%d.%d<k=%d@2.%d.%d", (int)revision, i,
                     (int)revision, i + 1, i - 1, (int)revision - 1, i);
        assert_next(bed, &place, want);
        assert_end(bed, &place);
        end(bed);
    }
}

static void revisions_after_last_are_returned_later(void **state)
{
    struct bed *bed = *state;
    for (int i = 0; i < 10; i++)
        fixture_put(bed->f, "k", "v");
    struct watch_place place = {.revision = 4};
    struct watch_batch batch;
    begin(bed);
    for (int64_t last = 3; last <= 11; last++) {
        enum status status = bed->history->ops->next(bed->history, &place, last, &batch);
        assert_int_equal(status, last < 4 ? ST_END : ST_OK);
        if (last >= 4)
            assert_int_equal(batch.revision, last);
        assert_int_equal(bed->history->ops->next(bed->history, &place, last, &batch), ST_END);
        assert_int_equal(place.revision, last < 4 ? 4 : last + 1);
    }
    end(bed);
}

static void returned_events_stay_valid_during_the_turn(void **state)
{
    struct bed *bed = *state;
    enum { COUNT = 3000 };
    for (int i = 0; i < COUNT; i++)
        fixture_put(bed->f, "k", "v");
    struct watch_batch *batches = calloc(COUNT, sizeof(*batches));
    for (int round = 0; round < 2; round++) {
        struct watch_place place = {.revision = 2};
        begin(bed);
        for (int i = 0; i < COUNT; i++)
            assert_int_equal(next(bed, &place, &batches[i]), ST_OK);
        for (int i = 0; i < COUNT; i++) {
            assert_int_equal(batches[i].revision, 2 + i);
            assert_int_equal(batches[i].count, 1);
            assert_true(slice_is(batches[i].events[0].key, "k"));
        }
        end(bed);
    }
    free(batches);
}

/* -- Pins -- */

static void nothing_is_pinned_between_turns(void **state)
{
    struct bed *bed = *state;
    struct epoch *epoch = store_epoch(bed->f->store);
    assert_false(local_history_wanted(bed->h));
    begin(bed);
    uint64_t pinned = epoch_oldest(epoch);
    fixture_put(bed->f, "k", "v");
    fixture_commit(bed->f);
    assert_int_equal(epoch_oldest(epoch), pinned);
    assert_int_equal(bed->history->ops->revision(bed->history), 1); /* as the turn began */
    end(bed);
    assert_true(epoch_oldest(epoch) > pinned);
    assert_false(local_history_wanted(bed->h));
    bed->history->ops->listen(bed->history, true);
    assert_true(local_history_wanted(bed->h));
    bed->history->ops->listen(bed->history, false);
}

static int64_t put_and_delete_many(struct bed *bed, int count)
{
    for (int i = 0; i < count; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%04d", i % 10000);
        fixture_put(bed->f, key, "v");
    }
    return fixture_delete(bed->f, "k", "l");
}

static void long_revision_is_read_over_several_turns(void **state)
{
    struct bed *bed = *state;
    enum { COUNT = 3000, UNITS = 700 };
    struct epoch *epoch = store_epoch(bed->f->store);
    const struct watch_history_ops *ops = bed->history->ops;
    struct watch_place place = {.revision = put_and_delete_many(bed, COUNT)}, before = place;
    struct watch_batch batch;
    struct watch_held *held;
    size_t count;
    begin(bed);
    assert_int_equal(next(bed, &place, &batch), ST_OK);
    assert_int_equal(batch.count, COUNT);
    assert_null(batch.events); /* nothing was decoded */
    assert_int_equal(ops->hold(bed->history, &before, batch.revision, &held, &count), ST_OK);
    assert_int_equal(count, COUNT);
    uint64_t pinned = epoch_oldest(epoch);
    int turns = 0;
    enum status status;
    do {
        size_t units = UNITS;
        status = ops->load(held, &units);
        assert_true(status == ST_OK || units == 0);
        end(bed);
        fixture_put(bed->f, "other", "v");
        fixture_commit(bed->f);
        begin(bed);
        turns++;
    } while (status == ST_AGAIN);
    assert_int_equal(status, ST_OK);
    assert_true(turns > COUNT / UNITS);
    for (int i = COUNT - 1; i >= 0; i--) {
        char key[16];
        struct watch_event event;
        snprintf(key, sizeof(key), "k%04d", i);
        ops->event(held, (size_t)i, &event);
        assert_true(slice_is(event.key, key));
        assert_true(event.tombstone);
        assert_true(ops->prev(bed->history, &event).len > 0);
    }
    end(bed);
    assert_int_equal(epoch_oldest(epoch), pinned);
    ops->release(held);
    assert_true(epoch_oldest(epoch) > pinned);
}

static void newest_revision_is_known_before_the_turn(void **state)
{
    struct bed *bed = *state;
    for (int i = 2; i < 5; i++) {
        assert_int_equal(fixture_put(bed->f, "k", "v"), i);
        fixture_commit(bed->f);
        assert_int_equal(bed->history->ops->revision(bed->history), i);
        assert_true(local_history_wanted(bed->h));
    }
    end(bed);
}

/* -- Compaction -- */

static void previous_versions_exist_right_after_a_compaction(void **state)
{
    struct bed *bed = *state;
    fixture_put(bed->f, "a", "1");   /* 2 */
    fixture_put(bed->f, "b", "1");   /* 3 */
    fixture_put(bed->f, "a", "2");   /* 4 */
    fixture_delete(bed->f, "b", ""); /* 5 */
    fixture_put(bed->f, "a", "3");   /* 6 */
    fixture_compact(bed->f, 4);
    fixture_settle(bed->f);
    struct watch_place below = {.revision = 3}, place = {.revision = 4};
    struct watch_batch batch;
    begin(bed);
    assert_int_equal(next(bed, &below, &batch), ST_COMPACTED);
    assert_int_equal(bed->history->ops->compact_revision(bed->history), 4);
    assert_next(bed, &place, "4: a=2@2.4.2<a=1@2.2.1");
    assert_next(bed, &place, "5: -b=@0.5.0<b=1@3.3.1");
    end(bed);

    fixture_compact(bed->f, 5);
    fixture_settle(bed->f);
    bed_restart(bed);
    place = (struct watch_place){.revision = 5};
    begin(bed);
    assert_next(bed, &place, "5: -b=@0.5.0<b=1@3.3.1");
    assert_next(bed, &place, "6: a=3@2.6.3<a=2@2.4.2");
    end(bed);
}

/* Cleans what can be cleaned; returns false if there was nothing. */
static bool clean_one(struct bed *bed)
{
    struct fixture *f = bed->f;
    struct relocation *relocation;
    assert_int_equal(upkeep_checkpoint(f->upkeep), ST_OK);
    assert_int_equal(upkeep_clean_begin(f->upkeep, &relocation), ST_OK);
    if (!relocation)
        return false;
    uint64_t old = relocation->old_segment;
    clean_to_end(f->store, f->upkeep, relocation, 64);
    store_forget_segment(f->store, old);
    fixture_commit(f);
    fixture_commit(f);
    return true;
}

static void place_lost_to_the_cleaner_is_found_again(void **state)
{
    struct bed *bed = *state;
    for (int i = 0; i < 2000; i++)
        fixture_put(bed->f, i % 100 == 7 ? "rare" : "often",
                    "a value of some length to fill segments");
    begin(bed);
    struct watch_place place = {.revision = 1001};
    struct watch_batch batch;
    assert_int_equal(next(bed, &place, &batch), ST_OK);
    end(bed);
    fixture_compact(bed->f, 1000);
    fixture_settle(bed->f);
    unsigned cleaned = 0;
    while (clean_one(bed))
        cleaned++;
    assert_true(cleaned > 2);
    assert_int_equal(upkeep_prepare(bed->f->upkeep), ST_OK); /* unmaps forgotten segments */
    begin(bed);
    for (int64_t revision = 1002; revision <= 2001; revision++) {
        assert_int_equal(next(bed, &place, &batch), ST_OK);
        assert_int_equal(batch.revision, revision);
        assert_true(bed->history->ops->prev(bed->history, &batch.events[0]).len > 0);
    }
    assert_end(bed, &place);
    end(bed);
}

static void compaction_in_the_middle_of_a_turn_leaves_no_gap(void **state)
{
    struct bed *bed = *state;
    for (int i = 0; i < 2000; i++)
        fixture_put(bed->f, "k", "a value of some length to fill segments");
    begin(bed);
    struct watch_place place = {.revision = 2}, later = {.revision = 1900};
    struct watch_batch batch;
    for (int i = 0; i < 10; i++)
        assert_int_equal(next(bed, &place, &batch), ST_OK);
    fixture_compact(bed->f, 1800);
    fixture_settle(bed->f);
    while (clean_one(bed))
        ;
    int64_t expect = place.revision;
    enum status status;
    while ((status = next(bed, &place, &batch)) == ST_OK)
        assert_int_equal(batch.revision, expect++);
    assert_int_equal(status, ST_COMPACTED);
    assert_int_equal(bed->history->ops->compact_revision(bed->history), 1800);
    assert_true(place.revision < 1800);
    assert_int_equal(next(bed, &later, &batch), ST_OK);
    assert_int_equal(batch.revision, 1900);
    end(bed);
}

/* -- Random work, compared with a model -- */

enum { KEYS = 12, REVISIONS_MAX = 4000 };

struct model {
    char *events[REVISIONS_MAX]; /* in the form of batch_text; owned */
    char values[KEYS][80];       /* values of the newest version as text; "" when deleted */
    int create[KEYS], version[KEYS];
};

static void model_put(struct bed *bed, struct model *m, int key, const char *value)
{
    char name[8], text[256], now[80];
    snprintf(name, sizeof(name), "k%d", key);
    int revision = (int)fixture_put(bed->f, name, value);
    bool created = !m->values[key][0];
    m->create[key] = created ? revision : m->create[key];
    m->version[key] = created ? 1 : m->version[key] + 1;
    snprintf(now, sizeof(now), "%s=%s@%d.%d.%d", name, value, m->create[key], revision,
             m->version[key]);
    snprintf(text, sizeof(text), "%d: %s%s<%s", revision, created ? "+" : "", now,
             created ? "none" : m->values[key]);
    memcpy(m->values[key], now, sizeof(now));
    m->events[revision] = strdup(text);
}

static void model_delete(struct bed *bed, struct model *m, int key)
{
    char name[8], text[256];
    if (!m->values[key][0])
        return;
    snprintf(name, sizeof(name), "k%d", key);
    int revision = (int)fixture_delete(bed->f, name, "");
    snprintf(text, sizeof(text), "%d: -%s=@0.%d.0<%s", revision, name, revision, m->values[key]);
    m->values[key][0] = 0;
    m->events[revision] = strdup(text);
}

/* Every reader continues from its position by a few steps, so that positions differ. */
static void check_places(struct bed *bed, const struct model *m, struct watch_place *places,
                         size_t count, struct random *random)
{
    begin(bed);
    for (size_t i = 0; i < count; i++) {
        for (uint64_t steps = random_below(random, 60); steps > 0; steps--) {
            struct watch_batch batch;
            int64_t asked = places[i].revision;
            enum status status = next(bed, &places[i], &batch);
            if (status == ST_COMPACTED) {
                int64_t compacted = bed->history->ops->compact_revision(bed->history);
                assert_true(asked < compacted);
                places[i] = (struct watch_place){.revision = compacted};
            } else if (status == ST_OK) {
                assert_int_equal(batch.revision, asked);
                assert_string_equal(batch_text(bed, &batch), m->events[asked]);
            } else {
                assert_int_equal(status, ST_END);
            }
        }
    }
    end(bed);
    arena_fini(&bed->f->arena);
    arena_init(&bed->f->arena, NULL, 0, 64 << 20);
}

static void every_event_has_its_previous_version(void **state)
{
    struct bed *bed = *state;
    struct model *m = calloc(1, sizeof(*m));
    struct watch_place places[16];
    struct random random;
    random_init(&random, 4711);
    for (size_t i = 0; i < COUNT_OF(places); i++)
        places[i] = (struct watch_place){.revision = 2};
    int64_t compacted = 0;
    for (int round = 0; round < 120; round++) {
        for (int i = 0; i < 25; i++) {
            int key = (int)random_below(&random, KEYS);
            if (random_chance(&random, 20, 100))
                model_delete(bed, m, key);
            else
                model_put(bed, m, key, "some bytes that take room");
        }
        check_places(bed, m, places, COUNT_OF(places), &random);
        int64_t now = store_applier(bed->f->store)->revision;
        if (round % 5 == 4 && now - 60 > compacted) {
            compacted = now - (int64_t)random_below(&random, 60);
            fixture_compact(bed->f, compacted);
            fixture_settle(bed->f);
            while (random_chance(&random, 80, 100) && clean_one(bed))
                check_places(bed, m, places, COUNT_OF(places), &random);
        }
        if (round % 23 == 22) {
            bed_restart(bed);
            for (size_t i = 0; i < COUNT_OF(places); i++) /* hints are of one process */
                places[i] = (struct watch_place){.revision = places[i].revision};
        }
    }
    assert_true(compacted > 0);
    for (int i = 0; i < REVISIONS_MAX; i++)
        free(m->events[i]);
    free(m);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(revisions_come_in_order_and_whole),
        TEST(gaps_without_revisions_are_skipped),
        TEST(a_place_at_the_end_continues_with_new_revisions),
        TEST(revisions_after_last_are_returned_later),
        TEST(returned_events_stay_valid_during_the_turn),
        TEST(nothing_is_pinned_between_turns),
        TEST(long_revision_is_read_over_several_turns),
        TEST(newest_revision_is_known_before_the_turn),
        TEST(previous_versions_exist_right_after_a_compaction),
        TEST(place_lost_to_the_cleaner_is_found_again),
        TEST(compaction_in_the_middle_of_a_turn_leaves_no_gap),
        TEST(every_event_has_its_previous_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
