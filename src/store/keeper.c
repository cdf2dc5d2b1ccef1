#include "store/keeper.h"

#include "base/xalloc.h"
#include "store/change.h"
#include "store/cleaner.h"
#include "store/hash.h"
#include "store/log/mark.h"
#include "store/segments.h"

#include <stdlib.h>

/* Bounds what one transaction of the checkpoint holds in memory. */
enum { CHECKPOINT_VERSIONS_MAX = 20000, TRIM_VERSIONS_MAX = 20000 };

/* How long the copy of a segment may be, as a part of it, for copying to be worth it: so one that
 * was just copied never is. */
static const double CLEAN_PART_MAX = 0.5, DEFRAGMENT_PART_MAX = 0.95;

struct keeper {
    struct store *store;
    struct log *log;
    struct backend *backend;
    struct epoch_slot *slot;
    uint64_t held; /* epoch pinned */
    /* What the checkpoint will say: as of `index`, and committed with it. */
    uint64_t index;
    int64_t revision;
    int64_t compact_revision;
    int64_t trimmed;
    int64_t released; /* not in the checkpoint: a start on a full disk releases anew */
    int64_t db_bytes;
    int64_t db_bytes_in_use;
    struct segments segments;
    /* What reading the checkpoint back came to: unless ST_OK, nothing above can be trusted, and
     * nothing is written any more. The log has everything. */
    enum status broken;
    uint64_t copy; /* the new segment of a cleaning under way: the checkpoint has the old one */
    struct buf scratch;
};

/* Takes what was last committed: at the start, and after a transaction was given up. */
static void keeper_reload(struct keeper *keeper)
{
    struct backend *backend = keeper->backend;
    keeper->index = (uint64_t)backend_meta_get(backend, BACKEND_INDEX, 0);
    keeper->revision = backend_meta_get(backend, BACKEND_REVISION, 1);
    keeper->compact_revision = backend_meta_get(backend, BACKEND_COMPACT_REVISION, -1);
    keeper->trimmed = backend_meta_get(backend, BACKEND_TRIMMED, 0);
    keeper->db_bytes = backend_meta_get(backend, BACKEND_DB_BYTES, 0);
    keeper->db_bytes_in_use = backend_meta_get(backend, BACKEND_DB_BYTES_IN_USE, 0);
    segments_fini(&keeper->segments);
    keeper->broken = segments_init(&keeper->segments, backend);
}

static void give_up(struct keeper *keeper)
{
    backend_abort(keeper->backend);
    keeper_reload(keeper);
}

struct keeper *keeper_new(struct store *store)
{
    struct keeper *keeper = xcalloc(1, sizeof(*keeper));
    keeper->store = store;
    keeper->log = store_log_of_keeper(store);
    keeper->backend = store_backend(store);
    keeper_reload(keeper);
    return keeper;
}

void keeper_free(struct keeper *keeper)
{
    if (!keeper)
        return;
    segments_fini(&keeper->segments);
    buf_fini(&keeper->scratch);
    free(keeper);
}

void keeper_join(struct keeper *keeper)
{
    keeper->slot = epoch_slot_add(store_epoch(keeper->store));
}

static const struct store_view *keeper_hold_view(struct keeper *keeper)
{
    keeper->held = epoch_pin(keeper->slot);
    return store_view(keeper->store);
}

static void keeper_let_go(struct keeper *keeper)
{
    epoch_unpin(keeper->slot, keeper->held);
}

const char *keeper_error_text(const struct keeper *keeper)
{
    return backend_error_text(keeper->backend);
}

bool keeper_is_broken(const struct keeper *keeper)
{
    return keeper->broken != ST_OK;
}

enum status keeper_prepare(struct keeper *keeper)
{
    return log_wants_prepare(keeper->log) ? log_prepare(keeper->log) : ST_OK;
}

enum status keeper_mark(struct keeper *keeper)
{
    return log_mark(keeper->log);
}

bool keeper_is_marked(const struct keeper *keeper)
{
    return log_is_marked(keeper->log);
}

bool keeper_is_held_back(const struct keeper *keeper)
{
    return log_is_held_back(keeper->log);
}

/* -- Taking over from the log -- */

