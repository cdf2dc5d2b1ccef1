#include "store/backend/backend_memory.h"

#include "store/backend/backend_private.h"

#include <stdio.h>
#include <stdlib.h>

/* Three sorted arrays and the numbers. A transaction works on a copy; committing swaps. */
struct state {
    struct backend_numbers numbers;
    struct backend_version *versions; /* by id; each key is owned */
    size_t version_count, version_capacity;
    struct backend_segment *segments; /* by id */
    size_t segment_count, segment_capacity;
    struct row *rows; /* by table and key; the bytes are owned */
    size_t row_count, row_capacity;
};

struct backend_disk {
    struct state committed;
    uint64_t commits;
    uint64_t fail_at; /* commits fail from this number on; 0: never */
    enum status fail_status;
    bool fail_happened;
    bool open;
};

struct backend_memory {
    struct backend backend;
    struct backend_disk *disk; /* borrowed; outlives the backend */
    struct state working;      /* while changing */
};

static void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

/* -- States -- */

static struct slice key_dup(struct slice key)
{
    uint8_t *copy = must(malloc(key.len + 1));
    slice_copy(copy, key);
    return slice_of(copy, key.len);
}

static void key_free(struct slice key)
{
    free((void *)(uintptr_t)key.ptr);
}

static void state_fini(struct state *state)
{
    for (size_t i = 0; i < state->version_count; i++)
        key_free(state->versions[i].key);
    for (size_t i = 0; i < state->row_count; i++) {
        key_free(state->rows[i].key);
        key_free(state->rows[i].value);
    }
    free(state->versions);
    free(state->segments);
    free(state->rows);
    *state = (struct state){0};
}

static struct state state_dup(const struct state *from)
{
    struct state to = *from;
    to.version_capacity = from->version_count + 1;
    to.versions = must(calloc(to.version_capacity, sizeof(*to.versions)));
    for (size_t i = 0; i < from->version_count; i++) {
        to.versions[i] = from->versions[i];
        to.versions[i].key = key_dup(from->versions[i].key);
    }
    to.segment_capacity = from->segment_count + 1;
    to.segments = must(calloc(to.segment_capacity, sizeof(*to.segments)));
    for (size_t i = 0; i < from->segment_count; i++)
        to.segments[i] = from->segments[i];
    to.row_capacity = from->row_count + 1;
    to.rows = must(calloc(to.row_capacity, sizeof(*to.rows)));
    for (size_t i = 0; i < from->row_count; i++) {
        to.rows[i] = from->rows[i];
        to.rows[i].key = key_dup(from->rows[i].key);
        to.rows[i].value = key_dup(from->rows[i].value);
    }
    return to;
}

static bool id_before(struct backend_version_id a, struct backend_version_id b)
{
    return a.revision != b.revision ? a.revision < b.revision : a.sub < b.sub;
}

