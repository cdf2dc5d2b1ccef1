/*
 * What a mirror must contain after a random run of batches. A seed determines the run, so that
 * another process can repeat it and compare.
 */
#ifndef VIGIL_ENGINE_LOCAL_MIRROR_MODEL_TEST_H
#define VIGIL_ENGINE_LOCAL_MIRROR_MODEL_TEST_H

#include "base/random.h"
#include "engine/local/mirror/watch_test.h"

enum {
    MODEL_KEYS = 60,
    MODEL_KEY_BYTES = 8,
    MODEL_REVISIONS_MAX = 24, /* limit on the revisions of one step, unless it is a state */
    MODEL_CHANGES_MAX = 4,    /* limit on the changes of one revision */
    MODEL_VALUE_BYTES_MAX = 3000,
};

struct model_version {
    int64_t mod_revision, create_revision, version;
    int key;
    int32_t value_bytes; /* -1: a tombstone */
    int64_t lease;
    int previous; /* place of the key's version before this one; -1: none */
};

struct model {
    struct random random;
    int64_t revision, compact_revision;
    int64_t recorded; /* the last revision that has a record */
    int64_t loaded;   /* the revision of the last state */
    struct model_version *versions;
    int count, capacity;
    int newest[MODEL_KEYS]; /* place of the newest version; -1: none */
};

/* One step: batches that are given one after the other. */
struct model_step {
    struct mirror_batch batches[4];
    int batch_count;
    struct mirror_revision revisions[MODEL_KEYS + MODEL_REVISIONS_MAX];
    struct imported_change changes[MODEL_KEYS + MODEL_REVISIONS_MAX * MODEL_CHANGES_MAX];
    char keys[MODEL_KEYS][MODEL_KEY_BYTES];
    size_t revision_count, change_count;
};

static const uint8_t model_values[MODEL_VALUE_BYTES_MAX + 256];

static inline void model_init(struct model *m, uint64_t seed)
{
    *m = (struct model){.revision = 1, .recorded = 1, .compact_revision = -1};
    random_init(&m->random, seed);
    for (int i = 0; i < MODEL_KEYS; i++)
        m->newest[i] = -1;
}

static inline void model_fini(struct model *m)
{
    free(m->versions);
}

static inline struct model_version *model_newest(struct model *m, int key)
{
    return m->newest[key] < 0 ? NULL : &m->versions[m->newest[key]];
}

static inline bool model_exists(struct model *m, int key)
{
    const struct model_version *newest = model_newest(m, key);
    return newest && newest->value_bytes >= 0;
}

static inline void model_add(struct model *m, struct model_version version)
{
    if (m->count == m->capacity) {
        m->capacity = m->capacity ? 2 * m->capacity : 1024;
        m->versions = realloc(m->versions, (size_t)m->capacity * sizeof(*m->versions));
        assert_non_null(m->versions);
    }
    version.previous = m->newest[version.key];
    m->newest[version.key] = m->count;
    m->versions[m->count++] = version;
}

/* Adds the change to the step, and what it does to the model. */
static inline void step_change(struct model *m, struct model_step *step,
                               struct model_version version, uint32_t sub)
{
    char *key = step->keys[version.key];
    snprintf(key, MODEL_KEY_BYTES, "k%03d", version.key);
    struct imported_change change = {
        .kv = {.key = slice_of(key, strlen(key))},
        .sub = sub,
        .is_tombstone = version.value_bytes < 0,
    };
    if (!change.is_tombstone) {
        change.kv.create_revision = version.create_revision;
        change.kv.version = version.version;
        change.kv.lease = version.lease;
        change.kv.value = slice_of(model_values, (size_t)version.value_bytes);
    }
    step->changes[step->change_count++] = change;
    if (!change.is_tombstone || model_exists(m, version.key)) {
        model_add(m, version);
        m->recorded = version.mod_revision;
    }
}

