#include "store/keeper.h"

#include "base/xalloc.h"
#include "store/log/mark.h"
#include "store/log/prepare.h"
#include "store/record/change.h"
#include "store/upkeep/cleaner.h"
#include "store/upkeep/hash.h"
#include "store/upkeep/segments.h"
#include "store/upkeep/yield.h"

#include <stdlib.h>

enum {
    /*
     * The estimated bytes of checkpoint pages that one transaction changes: they are in memory
     * until it is committed, and then written at once.
     */
    TRANSACTION_BYTES_MAX = 1 << 20,
    PAGE_BYTES = 4096,
    /* Part of a new segment that is made at once: 1 to 3 ms to zero and sync. */
    PREPARE_BYTES = 1 << 20,
    /*
     * Versions read to find those that they have replaced, which are then dropped in order, so that
     * each page is written a few times and not once for each version in it.
     */
    TRIM_VERSIONS_MAX = 1 << 17,
};

/*
 * The largest part of a segment that may be live for copying to be worthwhile; a copy is never
 * copied again at once.
 */
static const double CLEAN_PART_MAX = 0.5, DEFRAGMENT_PART_MAX = 0.95;

struct keeper {
    struct store *store;
    struct log *log;
    struct backend *backend;
    struct epoch_slot *slot;
    uint64_t held; /* the epoch that is pinned */
    /* The numbers of the checkpoint as of `index`, committed together. */
    uint64_t index;
    log_loc end; /* end of the record with that index; 0: not known */
    int64_t revision;
    int64_t compact_revision;
    int64_t trimmed;
    /* not in the checkpoint: after a restart a full disk causes another release */
    int64_t released;
    int64_t db_bytes;
    int64_t db_bytes_in_use;
    struct segments segments;
    /*
     * The result of reading the checkpoint again. Unless it is ST_OK, none of the above can be
     * trusted, and nothing is written any more. The log has everything.
     */
    enum status broken;
    /*
     * The record that is being added, which may take many transactions. Its numbers count when it
     * is complete: a start drops the versions of an incomplete one and replays it. `inside`: there
     * is one.
     */
    struct keeper_taking {
        bool inside;
        struct log_record record;
        struct change_walk walk; /* position of the next change */
        int64_t db_bytes;
        uint64_t live_bytes;
    } taking;
    /* What the current checkpoint is to reach: numbers of a view. */
    struct keeper_goal {
        uint64_t log_index;
        int64_t trimmed, released, db_bytes;
    } goal;
    /*
     * Versions to drop, in order, and how many are dropped. `after` is where the next search
     * continues when all are dropped. Victims of a release are not those of a trimming: a new goal
     * may request one in the middle of the other.
     */
    struct keeper_victims {
        struct buf ids; /* array of struct backend_version_id */
        size_t dropped;
        bool found;
        bool of_release;
        struct backend_version_id after;
    } victims;
    struct backend_version_id trim_from; /* its revision is `trimmed` */
    size_t transaction_bytes;
    unsigned trim_versions;
    /* the new segment of the current cleaning, while the checkpoint lists the old one */
    uint64_t copy;
};

/* The next search starts from the beginning. */
static void victims_forget(struct keeper_victims *victims)
{
    victims->found = false;
    victims->after = (struct backend_version_id){0};
}

/* Loads the committed numbers: at the start, and after an aborted transaction. */
static void keeper_reload(struct keeper *keeper)
{
    struct backend *backend = keeper->backend;
    keeper->index = (uint64_t)backend_meta_get(backend, BACKEND_INDEX, 0);
    keeper->end = 0;
    keeper->revision = backend_meta_get(backend, BACKEND_REVISION, 1);
    keeper->compact_revision = backend_meta_get(backend, BACKEND_COMPACT_REVISION, -1);
    keeper->trimmed = backend_meta_get(backend, BACKEND_TRIMMED, 0);
    keeper->db_bytes = backend_meta_get(backend, BACKEND_DB_BYTES, 0);
    keeper->db_bytes_in_use = backend_meta_get(backend, BACKEND_DB_BYTES_IN_USE, 0);
    keeper->trim_from = (struct backend_version_id){keeper->trimmed, 0};
    keeper->taking.inside = false;
    victims_forget(&keeper->victims);
    segments_fini(&keeper->segments);
    keeper->broken = segments_init(&keeper->segments, backend);
}

static void abort_transaction(struct keeper *keeper)
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
    keeper_limit_steps(keeper, TRANSACTION_BYTES_MAX, TRIM_VERSIONS_MAX);
    keeper_reload(keeper);
    return keeper;
}

