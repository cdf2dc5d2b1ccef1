#include "store/builder.h"

#include "base/xalloc.h"
#include "store/upkeep.h"

#include <stdlib.h>

enum {
    SEGMENT_BYTES_FIRST = 1 << 20,
    SEGMENT_BYTES_MAX = 64 << 20,
    GROUP_BYTES = 4 << 20,
    CHECKPOINT_BYTES = 64 << 20,
};

struct store_builder {
    const char *dir; /* borrowed */
    struct store *store;
    struct upkeep *upkeep;
    uint64_t since_checkpoint; /* bytes of log since the last checkpoint */
};

enum status store_builder_open(const struct store_builder_options *options,
                               struct store_builder **ret_builder, struct error *ret_error)
{
    AUTO(store_builder_closep) struct store_builder *builder = xcalloc(1, sizeof(*builder));
    builder->dir = options->dir;
    TRY(store_open(
        &(struct store_options){
            .fs = options->fs,
            .dir = options->dir,
            .segment_bytes_first = SEGMENT_BYTES_FIRST,
            .segment_bytes_max = SEGMENT_BYTES_MAX,
            .checkpoint_map_bytes = options->checkpoint_map_bytes,
            .readers_max = 1,
            .salt = options->salt,
            .backend = options->backend,
        },
        &builder->store, ret_error));
    builder->upkeep = upkeep_new(builder->store);
    upkeep_join(builder->upkeep);
    *ret_builder = TAKE(builder);
    return ST_OK;
}

void store_builder_close(struct store_builder *builder)
{
    if (!builder)
        return;
    upkeep_free(builder->upkeep);
    store_close(builder->store);
    free(builder);
}

struct store *store_builder_store(struct store_builder *builder)
{
    return builder->store;
}

enum status store_builder_failed(const struct store_builder *builder, enum status status,
                                 struct error *ret_error)
{
    const char *more = upkeep_error_text(builder->upkeep);
    const char *advice =
        status == ST_DISK_FULL || status == ST_IO
            ? "; free space or replace the disk, or choose another one, and start again"
            : "";
    return error_set(ret_error, status, "cannot write the new data directory %s: %s%s%s%s%s",
                     builder->dir, status_reason(status), *more ? " (" : "", more, *more ? ")" : "",
                     advice);
}

enum status store_builder_flush(struct store_builder *builder)
{
    builder->since_checkpoint += store_pending_bytes(builder->store);
    TRY(store_commit(builder->store));
    if (builder->since_checkpoint < CHECKPOINT_BYTES)
        return ST_OK;
    builder->since_checkpoint = 0;
    return upkeep_checkpoint(builder->upkeep);
}

enum status store_builder_step(struct store_builder *builder)
{
    return store_pending_bytes(builder->store) < GROUP_BYTES ? ST_OK : store_builder_flush(builder);
}

enum status store_builder_add(struct store_builder *builder, int64_t revision,
                              const struct imported_change *changes, size_t count)
{
    TRY(applier_import(store_applier(builder->store), revision, changes, count));
    return store_builder_step(builder);
}

enum status store_builder_add_rows(struct store_builder *builder, const struct row *rows,
                                   size_t count)
{
    TRY(applier_rows(store_applier(builder->store), rows, count, NULL, 0, NULL));
    return store_builder_step(builder);
}

void store_builder_reach(struct store_builder *builder, int64_t revision)
{
    struct applier *applier = store_applier(builder->store);
    if (applier->revision < revision)
        applier->revision = revision;
}

enum status store_builder_compact(struct store_builder *builder, int64_t revision)
{
    TRY(applier_compact(store_applier(builder->store), revision));
    return store_builder_step(builder);
}

/*
 * Only the checkpoint has what no record says: the newest revision if nothing of it is left, and
 * the ids of the store.
 */
static enum status write_meta(struct store_builder *builder,
                              const struct store_builder_identity *identity)
{
    struct backend *backend = store_backend(builder->store);
    int64_t revision = store_applier(builder->store)->revision;
    TRY(backend_begin(backend));
    TRY(backend_meta_put(backend, BACKEND_REVISION, revision));
    uint64_t cluster_id = identity ? identity->cluster_id : 0;
    uint64_t member_id = identity ? identity->member_id : 0;
    TRY(backend_meta_put(backend, BACKEND_CLUSTER_ID, (int64_t)cluster_id));
    TRY(backend_meta_put(backend, BACKEND_MEMBER_ID, (int64_t)member_id));
    TRY(backend_meta_put(backend, BACKEND_TERM, identity ? (int64_t)identity->term : 0));
    return backend_commit(backend);
}

enum status store_builder_finish(struct store_builder *builder,
                                 const struct store_builder_identity *identity)
{
    TRY(store_commit(builder->store));
    while (store_is_trimming(builder->store))
        TRY(store_trim_step(builder->store));
    TRY(store_commit(builder->store));
    TRY(upkeep_checkpoint(builder->upkeep));
    enum status status = write_meta(builder, identity);
    if (status != ST_OK)
        backend_abort(store_backend(builder->store));
    return status;
}