static inline struct model_version random_version(struct model *m, int key, int64_t revision)
{
    const struct model_version *newest = model_newest(m, key);
    bool exists = model_exists(m, key);
    struct model_version version = {
        .key = key,
        .mod_revision = revision,
        .create_revision = exists ? newest->create_revision : revision,
        .version = exists ? newest->version + 1 : 1,
        .value_bytes = (int32_t)random_below(&m->random, MODEL_VALUE_BYTES_MAX),
        .lease = random_chance(&m->random, 1, 8) ? 1 + (int64_t)random_below(&m->random, 100) : 0,
    };
    if (random_chance(&m->random, 1, 4))
        version.value_bytes = -1;
    return version;
}

/* Revisions with gaps, each with some keys that are all different. */
static inline void step_revisions(struct model *m, struct model_step *step)
{
    int count = (int)random_between(&m->random, 1, MODEL_REVISIONS_MAX);
    for (int i = 0; i < count; i++) {
        size_t first = step->change_count;
        int key = (int)random_below(&m->random, MODEL_KEYS);
        int changes = (int)random_between(&m->random, 1, MODEL_CHANGES_MAX);
        m->revision += random_between(&m->random, 1, 5);
        for (int k = 0; k < changes; k++)
            step_change(m, step, random_version(m, (key + 7 * k) % MODEL_KEYS, m->revision),
                        (uint32_t)k);
        step->revisions[step->revision_count++] = (struct mirror_revision){
            .revision = m->revision, .changes = &step->changes[first], .count = (size_t)changes};
    }
    step->batches[0] = (struct mirror_batch){.revisions = step->revisions, .count = (size_t)count};
    step->batch_count = 1;
}

/* Keys at the revisions of their last changes, and tombstones at that of the state. */
static inline void step_state(struct model *m, struct model_step *step)
{
    int64_t revision = m->revision, state = m->revision + MODEL_KEYS + 10;
    int gone = (int)random_below(&m->random, MODEL_KEYS);
    for (int key = 0; key < MODEL_KEYS; key++) {
        if (random_chance(&m->random, 1, 2))
            continue;
        struct model_version version = random_version(m, key, ++revision);
        version.value_bytes = version.value_bytes < 0 ? 0 : version.value_bytes;
        size_t first = step->change_count;
        step_change(m, step, version, 0);
        step->revisions[step->revision_count++] = (struct mirror_revision){
            .revision = revision, .changes = &step->changes[first], .count = 1};
    }
    size_t first = step->change_count;
    struct model_version none = {.key = gone, .mod_revision = state, .value_bytes = -1};
    step_change(m, step, none, 0);
    step->revisions[step->revision_count++] =
        (struct mirror_revision){.revision = state, .changes = &step->changes[first], .count = 1};
    size_t half = step->revision_count / 2;
    step->batches[0] = (struct mirror_batch){
        .revisions = step->revisions, .count = half, .compact = state, .is_part = true};
    step->batches[1] = (struct mirror_batch){.revisions = &step->revisions[half],
                                             .count = step->revision_count - half,
                                             .compact = state};
    step->batch_count = 2;
    m->revision = m->recorded = m->compact_revision = m->loaded = state;
}

static inline void step_make(struct model *m, struct model_step *step)
{
    step->batch_count = 0;
    step->revision_count = step->change_count = 0;
    uint64_t kind = random_below(&m->random, 20);
    if (kind < 14) {
        step_revisions(m, step);
    } else if (kind < 16) {
        m->revision += random_between(&m->random, 1, 30);
        step->batches[step->batch_count++] = (struct mirror_batch){.reach = m->revision};
    } else if (kind < 19) {
        int64_t from = m->compact_revision > 0 ? m->compact_revision : 1;
        int64_t compact = random_between(&m->random, from, m->revision);
        step->batches[step->batch_count++] = (struct mirror_batch){.compact = compact};
        if (compact > m->compact_revision) { /* its record says what was reached */
            m->compact_revision = compact;
            m->recorded = m->revision;
        }
    } else {
        step_state(m, step);
    }
}

/* The version of a key at a revision; NULL: it does not exist. */
static inline const struct model_version *model_at(const struct model *m, int key, int64_t revision)
{
    int at = m->newest[key];
    while (at >= 0 && m->versions[at].mod_revision > revision)
        at = m->versions[at].previous;
    return at < 0 || m->versions[at].value_bytes < 0 ? NULL : &m->versions[at];
}

