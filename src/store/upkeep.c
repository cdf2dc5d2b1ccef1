#include "store/upkeep.h"

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
    DROP_VERSIONS_MAX = 1 << 17,
};

/*
 * The largest part of a segment that may be live for copying to be worthwhile; a copy is never
 * copied again at once.
 */
static const double CLEAN_PART_MAX = 0.5, DEFRAGMENT_PART_MAX = 0.95;

struct upkeep {
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
    int64_t dropped_before; /* the revision up to which compacted versions are dropped */
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
    struct upkeep_taking {
        bool inside;
        struct log_record record;
        struct change_walk walk; /* position of the next change */
        int64_t db_bytes;
        uint64_t live_bytes;
    } taking;
    /* What the current checkpoint is to reach: numbers of a view. */
    struct upkeep_goal {
        uint64_t log_index;
        int64_t trimmed, released, db_bytes;
    } goal;
    /*
     * Versions to drop, in order, and how many are dropped. `after` is where the next search
     * continues when all are dropped. Victims of a release are not those of a compaction: a new
     * goal may request one in the middle of the other.
     */
    struct upkeep_victims {
        struct buf ids; /* array of struct backend_version_id */
        size_t dropped;
        bool found;
        bool of_release;
        struct backend_version_id after;
    } victims;
    struct backend_version_id drop_from; /* its revision is `dropped_before` */
    size_t transaction_bytes;
    unsigned drop_versions;
    /* the new segment of the current cleaning, while the checkpoint lists the old one */
    uint64_t copy;
};

/* Loads the committed numbers: at the start, and after an aborted transaction. */
static void upkeep_reload(struct upkeep *upkeep)
{
    struct backend *backend = upkeep->backend;
    upkeep->index = (uint64_t)backend_meta_get(backend, BACKEND_INDEX, 0);
    upkeep->end = 0;
    upkeep->revision = backend_meta_get(backend, BACKEND_REVISION, 1);
    upkeep->compact_revision = backend_meta_get(backend, BACKEND_COMPACT_REVISION, -1);
    upkeep->dropped_before = backend_meta_get(backend, BACKEND_TRIMMED, 0);
    upkeep->db_bytes = backend_meta_get(backend, BACKEND_DB_BYTES, 0);
    upkeep->db_bytes_in_use = backend_meta_get(backend, BACKEND_DB_BYTES_IN_USE, 0);
    upkeep->drop_from = (struct backend_version_id){upkeep->dropped_before, 0};
    upkeep->taking.inside = false;
    /* The next search for victims starts from the beginning. */
    upkeep->victims.found = false;
    upkeep->victims.after = (struct backend_version_id){0};
    segments_fini(&upkeep->segments);
    upkeep->broken = segments_init(&upkeep->segments, backend);
}

static void abort_transaction(struct upkeep *upkeep)
{
    backend_abort(upkeep->backend);
    upkeep_reload(upkeep);
}

struct upkeep *upkeep_new(struct store *store)
{
    struct upkeep *upkeep = xcalloc(1, sizeof(*upkeep));
    upkeep->store = store;
    upkeep->log = store_log_of_keeper(store);
    upkeep->backend = store_backend(store);
    upkeep_limit_steps(upkeep, TRANSACTION_BYTES_MAX, DROP_VERSIONS_MAX);
    upkeep_reload(upkeep);
    return upkeep;
}

void upkeep_limit_steps(struct upkeep *upkeep, size_t transaction_bytes, unsigned drop_versions)
{
    upkeep->transaction_bytes = transaction_bytes;
    upkeep->drop_versions = drop_versions;
}

void upkeep_free(struct upkeep *upkeep)
{
    if (!upkeep)
        return;
    segments_fini(&upkeep->segments);
    buf_fini(&upkeep->victims.ids);
    free(upkeep);
}

void upkeep_join(struct upkeep *upkeep)
{
    upkeep->slot = epoch_slot_add(store_epoch(upkeep->store));
}

