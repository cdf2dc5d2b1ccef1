#include "store/store.h"

#include "base/xalloc.h"
#include "base/yield_point.h"
#include "store/datadir.h"
#include "store/load.h"
#include "store/log/rewrite.h"
#include "store/mvcc/range.h"
#include "store/upkeep/cleaner.h"
#include "store/upkeep/compaction.h"

#include <stdlib.h>

/* The throttle of trimming; the writer's share of time is in engine/local/writer/writer.c. */
enum {
    /* Changes and versions per step: about 10 µs, which delays a put only slightly. */
    TRIM_PER_STEP = 16,
    /* Each published state copies the nodes of the index that were changed since the last one. */
    TRIM_STEPS_PER_PUBLISH = 32,
    /* Memory that trimming may leave for readers to release; beyond that it waits for them. */
    TRIM_RETIRED_BYTES_MAX = 4 << 20,
};
enum {
    /*
     * Objects freed per step, in addition to twice as many as were retired since the last time:
     * however much a group or a step retires, the number that waits is bounded.
     */
    RECLAIM_PER_COMMIT = 256,
    RECLAIM_PER_STEP = 256,
    /* when there is nothing to trim; such steps are made every 20 ms */
    RECLAIM_PER_IDLE_STEP = 4096,
    RECLAIM_PER_REPLAY = 4096, /* records */
};

struct store {
    struct datadir dir;
    struct epoch *epoch;
    struct log *log;
    struct index *index;
    struct backend *backend;
    struct applier applier;       /* the writer's */
    struct compaction compaction; /* the writer's */
    bool hidden;                  /* nothing is published */
    bool index_changed;           /* since the last publish, by something that is not in the log */
    unsigned unpublished_steps;   /* steps of trimming since the last publish */
    size_t retired;               /* objects that waited for readers when some were last freed */
    struct clock *clock;
    struct store_commit_times times; /* times of the last commit */
    _Atomic(const struct store_view *) view;
    void *attachment; /* owned; published with the next view: see store_set_attachment */
    void (*attachment_free)(void *ctx, void *object);
    uint64_t term;
};

/* -- Publishing -- */

static void free_view(void *ctx, void *object)
{
    (void)ctx;
    free(object);
}

static void publish(struct store *store)
{
    assert(!store->hidden);
    struct store_view *view = xmalloc(sizeof(*view));
    *view = (struct store_view){
        .root = index_publish(store->index),
        .revision = store->applier.revision,
        .compact_revision = store->applier.compact_revision,
        .trimmed = store->compaction.trimmed,
        .trim_target = store->compaction.target,
        .released = store->compaction.released,
        .log_index = log_durable_index(store->log),
        .db_bytes = store->applier.db_bytes,
        .db_bytes_in_use = store->applier.db_bytes_in_use -
                           (store->applier.db_bytes_held > 0 ? store->applier.db_bytes_held : 0),
        .attachment = store->attachment,
    };
    const struct store_view *old =
        atomic_exchange_explicit(&store->view, view, memory_order_acq_rel);
    /* What clients have seen never goes back. */
    assert(!old || old->revision <= view->revision);
    assert(!old || old->compact_revision <= view->compact_revision);
    assert(!old || old->log_index <= view->log_index);
    if (old)
        epoch_retire(store->epoch, (void *)(uintptr_t)old, free_view, NULL);
    epoch_publish(store->epoch);
    store->index_changed = false;
    store->unpublished_steps = 0;
}

/* A group of a million deletes leaves so much to free that other requests are served in between. */
static void reclaim(struct store *store, size_t least)
{
    size_t waiting = epoch_waiting(store->epoch);
    size_t added = waiting > store->retired ? waiting - store->retired : 0;
    size_t left = least + 2 * added, before;
    do {
        size_t some = size_min(left, YIELD_POINT_WORK);
        before = waiting;
        waiting = epoch_reclaim(store->epoch, some);
        left -= some;
        assert(waiting <= before);
        yield_point_pass(before - waiting); /* what was freed; mostly far less than it might */
    } while (left && before - waiting >= YIELD_POINT_WORK);
    store->retired = waiting;
}

/* -- Opening -- */

static enum status note_segment(void *ctx, const struct backend_segment *segment)
{
    struct buf *ids = ctx;
    return buf_append(ids, slice_of(&segment->id, sizeof(segment->id)));
}

static enum status replay(void *ctx, const struct log_record *record)
{
    struct store *store = ctx;
    TRY(applier_replay(&store->applier, record));
    if (record->index % RECLAIM_PER_REPLAY == 0) {
        /* There are no readers yet: what each record has replaced in the index is freed at once. */
        (void)index_publish(store->index);
        epoch_publish(store->epoch);
        (void)epoch_reclaim(store->epoch, SIZE_MAX);
    }
    return ST_OK;
}