static enum status version_add(struct keeper *keeper, const struct change_head *change, log_loc loc)
{
    struct change_kv kv;
    change_read_kv(change, &kv);
    keeper->db_bytes_in_use += apply_db_bytes(change->field_bytes);
    segments_add_live(&keeper->segments, loc, change->field_bytes);
    return backend_version_put(keeper->backend,
                               &(struct backend_version){
                                   .id = {change->revision, change->sub},
                                   .prev = {change->prev_revision, change->prev_sub},
                                   .create_revision = kv.create_revision,
                                   .version = kv.version,
                                   .lease = kv.lease,
                                   .loc = loc,
                                   .field_bytes = change->field_bytes,
                                   .key = kv.key,
                               });
}

/* From here on the log's own bytes of them are dead. */
static enum status rows_add(struct keeper *keeper, const struct log_record *record,
                            unsigned *versions)
{
    struct row_walk walk;
    TRY(row_walk_init(&walk, record->body));
    struct row row;
    enum status status;
    while ((status = row_walk_next(&walk, &row)) == ST_OK) {
        TRY(backend_row_put(keeper->backend, &row));
        (*versions)++;
    }
    return status == ST_END ? ST_OK : status;
}

static enum status record_add(struct keeper *keeper, const struct log_record *record,
                              unsigned *versions)
{
    keeper->index = record->index;
    if (record->type == LOG_RECORD_COMPACT) {
        memcpy(&keeper->compact_revision, record->body.ptr, sizeof(keeper->compact_revision));
        return ST_OK;
    }
    if (record->type == LOG_RECORD_KV)
        keeper->revision = record->revision;
    struct change_walk walk;
    TRY(change_walk_init(&walk, record->body));
    for (;;) {
        const struct change_head *change;
        size_t offset;
        TRY(change_walk_next(&walk, &change, &offset));
        if (!change)
            return rows_add(keeper, record, versions);
        TRY(version_add(keeper, change, record->body_loc + offset));
        (*versions)++;
    }
}

static enum status checkpoint_commit(struct keeper *keeper)
{
    struct backend *backend = keeper->backend;
    TRY(backend_meta_put(backend, BACKEND_INDEX, (int64_t)keeper->index));
    TRY(backend_meta_put(backend, BACKEND_REVISION, keeper->revision));
    TRY(backend_meta_put(backend, BACKEND_COMPACT_REVISION, keeper->compact_revision));
    TRY(backend_meta_put(backend, BACKEND_TRIMMED, keeper->trimmed));
    TRY(backend_meta_put(backend, BACKEND_DB_BYTES, keeper->db_bytes));
    TRY(backend_meta_put(backend, BACKEND_DB_BYTES_IN_USE, keeper->db_bytes_in_use));
    TRY(segments_write(&keeper->segments, keeper->log, keeper->index, keeper->copy));
    return backend_commit(backend);
}

/* One transaction's worth of records. */
static enum status take_over_some(struct keeper *keeper, uint64_t last_index)
{
    struct log_reader reader;
    log_reader_init(&reader, keeper->log, keeper->index + 1);
    for (unsigned versions = 0; versions < CHECKPOINT_VERSIONS_MAX;) {
        struct log_record record;
        enum status status = log_reader_next(&reader, last_index, &record);
        if (status == ST_END)
            break;
        TRY(status);
        TRY(record_add(keeper, &record, &versions));
    }
    return checkpoint_commit(keeper);
}

/* -- Letting go of what compaction has replaced -- */

struct replaced {
    struct backend_version_id prev;
    struct backend_version_id self; /* revision 0: stays, it is no tombstone */
};

struct trim_scan {
    struct buf *replaced;
    int64_t end; /* revision */
    int64_t reached;
};

static enum status note_replaced(void *ctx, const struct backend_version *version)
{
    struct trim_scan *scan = ctx;
    if (version->id.revision >= scan->end) {
        scan->reached = scan->end;
        return ST_END;
    }
    /* Only whole revisions, so that the next round can begin at one. */
    bool full = scan->replaced->len >= TRIM_VERSIONS_MAX * sizeof(struct replaced);
    if (full && version->id.revision != scan->reached - 1)
        return ST_END;
    scan->reached = version->id.revision + 1;
    struct replaced replaced = {.prev = version->prev};
    if (version->create_revision == 0)
        replaced.self = version->id;
    return buf_append(scan->replaced, slice_of(&replaced, sizeof(replaced)));
}