static const struct store_view *upkeep_pin_view(struct upkeep *upkeep)
{
    upkeep->held = epoch_pin(upkeep->slot);
    return store_view(upkeep->store);
}

static void upkeep_unpin_view(struct upkeep *upkeep)
{
    epoch_unpin(upkeep->slot, upkeep->held);
}

const char *upkeep_error_text(const struct upkeep *upkeep)
{
    return backend_error_text(upkeep->backend);
}

bool upkeep_is_broken(const struct upkeep *upkeep)
{
    return upkeep->broken != ST_OK;
}

void upkeep_check(const struct upkeep *upkeep)
{
    if (upkeep_is_broken(upkeep))
        return;
    segments_check(&upkeep->segments);
    assert(upkeep->index <= log_durable_index(upkeep->log));
    assert(upkeep->dropped_before <= 0 || upkeep->dropped_before <= upkeep->compact_revision);
    /* Until the last record of a mirror's state is added, its revision is not reached. */
    assert(upkeep_checkpoint_lags(upkeep) || upkeep->compact_revision <= upkeep->revision);
    assert(upkeep->db_bytes_in_use >= 0);
    const struct upkeep_victims *victims = &upkeep->victims;
    size_t count = victims->ids.len / sizeof(struct backend_version_id);
    assert(!victims->found || victims->dropped <= count);
}

enum status upkeep_prepare(struct upkeep *upkeep)
{
    return log_prepare(upkeep->log);
}

enum status upkeep_prepare_step(struct upkeep *upkeep)
{
    bool done;
    return log_prepare_step(upkeep->log, PREPARE_BYTES, &done);
}

bool upkeep_is_preparing(const struct upkeep *upkeep)
{
    return log_is_preparing(upkeep->log);
}

bool upkeep_prepare_lags(const struct upkeep *upkeep)
{
    return log_prepare_lags(upkeep->log);
}

enum status upkeep_mark(struct upkeep *upkeep)
{
    return log_mark(upkeep->log);
}

bool upkeep_is_marked(const struct upkeep *upkeep)
{
    return log_is_marked(upkeep->log);
}

bool upkeep_is_held_back(const struct upkeep *upkeep)
{
    return log_is_held_back(upkeep->log);
}

/* -- Adding records of the log -- */

static enum status version_add(struct upkeep *upkeep, const struct change_head *change, log_loc loc,
                               size_t *bytes)
{
    struct backend_version version = backend_version_of(change, loc);
    upkeep->taking.db_bytes += applier_db_bytes(change->field_bytes);
    upkeep->taking.live_bytes += segments_live_bytes(change->field_bytes);
    *bytes += backend_page_bytes(version.key.len, 1);
    return backend_version_put(upkeep->backend, &version);
}

/* From here on the log's own copies of the rows are dead. */
static enum status rows_add(struct upkeep *upkeep, const struct log_record *record, size_t *bytes)
{
    struct row_walk walk;
    TRY(row_walk_init(&walk, record->body));
    struct row row;
    enum status status;
    while ((status = row_walk_next(&walk, &row)) == ST_OK) {
        TRY(backend_row_put(upkeep->backend, &row));
        *bytes += PAGE_BYTES;
    }
    return status == ST_END ? ST_OK : status;
}

static void passed(struct upkeep *upkeep, const struct log_record *record)
{
    upkeep->index = record->index;
    upkeep->end = record->body_loc + record->body.len;
}

/* All its changes are added: now its numbers count. */
static enum status record_finish(struct upkeep *upkeep, size_t *bytes)
{
    struct upkeep_taking *taking = &upkeep->taking;
    const struct log_record *record = &taking->record;
    TRY(rows_add(upkeep, record, bytes));
    passed(upkeep, record);
    if (record->type == LOG_RECORD_KV)
        upkeep->revision = record->revision;
    upkeep->db_bytes_in_use += taking->db_bytes;
    if (taking->live_bytes)
        segments_add_live(&upkeep->segments, record->body_loc, taking->live_bytes);
    taking->inside = false;
    return ST_OK;
}