void keeper_limit_steps(struct keeper *keeper, size_t transaction_bytes, unsigned trim_versions)
{
    keeper->transaction_bytes = transaction_bytes;
    keeper->trim_versions = trim_versions;
}

void keeper_free(struct keeper *keeper)
{
    if (!keeper)
        return;
    segments_fini(&keeper->segments);
    buf_fini(&keeper->victims.ids);
    free(keeper);
}

void keeper_join(struct keeper *keeper)
{
    keeper->slot = epoch_slot_add(store_epoch(keeper->store));
}

static const struct store_view *keeper_pin_view(struct keeper *keeper)
{
    keeper->held = epoch_pin(keeper->slot);
    return store_view(keeper->store);
}

static void keeper_unpin_view(struct keeper *keeper)
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

void keeper_check(const struct keeper *keeper)
{
    if (keeper_is_broken(keeper))
        return;
    segments_check(&keeper->segments);
    assert(keeper->index <= log_durable_index(keeper->log));
    assert(keeper->trimmed <= 0 || keeper->trimmed <= keeper->compact_revision);
    /* Until the last record of a mirror's state is added, its revision is not reached. */
    assert(keeper_checkpoint_lags(keeper) || keeper->compact_revision <= keeper->revision);
    assert(keeper->db_bytes_in_use >= 0);
    const struct keeper_victims *victims = &keeper->victims;
    size_t count = victims->ids.len / sizeof(struct backend_version_id);
    assert(!victims->found || victims->dropped <= count);
}

enum status keeper_prepare(struct keeper *keeper)
{
    return log_prepare(keeper->log);
}

enum status keeper_prepare_step(struct keeper *keeper)
{
    bool done;
    return log_prepare_step(keeper->log, PREPARE_BYTES, &done);
}

bool keeper_is_preparing(const struct keeper *keeper)
{
    return log_is_preparing(keeper->log);
}