/* Position of the first version not before id. */
static size_t version_at(const struct state *state, struct backend_version_id id)
{
    size_t low = 0, high = state->version_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (id_before(state->versions[middle].id, id))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool version_is(const struct state *state, size_t at, struct backend_version_id id)
{
    return at < state->version_count && !id_before(id, state->versions[at].id);
}

static size_t segment_at(const struct state *state, uint64_t id)
{
    size_t at = 0;
    while (at < state->segment_count && state->segments[at].id < id)
        at++;
    return at;
}

/* -- Operations -- */

static struct backend_memory *memory_of(struct backend *backend)
{
    return CONTAINER_OF(backend, struct backend_memory, backend);
}

static const struct state *readable(struct backend *backend)
{
    struct backend_memory *memory = memory_of(backend);
    /* As in LMDB, a transaction reads its own changes. */
    return backend->changing ? &memory->working : &memory->disk->committed;
}

static void memory_close(struct backend *backend)
{
    struct backend_memory *memory = memory_of(backend);
    memory->disk->open = false;
    free(memory);
}

static enum status memory_begin(struct backend *backend)
{
    struct backend_memory *memory = memory_of(backend);
    memory->working = state_dup(&memory->disk->committed);
    return ST_OK;
}

static void memory_abort(struct backend *backend)
{
    state_fini(&memory_of(backend)->working);
}

static enum status memory_commit(struct backend *backend)
{
    struct backend_memory *memory = memory_of(backend);
    struct backend_disk *disk = memory->disk;
    disk->commits++;
    bool fails = disk->fail_at && disk->commits >= disk->fail_at;
    /* A commit that fails on a real disk may have happened or not. Tests choose which. */
    if (!fails || (disk->fail_happened && disk->commits == disk->fail_at)) {
        state_fini(&disk->committed);
        disk->committed = memory->working;
        disk->committed.numbers = backend->numbers;
        memory->working = (struct state){0};
    } else {
        state_fini(&memory->working);
    }
    if (fails)
        snprintf(backend->error_text, sizeof(backend->error_text),
                 "checkpoint, while committing: %s", status_reason(disk->fail_status));
    return fails ? disk->fail_status : ST_OK;
}

static enum status memory_meta_put(struct backend *backend, enum backend_meta name, int64_t value)
{
    (void)backend, (void)name, (void)value; /* backend.c has them, and commit copies them */
    return ST_OK;
}

static enum status memory_version_get(struct backend *backend, struct backend_version_id id,
                                      struct backend_version *ret_version)
{
    const struct state *state = readable(backend);
    size_t at = version_at(state, id);
    if (!version_is(state, at, id))
        return ST_NOT_FOUND;
    *ret_version = state->versions[at];
    return ST_OK;
}

static enum status memory_version_put(struct backend *backend,
                                      const struct backend_version *version)
{
    struct state *state = &memory_of(backend)->working;
    struct slice key = key_dup(version->key); /* may be in the version that it replaces */
    size_t at = version_at(state, version->id);
    if (version_is(state, at, version->id)) {
        key_free(state->versions[at].key);
    } else {
        if (state->version_count == state->version_capacity) {
            state->version_capacity = state->version_capacity * 2 + 1;
            state->versions =
                must(realloc(state->versions, state->version_capacity * sizeof(*state->versions)));
        }
        memmove(&state->versions[at + 1], &state->versions[at],
                (state->version_count - at) * sizeof(*state->versions));
        state->version_count++;
    }
    state->versions[at] = *version;
    state->versions[at].key = key;
    return ST_OK;
}

static enum status memory_version_delete(struct backend *backend, struct backend_version_id id)
{
    struct state *state = &memory_of(backend)->working;
    size_t at = version_at(state, id);
    if (!version_is(state, at, id))
        return ST_NOT_FOUND;
    key_free(state->versions[at].key);
    state->version_count--;
    memmove(&state->versions[at], &state->versions[at + 1],
            (state->version_count - at) * sizeof(*state->versions));
    return ST_OK;
}

static enum status memory_versions_scan(struct backend *backend, struct backend_version_id from,
                                        backend_version_fn fn, void *ctx)
{
    const struct state *state = readable(backend);
    for (size_t at = version_at(state, from); at < state->version_count; at++)
        TRY(fn(ctx, &state->versions[at]));
    return ST_OK;
}

static enum status memory_segment_put(struct backend *backend,
                                      const struct backend_segment *segment)
{
    struct state *state = &memory_of(backend)->working;
    size_t at = segment_at(state, segment->id);
    if (at == state->segment_count || state->segments[at].id != segment->id) {
        if (state->segment_count == state->segment_capacity) {
            state->segment_capacity = state->segment_capacity * 2 + 1;
            state->segments =
                must(realloc(state->segments, state->segment_capacity * sizeof(*state->segments)));
        }
        memmove(&state->segments[at + 1], &state->segments[at],
                (state->segment_count - at) * sizeof(*state->segments));
        state->segment_count++;
    }
    state->segments[at] = *segment;
    return ST_OK;
}

static enum status memory_segment_delete(struct backend *backend, uint64_t id)
{
    struct state *state = &memory_of(backend)->working;
    size_t at = segment_at(state, id);
    if (at == state->segment_count || state->segments[at].id != id)
        return ST_NOT_FOUND;
    state->segment_count--;
    memmove(&state->segments[at], &state->segments[at + 1],
            (state->segment_count - at) * sizeof(*state->segments));
    return ST_OK;
}

static enum status memory_segments_scan(struct backend *backend, backend_segment_fn fn, void *ctx)
{
    const struct state *state = readable(backend);
    for (size_t at = 0; at < state->segment_count; at++)
        TRY(fn(ctx, &state->segments[at]));
    return ST_OK;
}

static int row_compare(const struct row *a, const struct row *b)
{
    return a->table != b->table ? (a->table < b->table ? -1 : 1) : slice_compare(a->key, b->key);
}

/* Position of the first row not before this one. */
static size_t row_at(const struct state *state, const struct row *row)
{
    size_t low = 0, high = state->row_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (row_compare(&state->rows[middle], row) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void row_remove(struct state *state, size_t at)
{
    key_free(state->rows[at].key);
    key_free(state->rows[at].value);
    state->row_count--;
    memmove(&state->rows[at], &state->rows[at + 1], (state->row_count - at) * sizeof(*state->rows));
}

static enum status memory_row_put(struct backend *backend, const struct row *row)
{
    struct state *state = &memory_of(backend)->working;
    size_t at = row_at(state, row);
    if (at < state->row_count && row_compare(&state->rows[at], row) == 0)
        row_remove(state, at);
    if (row->deleted)
        return ST_OK;
    if (state->row_count == state->row_capacity) {
        state->row_capacity = state->row_capacity * 2 + 1;
        state->rows = must(realloc(state->rows, state->row_capacity * sizeof(*state->rows)));
    }
    memmove(&state->rows[at + 1], &state->rows[at], (state->row_count - at) * sizeof(*state->rows));
    state->row_count++;
    state->rows[at] =
        (struct row){.table = row->table, .key = key_dup(row->key), .value = key_dup(row->value)};
    return ST_OK;
}

static enum status memory_rows_scan(struct backend *backend, row_fn fn, void *ctx)
{
    const struct state *state = readable(backend);
    for (size_t at = 0; at < state->row_count; at++)
        TRY(fn(ctx, &state->rows[at]));
    return ST_OK;
}

static enum status memory_row_get(struct backend *backend, const struct row *row,
                                  struct slice *ret_value)
{
    const struct state *state = readable(backend);
    size_t at = row_at(state, row);
    if (at == state->row_count || row_compare(&state->rows[at], row) != 0)
        return ST_NOT_FOUND;
    *ret_value = state->rows[at].value;
    return ST_OK;
}

static struct backend_version_id memory_version_bound(struct backend *backend)
{
    const struct state *state = readable(backend);
    return state->version_count ? state->versions[state->version_count - 1].id
                                : (struct backend_version_id){0};
}

static const struct backend_ops memory_ops = {
    .close = memory_close,
    .begin = memory_begin,
    .commit = memory_commit,
    .abort = memory_abort,
    .meta_put = memory_meta_put,
    .version_get = memory_version_get,
    .version_put = memory_version_put,
    .version_delete = memory_version_delete,
    .versions_scan = memory_versions_scan,
    .segment_put = memory_segment_put,
    .segment_delete = memory_segment_delete,
    .segments_scan = memory_segments_scan,
    .row_put = memory_row_put,
    .row_get = memory_row_get,
    .version_bound = memory_version_bound,
    .rows_scan = memory_rows_scan,
};

struct backend *backend_memory_open(struct backend_disk *disk)
{
    assert(!disk->open);
    disk->open = true;
    struct backend_memory *memory = must(calloc(1, sizeof(*memory)));
    memory->backend.ops = &memory_ops;
    memory->backend.numbers = memory->backend.committed = disk->committed.numbers;
    memory->disk = disk;
    return &memory->backend;
}

/* -- The disk -- */

struct backend_disk *backend_disk_new(void)
{
    return must(calloc(1, sizeof(struct backend_disk)));
}

void backend_disk_free(struct backend_disk *disk)
{
    if (!disk)
        return;
    assert(!disk->open);
    state_fini(&disk->committed);
    free(disk);
}

void backend_disk_fail_commit(struct backend_disk *disk, uint64_t n, enum status status,
                              bool happened)
{
    disk->fail_at = n ? disk->commits + n : 0;
    disk->fail_status = status;
    disk->fail_happened = happened;
}
