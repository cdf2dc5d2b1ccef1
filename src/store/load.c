#include "store/load.h"

#include "base/xalloc.h"
#include "store/apply.h"
#include "store/change.h"

#include <stdlib.h>

/* Where the checkpoint says that records end, by segment. */
struct bounds {
    struct backend_segment *segments; /* in order of id; owned */
    size_t count, capacity;
    size_t last; /* the one found last: versions of one are together, mostly */
};

struct loading {
    struct index *index;
    struct bounds bounds;
    struct backend_version_id before; /* the version before this one */
    int64_t db_bytes;                 /* of those so far, as the checkpoint counts them */
};

static enum status take_segment(void *ctx, const struct backend_segment *segment)
{
    struct bounds *bounds = ctx;
    if (bounds->count == bounds->capacity) {
        bounds->capacity = bounds->capacity ? bounds->capacity * 2 : 64;
        bounds->segments = xrealloc(bounds->segments, bounds->capacity * sizeof(*bounds->segments));
    }
    bounds->segments[bounds->count++] = *segment;
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

/* LMDB has no checksums: a place that is none would be read as if it were one. */
static bool is_sound(struct loading *loading, const struct backend_version *version)
{
    uint64_t id, offset;
    log_loc_split(version->loc, &id, &offset);
    const struct backend_version_id *now = &version->id, *before = &loading->before;
    bool in_order = now->revision > before->revision ||
                    (now->revision == before->revision && now->sub > before->sub) ||
                    before->revision == 0;
    return in_order && now->revision > 0 && version->key.len > 0 &&
           version->key.len <= INDEX_KEY_BYTES_MAX && version->loc % 8 == 0 &&
           bounds_seek(&loading->bounds, id) &&
           offset + CHANGE_HEAD_BYTES + version->field_bytes <=
               loading->bounds.segments[loading->bounds.last].used_bytes;
}

/*
 * Versions come in the order of revisions, keys from all over. Each goes into the index as it was
 * put once: sorting them all by key first took no less time, and many times the memory.
 */
static enum status take_version(void *ctx, const struct backend_version *version)
{
    struct loading *loading = ctx;
    if (!is_sound(loading, version))
        return ST_DAMAGED;
    loading->before = version->id;
    loading->db_bytes += apply_db_bytes(version->field_bytes);
    bool tombstone = version->create_revision == 0;
    index_put(loading->index, version->key,
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

enum status store_load_index(struct backend *backend, struct index *index)
{
    struct loading loading = {.index = index};
    enum status status = backend_segments_scan(backend, take_segment, &loading.bounds);
    index_load_begin(index);
    if (status == ST_OK)
        status =
            backend_versions_scan(backend, (struct backend_version_id){0}, take_version, &loading);
    index_load_end(index);
    /* A page that is lost takes versions along, and nobody would miss them. */
    if (status == ST_OK &&
        loading.db_bytes != backend_meta_get(backend, BACKEND_DB_BYTES_IN_USE, 0))
        status = ST_DAMAGED;
    free(loading.bounds.segments);
    return status;
}