static inline void assert_version(const struct model_version *version,
                                  const struct pb_key_value *kv)
{
    char key[MODEL_KEY_BYTES];
    snprintf(key, sizeof(key), "k%03d", version->key);
    assert_true(slice_equal(kv->key, slice_from_text(key)));
    assert_int_equal(kv->mod_revision, version->mod_revision);
    if (version->value_bytes < 0)
        return;
    assert_int_equal(kv->create_revision, version->create_revision);
    assert_int_equal(kv->version, version->version);
    assert_int_equal(kv->lease, version->lease);
    assert_int_equal(kv->value.len, version->value_bytes);
}

/* All keys at a revision are those of the model. */
static inline void assert_state(struct fixture *f, const struct model *m, int64_t revision)
{
    struct pb_range_request request = {
        .key = SLICE_LITERAL("\0"), .range_end = SLICE_LITERAL("\0"), .revision = revision};
    struct engine_range range = {.op = new_op(f)};
    engine_range_start(f->shard, &range, &request);
    wait_for(f, 0);
    assert_int_equal(range.op.status, ST_OK);
    struct slice field;
    for (int key = 0; key < MODEL_KEYS; key++) {
        const struct model_version *version = model_at(m, key, revision);
        if (!version)
            continue;
        struct arena arena;
        struct pb_range_response r;
        arena_init(&arena, NULL, 0, 1 << 20);
        assert_true(engine_range_next(&range, &field));
        assert_int_equal(pb_decode(&pb_range_response_table, field, &arena, &r), ST_OK);
        assert_version(version, &r.kvs[0]);
        arena_fini(&arena);
    }
    assert_false(engine_range_next(&range, &field));
    engine_range_close(&range);
}

/* Applies a step of the model. */
static inline void run_step(struct fixture *f, const struct model *m, const struct model_step *step)
{
    struct applying applying[COUNT_OF(step->batches)];
    for (int i = 0; i < step->batch_count; i++) {
        applying[i] = (struct applying){.batch = step->batches[i]};
        apply_start(f, &applying[i]);
    }
    for (int i = 0; i < step->batch_count; i++)
        assert_int_equal(apply_wait(&applying[i]), ST_OK);
    assert_int_equal(local_mirror_revision(f->engine), m->revision);
    assert_int_equal(local_mirror_compact_revision(f->engine), m->compact_revision);
}

/* -- The history -- */

struct expecting {
    const struct model *m;
    int next; /* place of the next version */
};

static inline void expect_event(struct watching *w, const struct pb_event *event)
{
    struct expecting *e = w->ctx;
    assert_true(e->next < e->m->count);
    const struct model_version *version = &e->m->versions[e->next++];
    assert_int_equal(event->type == PB_EVENT_TYPE_DELETE, version->value_bytes < 0);
    assert_version(version, event->kv);
    if (version->mod_revision <= e->m->loaded)
        return; /* what was before a state is not its history */
    bool created = version->value_bytes >= 0 && version->create_revision == version->mod_revision;
    assert_int_equal(event->prev_kv != NULL, !created);
    if (event->prev_kv)
        assert_version(&e->m->versions[version->previous], event->prev_kv);
}

static inline void assert_history(struct fixture *f, const struct model *m, int64_t from)
{
    struct expecting e = {.m = m};
    while (e.next < m->count && m->versions[e.next].mod_revision < from)
        e.next++;
    struct watching w = {.f = f, .on_event = expect_event, .ctx = &e};
    watching_begin(&w, from);
    while (e.next < m->count)
        watching_turn(&w, 0);
    assert_int_equal(watch_stream_progress(w.stream, INT64_MAX), ST_OK);
    while (w.progress_revision < m->revision)
        watching_turn(&w, 0);
    assert_false(w.canceled);
    watching_end(&w);
}

static inline void assert_compacted(struct fixture *f, const struct model *m)
{
    if (m->compact_revision <= 1)
        return;
    struct watching w = {.f = f, .on_event = expect_event};
    watching_begin(&w, m->compact_revision - 1);
    while (!w.canceled)
        watching_turn(&w, 0);
    assert_int_equal(w.compact_revision, m->compact_revision);
    watching_end(&w);
}

#endif
