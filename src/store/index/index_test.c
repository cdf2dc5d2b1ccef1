#include "store/index/index.h"

#include "base/random.h"
#include "base/xalloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* -- A naive index: a sorted array, copied as a whole for a snapshot -- */

struct model_item {
    uint8_t key[40];
    uint32_t key_len;
    struct index_version newest;
    uint64_t *older;
    uint32_t older_count;
};

struct model {
    struct model_item *items;
    size_t count;
    size_t capacity;
};

static struct slice model_key(const struct model_item *item)
{
    return slice_of(item->key, item->key_len);
}

static size_t model_place(const struct model *model, struct slice key, bool *ret_found)
{
    size_t low = 0, high = model->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (slice_compare(model_key(&model->items[middle]), key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_found = low < model->count && slice_equal(model_key(&model->items[low]), key);
    return low;
}

static struct model_item *model_find(const struct model *model, struct slice key)
{
    bool found;
    size_t at = model_place(model, key, &found);
    return found ? &model->items[at] : NULL;
}

static void model_put(struct model *model, struct slice key, const struct index_version *version)
{
    bool found;
    size_t at = model_place(model, key, &found);
    if (!found) {
        if (model->count == model->capacity) {
            model->capacity = size_max(64, model->capacity * 2);
            model->items = xrealloc(model->items, model->capacity * sizeof(model->items[0]));
        }
        memmove(model->items + at + 1, model->items + at,
                (model->count - at) * sizeof(model->items[0]));
        model->count++;
        model->items[at] = (struct model_item){.key_len = (uint32_t)key.len, .newest = *version};
        slice_copy(model->items[at].key, key);
        return;
    }
    struct model_item *item = &model->items[at];
    item->older = xrealloc(item->older, (item->older_count + 1) * sizeof(item->older[0]));
    item->older[item->older_count++] = item->newest.loc;
    item->newest = *version;
}

static void model_trim(struct model *model, struct slice key, uint32_t drop, bool whole)
{
    bool found;
    size_t at = model_place(model, key, &found);
    assert_true(found);
    struct model_item *item = &model->items[at];
    if (!whole) {
        item->older_count -= drop;
        if (item->older_count)
            memmove(item->older, item->older + drop, item->older_count * sizeof(item->older[0]));
        return;
    }
    free(item->older);
    model->count--;
    memmove(item, item + 1, (model->count - at) * sizeof(*item));
}

static void model_relocate(struct model *model, struct slice key, uint64_t from, uint64_t to)
{
    struct model_item *item = model_find(model, key);
    if (item->newest.loc == from)
        item->newest.loc = to;
    for (uint32_t i = 0; i < item->older_count; i++)
        if (item->older[i] == from)
            item->older[i] = to;
}

static struct model model_dup(const struct model *model)
{
    struct model copy = {.items = xmalloc((model->count + 1) * sizeof(copy.items[0])),
                         .count = model->count,
                         .capacity = model->count + 1};
    for (size_t i = 0; i < model->count; i++) {
        struct model_item *item = &copy.items[i];
        *item = model->items[i];
        size_t bytes = item->older_count * sizeof(item->older[0]);
        item->older = xmalloc(bytes + 1);
        if (bytes)
            memcpy(item->older, model->items[i].older, bytes);
    }
    return copy;
}

static void model_fini(struct model *model)
{
    for (size_t i = 0; i < model->count; i++)
        free(model->items[i].older);
    free(model->items);
    *model = (struct model){0};
}

static struct index_sum model_sum(const struct model *model, struct slice from, struct slice to)
{
    struct index_sum sum = {0};
    for (size_t i = 0; i < model->count; i++) {
        const struct model_item *item = &model->items[i];
        bool in = slice_compare(model_key(item), from) >= 0 &&
                  (to.len == 0 || slice_compare(model_key(item), to) < 0);
        if (in && item->newest.create_revision) {
            sum.live_keys++;
            sum.live_bytes += item->newest.field_bytes;
        }
    }
    return sum;
}

/* -- Comparing -- */

static void assert_same_item(const struct index_item *item, const struct model_item *expected)
{
    assert_non_null(item);
    assert_true(slice_equal(index_item_key(item), model_key(expected)));
    assert_memory_equal(&item->newest, &expected->newest, sizeof(item->newest));
    assert_int_equal(item->older_count, expected->older_count);
    if (item->older_count)
        assert_memory_equal(index_item_older(item), expected->older,
                            item->older_count * sizeof(uint64_t));
}

static void assert_same(const struct index_root *root, const struct model *model)
{
    struct index_cursor cursor;
    index_cursor_init(&cursor, root, SLICE_EMPTY);
    for (size_t i = 0; i < model->count; i++) {
        const struct index_item *peeked = index_cursor_peek(&cursor, 0);
        const struct index_item *item = index_cursor_next(&cursor);
        assert_same_item(item, &model->items[i]);
        assert_true(!peeked || peeked == item);
        assert_ptr_equal(index_root_find(root, model_key(&model->items[i])), item);
    }
    assert_null(index_cursor_next(&cursor));
    assert_null(index_cursor_next(&cursor));
    struct index_sum sum = model_sum(model, SLICE_EMPTY, SLICE_EMPTY);
    assert_int_equal(root->live_keys, sum.live_keys);
    assert_int_equal(root->live_bytes, sum.live_bytes);
}

/* -- Random keys that share prefixes, are prefixes of each other, or contain zeros -- */

static struct slice random_key(struct random *random, uint8_t *space, unsigned universe)
{
    static const char *const heads[] = {"", "a", "/registry/pods/default/", "/registry/pods/kube/",
                                        "/registry/leases/"};
    uint32_t number = (uint32_t)random_below(random, universe);
    struct slice head = slice_from_text(heads[number % COUNT_OF(heads)]);
    size_t len = head.len;
    slice_copy(space, head);
    if (number % 7 == 0) {
        for (uint32_t rest = number; rest; rest /= 4)
            space[len++] = (uint8_t)(rest % 4 == 3 ? 255 : rest % 4);
        space[len++] = 1;
    } else {
        len += (size_t)sprintf((char *)space + len, "%x", number);
    }
    return slice_of(space, len);
}

struct snapshot {
    struct index_root root;
    struct model model;
    uint64_t pinned;
};

struct fixture {
    struct random random;
    struct epoch *epoch;
    struct epoch_slot *slot;
    struct index *index;
    struct model model;
    int64_t revision;
    uint64_t loc;
    struct snapshot snapshots[5];
    struct index_root root; /* the last published one */
    uint32_t snapshot_every;
};

static void fixture_init(struct fixture *f, uint64_t seed)
{
    *f = (struct fixture){0};
    random_init(&f->random, seed);
    f->epoch = epoch_new(1);
    f->slot = epoch_slot_add(f->epoch);
    f->index = index_new(f->epoch);
    f->loc = 1;
}

static struct index_version next_version(struct fixture *f, bool tombstone)
{
    struct index_version version = {.mod_revision = ++f->revision, .loc = f->loc++};
    version.sub_revision = (uint32_t)random_below(&f->random, 5);
    if (!tombstone) {
        version.create_revision = version.mod_revision;
        version.version = 1;
        version.lease = (int64_t)random_below(&f->random, 3);
        version.field_bytes = (uint32_t)random_below(&f->random, 1000) + 1;
    }
    return version;
}

/* Both ways, with a search that is not followed by a put now and then. */
static void put_either_way(struct fixture *f, struct slice key, const struct index_version *version)
{
    struct index_path path;
    struct index_root root = index_working_root(f->index);
    index_root_prefetch(&root, &key, 1);
    const struct index_item *item = index_find(f->index, key);
    if (random_below(&f->random, 3) == 0)
        assert_ptr_equal(index_put_begin(f->index, key, &path), item);
    if (random_below(&f->random, 2)) {
        index_put(f->index, key, version);
        return;
    }
    assert_ptr_equal(index_put_begin(f->index, key, &path), item);
    index_put_end(f->index, key, version, &path);
}

static void change_once(struct fixture *f, unsigned universe, unsigned put_percent)
{
    uint8_t space[64];
    struct slice key = random_key(&f->random, space, universe);
    struct model_item *known = model_find(&f->model, key);
    const struct index_item *item = index_find(f->index, key);
    assert_int_equal(!known, !item);
    if (!known || random_below(&f->random, 100) < put_percent) {
        struct index_version version = next_version(f, random_below(&f->random, 5) == 0);
        put_either_way(f, key, &version);
        model_put(&f->model, key, &version);
    } else if (random_below(&f->random, 2)) {
        bool whole = random_below(&f->random, 3) > 0;
        uint32_t drop = (uint32_t)random_below(&f->random, known->older_count + 1u);
        index_trim(f->index, key, drop, whole);
        model_trim(&f->model, key, drop, whole);
    } else {
        uint64_t from = random_below(&f->random, 4) ? known->newest.loc : f->loc + 7;
        if (known->older_count && random_below(&f->random, 2))
            from = known->older[random_below(&f->random, known->older_count)];
        bool there = from != f->loc + 7;
        assert_int_equal(index_relocate(f->index, key, from, f->loc), there);
        model_relocate(&f->model, key, from, f->loc++);
    }
}

static void snapshot_end(struct fixture *f, struct snapshot *snapshot)
{
    if (!snapshot->pinned)
        return;
    assert_same(&snapshot->root, &snapshot->model);
    model_fini(&snapshot->model);
    epoch_unpin(f->slot, snapshot->pinned);
    snapshot->pinned = 0;
}

static void publish_and_snapshot(struct fixture *f)
{
    struct snapshot *snapshot = &f->snapshots[random_below(&f->random, COUNT_OF(f->snapshots))];
    f->root = index_publish(f->index);
    epoch_publish(f->epoch);
    if (random_chance(&f->random, 1, f->snapshot_every)) {
        snapshot_end(f, snapshot);
        snapshot->root = f->root;
        snapshot->model = model_dup(&f->model);
        snapshot->pinned = epoch_pin(f->slot);
        assert_int_equal(snapshot->pinned, f->root.number);
    }
    epoch_reclaim(f->epoch, (size_t)random_below(&f->random, 300));
}

static void compare_sums(struct fixture *f, unsigned universe)
{
    uint8_t space[64], other[64];
    struct index_root root = index_working_root(f->index);
    struct slice from = random_key(&f->random, space, universe * 2);
    struct slice to = random_key(&f->random, other, universe * 2);
    if (random_below(&f->random, 4) == 0)
        to = SLICE_EMPTY;
    struct index_sum sum = index_root_sum(&root, from, to, to.len == 0);
    struct index_sum expected = model_sum(&f->model, from, to);
    assert_int_equal(sum.live_keys, expected.live_keys);
    assert_int_equal(sum.live_bytes, expected.live_bytes);

    struct index_cursor cursor;
    bool found;
    index_cursor_init(&cursor, &root, from);
    const struct index_item *item = index_cursor_next(&cursor);
    size_t at = model_place(&f->model, from, &found);
    if (at == f->model.count)
        assert_null(item);
    else
        assert_same_item(item, &f->model.items[at]);
}

static void fixture_fini(struct fixture *f, bool epoch_first)
{
    for (size_t i = 0; i < COUNT_OF(f->snapshots); i++)
        snapshot_end(f, &f->snapshots[i]);
    struct index_root root = index_working_root(f->index);
    assert_same(&root, &f->model);
    index_check(f->index);
    model_fini(&f->model);
    if (epoch_first)
        epoch_free(f->epoch);
    index_free(f->index);
    if (!epoch_first)
        epoch_free(f->epoch);
}

static void churn(struct fixture *f, unsigned universe, unsigned steps, unsigned put_percent,
                  unsigned group)
{
    for (unsigned step = 0; step < steps; step++) {
        change_once(f, universe, put_percent);
        if (random_below(&f->random, group) == 0)
            publish_and_snapshot(f);
        if (step % 1000 == 0)
            index_check(f->index);
        if (step % 100 == 0)
            compare_sums(f, universe);
    }
}

/* The tree grows, shrinks to nearly nothing and grows again, while old states stay pinned. */
static void random_changes(uint64_t seed, unsigned universe, unsigned steps, unsigned group,
                           unsigned leaf_max, unsigned inner_max)
{
    struct fixture f;
    fixture_init(&f, seed);
    index_limit_nodes(f.index, leaf_max, inner_max);
    f.snapshot_every = universe / group + 1;
    churn(&f, universe, steps, 90, group);
    churn(&f, universe, steps, 5, group);
    churn(&f, universe, steps, 60, group);
    for (size_t i = 0; i < COUNT_OF(f.snapshots); i++)
        snapshot_end(&f, &f.snapshots[i]);
    index_publish(f.index);
    epoch_publish(f.epoch);
    assert_int_equal(epoch_reclaim(f.epoch, SIZE_MAX), 0);
    index_check(f.index);
    fixture_fini(&f, seed % 2);
}

static void few_keys_with_long_histories_match_a_sorted_array(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++)
        random_changes(seed, 20, 4000, 10, 63, 31);
}

static void many_keys_match_a_sorted_array_and_pinned_states_stay(void **state)
{
    (void)state;
    random_changes(1, 6000, 10000, 5, 63, 31);
    random_changes(2, 6000, 10000, 200, 63, 31);
}

static void small_nodes_split_and_join_on_many_levels(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++)
        random_changes(seed, 300, 1500, 20, 2 + (unsigned)seed % 4, 3 + (unsigned)seed % 5);
    random_changes(9, 3000, 6000, 50, 4, 4);
}