/* Adds changes of the current record until it is complete or the transaction is large enough. */
static enum status record_continue(struct upkeep *upkeep, size_t *bytes)
{
    struct upkeep_taking *taking = &upkeep->taking;
    while (*bytes < upkeep->transaction_bytes) {
        const struct change_head *change;
        size_t offset;
        TRY(change_walk_next(&taking->walk, &change, &offset));
        if (!change)
            return record_finish(upkeep, bytes);
        size_t before = *bytes;
        TRY(version_add(upkeep, change, taking->record.body_loc + offset, bytes));
        yield_core(before, *bytes);
    }
    return ST_OK;
}

static enum status record_begin(struct upkeep *upkeep, const struct log_record *record)
{
    if (record->type == LOG_RECORD_COMPACT) {
        struct change_compaction compaction;
        TRY(change_compaction_read(record->body, &compaction));
        passed(upkeep, record);
        upkeep->compact_revision = compaction.compact_revision;
        if (upkeep->revision < compaction.reached)
            upkeep->revision = compaction.reached;
        return ST_OK;
    }
    struct upkeep_taking *taking = &upkeep->taking;
    *taking = (struct upkeep_taking){.record = *record};
    TRY(change_walk_init(&taking->walk, record->body));
    taking->inside = true;
    return ST_OK;
}

static enum status checkpoint_commit(struct upkeep *upkeep)
{
    struct backend *backend = upkeep->backend;
    TRY(backend_meta_put(backend, BACKEND_INDEX, (int64_t)upkeep->index));
    TRY(backend_meta_put(backend, BACKEND_REVISION, upkeep->revision));
    TRY(backend_meta_put(backend, BACKEND_COMPACT_REVISION, upkeep->compact_revision));
    TRY(backend_meta_put(backend, BACKEND_TRIMMED, upkeep->dropped_before));
    TRY(backend_meta_put(backend, BACKEND_DB_BYTES, upkeep->db_bytes));
    TRY(backend_meta_put(backend, BACKEND_DB_BYTES_IN_USE, upkeep->db_bytes_in_use));
    TRY(backend_meta_put(backend, BACKEND_MOVED_FROM, (int64_t)upkeep->segments.moved_from));
    TRY(backend_meta_put(backend, BACKEND_MOVED_TO, (int64_t)upkeep->segments.moved_to));
    TRY(segments_write(&upkeep->segments, upkeep->log, upkeep->index, upkeep->copy));
    return backend_commit(backend);
}

/* Adds records for one transaction, or part of one record. */
static enum status add_records(struct upkeep *upkeep, uint64_t last_index)
{
    size_t bytes = 0;
    if (upkeep->taking.inside)
        TRY(record_continue(upkeep, &bytes));
    struct log_reader reader;
    log_reader_init(&reader, upkeep->log, upkeep->index + 1);
    while (bytes < upkeep->transaction_bytes) {
        struct log_record record;
        enum status status = log_reader_next(&reader, last_index, &record);
        if (status == ST_END)
            break;
        TRY(status);
        TRY(record_begin(upkeep, &record));
        if (upkeep->taking.inside)
            TRY(record_continue(upkeep, &bytes));
    }
    return checkpoint_commit(upkeep);
}

/* -- Dropping versions that compaction has replaced -- */

