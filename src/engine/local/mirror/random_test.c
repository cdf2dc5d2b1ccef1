/* Random batches, compared with a model: states at all revisions, watches, walks, restarts. */
#include "engine/local/mirror/model_test.h"

enum { STEPS = 300 };

static const struct engine_local_options options = {
    .segment_bytes_first = 16 << 10,
    .segment_bytes_max = 64 << 10,
    .checkpoint_bytes = 64 << 10,
    .is_mirror = true,
};

/* -- Everything else that is read -- */

static void assert_walk(struct fixture *f, const struct model *m)
{
    struct mirror_walk *walk = local_mirror_walk_new(f->engine);
    struct slice key;
    int64_t mod_revision;
    for (int i = 0; i < MODEL_KEYS; i++) {
        const struct model_version *version = model_at(m, i, m->revision);
        if (!version)
            continue;
        assert_true(local_mirror_walk_next(walk, &key, &mod_revision));
        assert_int_equal(mod_revision, version->mod_revision);
        struct change_kv kv;
        local_mirror_walk_get(walk, &kv);
        assert_true(slice_equal(kv.key, key));
        assert_int_equal(kv.version, version->version);
        assert_int_equal(kv.lease, version->lease);
        assert_int_equal(kv.value.len, version->value_bytes);
    }
    assert_false(local_mirror_walk_next(walk, &key, &mod_revision));
    assert_true(local_mirror_walk_is_complete(walk));
    local_mirror_walk_free(walk);
}

/* -- Upkeep -- */

static void defragment(struct fixture *f)
{
    struct engine_op defragment = new_op(f);
    engine_defragment(f->shard, &defragment);
    wait_for(f, 0);
    assert_int_equal(defragment.status, ST_OK);
}

static void assert_hashed(struct fixture *f, const struct model *m)
{
    struct engine_hash hash = {.op = new_op(f)};
    engine_hash_kv(f->shard, &hash);
    wait_for(f, 0);
    assert_int_equal(hash.op.status, ST_OK);
    assert_int_equal(hash.hash_revision, m->revision);
}

/* A start may have lost what was reached without a record, and nothing else. */
static void restart(struct fixture *f, struct model *m)
{
    fixture_close(f);
    fixture_open(f, options);
    int64_t revision = local_mirror_revision(f->engine);
    assert_in_range(revision, m->recorded, m->revision);
    m->revision = revision;
}

static void check_all(struct fixture *f, struct model *m)
{
    int64_t oldest = m->compact_revision > 1 ? m->compact_revision : 1;
    assert_state(f, m, m->revision);
    assert_state(f, m, oldest);
    assert_state(f, m, random_between(&m->random, oldest, m->revision));
    assert_history(f, m, random_between(&m->random, oldest, m->revision));
    assert_history(f, m, oldest);
    assert_compacted(f, m);
    assert_walk(f, m);
}

static void a_random_run_agrees_with_the_model(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct fixture *f = fixture_new_fast(options);
        struct model m;
        static struct model_step step;
        model_init(&m, seed);
        for (int i = 0; i < STEPS; i++) {
            step_make(&m, &step);
            run_step(f, &m, &step);
            if (random_chance(&m.random, 1, 10))
                check_all(f, &m);
            if (random_chance(&m.random, 1, 40))
                defragment(f);
            if (random_chance(&m.random, 1, 40))
                restart(f, &m);
        }
        check_all(f, &m);
        assert_hashed(f, &m);
        model_fini(&m);
        fixture_free((void *[]){f});
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_random_run_agrees_with_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
