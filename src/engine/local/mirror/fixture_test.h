/* Gives batches to a mirror and waits for them, and reads it as a client does. */
#ifndef VIGIL_ENGINE_LOCAL_MIRROR_FIXTURE_TEST_H
#define VIGIL_ENGINE_LOCAL_MIRROR_FIXTURE_TEST_H

#include "engine/local/fixture_test.h"
#include "engine/local/mirror/mirror_store.h"

#include <stdatomic.h>
#include <unistd.h>

static inline struct imported_change put_of(const char *key, const char *value,
                                            int64_t create_revision, int64_t version)
{
    return (struct imported_change){
        .kv = {.key = slice_from_text(key),
               .value = slice_from_text(value),
               .create_revision = create_revision,
               .version = version},
    };
}

static inline struct imported_change delete_of(const char *key)
{
    return (struct imported_change){.kv = {.key = slice_from_text(key)}, .is_tombstone = true};
}

struct applying {
    struct mirror_batch batch; /* first */
    _Atomic bool done;
    enum status status;
};

static inline void applying_done(struct mirror_batch *batch, enum status status)
{
    struct applying *applying = CONTAINER_OF(batch, struct applying, batch);
    applying->status = status;
    atomic_store(&applying->done, true);
}

static inline void apply_start(struct fixture *f, struct applying *applying)
{
    applying->batch.done = applying_done;
    atomic_store(&applying->done, false);
    local_mirror_apply(f->engine, &applying->batch);
}

static inline enum status apply_wait(struct applying *applying)
{
    while (!atomic_load(&applying->done))
        usleep(100);
    return applying->status;
}

static inline enum status apply_batch(struct fixture *f, struct mirror_batch batch)
{
    struct applying applying = {.batch = batch};
    apply_start(f, &applying);
    return apply_wait(&applying);
}

/* One revision with one change. */
static inline void apply_one(struct fixture *f, int64_t revision, struct imported_change change)
{
    struct mirror_revision one = {.revision = revision, .changes = &change, .count = 1};
    assert_int_equal(apply_batch(f, (struct mirror_batch){.revisions = &one, .count = 1}), ST_OK);
}

static inline void apply_reach(struct fixture *f, int64_t revision)
{
    assert_int_equal(apply_batch(f, (struct mirror_batch){.reach = revision}), ST_OK);
}

static inline void apply_compact(struct fixture *f, int64_t revision)
{
    assert_int_equal(apply_batch(f, (struct mirror_batch){.compact = revision}), ST_OK);
}

struct found {
    enum status status;
    int64_t revision; /* revision of the header */
    int64_t count;
    char value[64]; /* value of the first key */
    int64_t mod_revision, create_revision, version, lease;
};

static inline void found_read(struct found *found, struct slice field)
{
    struct arena arena;
    struct pb_range_response r;
    arena_init(&arena, NULL, 0, 1 << 20);
    assert_int_equal(pb_decode(&pb_range_response_table, field, &arena, &r), ST_OK);
    assert_int_equal(r.kvs_count, 1);
    snprintf(found->value, sizeof(found->value), "%.*s", (int)r.kvs[0].value.len,
             (const char *)r.kvs[0].value.ptr);
    found->mod_revision = r.kvs[0].mod_revision;
    found->create_revision = r.kvs[0].create_revision;
    found->version = r.kvs[0].version;
    found->lease = r.kvs[0].lease;
    arena_fini(&arena);
}

static inline struct found find(struct fixture *f, const char *key, const char *range_end,
                                int64_t revision)
{
    struct pb_range_request request = {
        .key = slice_from_text(key), .range_end = slice_from_text(range_end), .revision = revision};
    struct engine_range range = {.op = new_op(f)};
    engine_range_start(f->shard, &range, &request);
    wait_for(f, 0);
    struct found found = {
        .status = range.op.status, .revision = range.op.revision, .count = range.count};
    struct slice field;
    if (found.status == ST_OK && engine_range_next(&range, &field))
        found_read(&found, field);
    engine_range_close(&range);
    return found;
}

static inline struct found get(struct fixture *f, const char *key)
{
    return find(f, key, "", 0);
}

#endif
