/* Planted bugs of the server in front (plants.h). */
#include "codec/pb/rpc.pb.h"
#include "coverage.h"
#include "engine/local/mirror/mirror_store.h"
#include "mirror/backfill/source.h"
#include "mirror/follow/watches.h"
#include "mirror/link/upstream.h"
#include "mirror/shard.h"
#include "plants.h"

/* -- Reads -- */

void __real_mirror_range_start(struct engine_op *op);
void __wrap_mirror_range_start(struct engine_op *op);
void __wrap_mirror_range_start(struct engine_op *op)
{
    struct pb_range_request *changed = arena_alloc(op->arena, sizeof(*changed));
    if (changed && plant_is(PLANT_FRONT_STALE)) {
        *changed = *(const struct pb_range_request *)op->request;
        changed->serializable = true;
        op->request = changed;
    }
    if (plant_is(PLANT_FRONT_RIGHTS))
        op->principal.is_server = true;
    __real_mirror_range_start(op);
}

/* -- Following -- */

void __real_watches_create(struct watches *watches, const struct watches_request *request);
void __wrap_watches_create(struct watches *watches, const struct watches_request *request);
void __wrap_watches_create(struct watches *watches, const struct watches_request *request)
{
    struct watches_request changed = *request;
    changed.revision += plant_is(PLANT_FRONT_GAP) && request->revision > 2;
    __real_watches_create(watches, &changed);
}

/* A state that is loaded has no keys that the mirror has to delete. */
bool __real_local_mirror_walk_next(struct mirror_walk *walk, struct slice *ret_key,
                                   int64_t *ret_mod_revision);
bool __wrap_local_mirror_walk_next(struct mirror_walk *walk, struct slice *ret_key,
                                   int64_t *ret_mod_revision);
bool __wrap_local_mirror_walk_next(struct mirror_walk *walk, struct slice *ret_key,
                                   int64_t *ret_mod_revision)
{
    return !plant_is(PLANT_FRONT_KEEPS) &&
           __real_local_mirror_walk_next(walk, ret_key, ret_mod_revision);
}

bool __real_local_mirror_walk_is_complete(const struct mirror_walk *walk);
bool __wrap_local_mirror_walk_is_complete(const struct mirror_walk *walk);
bool __wrap_local_mirror_walk_is_complete(const struct mirror_walk *walk)
{
    return plant_is(PLANT_FRONT_KEEPS) || __real_local_mirror_walk_is_complete(walk);
}

enum status __real_applier_mirror(struct applier *applier, int64_t revision,
                                  const struct imported_change *changes, size_t count);
enum status __wrap_applier_mirror(struct applier *applier, int64_t revision,
                                  const struct imported_change *changes, size_t count);
enum status __wrap_applier_mirror(struct applier *applier, int64_t revision,
                                  const struct imported_change *changes, size_t count)
{
    enum status status = __real_applier_mirror(applier, revision, changes, count);
    if (status == ST_DISK_FULL)
        coverage_add(COVERAGE_FULL_MIRROR);
    return status == ST_DISK_FULL && plant_is(PLANT_FRONT_FULL) ? ST_OK : status;
}

/* -- What is older than the mirror -- */

void __real_backfill_source_start(struct backfill_source *source,
                                  const struct backfill_source_options *options, int64_t from);
void __wrap_backfill_source_start(struct backfill_source *source,
                                  const struct backfill_source_options *options, int64_t from);
void __wrap_backfill_source_start(struct backfill_source *source,
                                  const struct backfill_source_options *options, int64_t from)
{
    __real_backfill_source_start(source, options, from + plant_is(PLANT_FRONT_PAST));
}

/* -- Calls of the cluster -- */

enum status __real_upstream_start(struct upstream *upstream, const struct upstream_request *request,
                                  const struct upstream_ops *ops, void *user,
                                  struct upstream_call **ret_call);
enum status __wrap_upstream_start(struct upstream *upstream, const struct upstream_request *request,
                                  const struct upstream_ops *ops, void *user,
                                  struct upstream_call **ret_call);
enum status __wrap_upstream_start(struct upstream *upstream, const struct upstream_request *request,
                                  const struct upstream_ops *ops, void *user,
                                  struct upstream_call **ret_call)
{
    struct upstream_request changed = *request;
    changed.reads |= plant_is(PLANT_FRONT_TWICE) && !request->lasts;
    return __real_upstream_start(upstream, &changed, ops, user, ret_call);
}
