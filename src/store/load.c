#include "store/load.h"

#include "base/xalloc.h"
#include "store/load_queue.h"
#include "store/log/damage.h"
#include "store/mvcc/applier.h"
#include "store/record/change.h"
#include "store/upkeep/segments.h"

#include <stdlib.h>

/* Where the records of each segment end, according to the checkpoint. */
struct bounds {
    struct backend_segment *segments; /* in order of id; owned; live_bytes are those loaded */
    uint64_t *live_bytes;             /* as stored in the checkpoint; owned */
    size_t count, capacity;
    size_t last; /* the one found last: versions of one segment are mostly adjacent */
};

struct loading {
    struct load_queue *queue;
    struct bounds bounds;
    int64_t last_revision; /* later ones are ignored: their record is not complete */
    bool is_unsound;       /* a version was damaged, and nothing is loaded any more */
    uint64_t moved_from;   /* a segment that is gone; its versions are located later … */
    uint64_t moved_to;     /* … in this one */
    struct backend_version_id before; /* the previous version */
    int64_t db_bytes; /* size of the versions so far, as the checkpoint counts them */
};

static enum status take_segment(void *ctx, const struct backend_segment *segment)
{
    struct bounds *bounds = ctx;
    if (bounds->count == bounds->capacity) {
        bounds->capacity = bounds->capacity ? bounds->capacity * 2 : 64;
        bounds->segments = xrealloc(bounds->segments, bounds->capacity * sizeof(*bounds->segments));
        bounds->live_bytes =
            xrealloc(bounds->live_bytes, bounds->capacity * sizeof(*bounds->live_bytes));
    }
    bounds->live_bytes[bounds->count] = segment->live_bytes;
    bounds->segments[bounds->count] = *segment;
    bounds->segments[bounds->count++].live_bytes = 0;
    return ST_OK;
}

static bool bounds_seek(struct bounds *bounds, uint64_t id)
{
    if (bounds->last < bounds->count && bounds->segments[bounds->last].id == id)
        return true;
    for (size_t i = 0; i < bounds->count; i++) {
        if (bounds->segments[i].id == id) {
            bounds->last = i;
            return true;
        }
    }
    return false;
}

/* The sums of the checkpoint were right; still, an invalid location must not be read. */
static bool is_sound(struct loading *loading, const struct backend_version *version)
{
    uint64_t id, offset;
    log_loc_split(version->loc, &id, &offset);
    bool moved = id && id == loading->moved_from;
    const struct backend_version_id *now = &version->id, *before = &loading->before;
    bool in_order = now->revision > before->revision ||
                    (now->revision == before->revision && now->sub > before->sub) ||
                    before->revision == 0;
    return in_order && now->revision > 0 && version->key.len > 0 &&
           version->key.len <= INDEX_KEY_BYTES_MAX && version->loc % 8 == 0 &&
           bounds_seek(&loading->bounds, moved ? loading->moved_to : id) &&
           (moved || offset + CHANGE_HEAD_BYTES + version->field_bytes <=
                         loading->bounds.segments[loading->bounds.last].used_bytes);
}

/*
 * Versions are in the order of revisions, with keys in any order. Each is put into the index in
 * that order: sorting all of them by key first took no less time, and many times the memory.
 *
 * The scan continues after a damaged one, because wrong sums are reported rather than what they
 * cause.
 */
static enum status take_version(void *ctx, const struct backend_version *version)
{
    struct loading *loading = ctx;
    if (version->id.revision > loading->last_revision || loading->is_unsound)
        return ST_OK;
    loading->is_unsound = !is_sound(loading, version);
    if (loading->is_unsound)
        return ST_OK;
    loading->before = version->id;
    struct bounds *bounds = &loading->bounds;
    bounds->segments[bounds->last].live_bytes += segments_live_bytes(version->field_bytes);
    loading->db_bytes += applier_db_bytes(version->field_bytes);
    bool tombstone = version->create_revision == 0;
    load_queue_put(loading->queue, version->key,
                   &(struct index_version){
                       .mod_revision = version->id.revision,
                       .create_revision = version->create_revision,
                       .version = version->version,
                       .lease = version->lease,
                       .loc = version->loc,
                       .field_bytes = tombstone ? 0 : version->field_bytes,
                       .sub_revision = version->id.sub,
                   });
    return ST_OK;
}

/*
 * Older versions of this program could count too much after a stop during a cleaning. The cleaner
 * relies on this number to be sure that it copies everything that is live.
 */
static enum status correct_live_bytes(struct backend *backend, const struct bounds *bounds)
{
    bool correct = true;
    for (size_t i = 0; i < bounds->count; i++)
        correct &= bounds->segments[i].live_bytes == bounds->live_bytes[i];
    if (correct)
        return ST_OK;
    TRY(backend_begin(backend));
    for (size_t i = 0; i < bounds->count; i++)
        TRY(backend_segment_put(backend, &bounds->segments[i]));
    return backend_commit(backend);
}

/* -- Versions of a record that was only partly checkpointed -- */

enum { UNFINISHED_MAX = 4096 }; /* per transaction */

struct unfinished {
    struct backend_version_id ids[UNFINISHED_MAX];
    size_t count;
};

static enum status note_unfinished(void *ctx, const struct backend_version *version)
{
    struct unfinished *unfinished = ctx;
    if (unfinished->count == UNFINISHED_MAX)
        return ST_END;
    unfinished->ids[unfinished->count++] = version->id;
    return ST_OK;
}

static enum status drop_some(struct backend *backend, struct unfinished *unfinished)
{
    int64_t revision = backend_meta_get(backend, BACKEND_REVISION, 1);
    unfinished->count = 0;
    TRY(backend_versions_scan(backend, (struct backend_version_id){.revision = revision + 1},
                              note_unfinished, unfinished));
    if (!unfinished->count)
        return ST_OK;
    TRY(backend_begin(backend));
    for (size_t i = 0; i < unfinished->count; i++)
        TRY(backend_version_delete(backend, unfinished->ids[i]));
    return backend_commit(backend);
}

enum status store_load_drop_unfinished(struct backend *backend)
{
    struct unfinished *unfinished = xmalloc(sizeof(*unfinished));
    enum status status;
    do
        status = drop_some(backend, unfinished);
    while (status == ST_OK && unfinished->count);
    free(unfinished);
    return status;
}

enum status store_load_index(struct backend *backend, struct index *index)
{
    struct loading loading = {
        .queue = load_queue_new(index),
        .last_revision = backend_meta_get(backend, BACKEND_REVISION, 1),
        .moved_from = (uint64_t)backend_meta_get(backend, BACKEND_MOVED_FROM, 0),
        .moved_to = (uint64_t)backend_meta_get(backend, BACKEND_MOVED_TO, 0),
    };
    enum status status = backend_segments_scan(backend, take_segment, &loading.bounds);
    index_load_begin(index);
    if (status == ST_OK)
        status = backend_verify_and_scan(backend, take_version, &loading);
    load_queue_free(loading.queue);
    index_load_end(index);
    /* A lost page may lose versions that nothing else would miss. */
    bool has_all = loading.db_bytes == backend_meta_get(backend, BACKEND_DB_BYTES_IN_USE, 0);
    if (status == ST_OK && (loading.is_unsound || !has_all))
        status = ST_DAMAGED;
    if (status == ST_OK)
        status = correct_live_bytes(backend, &loading.bounds);
    free(loading.bounds.segments);
    free(loading.bounds.live_bytes);
    return status;
}