static enum status version_drop(struct keeper *keeper, struct backend_version_id id)
{
    if (id.revision == 0)
        return ST_OK;
    struct backend_version version;
    enum status status = backend_version_get(keeper->backend, id, &version);
    if (status == ST_NOT_FOUND)
        return ST_OK; /* dropped as a tombstone before */
    TRY(status);
    keeper->db_bytes_in_use -= apply_db_bytes(version.field_bytes);
    segments_drop_live(&keeper->segments, version.loc, version.field_bytes);
    return backend_version_delete(keeper->backend, id);
}

static enum status trim_some(struct keeper *keeper, int64_t end)
{
    buf_reset(&keeper->scratch, SIZE_MAX);
    struct trim_scan scan = {.replaced = &keeper->scratch, .end = end, .reached = keeper->trimmed};
    TRY(backend_versions_scan(keeper->backend, (struct backend_version_id){keeper->trimmed, 0},
                              note_replaced, &scan));
    const struct replaced *replaced = (const void *)keeper->scratch.ptr;
    size_t count = keeper->scratch.len / sizeof(*replaced);
    for (size_t i = 0; i < count; i++) {
        TRY(version_drop(keeper, replaced[i].prev));
        TRY(version_drop(keeper, replaced[i].self));
    }
    keeper->trimmed = count ? scan.reached : end;
    return checkpoint_commit(keeper);
}

/* What the changes of that revision have replaced goes, they themselves stay. */
static enum status release(struct keeper *keeper, int64_t revision)
{
    buf_reset(&keeper->scratch, SIZE_MAX);
    struct trim_scan scan = {.replaced = &keeper->scratch, .end = revision + 1};
    TRY(backend_versions_scan(keeper->backend, (struct backend_version_id){revision, 0},
                              note_replaced, &scan));
    const struct replaced *replaced = (const void *)keeper->scratch.ptr;
    size_t count = keeper->scratch.len / sizeof(*replaced);
    for (size_t i = 0; i < count; i++)
        TRY(version_drop(keeper, replaced[i].prev));
    TRY(checkpoint_commit(keeper));
    keeper->released = revision;
    return ST_OK;
}

uint64_t keeper_checkpoint_lag_bytes(struct keeper *keeper)
{
    return segments_bytes_after(&keeper->segments, keeper->log);
}

/* One transaction after the other, until the checkpoint has what the view has. */
static enum status checkpoint_run(struct keeper *keeper, const struct store_view *view)
{
    keeper->db_bytes = view->db_bytes;
    while (keeper->index < view->log_index) {
        TRY(backend_begin(keeper->backend));
        TRY(take_over_some(keeper, view->log_index));
    }
    /* The index is trimmed first: as long as it knows a version, the log must keep it. */
    while (keeper->trimmed < view->trimmed) {
        TRY(backend_begin(keeper->backend));
        TRY(trim_some(keeper, view->trimmed));
    }
    if (keeper->released < view->released) {
        TRY(backend_begin(keeper->backend));
        TRY(release(keeper, view->released));
    }
    if (keeper->db_bytes == backend_meta_get(keeper->backend, BACKEND_DB_BYTES, 0))
        return ST_OK;
    TRY(backend_begin(keeper->backend));
    return checkpoint_commit(keeper);
}

enum status keeper_checkpoint(struct keeper *keeper)
{
    TRY(keeper->broken);
    const struct store_view *view = keeper_hold_view(keeper);
    enum status status = checkpoint_run(keeper, view);
    keeper_let_go(keeper);
    if (status != ST_OK)
        give_up(keeper);
    buf_reset(&keeper->scratch, 1 << 16);
    return status;
}

/* -- Cleaning -- */

static enum status copy_most_dead(struct keeper *keeper, const struct segments_choice *choice,
                                  struct relocation **ret_relocation)
{
    *ret_relocation = NULL;
    TRY(keeper->broken);
    uint64_t segment = segments_most_dead(&keeper->segments, keeper->log, choice);
    if (segment == 0)
        return ST_OK;
    enum status status = cleaner_copy(keeper->log, keeper->backend, segment,
                                      segments_live(&keeper->segments, segment), ret_relocation);
    if (status == ST_AGAIN)
        return ST_OK; /* the writer has only just left it */
    if (status == ST_DAMAGED)
        segments_set_damaged(&keeper->segments, segment);
    TRY(status);
    keeper->copy = (*ret_relocation)->new_segment;
    return ST_OK;
}

enum status keeper_clean_begin(struct keeper *keeper, struct relocation **ret_relocation)
{
    return copy_most_dead(keeper,
                          &(struct segments_choice){
                              .index_max = keeper->index,
                              .id_end = UINT64_MAX,
                              .part_max = CLEAN_PART_MAX,
                          },
                          ret_relocation);
}

