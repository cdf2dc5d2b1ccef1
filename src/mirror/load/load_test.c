/* The differences between a mirror and a state of the cluster, against a model. */
#include "mirror/load/load.h"

#include "base/random.h"
#include "base/temp_dir_test.h"
#include "base/xalloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

enum { KEYS = 500, VALUE_BYTES_MAX = 3 << 20 };

/* mod_revision 0: the key does not exist. */
struct key_state {
    int64_t mod_revision;
    size_t value_bytes;
};

struct world {
    char directory[TEMP_DIR_BYTES];
    struct key_state mirror[KEYS], cluster[KEYS];
    int64_t mirrored, revision;
    size_t walked;          /* the next key of the walk */
    struct change_kv other; /* its numbers that are not 0, and its value, are the walk's */
    char key[16];           /* key of the walk */
    char *value;
};

static void key_name(size_t key, char name[static 16])
{
    snprintf(name, 16, "key-%04zu", key);
}

static bool walk_next(void *ctx, struct slice *ret_key, int64_t *ret_mod_revision)
{
    struct world *w = ctx;
    while (w->walked < KEYS && !w->mirror[w->walked].mod_revision)
        w->walked++;
    if (w->walked == KEYS)
        return false;
    key_name(w->walked, w->key);
    *ret_key = slice_from_text(w->key);
    *ret_mod_revision = w->mirror[w->walked++].mod_revision;
    return true;
}

/* For a key that was put as add_key does. */
static void walk_get(void *ctx, struct change_kv *ret_kv)
{
    struct world *w = ctx;
    size_t key = w->walked - 1;
    int64_t revision = w->mirror[key].mod_revision;
    *ret_kv = (struct change_kv){
        .key = slice_from_text(w->key),
        .mod_revision = revision,
        .create_revision = w->other.create_revision ? w->other.create_revision : revision / 2,
        .version = w->other.version ? w->other.version : revision + 1,
        .lease = w->other.lease ? w->other.lease : (int64_t)key,
        .value =
            w->other.value.len ? w->other.value : slice_of(w->value, w->mirror[key].value_bytes),
    };
}

static int set_up(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));
    temp_dir_make_fast("load", w->directory);
    w->value = xmalloc(VALUE_BYTES_MAX);
    memset(w->value, 'v', VALUE_BYTES_MAX);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    temp_dir_remove(w->directory);
    free(w->value);
    free(w);
    return 0;
}

static struct load *begin(struct world *w)
{
    struct load *load;
    struct error error;
    w->walked = 0;
    assert_int_equal(load_new(w->directory, (struct load_walk){walk_next, walk_get, w}, w->mirrored,
                              &load, &error),
                     ST_OK);
    return load;
}

static enum status add_key(struct world *w, struct load *load, size_t key)
{
    char name[16];
    const struct key_state *state = &w->cluster[key];
    key_name(key, name);
    vigil_kv kv = {
        .key = vigil_text(name),
        .value = vigil_bytes_of(w->value, state->value_bytes),
        .create_revision = state->mod_revision / 2,
        .mod_revision = state->mod_revision,
        .version = state->mod_revision + 1,
        .lease = (int64_t)key,
    };
    return load_add(load, w->revision, &kv, 1);
}

static enum status add_all(struct world *w, struct load *load)
{
    for (size_t i = 0; i < KEYS; i++)
        if (w->cluster[i].mod_revision)
            TRY(add_key(w, load, i));
    return load_finish(load, w->revision);
}

static size_t key_of(struct slice key)
{
    uint64_t number = KEYS;
    assert_true(key.len == 8 && slice_decimal(slice_sub(key, 4, 4), &number));
    return number;
}

static void apply_change(struct world *w, int64_t revision, const struct imported_change *change)
{
    size_t key = key_of(change->kv.key);
    assert_true(key < KEYS);
    assert_int_equal(change->kv.mod_revision, revision);
    if (change->is_tombstone) {
        assert_true(w->mirror[key].mod_revision);
        assert_int_equal(revision, w->revision);
        w->mirror[key] = (struct key_state){0};
        return;
    }
    assert_int_equal(change->kv.create_revision, revision / 2);
    assert_int_equal(change->kv.version, revision + 1);
    assert_int_equal(change->kv.lease, key);
    assert_memory_equal(change->kv.value.ptr, w->value, change->kv.value.len);
    w->mirror[key] = (struct key_state){revision, change->kv.value.len};
}

/* Returns the number of changes. */
static size_t apply_parts(struct world *w, struct load *load, size_t bytes_max)
{
    size_t changes = 0;
    int64_t last = w->mirrored;
    for (bool ended = false; !ended;) {
        struct load_part part;
        load_take(load, bytes_max, &part);
        for (size_t i = 0; i < part.count; i++) {
            const struct mirror_revision *revision = &part.revisions[i];
            assert_true(revision->revision > last && revision->count > 0);
            last = revision->revision;
            for (size_t j = 0; j < revision->count; j++, changes++) {
                assert_int_equal(revision->changes[j].sub, j);
                apply_change(w, last, &revision->changes[j]);
            }
        }
        ended = part.is_last;
        load_part_fini(&part);
    }
    assert_true(last <= w->revision);
    return changes;
}