static enum status open_log(struct store *store, const struct store_options *options,
                            struct error *ret_error)
{
    struct buf ids = {0};
    enum status status = backend_segments_scan(store->backend, note_segment, &ids);
    uint64_t index = (uint64_t)backend_meta_get(store->backend, BACKEND_INDEX, 0);
    if (status == ST_OK)
        status = log_open(
            &(struct log_options){
                .fs = options->fs,
                .dir = store->dir.log_path,
                .segment_bytes_first = options->segment_bytes_first,
                .segment_bytes_max = options->segment_bytes_max,
                .unsynced = options->is_mirror,
                .salt = options->salt,
            },
            index, index ? (const uint64_t *)(const void *)ids.ptr : NULL,
            ids.len / sizeof(uint64_t), replay, store, &store->log, ret_error);
    else
        error_set(ret_error, status, "cannot read the checkpoint in %s: %s", store->dir.meta_path,
                  backend_error_text(store->backend));
    buf_fini(&ids);
    return status;
}

static enum status load_checkpoint(struct store *store, const struct store_options *options,
                                   struct error *ret_error)
{
    struct backend *backend = store->backend;
    applier_init(&store->applier, NULL, store->index);
    store->applier.row_seen = options->row_seen;
    store->applier.row_ctx = options->row_ctx;
    store->applier.revision = backend_meta_get(backend, BACKEND_REVISION, 1);
    store->applier.compact_revision = backend_meta_get(backend, BACKEND_COMPACT_REVISION, -1);
    store->applier.db_bytes = backend_meta_get(backend, BACKEND_DB_BYTES, 0);
    store->applier.db_bytes_in_use = backend_meta_get(backend, BACKEND_DB_BYTES_IN_USE, 0);
    store->applier.db_bytes_held = store->applier.compact_revision > 0 ? -1 : 0;
    compaction_init(&store->compaction, &store->applier,
                    backend_meta_get(backend, BACKEND_TRIMMED, 0));
    enum status status = store_load_index(backend, store->index);
    if (status == ST_OK)
        status = store_load_drop_unfinished(backend);
    if (status == ST_OK && options->row_seen)
        status = backend_rows_scan(backend, options->row_seen, options->row_ctx);
    if (status != ST_OK)
        return error_set(ret_error, status, "cannot load the checkpoint in %s: %s%s%s",
                         store->dir.meta_path, status_reason(status),
                         *backend_error_text(backend) ? ": " : "", backend_error_text(backend));
    return ST_OK;
}

/* Counts the start, and at the first start stores the ids. */
static enum status sign_in(struct store *store, const struct store_options *options)
{
    struct backend *backend = store->backend;
    bool first = backend_meta_get(backend, BACKEND_TERM, 0) == 0;
    store->term = (uint64_t)backend_meta_get(backend, BACKEND_TERM, 1) + 1;
    TRY(backend_begin(backend));
    TRY(backend_meta_put(backend, BACKEND_TERM, (int64_t)store->term));
    if (first) {
        TRY(backend_meta_put(backend, BACKEND_CLUSTER_ID, (int64_t)options->cluster_id));
        TRY(backend_meta_put(backend, BACKEND_MEMBER_ID, (int64_t)options->member_id));
    }
    return backend_commit(backend);
}

/* Nothing is changed in a checkpoint before its sums are verified. */
static enum status open_backend(struct store *store, const struct store_options *options,
                                struct error *ret_error)
{
    if (!store->backend)
        TRY(backend_lmdb_open(store->dir.meta_path, options->checkpoint_map_bytes, &store->backend,
                              ret_error));
    TRY(load_checkpoint(store, options, ret_error));
    enum status status = sign_in(store, options);
    if (status != ST_OK) {
        backend_abort(store->backend);
        return error_set(ret_error, status, "cannot write the checkpoint in %s: %s",
                         store->dir.meta_path, backend_error_text(store->backend));
    }
    /* LMDB syncs its file but not the directory entry, without which the log could not be read. */
    status = fs_sync_dir(options->fs, store->dir.meta_path);
    if (status != ST_OK)
        return error_set(ret_error, status, "cannot sync %s: %s", store->dir.meta_path,
                         status_reason(status));
    return ST_OK;
}