uint64_t keeper_defragment_end(struct keeper *keeper)
{
    segments_forgive(&keeper->segments);
    return segments_id_end(keeper->log);
}

enum status keeper_defragment_next(struct keeper *keeper, uint64_t id_end,
                                   struct relocation **ret_relocation)
{
    return copy_most_dead(keeper,
                          &(struct segments_choice){
                              .index_max = keeper->index,
                              .id_end = id_end,
                              .part_max = DEFRAGMENT_PART_MAX,
                              .heals = true,
                          },
                          ret_relocation);
}

enum status keeper_clean_end(struct keeper *keeper, struct relocation *relocation)
{
    TRY(keeper->broken);
    keeper->copy = 0;
    enum status status = backend_begin(keeper->backend);
    if (status == ST_OK)
        status = cleaner_record(keeper->log, keeper->backend, &keeper->segments, relocation);
    if (status == ST_OK)
        status = checkpoint_commit(keeper);
    if (status != ST_OK) {
        give_up(keeper);
        keeper->copy = relocation->new_segment;
        return status;
    }
    relocation_free(relocation);
    return ST_OK;
}

/* -- Snapshots -- */

static enum status log_rows_scan(const struct keeper *keeper, uint64_t last_index, row_fn row_seen,
                                 void *ctx)
{
    struct log_reader reader;
    log_reader_init(&reader, keeper->log, keeper->index + 1);
    struct log_record record;
    enum status status;
    while ((status = log_reader_next(&reader, last_index, &record)) == ST_OK) {
        if (record.type == LOG_RECORD_COMPACT)
            continue;
        struct row_walk walk;
        TRY(row_walk_init(&walk, record.body));
        struct row row;
        while ((status = row_walk_next(&walk, &row)) == ST_OK)
            TRY(row_seen(ctx, &row));
        if (status != ST_END)
            return status;
    }
    return status == ST_END ? ST_OK : status;
}

enum status keeper_base_take(struct keeper *keeper, row_fn row_seen, void *ctx,
                             struct keeper_base *ret_base)
{
    TRY(keeper->broken);
    const struct store_view *view = keeper_hold_view(keeper);
    enum status status = backend_rows_scan(keeper->backend, row_seen, ctx);
    if (status == ST_OK)
        status = log_rows_scan(keeper, view->log_index, row_seen, ctx);
    if (status == ST_OK)
        *ret_base = (struct keeper_base){
            .hold = log_hold_new(keeper->log, view->log_index),
            .revision = view->revision,
            .log_index = view->log_index,
        };
    keeper_let_go(keeper);
    return status;
}

/* -- Checking -- */

enum status keeper_check_step(struct keeper *keeper, struct store_check *check, size_t bytes)
{
    const struct store_view *view = keeper_hold_view(keeper);
    enum status status = store_check_step(check, view, keeper->log, bytes);
    keeper_let_go(keeper);
    return status;
}

/* -- Hashes -- */

int64_t keeper_revision(struct keeper *keeper)
{
    int64_t revision = keeper_hold_view(keeper)->revision;
    keeper_let_go(keeper);
    return revision;
}

static enum status hash_view(const struct keeper *keeper, const struct store_view *view, int64_t at,
                             struct keeper_hash *hash)
{
    if (at > 0 && at < view->compact_revision)
        return ST_COMPACTED;
    if (at > view->revision)
        return ST_FUTURE_REV;
    return store_hash_at(view, keeper->log, hash->revision, &hash->hash);
}

enum status keeper_hash_at(struct keeper *keeper, int64_t at, struct keeper_hash *ret_hash)
{
    const struct store_view *view = keeper_hold_view(keeper);
    *ret_hash = (struct keeper_hash){
        .revision = at ? at : view->revision,
        .compact_revision = view->compact_revision,
        .newest = view->revision,
    };
    enum status status = hash_view(keeper, view, at, ret_hash);
    keeper_let_go(keeper);
    return status;
}

enum status keeper_hash_compaction(struct keeper *keeper, int64_t before, int64_t revision,
                                   uint32_t *ret_hash)
{
    const struct store_view *view = keeper_hold_view(keeper);
    enum status status = store_hash_compaction(view, keeper->log, before, revision, ret_hash);
    keeper_let_go(keeper);
    return status;
}