/* A key that differs from all others in one byte of what they share is searched for, and found to
 * be before or after them, however many bytes they share. */
static void keys_that_share_bytes_differ_from_others(void **state)
{
    (void)state;
    enum { KEYS = 300, DIGITS = 4, SHARED_MAX = 40 };
    char key[SHARED_MAX + DIGITS + 1];
    for (unsigned shared = 0; shared <= SHARED_MAX; shared++) {
        AUTO(epoch_freep) struct epoch *epoch = epoch_new(0);
        AUTO(index_freep) struct index *index = index_new(epoch);
        index_limit_nodes(index, 4, 4);
        memset(key, 'm', shared);
        struct slice whole = slice_of(key, shared + DIGITS);
        for (unsigned i = 0; i < KEYS; i++) {
            snprintf(key + shared, DIGITS + 1, "%04u", i);
            struct index_version version = {
                .mod_revision = i + 2, .create_revision = i + 2, .version = 1, .field_bytes = 1};
            index_put(index, whole, &version);
        }
        index_check(index);
        struct index_root root = index_working_root(index);
        for (unsigned at = 0; at < shared; at++) {
            for (int step = -1; step <= 1; step++) {
                key[at] = (char)('m' + step);
                struct index_sum sum = index_root_sum(&root, SLICE_EMPTY, whole, false);
                assert_int_equal(sum.live_keys, step < 0 ? 0 : step > 0 ? KEYS : KEYS - 1);
                assert_int_equal(index_find(index, whole) != NULL, step == 0);
            }
            key[at] = 'm';
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_that_share_bytes_differ_from_others),
        cmocka_unit_test(few_keys_with_long_histories_match_a_sorted_array),
        cmocka_unit_test(small_nodes_split_and_join_on_many_levels),
        cmocka_unit_test(many_keys_match_a_sorted_array_and_pinned_states_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