/* A stop interrupted recording the new locations of a cleaned segment in the checkpoint. */
static enum status resume_cleaning(struct store *store, struct error *ret_error)
{
    uint64_t from = (uint64_t)backend_meta_get(store->backend, BACKEND_MOVED_FROM, 0);
    uint64_t to = (uint64_t)backend_meta_get(store->backend, BACKEND_MOVED_TO, 0);
    if (!from)
        return ST_OK;
    enum status status = cleaner_resume(store->log, store->backend, store->index, from, to);
    if (status != ST_OK)
        return error_set(ret_error, status, "cannot read the checkpoint in %s: %s",
                         store->dir.meta_path, backend_error_text(store->backend));
    return ST_OK;
}

static enum status open_parts(struct store *store, const struct store_options *options,
                              struct error *ret_error)
{
    store->backend = options->backend; /* owned from here on, also after a failure */
    TRY(datadir_open(&store->dir, options->fs, options->dir, options->is_mirror, ret_error));
    TRY(open_backend(store, options, ret_error));
    TRY(open_log(store, options, ret_error));
    TRY(resume_cleaning(store, ret_error));
    store->applier.log = store->log;
    publish(store);
    return ST_OK;
}

enum status store_open(const struct store_options *options, struct store **ret_store,
                       struct error *ret_error)
{
    AUTO(store_closep) struct store *store = xcalloc(1, sizeof(*store));
    store->epoch = epoch_new(options->readers_max);
    store->clock = options->clock ? options->clock : clock_system();
    store->index = index_new(store->epoch);
    enum status status = open_parts(store, options, ret_error);
    if (status != ST_OK) /* a damaged mirror is thrown away, and the next one takes its place */
        return options->is_mirror ? status : datadir_advise(options->dir, false, ret_error);
    *ret_store = TAKE(store);
    return ST_OK;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    applier_fini(&store->applier);
    epoch_free(store->epoch); /* may forget segments, so before the log */
    index_free(store->index);
    log_close(store->log);
    backend_close(store->backend);
    datadir_close(&store->dir);
    free((void *)(uintptr_t)atomic_load(&store->view));
    if (store->attachment)
        store->attachment_free(NULL, store->attachment);
    free(store);
}

/* -- Readers -- */

struct epoch *store_epoch(struct store *store)
{
    return store->epoch;
}

const struct store_view *store_view(const struct store *store)
{
    return atomic_load_explicit(&store->view, memory_order_acquire);
}

const struct log *store_log(const struct store *store)
{
    return store->log;
}

uint64_t store_cluster_id(const struct store *store)
{
    return (uint64_t)backend_meta_get(store->backend, BACKEND_CLUSTER_ID, 0);
}

uint64_t store_member_id(const struct store *store)
{
    return (uint64_t)backend_meta_get(store->backend, BACKEND_MEMBER_ID, 0);
}

uint64_t store_term(const struct store *store)
{
    return store->term;
}

/* -- The writer -- */

void store_leased_keys(const struct store *store,
                       void (*fn)(void *ctx, struct slice key, int64_t from, int64_t to), void *ctx)
{
    struct range_state state = range_state_of(store_view(store), store->log);
    struct range_walk walk;
    range_walk_init(&walk, &state, (struct range_bounds){.to_end = true}, 0);
    for (const struct range_kv *kv; (kv = range_walk_next(&walk));) {
        if (kv->item->newest.lease)
            fn(ctx, index_item_key(kv->item), 0, kv->item->newest.lease);
    }
}

struct applier *store_applier(struct store *store)
{
    return &store->applier;
}

size_t store_pending_bytes(const struct store *store)
{
    return log_pending_bytes(store->log);
}

static enum status write_and_sync(struct store *store)
{
    int64_t begun = clock_mono_ns(store->clock);
    store->times.bytes = log_pending_bytes(store->log);
    TRY(log_write(store->log));
    int64_t written = clock_mono_ns(store->clock);
    TRY(log_sync(store->log));
    store->times.write_ns = written - begun;
    store->times.sync_ns = clock_mono_ns(store->clock) - written;
    return ST_OK;
}

struct store_commit_times store_commit_times(const struct store *store)
{
    return store->times;
}

static void check_disk_space(struct store *store)
{
    if (log_is_short(store->log))
        compaction_want_release(&store->compaction);
}

enum status store_sync(struct store *store)
{
    assert(!store->applier.body); /* no record is half applied */
    if (log_pending_bytes(store->log)) {
        TRY(write_and_sync(store));
        store->index_changed = true;
    }
    assert(log_pending_bytes(store->log) == 0);
    if (store->hidden)
        return ST_OK;
    if (store->index_changed)
        publish(store);
    check_disk_space(store);
    return ST_OK;
}

void store_reclaim(struct store *store)
{
    if (!store->hidden)
        reclaim(store, RECLAIM_PER_COMMIT);
}

enum status store_commit(struct store *store)
{
    TRY(store_sync(store));
    store_reclaim(store);
    return ST_OK;
}

