/*
 * A naive store to hold the real one against: every version of every key in one array, read by
 * looking at all of it. For tests only; memory is never given back before the end.
 */
#ifndef VIGIL_STORE_MODEL_TEST_H
#define VIGIL_STORE_MODEL_TEST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MODEL_KEYS = 40 };

struct model_version {
    int key; /* number: its name is key_name(key) */
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

/* Adds to the revision after the current one; the caller moves that on when the request ends. */
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

/* Forgets everything after a revision, as a crash may. */
static inline void model_cut(struct model *model, int64_t revision)
{
    while (model->count && model->versions[model->count - 1].revision > revision)
        model->count--;
    model->revision = revision;
}

#endif
