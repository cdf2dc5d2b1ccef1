/* Revisions of several watches, against a model: a list of all changes, of which each watch
 * delivers its own in pieces of any size. */
#include "mirror/follow/merge.h"

#include "base/random.h"
#include "base/xalloc.h"
#include "codec/pb/kv.pb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { CHANGES_MAX = 3000, WATCHES = 3 };

struct model_change {
    int64_t revision;
    size_t watch;
    char key[16], value[16];
    bool is_delete;
};

struct model {
    struct model_change changes[CHANGES_MAX];
    size_t count;
    int64_t newest;
    size_t sent[WATCHES]; /* how many of all changes this watch has passed */
};

static const struct slice prefixes[WATCHES] = {SLICE_LITERAL("a"), SLICE_LITERAL("b"),
                                               SLICE_LITERAL("c")};

/* Some revisions have no change of ours at all. */
static void make_history(struct model *model, struct random *random)
{
    while (model->count + 8 < CHANGES_MAX) {
        model->newest += 1 + (int64_t)random_below(random, 3);
        for (uint64_t n = 1 + random_below(random, 6); n > 0; n--) {
            struct model_change *c = &model->changes[model->count++];
            c->revision = model->newest;
            c->watch = random_below(random, WATCHES);
            c->is_delete = random_below(random, 4) == 0;
            snprintf(c->key, sizeof(c->key), "%c%zu", "abc"[c->watch], model -> count);
            snprintf(c->value, sizeof(c->value), "v%zu", model->count);
        }
    }
}

static struct pb_event event_of(const struct model_change *change, struct pb_key_value *kv)
{
    *kv = (struct pb_key_value){
        .key = slice_from_text(change->key),
        .value = change->is_delete ? SLICE_EMPTY : slice_from_text(change->value),
        .mod_revision = change->revision,
        .create_revision = 1,
        .version = change->is_delete ? 0 : 7,
    };
    return (struct pb_event){.type = change->is_delete, .kv = kv};
}

/* Sends the next changes of a watch, perhaps as a fragment that ends within a revision. */
static void send_some(struct model *model, struct merge *merge, size_t watch, struct random *random)
{
    struct pb_event events[20];
    struct pb_key_value kvs[20];
    size_t count = 0, most = 1 + random_below(random, 20), i = model->sent[watch];
    int64_t last = 0;
    for (; i < model->count && count < most; i++) {
        if (model->changes[i].watch != watch)
            continue;
        last = model->changes[i].revision;
        events[count] = event_of(&model->changes[i], &kvs[count]);
        count++;
    }
    model->sent[watch] = i;
    bool more = false;
    for (; i < model->count && model->changes[i].revision == last; i++)
        more |= model->changes[i].watch == watch;
    assert_int_equal(merge_add(merge, watch, events, count, more), ST_OK);
    merge_check(merge);
}

/* The order within a revision is that of the watches. */
static void expect_next(struct model *model, size_t *taken, const struct merge_taken *got)
{
    size_t at = 0;
    for (size_t i = 0; i < got->count; i++) {
        const struct mirror_revision *revision = &got->revisions[i];
        int64_t next = model->changes[*taken].revision;
        uint32_t sub = 0;
        assert_int_equal(revision->revision, next);
        for (size_t watch = 0; watch < WATCHES; watch++) {
            for (size_t j = *taken; j < model->count && model->changes[j].revision == next; j++) {
                const struct model_change *want = &model->changes[j];
                if (want->watch != watch)
                    continue;
                const struct imported_change *have = &revision->changes[sub];
                assert_ptr_equal(have, &got->changes[at++]);
                assert_int_equal(have->sub, sub++);
                assert_true(slice_is(have->kv.key, want->key));
                assert_int_equal(have->is_tombstone, want->is_delete);
                assert_int_equal(have->kv.value.len, want->is_delete ? 0 : strlen(want->value));
                assert_int_equal(have->kv.version, want->is_delete ? 0 : 7);
            }
        }
        assert_int_equal(sub, revision->count);
        while (*taken < model->count && model->changes[*taken].revision == next)
            ++*taken;
    }
    assert_int_equal(at, got->change_count);
}

static void take_some(struct model *model, struct merge *merge, size_t *taken, size_t bytes_max)
{
    struct merge_taken got;
    int64_t complete = merge_complete(merge);
    if (!merge_take(merge, bytes_max, &got))
        return;
    assert_true(got.reach <= complete);
    expect_next(model, taken, &got);
    /* Nothing up to reach is missing. */
    assert_true(*taken == model->count || model->changes[*taken].revision > got.reach);
    merge_taken_fini(&got);
    merge_check(merge);
}

static void all_revisions_come_once_and_whole(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct random random;
        random_init(&random, seed);
        struct model *model = xcalloc(1, sizeof(*model));
        model->newest = 100;
        make_history(model, &random);
        struct merge *merge = merge_new(WATCHES, 100, prefixes, WATCHES);
        size_t taken = 0;
        for (unsigned steps = 0; taken < model->count; steps++) {
            assert_true(steps < 1000 * 1000);
            send_some(model, merge, random_below(&random, WATCHES), &random);
            bool all = true;
            for (size_t i = 0; i < WATCHES; i++)
                all &= model->sent[i] == model->count;
            if (all)
                merge_pass_all(merge, model->newest);
            take_some(model, merge, &taken, 1 + random_below(&random, 4000));
        }
        assert_int_equal(merge_bytes(merge), 0);
        merge_free(merge);
        free(model);
    }
}

