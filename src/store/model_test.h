/*
 * A naive store to compare the real one with: every version of every key in one array, which is
 * searched from end to end. For tests only; memory is freed only at the end.
 */
#ifndef VIGIL_STORE_MODEL_TEST_H
#define VIGIL_STORE_MODEL_TEST_H

#include "base/crc32c.h"
#include "base/random.h"
#include "codec/pb/kv.pb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MODEL_KEYS = 40, MODEL_VALUE_MAX = 3000 };

struct model_version {
    int key; /* number; its name is model_key(key) */
    int64_t revision, create_revision, version;
    uint32_t value; /* seed of the value's bytes */
    bool tombstone;
};

struct model {
    struct model_version *versions;
    size_t count, capacity;
    int64_t revision, compact_revision;
};

static inline void model_init(struct model *model)
{
    *model = (struct model){.revision = 1, .compact_revision = -1};
}

static inline void model_fini(struct model *model)
{
    free(model->versions);
}

static inline struct slice model_key(int key, char to[static 32])
{
    int n = snprintf(to, 32, "key-%02d", key);
    return slice_of(to, (size_t)n);
}

static inline struct slice model_value(uint32_t value, uint8_t to[static MODEL_VALUE_MAX])
{
    struct random bytes;
    random_init(&bytes, value);
    size_t len = value % 7 == 0 ? 0 : value % 11 == 0 ? MODEL_VALUE_MAX : value % 100;
    random_fill(&bytes, to, len);
    return slice_of(to, len);
}

/* The newest version of a key at a revision, tombstones included; NULL if there is none. */
static inline const struct model_version *model_at(const struct model *model, int key,
                                                   int64_t revision)
{
    for (size_t i = model->count; i-- > 0;) {
        const struct model_version *version = &model->versions[i];
        if (version->key == key && version->revision <= revision)
            return version;
    }
    return NULL;
}

static inline bool model_exists(const struct model *model, int key, int64_t revision)
{
    const struct model_version *version = model_at(model, key, revision);
    return version && !version->tombstone;
}

/* Adds to the revision after the current one; the caller increments that when the request ends. */
static inline void model_add(struct model *model, int key, uint32_t value, bool tombstone)
{
    const struct model_version *before = model_at(model, key, model->revision + 1);
    bool exists = before && !before->tombstone;
    struct model_version next = {
        .key = key,
        .revision = model->revision + 1,
        .create_revision = exists ? before->create_revision : model->revision + 1,
        .version = exists ? before->version + 1 : 1,
        .value = value,
        .tombstone = tombstone,
    };
    if (model->count == model->capacity) {
        model->capacity = model->capacity ? model->capacity * 2 : 256;
        model->versions = realloc(model->versions, model->capacity * sizeof(*model->versions));
        if (!model->versions)
            abort();
    }
    model->versions[model->count++] = next;
}

/* -- The hash, exactly as in etcd's kvHasher -- */

static inline bool model_is_newest_at(const struct model *model, size_t at, int64_t revision)
{
    return model_at(model, model->versions[at].key, revision) == &model->versions[at];
}

static inline bool model_any_exists(const struct model *model, int64_t revision)
{
    for (int key = 0; key < MODEL_KEYS; key++) {
        if (model_exists(model, key, revision))
            return true;
    }
    return false;
}

/* The versions left after the compaction, and those that a hash up to a revision counts. */
static inline bool model_hash_counts(const struct model *model, size_t at, int64_t compact_revision,
                                     int64_t revision)
{
    const struct model_version *version = &model->versions[at];
    if (version->revision > revision)
        return false;
    if (version->revision > compact_revision)
        return true;
    if (version->tombstone || !model_is_newest_at(model, at, compact_revision))
        return false;
    /* What replaced it is irrelevant if there is nothing to keep. */
    return !model_any_exists(model, revision) || model_is_newest_at(model, at, revision);
}

static inline uint32_t model_hash_version(const struct model *model, size_t at, uint32_t crc)
{
    const struct model_version *version = &model->versions[at];
    uint64_t sub = 0;
    while (sub < at && model->versions[at - sub - 1].revision == version->revision)
        sub++;
    uint8_t name[18] = {[8] = '_', [17] = 't'};
    for (int i = 0; i < 8; i++) {
        name[i] = (uint8_t)((uint64_t)version->revision >> (56 - 8 * i));
        name[9 + i] = (uint8_t)(sub >> (56 - 8 * i));
    }
    char key[32];
    uint8_t value[MODEL_VALUE_MAX];
    struct pb_key_value kv = {.key = model_key(version->key, key)};
    if (!version->tombstone) {
        kv.create_revision = version->create_revision;
        kv.mod_revision = version->revision;
        kv.version = version->version;
        kv.value = model_value(version->value, value);
    }
    uint8_t bytes[MODEL_VALUE_MAX + 100];
    size_t size = pb_size(&pb_key_value_table, &kv);
    assert(size <= sizeof(bytes));
    pb_encode(&pb_key_value_table, &kv, bytes, size);
    crc = crc32c(crc, slice_of(name, version->tombstone ? 18 : 17));
    return crc32c(crc, slice_of(bytes, size));
}

static inline uint32_t model_hash(const struct model *model, int64_t compact_revision,
                                  int64_t revision)
{
    uint32_t crc = crc32c(0, SLICE_LITERAL("key"));
    for (size_t at = 0; at < model->count; at++) {
        if (model_hash_counts(model, at, compact_revision, revision))
            crc = model_hash_version(model, at, crc);
    }
    return crc;
}

/* Drops everything after a revision, as a crash may. */
static inline void model_cut(struct model *model, int64_t revision)
{
    while (model->count && model->versions[model->count - 1].revision > revision)
        model->count--;
    model->revision = revision;
}

static inline void model_check_kv(const struct pb_key_value *kv,
                                  const struct model_version *version)
{
    char name[32];
    uint8_t bytes[MODEL_VALUE_MAX];
    assert_true(slice_equal(kv->key, model_key(version->key, name)));
    assert_int_equal(kv->mod_revision, version->revision);
    assert_int_equal(kv->create_revision, version->create_revision);
    assert_int_equal(kv->version, version->version);
    assert_true(slice_equal(kv->value, model_value(version->value, bytes)));
}

#endif