static void change_cluster(struct world *w, struct random *random)
{
    for (uint64_t n = random_below(random, 400); n > 0; n--) {
        struct key_state *key = &w->cluster[random_below(random, KEYS)];
        w->revision += (int64_t)random_below(random, 2);
        bool deleted = random_chance(random, 1, 3);
        size_t bytes = random_chance(random, 1, 200) ? VALUE_BYTES_MAX : random_below(random, 50);
        if (w->revision > w->mirrored) /* several changes may have one revision */
            *key = (struct key_state){deleted ? 0 : w->revision, deleted ? 0 : bytes};
    }
    w->revision++;
}

static void a_load_makes_the_mirror_equal(void **state)
{
    struct world *w = *state;
    struct random random;
    random_init(&random, 5);
    for (unsigned round = 0; round < 60; round++) {
        w->mirrored = w->revision;
        change_cluster(w, &random);
        struct load *load = begin(w);
        assert_int_equal(add_all(w, load), ST_OK);
        size_t different = load_different(load);
        assert_int_equal(apply_parts(w, load, 1 + random_below(&random, 5000)), different);
        assert_memory_equal(w->mirror, w->cluster, sizeof(w->mirror));
        load_free(load);
    }
}

static void an_equal_state_is_one_empty_part(void **state)
{
    struct world *w = *state;
    struct load_part part;
    w->mirrored = w->revision = 20;
    w->mirror[3] = w->cluster[3] = (struct key_state){20, 4};
    struct load *load = begin(w);
    assert_int_equal(add_all(w, load), ST_OK);
    assert_int_equal(load_keys(load), 1);
    assert_int_equal(load_different(load), 0);
    load_take(load, 100, &part);
    assert_true(part.is_last && part.count == 0);
    load_part_fini(&part);
    load_free(load);
}

/* Whatever is not newer than the mirror must be in it. */
static void a_key_of_another_past_is_found(void **state)
{
    struct world *w = *state;
    w->mirrored = 20;
    w->revision = 30;
    w->mirror[3] = (struct key_state){20, 4};
    w->cluster[3] = (struct key_state){19, 4};
    struct load *load = begin(w);
    assert_int_equal(add_all(w, load), ST_INVALID);
    load_free(load);
    w->cluster[3] = w->mirror[3];
    w->cluster[9] = (struct key_state){20, 4};
    load = begin(w);
    assert_int_equal(add_all(w, load), ST_INVALID);
    load_free(load);
    w->cluster[3] = w->cluster[9] = (struct key_state){0};
    w->revision = 20; /* nothing happened, but the key is gone */
    load = begin(w);
    assert_int_equal(add_all(w, load), ST_INVALID);
    load_free(load);
}

/* Another history may have changed the same key at the same revision. */
static void a_key_with_an_equal_revision_is_compared_as_a_whole(void **state)
{
    struct world *w = *state;
    static const struct change_kv others[] = {
        {.create_revision = 9},
        {.version = 2},
        {.lease = 17},
        {.value = SLICE_LITERAL("vvvw")},
        {.value = SLICE_LITERAL("vvvvv")},
    };
    w->mirrored = 20;
    w->revision = 30;
    w->mirror[3] = w->cluster[3] = (struct key_state){20, 4};
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        w->other = others[i];
        struct load *load = begin(w);
        assert_int_equal(add_all(w, load), ST_INVALID);
        load_free(load);
    }
}

static void keys_out_of_order_are_refused(void **state)
{
    struct world *w = *state;
    w->revision = 30;
    w->cluster[3] = w->cluster[4] = (struct key_state){20, 4};
    w->cluster[5] = (struct key_state){31, 4};
    struct load *load = begin(w);
    assert_int_equal(add_key(w, load, 4), ST_OK);
    assert_int_equal(add_key(w, load, 4), ST_MALFORMED);
    assert_int_equal(add_key(w, load, 3), ST_MALFORMED);
    assert_int_equal(add_key(w, load, 5), ST_MALFORMED); /* newer than the state */
    load_free(load);
}

static void a_directory_that_is_missing_is_an_error(void **state)
{
    struct world *w = *state;
    struct load *load;
    struct error error;
    assert_int_equal(load_new("/nowhere/at/all", (struct load_walk){.next = walk_next, .ctx = w}, 0,
                              &load, &error),
                     ST_IO);
    assert_non_null(strstr(error.text, "/nowhere/at/all"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_load_makes_the_mirror_equal, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_equal_state_is_one_empty_part, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_key_of_another_past_is_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_key_with_an_equal_revision_is_compared_as_a_whole, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(keys_out_of_order_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_directory_that_is_missing_is_an_error, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