static struct pb_event put(struct pb_key_value *kv, const char *key, int64_t revision)
{
    *kv = (struct pb_key_value){.key = slice_from_text(key), .mod_revision = revision};
    return (struct pb_event){.kv = kv};
}

static enum status add(struct merge *merge, size_t watch, const char *key, int64_t revision,
                       bool more)
{
    struct pb_key_value kv;
    struct pb_event event = put(&kv, key, revision);
    return merge_add(merge, watch, &event, 1, more);
}

static void a_revision_waits_for_its_other_fragments(void **state)
{
    (void)state;
    struct merge_taken taken;
    struct merge *merge = merge_new(1, 4, NULL, 0);
    assert_int_equal(add(merge, 0, "x", 5, true), ST_OK);
    assert_false(merge_take(merge, 1000, &taken));
    assert_int_equal(add(merge, 0, "y", 5, true), ST_OK);
    assert_int_equal(add(merge, 0, "z", 6, true), ST_OK); /* 5 is complete */
    assert_true(merge_take(merge, 1000, &taken));
    assert_int_equal(taken.count, 1);
    assert_int_equal(taken.revisions[0].count, 2);
    assert_int_equal(taken.reach, 5);
    merge_taken_fini(&taken);
    assert_false(merge_take(merge, 1000, &taken));
    assert_int_equal(merge_add(merge, 0, NULL, 0, false), ST_OK); /* an empty end */
    assert_true(merge_take(merge, 1000, &taken));
    assert_int_equal(taken.reach, 6);
    merge_taken_fini(&taken);
    merge_free(merge);
}

static void a_revision_waits_for_the_other_watch(void **state)
{
    (void)state;
    struct merge_taken taken;
    struct merge *merge = merge_new(2, 4, prefixes, 2);
    assert_int_equal(add(merge, 0, "a", 7, false), ST_OK);
    assert_true(merge_waits(merge));
    assert_false(merge_take(merge, 1000, &taken));
    merge_pass(merge, 1, 6);
    assert_true(merge_take(merge, 1000, &taken)); /* nothing but that 6 is known */
    assert_int_equal(taken.count, 0);
    assert_int_equal(taken.reach, 6);
    merge_taken_fini(&taken);
    merge_pass_all(merge, 9);
    assert_false(merge_waits(merge));
    assert_true(merge_take(merge, 1000, &taken));
    assert_int_equal(taken.count, 1);
    assert_int_equal(taken.reach, 9);
    merge_taken_fini(&taken);
    merge_free(merge);
}

/* A server that sends what it has denied before has lied about its progress. */
static void an_event_after_its_progress_is_an_error(void **state)
{
    (void)state;
    struct merge *merge = merge_new(1, 4, prefixes, 1);
    assert_int_equal(add(merge, 0, "a", 3, false), ST_OK); /* known before: repeated */
    assert_int_equal(merge_bytes(merge), 0);
    merge_pass_all(merge, 8);
    assert_int_equal(add(merge, 0, "a", 8, false), ST_INVALID);
    assert_int_equal(add(merge, 0, "a", 9, false), ST_OK);
    assert_int_equal(add(merge, 0, "a", 9, false), ST_INVALID);
    assert_int_equal(add(merge, 0, "", 10, false), ST_INVALID);
    assert_int_equal(merge_add(merge, 0, &(struct pb_event){0}, 1, false), ST_INVALID);
    merge_free(merge);
}

static void other_keys_are_dropped_but_their_revisions_count(void **state)
{
    (void)state;
    struct merge_taken taken;
    struct merge *merge = merge_new(1, 4, prefixes, 2);
    assert_int_equal(add(merge, 0, "z", 5, false), ST_OK);
    assert_true(merge_take(merge, 1000, &taken));
    assert_int_equal(taken.count, 0);
    assert_int_equal(taken.reach, 5);
    merge_taken_fini(&taken);
    assert_int_equal(add(merge, 0, "b1", 6, false), ST_OK);
    assert_true(merge_take(merge, 1000, &taken));
    assert_int_equal(taken.count, 1);
    merge_taken_fini(&taken);
    merge_free(merge);
}

static void a_revision_without_end_is_a_limit(void **state)
{
    (void)state;
    struct merge *merge = merge_new(1, 4, NULL, 0);
    enum { VALUE_BYTES = 32 << 20 };
    uint8_t *value = xcalloc(1, VALUE_BYTES);
    struct pb_key_value kv;
    struct pb_event event = put(&kv, "x", 5);
    kv.value = slice_of(value, VALUE_BYTES);
    unsigned added = 0;
    while (merge_add(merge, 0, &event, 1, true) == ST_OK)
        added++;
    assert_int_equal(added, MERGE_REVISION_BYTES_MAX / VALUE_BYTES - 1);
    free(value);
    merge_free(merge);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_revisions_come_once_and_whole),
        cmocka_unit_test(a_revision_waits_for_its_other_fragments),
        cmocka_unit_test(a_revision_waits_for_the_other_watch),
        cmocka_unit_test(an_event_after_its_progress_is_an_error),
        cmocka_unit_test(other_keys_are_dropped_but_their_revisions_count),
        cmocka_unit_test(a_revision_without_end_is_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