bool keeper_prepare_lags(const struct keeper *keeper)
{
    return log_prepare_lags(keeper->log);
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

/* -- Adding records of the log -- */

static enum status version_add(struct keeper *keeper, const struct change_head *change, log_loc loc,
                               size_t *bytes)
{
    struct backend_version version = backend_version_of(change, loc);
    keeper->taking.db_bytes += applier_db_bytes(change->field_bytes);
    keeper->taking.live_bytes += segments_live_bytes(change->field_bytes);
    *bytes += backend_page_bytes(version.key.len, 1);
    return backend_version_put(keeper->backend, &version);
}

/* From here on the log's own copies of the rows are dead. */
static enum status rows_add(struct keeper *keeper, const struct log_record *record, size_t *bytes)
{
    struct row_walk walk;
    TRY(row_walk_init(&walk, record->body));
    struct row row;
    enum status status;
    while ((status = row_walk_next(&walk, &row)) == ST_OK) {
        TRY(backend_row_put(keeper->backend, &row));
        *bytes += PAGE_BYTES;
    }
    return status == ST_END ? ST_OK : status;
}

static void passed(struct keeper *keeper, const struct log_record *record)
{
    keeper->index = record->index;
    keeper->end = record->body_loc + record->body.len;
}

/* All its changes are added: now its numbers count. */
static enum status record_finish(struct keeper *keeper, size_t *bytes)
{
    struct keeper_taking *taking = &keeper->taking;
    const struct log_record *record = &taking->record;
    TRY(rows_add(keeper, record, bytes));
    passed(keeper, record);
    if (record->type == LOG_RECORD_KV)
        keeper->revision = record->revision;
    keeper->db_bytes_in_use += taking->db_bytes;
    if (taking->live_bytes)
        segments_add_live(&keeper->segments, record->body_loc, taking->live_bytes);
    taking->inside = false;
    return ST_OK;
}

/* Adds changes of the current record until it is complete or the transaction is large enough. */
static enum status record_continue(struct keeper *keeper, size_t *bytes)
{
    struct keeper_taking *taking = &keeper->taking;
    while (*bytes < keeper->transaction_bytes) {
        const struct change_head *change;
        size_t offset;
        TRY(change_walk_next(&taking->walk, &change, &offset));
        if (!change)
            return record_finish(keeper, bytes);
        size_t before = *bytes;
        TRY(version_add(keeper, change, taking->record.body_loc + offset, bytes));
        yield_core(before, *bytes);
    }
    return ST_OK;
}

static enum status record_begin(struct keeper *keeper, const struct log_record *record)
{
    if (record->type == LOG_RECORD_COMPACT) {
        struct change_compaction compaction;
        TRY(change_compaction_read(record->body, &compaction));
        passed(keeper, record);
        keeper->compact_revision = compaction.compact_revision;
        if (keeper->revision < compaction.reached)
            keeper->revision = compaction.reached;
        return ST_OK;
    }
    struct keeper_taking *taking = &keeper->taking;
    *taking = (struct keeper_taking){.record = *record};
    TRY(change_walk_init(&taking->walk, record->body));
    taking->inside = true;
    return ST_OK;
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
    TRY(backend_meta_put(backend, BACKEND_MOVED_FROM, (int64_t)keeper->segments.moved_from));
    TRY(backend_meta_put(backend, BACKEND_MOVED_TO, (int64_t)keeper->segments.moved_to));
    TRY(segments_write(&keeper->segments, keeper->log, keeper->index, keeper->copy));
    return backend_commit(backend);
}

/* Adds records for one transaction, or part of one record. */
static enum status add_records(struct keeper *keeper, uint64_t last_index)
{
    size_t bytes = 0;
    if (keeper->taking.inside)
        TRY(record_continue(keeper, &bytes));
    struct log_reader reader;
    log_reader_init(&reader, keeper->log, keeper->index + 1);
    while (bytes < keeper->transaction_bytes) {
        struct log_record record;
        enum status status = log_reader_next(&reader, last_index, &record);
        if (status == ST_END)
            break;
        TRY(status);
        TRY(record_begin(keeper, &record));
        if (keeper->taking.inside)
            TRY(record_continue(keeper, &bytes));
    }
    return checkpoint_commit(keeper);
}

/* -- Dropping versions that compaction has replaced -- */

/* Visits versions in order, and collects those that they have replaced. */
struct trim_scan {
    struct buf *ids;
    int64_t end; /* a revision */
    bool tombstones;
    unsigned versions_left;
    struct backend_version_id reached; /* its revision is `end` if all were visited */
};

static enum status note_victim(struct buf *ids, struct backend_version_id id)
{
    return id.revision ? buf_append(ids, slice_of(&id, sizeof(id))) : ST_OK;
}

static enum status note_replaced(void *ctx, const struct backend_version *version)
{
    struct trim_scan *scan = ctx;
    if (version->id.revision >= scan->end)
        return ST_END;
    if (scan->versions_left-- == 0) {
        scan->reached = version->id;
        return ST_END;
    }
    TRY(note_victim(scan->ids, version->prev));
    bool tombstone = version->create_revision == 0;
    return scan->tombstones && tombstone ? note_victim(scan->ids, version->id) : ST_OK;
}

static int compare_ids(const void *a, const void *b)
{
    const struct backend_version_id *x = a, *y = b;
    if (x->revision != y->revision)
        return x->revision < y->revision ? -1 : 1;
    return (x->sub > y->sub) - (x->sub < y->sub);
}

/*
 * Finds what the versions from `from` on have replaced, up to revision `end`. The result is dropped
 * in the order of ids, over as many transactions as needed. A stop in between is harmless: when a
 * version is gone, those it had replaced are gone too, so searching again from the same place finds
 * the rest.
 */
static enum status victims_find(struct keeper *keeper, struct backend_version_id from, int64_t end,
                                bool tombstones)
{
    struct keeper_victims *victims = &keeper->victims;
    buf_reset(&victims->ids, SIZE_MAX);
    struct trim_scan scan = {
        .ids = &victims->ids,
        .end = end,
        .tombstones = tombstones,
        .versions_left = keeper->trim_versions,
        .reached = {.revision = end},
    };
    TRY(backend_versions_scan(keeper->backend, from, note_replaced, &scan));
    size_t count = victims->ids.len / sizeof(struct backend_version_id);
    if (count)
        qsort(victims->ids.ptr, count, sizeof(struct backend_version_id), compare_ids);
    victims->dropped = 0;
    victims->after = scan.reached;
    victims->found = true;
    victims->of_release = !tombstones;
    return ST_OK;
}

/*
 * Adds the estimated bytes of the version's page to `bytes`, unless the previous version is in it
 * too.
 */
static enum status version_drop(struct keeper *keeper, struct backend_version_id id,
                                int64_t distance, size_t *bytes)
{
    struct backend_version version;
    enum status status = backend_version_get(keeper->backend, id, &version);
    if (status == ST_NOT_FOUND)
        return ST_OK; /* dropped before */
    TRY(status);
    keeper->db_bytes_in_use -= applier_db_bytes(version.field_bytes);
    segments_drop_live(&keeper->segments, version.loc, version.field_bytes);
    *bytes += backend_page_bytes(version.key.len, distance);
    return backend_version_delete(keeper->backend, id);
}

/* Drops versions for one transaction. *ret_all: all of them are dropped. */
static enum status victims_drop(struct keeper *keeper, bool *ret_all)
{
    struct keeper_victims *victims = &keeper->victims;
    const struct backend_version_id *ids = (const void *)victims->ids.ptr;
    size_t count = victims->ids.len / sizeof(*ids);
    int64_t last = -PAGE_BYTES;
    for (size_t bytes = 0; victims->dropped < count && bytes < keeper->transaction_bytes;) {
        struct backend_version_id id = ids[victims->dropped++];
        size_t before = bytes;
        TRY(version_drop(keeper, id, id.revision - last + 1, &bytes));
        yield_core(before, bytes);
        last = id.revision;
    }
    *ret_all = victims->dropped == count;
    return ST_OK;
}

static enum status trim_some(struct keeper *keeper)
{
    if (!keeper->victims.found || keeper->victims.of_release)
        TRY(victims_find(keeper, keeper->trim_from, keeper->goal.trimmed, true));
    bool all;
    TRY(victims_drop(keeper, &all));
    if (all) {
        keeper->trim_from = keeper->victims.after;
        keeper->trimmed = keeper->trim_from.revision;
        keeper->victims.found = false;
    }
    return checkpoint_commit(keeper);
}

/* Drops what the changes of that revision have replaced; the changes themselves stay. */
static enum status release_some(struct keeper *keeper, int64_t revision)
{
    struct keeper_victims *victims = &keeper->victims;
    struct backend_version_id from = {revision, 0};
    if (!victims->found && victims->of_release && victims->after.revision == revision)
        from = victims->after; /* a revision with very many changes */
    if (!victims->found || !victims->of_release)
        TRY(victims_find(keeper, from, revision + 1, false));
    bool all;
    TRY(victims_drop(keeper, &all));
    victims->found = !all;
    TRY(checkpoint_commit(keeper));
    if (all && victims->after.revision > revision)
        keeper->released = revision;
    return ST_OK;
}

uint64_t keeper_checkpoint_lag_bytes(struct keeper *keeper)
{
    return segments_bytes_after(&keeper->segments, keeper->log, keeper->index, keeper->end,
                                keeper->copy);
}

void keeper_checkpoint_begin(struct keeper *keeper)
{
    const struct store_view *view = keeper_pin_view(keeper);
    keeper->goal = (struct keeper_goal){
        .log_index = view->log_index,
        .trimmed = view->trimmed,
        .released = view->released,
        .db_bytes = view->db_bytes,
    };
    keeper_unpin_view(keeper);
}

/*
 * No view is pinned: the segments read here are cleaned only later, by this thread. The index is
 * trimmed first, because the log must keep a version while the index has it.
 */
static enum status checkpoint_step(struct keeper *keeper, bool *ret_done)
{
    const struct keeper_goal *goal = &keeper->goal;
    bool over = keeper->index >= goal->log_index, trimmed = keeper->trimmed >= goal->trimmed;
    bool released = keeper->released >= goal->released;
    bool sized = goal->db_bytes == backend_meta_get(keeper->backend, BACKEND_DB_BYTES, 0);
    *ret_done = over && trimmed && released && sized;
    if (*ret_done)
        return ST_OK;
    keeper->db_bytes = goal->db_bytes;
    TRY(backend_begin(keeper->backend));
    if (!over)
        return add_records(keeper, goal->log_index);
    if (!trimmed)
        return trim_some(keeper);
    return released ? checkpoint_commit(keeper) : release_some(keeper, goal->released);
}

enum status keeper_checkpoint_step(struct keeper *keeper, bool *ret_done)
{
    TRY(keeper->broken);
    bool done = false;
    enum status status = checkpoint_step(keeper, &done);
    if (status != ST_OK) {
        abort_transaction(keeper);
        return status;
    }
    if (done)
        buf_reset(&keeper->victims.ids, 1 << 16);
    *ret_done = done;
    return ST_OK;
}

bool keeper_checkpoint_lags(const struct keeper *keeper)
{
    return keeper->index < keeper->goal.log_index;
}

enum status keeper_checkpoint(struct keeper *keeper)
{
    keeper_checkpoint_begin(keeper);
    bool done = false;
    while (!done)
        TRY(keeper_checkpoint_step(keeper, &done));
    return ST_OK;
}

/* -- Cleaning -- */

static enum status copy_most_dead(struct keeper *keeper, const struct segments_choice *choice,
                                  struct relocation **ret_relocation)
{
    *ret_relocation = NULL;
    TRY(keeper->broken);
    struct segments *segments = &keeper->segments;
    if (segments->moved_from) { /* interrupted by a stop: the start has updated the index */
        *ret_relocation = relocation_new(segments->moved_from, segments->moved_to);
        return ST_OK;
    }
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
    struct relocation *relocation = *ret_relocation;
    keeper->copy = relocation->new_segment;
    relocation->moves_max = size_min(RELOCATION_MOVES_MAX, keeper->trim_versions);
    enum status found = cleaner_find_moves(relocation);
    (void)found; /* the next call returns the same */
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
    segments_clear_damaged(&keeper->segments);
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

/* The first transaction lists the new segment, the last one clears the note about the old one. */
static enum status record_some(struct keeper *keeper, struct relocation *relocation, bool *ret_all)
{
    *ret_all = true;
    if (!keeper->segments.moved_from)
        TRY(segments_replace(&keeper->segments, relocation->old_segment, relocation->new_segment));
    if (relocation->new_segment)
        TRY(cleaner_record(keeper->log, keeper->backend, relocation, keeper->transaction_bytes,
                           ret_all));
    if (*ret_all)
        segments_settle(&keeper->segments);
    return checkpoint_commit(keeper);
}

static enum status record_step(struct keeper *keeper, struct relocation *relocation, bool *ret_all)
{
    keeper->copy = 0;
    enum status status = backend_begin(keeper->backend);
    if (status == ST_OK)
        status = record_some(keeper, relocation, ret_all);
    if (status == ST_OK)
        return ST_OK;
    abort_transaction(keeper);
    relocation->recording = false;
    keeper->copy = keeper->segments.moved_from ? 0 : relocation->new_segment;
    return status;
}

enum status keeper_clean_step(struct keeper *keeper, struct relocation *relocation, bool *ret_done)
{
    TRY(keeper->broken);
    bool all = false;
    TRY(cleaner_find_moves(relocation));
    if (relocation->count == 0)
        TRY(record_step(keeper, relocation, &all));
    if (all)
        relocation_free(relocation);
    *ret_done = all;
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
    const struct store_view *view = keeper_pin_view(keeper);
    enum status status = backend_rows_scan(keeper->backend, row_seen, ctx);
    if (status == ST_OK)
        status = log_rows_scan(keeper, view->log_index, row_seen, ctx);
    if (status == ST_OK)
        *ret_base = (struct keeper_base){
            .hold = log_hold_new(keeper->log, view->log_index),
            .revision = view->revision,
            .log_index = view->log_index,
        };
    keeper_unpin_view(keeper);
    return status;
}

/* -- Checking -- */

enum status keeper_check_step(struct keeper *keeper, struct store_check *check, size_t bytes)
{
    const struct store_view *view = keeper_pin_view(keeper);
    enum status status = store_check_step(check, view, keeper->log, bytes);
    keeper_unpin_view(keeper);
    return status;
}

/* -- Hashes -- */

int64_t keeper_revision(struct keeper *keeper)
{
    int64_t revision = keeper_pin_view(keeper)->revision;
    keeper_unpin_view(keeper);
    return revision;
}

enum status keeper_hash_begin(struct keeper *keeper, int64_t at, struct store_hash *hash,
                              struct keeper_hash *ret_hash)
{
    const struct store_view *view = keeper_pin_view(keeper);
    *ret_hash = (struct keeper_hash){
        .revision = at ? at : view->revision,
        .compact_revision = view->compact_revision,
        .newest = view->revision,
    };
    enum status status = ST_OK;
    if (at > 0 && at < view->compact_revision)
        status = ST_COMPACTED;
    else if (at > view->revision)
        status = ST_FUTURE_REV;
    else
        store_hash_begin(hash, view, keeper->log, ret_hash->revision);
    keeper_unpin_view(keeper);
    return status;
}

void keeper_hash_begin_compaction(struct keeper *keeper, int64_t before, int64_t revision,
                                  struct store_hash *hash)
{
    store_hash_begin_compaction(hash, keeper_pin_view(keeper), keeper->log, before, revision);
    keeper_unpin_view(keeper);
}

enum status keeper_hash_step(struct keeper *keeper, struct store_hash *hash, size_t bytes,
                             uint32_t *ret_hash)
{
    const struct store_view *view = keeper_pin_view(keeper);
    enum status status = store_hash_step(hash, view, bytes, ret_hash);
    keeper_unpin_view(keeper);
    return status;
}