void store_hide(struct store *store, bool hidden)
{
    store->hidden = hidden;
}

bool store_is_hidden(const struct store *store)
{
    return store->hidden;
}

void store_note_reached(struct store *store)
{
    store->index_changed = true; /* so that it is published */
}

void store_set_attachment(struct store *store, void *object,
                          void (*free_fn)(void *ctx, void *object))
{
    assert(object && free_fn);
    if (store->attachment)
        epoch_retire(store->epoch, store->attachment, store->attachment_free, NULL);
    store->attachment = object;
    store->attachment_free = free_fn;
    store->index_changed = true; /* so that it is published */
}

bool store_is_trimming(const struct store *store)
{
    return !compaction_done(&store->compaction);
}

size_t store_bytes_retired(const struct store *store)
{
    return index_bytes_retired(store->index);
}

bool store_trim_waits(const struct store *store)
{
    return store_bytes_retired(store) > TRIM_RETIRED_BYTES_MAX;
}

bool store_has_retired(const struct store *store)
{
    return store->retired > 0;
}

bool store_compaction_done(const struct store *store)
{
    return compaction_done(&store->compaction) && !store->index_changed;
}

enum status store_trim_step(struct store *store)
{
    /* It publishes, and only durable data may be published. */
    assert(log_pending_bytes(store->log) == 0);
    check_disk_space(store);
    if (store_is_trimming(store) && !store_trim_waits(store)) {
        TRY(compaction_step(&store->compaction, log_durable_index(store->log), TRIM_PER_STEP));
        store->index_changed = true;
        if (++store->unpublished_steps >= TRIM_STEPS_PER_PUBLISH ||
            compaction_done(&store->compaction))
            publish(store);
    } else if (store->index_changed) {
        /* Until a new state is published, nothing that the last steps replaced can be freed. */
        publish(store);
    }
    reclaim(store, store_is_trimming(store) ? RECLAIM_PER_STEP : RECLAIM_PER_IDLE_STEP);
    return ST_OK;
}

enum status store_relocate(struct store *store, struct relocation *relocation, size_t max,
                           bool *ret_done)
{
    assert(relocation->done <= relocation->count);
    size_t end = relocation->done + size_min(max, relocation->count - relocation->done);
    for (; relocation->done < end; relocation->done++) {
        const struct relocated *move = &relocation->moves[relocation->done];
        const struct change_head *change;
        struct change_kv kv;
        /*
         * Both were undamaged when they were copied. If neither is now, reading the key reports it.
         */
        if (change_get(store->log, move->to, &change) != ST_OK &&
            change_get(store->log, move->from, &change) != ST_OK)
            continue;
        change_read_kv(change, &kv);
        /* Not found: compacted meanwhile. */
        (void)index_relocate(store->index, kv.key, move->from, move->to);
        store->index_changed = true;
    }
    *ret_done = relocation->done == relocation->count;
    return store_commit(store);
}

void store_shrink(struct store *store)
{
    store->applier.db_bytes = 0;
    applier_settle_size(&store->applier);
    store->index_changed = true; /* so that it is published */
}

struct forgotten {
    struct store *store;
    uint64_t segment_id;
};

static void forget_segment(void *ctx, void *object)
{
    (void)ctx;
    struct forgotten *forgotten = object;
    compaction_release_log(&forgotten->store->compaction);
    /* If the file cannot be removed, the next start finds and removes it. */
    enum status ignored = log_forget(forgotten->store->log, forgotten->segment_id);
    (void)ignored;
    free(forgotten);
}

void store_forget_segment(struct store *store, uint64_t segment_id)
{
    struct forgotten *forgotten = xmalloc(sizeof(*forgotten));
    *forgotten = (struct forgotten){.store = store, .segment_id = segment_id};
    epoch_retire(store->epoch, forgotten, forget_segment, NULL);
    store->index_changed = true; /* a new state must be published before the old one can be freed */
}

/* -- For the keeper -- */

struct log *store_log_of_keeper(struct store *store)
{
    return store->log;
}

struct backend *store_backend(struct store *store)
{
    return store->backend;
}

/* -- Checking -- */

void store_check_writer(const struct store *store)
{
    const struct applier *applier = &store->applier;
    const struct store_view *view = store_view(store);
    log_check(store->log);
    index_check(store->index);
    assert(!applier->body);
    assert(store->hidden || applier_is_complete(applier));
    assert(applier->db_bytes_in_use >= 0);
    assert(view->revision <= applier->revision);
    assert(view->compact_revision <= applier->compact_revision);
    assert(view->log_index <= log_durable_index(store->log));
}