/* Visits versions in order, and collects those that they have replaced. */
struct drop_scan {
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
    struct drop_scan *scan = ctx;
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
static enum status victims_find(struct upkeep *upkeep, struct backend_version_id from, int64_t end,
                                bool tombstones)
{
    struct upkeep_victims *victims = &upkeep->victims;
    buf_reset(&victims->ids, SIZE_MAX);
    struct drop_scan scan = {
        .ids = &victims->ids,
        .end = end,
        .tombstones = tombstones,
        .versions_left = upkeep->drop_versions,
        .reached = {.revision = end},
    };
    TRY(backend_versions_scan(upkeep->backend, from, note_replaced, &scan));
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
static enum status version_drop(struct upkeep *upkeep, struct backend_version_id id,
                                int64_t distance, size_t *bytes)
{
    struct backend_version version;
    enum status status = backend_version_get(upkeep->backend, id, &version);
    if (status == ST_NOT_FOUND)
        return ST_OK; /* dropped before */
    TRY(status);
    upkeep->db_bytes_in_use -= applier_db_bytes(version.field_bytes);
    segments_drop_live(&upkeep->segments, version.loc, version.field_bytes);
    *bytes += backend_page_bytes(version.key.len, distance);
    return backend_version_delete(upkeep->backend, id);
}

/* Drops versions for one transaction. *ret_all: all of them are dropped. */
static enum status victims_drop(struct upkeep *upkeep, bool *ret_all)
{
    struct upkeep_victims *victims = &upkeep->victims;
    const struct backend_version_id *ids = (const void *)victims->ids.ptr;
    size_t count = victims->ids.len / sizeof(*ids);
    int64_t last = -PAGE_BYTES;
    for (size_t bytes = 0; victims->dropped < count && bytes < upkeep->transaction_bytes;) {
        struct backend_version_id id = ids[victims->dropped++];
        size_t before = bytes;
        TRY(version_drop(upkeep, id, id.revision - last + 1, &bytes));
        yield_core(before, bytes);
        last = id.revision;
    }
    *ret_all = victims->dropped == count;
    return ST_OK;
}

static enum status drop_some(struct upkeep *upkeep)
{
    if (!upkeep->victims.found || upkeep->victims.of_release)
        TRY(victims_find(upkeep, upkeep->drop_from, upkeep->goal.trimmed, true));
    bool all;
    TRY(victims_drop(upkeep, &all));
    if (all) {
        upkeep->drop_from = upkeep->victims.after;
        upkeep->dropped_before = upkeep->drop_from.revision;
        upkeep->victims.found = false;
    }
    return checkpoint_commit(upkeep);
}

/* Drops what the changes of that revision have replaced; the changes themselves stay. */
static enum status release_some(struct upkeep *upkeep, int64_t revision)
{
    struct upkeep_victims *victims = &upkeep->victims;
    struct backend_version_id from = {revision, 0};
    if (!victims->found && victims->of_release && victims->after.revision == revision)
        from = victims->after; /* a revision with very many changes */
    if (!victims->found || !victims->of_release)
        TRY(victims_find(upkeep, from, revision + 1, false));
    bool all;
    TRY(victims_drop(upkeep, &all));
    victims->found = !all;
    TRY(checkpoint_commit(upkeep));
    if (all && victims->after.revision > revision)
        upkeep->released = revision;
    return ST_OK;
}

uint64_t upkeep_checkpoint_lag_bytes(struct upkeep *upkeep)
{
    return segments_bytes_after(&upkeep->segments, upkeep->log, upkeep->index, upkeep->end,
                                upkeep->copy);
}

void upkeep_checkpoint_begin(struct upkeep *upkeep)
{
    const struct store_view *view = upkeep_pin_view(upkeep);
    upkeep->goal = (struct upkeep_goal){
        .log_index = view->log_index,
        .trimmed = view->trimmed,
        .released = view->released,
        .db_bytes = view->db_bytes,
    };
    upkeep_unpin_view(upkeep);
}

/*
 * No view is pinned: the segments read here are cleaned only later, by this thread. The index is
 * trimmed first, because the log must keep a version while the index has it.
 */
static enum status checkpoint_step(struct upkeep *upkeep, bool *ret_done)
{
    const struct upkeep_goal *goal = &upkeep->goal;
    bool over = upkeep->index >= goal->log_index, dropped = upkeep->dropped_before >= goal->trimmed;
    bool released = upkeep->released >= goal->released;
    bool sized = goal->db_bytes == backend_meta_get(upkeep->backend, BACKEND_DB_BYTES, 0);
    *ret_done = over && dropped && released && sized;
    if (*ret_done)
        return ST_OK;
    upkeep->db_bytes = goal->db_bytes;
    TRY(backend_begin(upkeep->backend));
    if (!over)
        return add_records(upkeep, goal->log_index);
    if (!dropped)
        return drop_some(upkeep);
    return released ? checkpoint_commit(upkeep) : release_some(upkeep, goal->released);
}

enum status upkeep_checkpoint_step(struct upkeep *upkeep, bool *ret_done)
{
    TRY(upkeep->broken);
    bool done = false;
    enum status status = checkpoint_step(upkeep, &done);
    if (status != ST_OK) {
        abort_transaction(upkeep);
        return status;
    }
    if (done)
        buf_reset(&upkeep->victims.ids, 1 << 16);
    *ret_done = done;
    return ST_OK;
}

bool upkeep_checkpoint_lags(const struct upkeep *upkeep)
{
    return upkeep->index < upkeep->goal.log_index;
}

enum status upkeep_checkpoint(struct upkeep *upkeep)
{
    upkeep_checkpoint_begin(upkeep);
    bool done = false;
    while (!done)
        TRY(upkeep_checkpoint_step(upkeep, &done));
    return ST_OK;
}

/* -- Cleaning -- */

static enum status copy_most_dead(struct upkeep *upkeep, const struct segments_choice *choice,
                                  struct relocation **ret_relocation)
{
    *ret_relocation = NULL;
    TRY(upkeep->broken);
    struct segments *segments = &upkeep->segments;
    if (segments->moved_from) { /* interrupted by a stop: the start has updated the index */
        *ret_relocation = relocation_new(segments->moved_from, segments->moved_to);
        return ST_OK;
    }
    uint64_t segment = segments_most_dead(&upkeep->segments, upkeep->log, choice);
    if (segment == 0)
        return ST_OK;
    enum status status = cleaner_copy(upkeep->log, upkeep->backend, segment,
                                      segments_live(&upkeep->segments, segment), ret_relocation);
    if (status == ST_AGAIN)
        return ST_OK; /* the writer has only just left it */
    if (status == ST_DAMAGED)
        segments_set_damaged(&upkeep->segments, segment);
    TRY(status);
    struct relocation *relocation = *ret_relocation;
    upkeep->copy = relocation->new_segment;
    relocation->moves_max = size_min(RELOCATION_MOVES_MAX, upkeep->drop_versions);
    enum status found = cleaner_find_moves(relocation);
    (void)found; /* the next call returns the same */
    return ST_OK;
}

enum status upkeep_clean_begin(struct upkeep *upkeep, struct relocation **ret_relocation)
{
    return copy_most_dead(upkeep,
                          &(struct segments_choice){
                              .index_max = upkeep->index,
                              .id_end = UINT64_MAX,
                              .part_max = CLEAN_PART_MAX,
                          },
                          ret_relocation);
}

uint64_t upkeep_defragment_end(struct upkeep *upkeep)
{
    segments_clear_damaged(&upkeep->segments);
    return segments_id_end(upkeep->log);
}

enum status upkeep_defragment_next(struct upkeep *upkeep, uint64_t id_end,
                                   struct relocation **ret_relocation)
{
    return copy_most_dead(upkeep,
                          &(struct segments_choice){
                              .index_max = upkeep->index,
                              .id_end = id_end,
                              .part_max = DEFRAGMENT_PART_MAX,
                              .heals = true,
                          },
                          ret_relocation);
}

/* The first transaction lists the new segment, the last one clears the note about the old one. */
static enum status record_some(struct upkeep *upkeep, struct relocation *relocation, bool *ret_all)
{
    *ret_all = true;
    if (!upkeep->segments.moved_from)
        TRY(segments_replace(&upkeep->segments, relocation->old_segment, relocation->new_segment));
    if (relocation->new_segment)
        TRY(cleaner_record(upkeep->log, upkeep->backend, relocation, upkeep->transaction_bytes,
                           ret_all));
    if (*ret_all)
        segments_settle(&upkeep->segments);
    return checkpoint_commit(upkeep);
}

static enum status record_step(struct upkeep *upkeep, struct relocation *relocation, bool *ret_all)
{
    upkeep->copy = 0;
    enum status status = backend_begin(upkeep->backend);
    if (status == ST_OK)
        status = record_some(upkeep, relocation, ret_all);
    if (status == ST_OK)
        return ST_OK;
    abort_transaction(upkeep);
    relocation->recording = false;
    upkeep->copy = upkeep->segments.moved_from ? 0 : relocation->new_segment;
    return status;
}

enum status upkeep_clean_step(struct upkeep *upkeep, struct relocation *relocation, bool *ret_done)
{
    TRY(upkeep->broken);
    bool all = false;
    TRY(cleaner_find_moves(relocation));
    if (relocation->count == 0)
        TRY(record_step(upkeep, relocation, &all));
    if (all)
        relocation_free(relocation);
    *ret_done = all;
    return ST_OK;
}

/* -- Snapshots -- */

static enum status log_rows_scan(const struct upkeep *upkeep, uint64_t last_index, row_fn row_seen,
                                 void *ctx)
{
    struct log_reader reader;
    log_reader_init(&reader, upkeep->log, upkeep->index + 1);
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

enum status upkeep_base_take(struct upkeep *upkeep, row_fn row_seen, void *ctx,
                             struct upkeep_base *ret_base)
{
    TRY(upkeep->broken);
    const struct store_view *view = upkeep_pin_view(upkeep);
    enum status status = backend_rows_scan(upkeep->backend, row_seen, ctx);
    if (status == ST_OK)
        status = log_rows_scan(upkeep, view->log_index, row_seen, ctx);
    if (status == ST_OK)
        *ret_base = (struct upkeep_base){
            .hold = log_hold_new(upkeep->log, view->log_index),
            .revision = view->revision,
            .log_index = view->log_index,
        };
    upkeep_unpin_view(upkeep);
    return status;
}

/* -- Checking -- */

enum status upkeep_check_step(struct upkeep *upkeep, struct store_check *check, size_t bytes)
{
    const struct store_view *view = upkeep_pin_view(upkeep);
    enum status status = store_check_step(check, view, upkeep->log, bytes);
    upkeep_unpin_view(upkeep);
    return status;
}

/* -- Hashes -- */

int64_t upkeep_revision(struct upkeep *upkeep)
{
    int64_t revision = upkeep_pin_view(upkeep)->revision;
    upkeep_unpin_view(upkeep);
    return revision;
}

enum status upkeep_hash_begin(struct upkeep *upkeep, int64_t at, struct store_hash *hash,
                              struct upkeep_hash *ret_hash)
{
    const struct store_view *view = upkeep_pin_view(upkeep);
    *ret_hash = (struct upkeep_hash){
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
        store_hash_begin(hash, view, upkeep->log, ret_hash->revision);
    upkeep_unpin_view(upkeep);
    return status;
}

void upkeep_hash_begin_compaction(struct upkeep *upkeep, int64_t before, int64_t revision,
                                  struct store_hash *hash)
{
    store_hash_begin_compaction(hash, upkeep_pin_view(upkeep), upkeep->log, before, revision);
    upkeep_unpin_view(upkeep);
}

enum status upkeep_hash_step(struct upkeep *upkeep, struct store_hash *hash, size_t bytes,
                             uint32_t *ret_hash)
{
    const struct store_view *view = upkeep_pin_view(upkeep);
    enum status status = store_hash_step(hash, view, bytes, ret_hash);
    upkeep_unpin_view(upkeep);
    return status;
}
