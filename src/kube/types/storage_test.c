#include "kube/types/storage.h"

#include "fake/fake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

struct fixture {
    struct engine *engine;
    struct engine_shard *shard;
    struct arena arena;
    struct kube_write write;
    unsigned done;
};

static struct fixture *bed;

static int setup(void **state)
{
    (void)state;
    bed = calloc(1, sizeof(*bed));
    bed->engine = fake_new(&(struct fake_options){.seed = 3, .inline_percent = 50});
    assert_int_equal(engine_shard_new(bed->engine, NULL, &bed->shard), ST_OK);
    arena_init(&bed->arena, NULL, 0, 1 << 20);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    engine_shard_free(bed->shard);
    fake_free(bed->engine);
    arena_fini(&bed->arena);
    free(bed);
    return 0;
}

static void on_done(struct engine_op *op)
{
    (void)op;
    bed->done++;
}

typedef void start_fn(struct engine_shard *shard, struct kube_write *write);

/* Runs a write to its completion. Returns whether the condition held. */
static bool run(start_fn *start, const char *value, int64_t expected, struct kube_kv *ret_current)
{
    bed->done = 0;
    bed->write = (struct kube_write){
        .engine.op = {.done = on_done, .arena = &bed->arena},
        .key = SLICE_LITERAL("/registry/pods/n/a"),
        .value = slice_from_text(value),
        .expected = expected,
    };
    start(bed->shard, &bed->write);
    while (!bed->done)
        assert_true(fake_step(bed->engine));
    assert_int_equal(bed->write.engine.op.status, ST_OK);
    return kube_write_succeeded(&bed->write, ret_current);
}

static void writes_succeed_only_at_the_expected_revision(void **state)
{
    (void)state;
    struct kube_kv current;
    assert_true(run(kube_storage_put, "{1}", 0, &current));
    int64_t first = bed->write.engine.op.revision;
    engine_write_close(&bed->write.engine);

    assert_false(run(kube_storage_put, "{2}", 0, &current));
    assert_int_equal(current.mod_revision, first);
    assert_true(slice_is(current.value, "{1}"));
    assert_true(slice_is(current.key, "/registry/pods/n/a"));
    engine_write_close(&bed->write.engine);

    assert_true(run(kube_storage_put, "{3}", first, &current));
    assert_int_equal(bed->write.engine.op.revision, first + 1);
    engine_write_close(&bed->write.engine);

    assert_false(run(kube_storage_delete, "", first, &current));
    assert_int_equal(current.mod_revision, first + 1);
    engine_write_close(&bed->write.engine);
    assert_true(run(kube_storage_delete, "", first + 1, &current));
    engine_write_close(&bed->write.engine);

    assert_false(run(kube_storage_delete, "", first + 1, &current));
    assert_int_equal(current.mod_revision, 0);
    engine_write_close(&bed->write.engine);
}

/* Puts a key whose guard was seen at that revision. */
static bool put_guarded(const char *key, int64_t guard_expected)
{
    struct kube_kv current;
    bed->done = 0;
    bed->write = (struct kube_write){
        .engine.op = {.done = on_done, .arena = &bed->arena},
        .key = slice_from_text(key),
        .value = SLICE_LITERAL("{}"),
        .guard = SLICE_LITERAL("/registry/pods/n/a"),
        .guard_expected = guard_expected,
    };
    kube_storage_put(bed->shard, &bed->write);
    while (!bed->done)
        assert_true(fake_step(bed->engine));
    bool held = kube_write_succeeded(&bed->write, &current);
    assert_int_equal(current.mod_revision, 0);
    engine_write_close(&bed->write.engine);
    return held;
}

static void writes_fail_if_the_guard_has_changed(void **state)
{
    (void)state;
    struct kube_kv current;
    assert_true(run(kube_storage_put, "{1}", 0, &current));
    int64_t seen = bed->write.engine.op.revision;
    engine_write_close(&bed->write.engine);
    assert_true(put_guarded("/registry/pods/n/b", seen));
    assert_true(run(kube_storage_put, "{2}", seen, &current));
    engine_write_close(&bed->write.engine);
    assert_false(put_guarded("/registry/pods/n/c", seen));
}

/* Puts an object together with a key that must not exist, or deletes both. */
static bool run_with(start_fn *start, const char *key, int64_t expected, const char *value,
                     int64_t *ret_companion)
{
    struct kube_kv current;
    bed->done = 0;
    bed->write = (struct kube_write){
        .engine.op = {.done = on_done, .arena = &bed->arena},
        .key = slice_from_text(key),
        .value = SLICE_LITERAL("{}"),
        .expected = expected,
        .companions = kube_companions_new(&bed->arena, 1),
    };
    bed->write.companions->items[0] = (struct kube_companion){
        .key = SLICE_LITERAL("/registry/ipaddresses/1"), .value = slice_from_text(value)};
    start(bed->shard, &bed->write);
    while (!bed->done)
        assert_true(fake_step(bed->engine));
    bool held = kube_write_succeeded(&bed->write, &current);
    *ret_companion = held ? 0 : kube_write_companion(&bed->write, 0).mod_revision;
    engine_write_close(&bed->write.engine);
    return held;
}

static void companions_are_written_and_deleted_with_their_object(void **state)
{
    (void)state;
    int64_t found, first;
    assert_true(run_with(kube_storage_put, "/registry/services/n/a", 0, "{}", &found));
    first = bed->write.engine.op.revision;
    assert_false(run_with(kube_storage_put, "/registry/services/n/b", 0, "{}", &found));
    assert_int_equal(found, first);
    assert_true(run_with(kube_storage_delete, "/registry/services/n/a", first, "", &found));
    assert_true(run_with(kube_storage_put, "/registry/services/n/b", 0, "{}", &found));
}

static void keys_have_the_form_of_kubernetes(void **state)
{
    (void)state;
    struct slice key, end;
    assert_int_equal(
        kube_key_make(&bed->arena, "/registry/pods/", SLICE_LITERAL("n"), SLICE_LITERAL("a"), &key),
        ST_OK);
    assert_true(slice_is(key, "/registry/pods/n/a"));
    assert_int_equal(
        kube_key_make(&bed->arena, "/registry/minions/", SLICE_EMPTY, SLICE_LITERAL("a"), &key),
        ST_OK);
    assert_true(slice_is(key, "/registry/minions/a"));
    assert_int_equal(
        kube_key_make(&bed->arena, "/registry/pods/", SLICE_LITERAL("n"), SLICE_EMPTY, &key),
        ST_OK);
    assert_int_equal(kube_prefix_end(&bed->arena, key, &end), ST_OK);
    assert_true(slice_is(end, "/registry/pods/n0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(writes_succeed_only_at_the_expected_revision, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(writes_fail_if_the_guard_has_changed, setup, teardown),
        cmocka_unit_test_setup_teardown(companions_are_written_and_deleted_with_their_object, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(keys_have_the_form_of_kubernetes, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
