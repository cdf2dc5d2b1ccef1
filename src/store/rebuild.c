#include "store/rebuild.h"

#include "base/memory/epoch.h"
#include "store/backend/salvage.h"
#include "store/index/index.h"
#include "store/log/survey.h"
#include "store/mvcc/applier.h"
#include "store/record/change.h"
#include "store/record/row_values.h"

#include <stdlib.h>

struct rebuilding {
    const struct store_rebuild_options *options;
    struct backend *plan;
    struct log_survey survey;
    struct salvage salvage;
    bool numbers_sure, entries_sure; /* whether the salvaged numbers and entries match their sums */
    bool stale; /* the cleaner had a later one; versions deleted since may be in this one */
    struct store_rebuild result;
    /* For a partial rebuild: */
    struct epoch *epoch;
    struct index *index; /* every key of the log */
    int64_t db_bytes;
    unsigned searches; /* searches for changes by revision, to salvage */
};

enum { SEARCHES_MAX = 1000 };

static void rebuilding_fini(struct rebuilding *r)
{
    salvage_close(&r->salvage);
    if (!r->options->salvages)
        log_survey_close(&r->survey);
    index_free(r->index);
    epoch_free(r->epoch);
}

/* -- Checking entries against the log -- */

static bool place_is_possible(log_loc loc)
{
    return loc % CHANGE_ALIGN == 0 && loc >> LOG_OFFSET_BITS <= UINT32_MAX >> 2;
}

static bool change_is(const struct change_head *change, struct backend_version_id id)
{
    return change->revision == id.revision && change->sub == id.sub;
}

static struct slice change_key(const struct change_head *change)
{
    struct change_kv kv;
    change_read_kv(change, &kv);
    return kv.key;
}

/* NULL if the log does not have it. */
static const struct change_head *change_by_id(const struct log *log, struct backend_version_id id,
                                              log_loc *ret_loc)
{
    struct log_reader reader;
    struct log_record record;
    log_reader_seek_revision(&reader, log, id.revision);
    while (log_reader_next(&reader, UINT64_MAX, &record) == ST_OK &&
           record.revision <= id.revision) {
        struct change_walk walk;
        const struct change_head *change;
        size_t offset;
        if (record.type != LOG_RECORD_KV || change_walk_init(&walk, record.body) != ST_OK)
            continue;
        while (change_walk_next(&walk, &change, &offset) == ST_OK && change) {
            *ret_loc = record.body_loc + offset;
            if (change_is(change, id) && change_is_sound(change))
                return change;
        }
    }
    return NULL;
}

/*
 * An entry identifies its change in three ways: by its id, its location and its key. Two that agree
 * are enough, unless others agree on another change.
 */
static void put_right(struct rebuilding *r, struct salvage_version *found)
{
    const struct log *log = r->survey.log;
    const struct backend_version *version = &found->version;
    const struct change_head *at_loc = NULL, *by_id = NULL;
    log_loc loc = version->loc, id_loc = 0;
    if (!place_is_possible(loc) || change_get(log, loc, &at_loc) != ST_OK)
        at_loc = NULL;
    if (at_loc && change_is(at_loc, version->id)) {
        found->version = backend_version_of(at_loc, loc);
        return;
    }
    /* In a log that is damaged, too, a search may read a whole segment. */
    if (!r->options->salvages || r->searches++ < SEARCHES_MAX)
        by_id = change_by_id(log, version->id, &id_loc);
    bool id_agrees = by_id && slice_equal(change_key(by_id), version->key);
    bool loc_agrees = at_loc && slice_equal(change_key(at_loc), version->key);
    found->bad = id_agrees == loc_agrees;
    if (!found->bad)
        found->version =
            id_agrees ? backend_version_of(by_id, id_loc) : backend_version_of(at_loc, loc);
}

/* -- As it was -- */

static bool has_its_segments(const struct rebuilding *r)
{
    const struct salvage *salvage = &r->salvage;
    const struct backend_segment *segments = (const void *)salvage->segments.ptr;
    for (size_t i = 0; i < salvage->segments.len / sizeof(*segments); i++) {
        if (!log_survey_has(&r->survey, segments[i].id))
            return false;
    }
    return true;
}

static enum status weigh(struct rebuilding *r, bool *ret_is_whole)
{
    TRY(salvage_sums(&r->salvage, &r->numbers_sure, &r->entries_sure));
    uint64_t index = (uint64_t)r->salvage.numbers[BACKEND_INDEX];
    /* To salvage, the versions in a segment that is missing are lost, and the others are not. */
    bool salvages = r->options->salvages;
    uint64_t later = salvages ? r->survey.copied_to : r->survey.incomplete_to;
    r->stale = r->numbers_sure && index < later;
    *ret_is_whole =
        r->numbers_sure && r->entries_sure && !r->stale && (salvages || has_its_segments(r));
    return ST_OK;
}

/* Reads one state of the file. Bad entries are kept for now. */
static enum status read_state(struct rebuilding *r, unsigned rank, bool *ret_is_whole)
{
    salvage_close(&r->salvage);
    *ret_is_whole = false;
    enum status status = salvage_open(&r->salvage, r->options->meta_dir, rank);
    if (status != ST_OK)
        return status == ST_NOT_FOUND || status == ST_IO ? ST_OK : status;
    TRY(weigh(r, ret_is_whole));
    if (*ret_is_whole)
        return ST_OK;
    struct salvage_version *versions = salvage_versions(&r->salvage);
    for (size_t i = 0; i < salvage_version_count(&r->salvage); i++)
        put_right(r, &versions[i]);
    return weigh(r, ret_is_whole);
}

/* A start refuses an invalid row. */
static bool row_is_possible(const struct row *row)
{
    struct lease_row lease;
    int32_t type;
    uint64_t member_id;
    if (row->table == ROW_LEASE && lease_row_read(row, &lease) != ST_OK)
        return false;
    if (row->table == ROW_ALARM && alarm_row_read(row, &type, &member_id) != ST_OK)
        return false;
    return row->key.len <= ROW_KEY_BYTES_MAX;
}

static enum status plan_rows(struct rebuilding *r)
{
    const struct row *rows = (const void *)r->salvage.rows.ptr;
    for (size_t i = 0; i < r->salvage.rows.len / sizeof(*rows); i++) {
        if (r->entries_sure || row_is_possible(&rows[i]))
            TRY(backend_row_put(r->plan, &rows[i]));
        else
            r->result.lost_rows++;
    }
    return ST_OK;
}

static enum status plan_as_it_was(struct rebuilding *r)
{
    const struct salvage *salvage = &r->salvage;
    const struct salvage_version *versions = salvage_versions(salvage);
    const struct backend_segment *segments = (const void *)salvage->segments.ptr;
    TRY(salvage_settle(&r->salvage));
    for (size_t i = 0; i < salvage_version_count(salvage); i++)
        TRY(backend_version_put(r->plan, &versions[i].version));
    for (size_t i = 0; i < salvage->segments.len / sizeof(*segments); i++)
        TRY(backend_segment_put(r->plan, &segments[i]));
    for (size_t i = 0; i < BACKEND_SUM_OF_ENTRIES; i++) {
        if (salvage->has_number[i])
            TRY(backend_meta_put(r->plan, (enum backend_meta)i, salvage->numbers[i]));
    }
    r->result.how = REBUILT_AS_IT_WAS;
    return plan_rows(r);
}

/* -- From the log -- */

/* Without them a start uses its flags, as for a new store. */
static enum status plan_identity(struct rebuilding *r)
{
    static const enum backend_meta names[] = {BACKEND_CLUSTER_ID, BACKEND_MEMBER_ID, BACKEND_TERM};
    const struct salvage *salvage = &r->salvage;
    int64_t term = salvage->numbers[BACKEND_TERM];
    bool known = salvage->has_number[BACKEND_CLUSTER_ID] &&
                 salvage->has_number[BACKEND_MEMBER_ID] && term > 0 && term < INT32_MAX;
    r->result.identity_lost = !known;
    for (size_t i = 0; known && i < COUNT_OF(names); i++)
        TRY(backend_meta_put(r->plan, names[i], salvage->numbers[names[i]]));
    return ST_OK;
}

/* -- In part -- */

static void ignore_gap(void *ctx, const struct store_gap *gap)
{
    (void)ctx, (void)gap;
}

static void report_gap(void *ctx, const struct store_gap *gap)
{
    const struct rebuilding *r = ctx;
    r->options->gap(r->options->ctx, gap);
}

/* tells: what is lost is reported, once although the log is read twice. */
static enum status each_change(
    struct rebuilding *r, bool tells,
    enum status (*change_seen)(void *ctx, const struct log_record *record,
                               const struct change_head *change, log_loc loc),
    enum status (*record_seen)(void *ctx, const struct log_record *record))
{
    struct change_scan scan = {
        .log = r->survey.log,
        .from_index = 1,
        .to_index = r->survey.last_index,
        .salvages = r->options->salvages,
        .complete_from = UINT64_MAX, /* the cleaner may have removed any segment */
        .change_seen = change_seen,
        .record_seen = record_seen,
        .gap = tells ? report_gap : ignore_gap,
        .ctx = r,
    };
    enum status status = change_scan_run(&scan);
    if (status == ST_DAMAGED) {
        r->survey.damaged_segment = scan.damaged_segment;
        r->survey.damaged_offset = scan.damaged_offset;
    }
    return status;
}

static enum status index_change(void *ctx, const struct log_record *record,
                                const struct change_head *change, log_loc loc)
{
    struct rebuilding *r = ctx;
    (void)record;
    struct backend_version version = backend_version_of(change, loc);
    bool tombstone = change_is_tombstone(change);
    index_put(r->index, version.key,
              &(struct index_version){
                  .mod_revision = change->revision,
                  .create_revision = version.create_revision,
                  .version = version.version,
                  .lease = version.lease,
                  .loc = loc,
                  .field_bytes = tombstone ? 0 : change->field_bytes,
                  .sub_revision = change->sub,
              });
    return ST_OK;
}

static void tell_lost(struct rebuilding *r, struct slice key, int64_t revision)
{
    r->result.lost_versions++;
    if (r->options->lost)
        r->options->lost(r->options->ctx,
                         &(struct store_lost){.key = key, .revision = revision, .doubtful = true});
}

/* The checkpoint had a newer version of the key than the log: an older one would be wrong. */
static void let_go_of_stale(struct rebuilding *r)
{
    const struct salvage_version *versions = salvage_versions(&r->salvage);
    for (size_t i = 0; i < salvage_version_count(&r->salvage); i++) {
        const struct backend_version *version = &versions[i].version;
        const struct index_item *item = versions[i].bad ? index_find(r->index, version->key) : NULL;
        if (!item || item->newest.mod_revision >= version->id.revision)
            continue;
        if (index_item_live(item))
            tell_lost(r, version->key, item->newest.mod_revision);
        index_put(
            r->index, version->key,
            &(struct index_version){.mod_revision = version->id.revision, .loc = item->newest.loc});
    }
}

/*
 * Adds the version to the plan if it is the newest of its key and there is no sign that the key may
 * have been deleted.
 */
static enum status plan_change(void *ctx, const struct log_record *record,
                               const struct change_head *change, log_loc loc)
{
    struct rebuilding *r = ctx;
    struct backend_version version = backend_version_of(change, loc);
    const struct index_item *item = index_find(r->index, version.key);
    if (change_is_tombstone(change) || !item || item->newest.mod_revision != change->revision ||
        item->newest.sub_revision != change->sub)
        return ST_OK;
    if (record->index <= r->survey.incomplete_to && !salvage_has(&r->salvage, version.id)) {
        if (!salvage_lacks(&r->salvage, version.id))
            tell_lost(r, version.key, change->revision);
        return ST_OK;
    }
    r->result.kept_versions++;
    r->db_bytes += applier_db_bytes(change->field_bytes);
    return backend_version_put(r->plan, &version);
}

/* Rows of complete records replace those that the checkpoint had. */
static enum status plan_record_rows(void *ctx, const struct log_record *record)
{
    struct rebuilding *r = ctx;
    struct row_walk walk;
    struct row row;
    enum status status = ST_OK;
    if (record->type == LOG_RECORD_COMPACT || record->index <= r->survey.incomplete_to)
        return ST_OK;
    TRY(row_walk_init(&walk, record->body));
    while ((status = row_walk_next(&walk, &row)) == ST_OK)
        TRY(backend_row_put(r->plan, &row));
    return status == ST_END ? ST_OK : status;
}

/* The next start counts live_bytes. */
static enum status plan_segments(struct rebuilding *r)
{
    size_t max = log_segments(r->survey.log, NULL, 0);
    struct log_segment_info *infos = calloc(max + 1, sizeof(*infos));
    if (!infos)
        return ST_NOMEM;
    enum status status = ST_OK;
    (void)log_segments(r->survey.log, infos, max);
    for (size_t i = 0; i < max && status == ST_OK; i++)
        status =
            backend_segment_put(r->plan, &(struct backend_segment){
                                             .id = infos[i].id,
                                             .first_index = infos[i].first_index,
                                             .last_index = infos[i].full ? infos[i].last_index : 0,
                                             .used_bytes = infos[i].used_bytes,
                                         });
    free(infos);
    return status;
}

/* No record creates more than one revision, so at most this many may be missing at the end. */
static int64_t newest_revision(const struct rebuilding *r)
{
    static const int64_t BELIEVED_MAX = INT64_C(1) << 40;
    const struct log_survey *survey = &r->survey;
    int64_t least = survey->last_revision > 1 ? survey->last_revision : 1;
    int64_t told =
        r->salvage.has_number[BACKEND_REVISION] ? r->salvage.numbers[BACKEND_REVISION] : 0;
    bool believed = r->numbers_sure || (told > least && told - least < BELIEVED_MAX);
    if (!r->numbers_sure)
        least += (int64_t)(survey->last_index - survey->last_seen);
    return believed && told > least ? told : least;
}

static enum status plan_numbers(struct rebuilding *r)
{
    int64_t revision = r->result.revision = newest_revision(r);
    struct backend *plan = r->plan;
    TRY(backend_meta_put(plan, BACKEND_INDEX, (int64_t)r->survey.last_index));
    TRY(backend_meta_put(plan, BACKEND_REVISION, revision));
    TRY(backend_meta_put(plan, BACKEND_COMPACT_REVISION, revision));
    TRY(backend_meta_put(plan, BACKEND_TRIMMED, revision));
    TRY(backend_meta_put(plan, BACKEND_DB_BYTES, r->db_bytes));
    TRY(backend_meta_put(plan, BACKEND_DB_BYTES_IN_USE, r->db_bytes));
    return plan_identity(r);
}

static void count_rows(struct rebuilding *r)
{
    uint64_t found = r->salvage.rows.len / sizeof(struct row);
    r->result.rows = found;
    r->result.lost_rows = r->salvage.rows_expected > found ? r->salvage.rows_expected - found : 0;
    r->result.rows_unsure = !r->entries_sure && r->survey.incomplete_to;
}

static enum status plan_in_part(struct rebuilding *r)
{
    r->result.how = REBUILT_IN_PART;
    if (r->survey.damaged_segment && !r->options->salvages)
        return ST_DAMAGED;
    r->epoch = epoch_new(1);
    r->index = index_new(r->epoch);
    index_load_begin(r->index);
    enum status status = each_change(r, true, index_change, NULL);
    if (status == ST_OK)
        let_go_of_stale(r);
    index_load_end(r->index);
    TRY(status);
    TRY(salvage_settle(&r->salvage));
    count_rows(r);
    TRY(plan_rows(r));
    TRY(each_change(r, false, plan_change, plan_record_rows));
    TRY(plan_segments(r));
    return plan_numbers(r);
}

/* -- Together -- */

static enum status plan(struct rebuilding *r)
{
    const struct log_survey *survey = &r->survey;
    bool whole;
    for (unsigned rank = 0; rank < 2; rank++) {
        TRY(read_state(r, rank, &whole));
        if (whole)
            return plan_as_it_was(r);
    }
    TRY(read_state(r, 0, &whole));
    if (r->stale) {
        salvage_close(&r->salvage);
        r->numbers_sure = r->entries_sure = false;
    }
    bool complete = !survey->incomplete_to && !survey->has_copies && !survey->damaged_segment;
    if (!complete)
        return plan_in_part(r);
    r->result.how = REBUILT_FROM_LOG; /* the start replays everything */
    return plan_identity(r);
}

enum status store_rebuild(const struct store_rebuild_options *options, struct backend *into,
                          struct store_rebuild *ret_rebuild, struct error *ret_error)
{
    struct rebuilding r = {.options = options, .plan = into};
    enum status status = ST_OK;
    if (options->salvages)
        r.survey = *options->salvages;
    else
        status = log_survey_open(&r.survey, &options->log, false, ret_error);
    if (status == ST_OK) {
        status = plan(&r);
        if (status != ST_OK)
            error_set(ret_error, status,
                      "%s/data.mdb is damaged and cannot be rebuilt: %s (%s/%016llx.seg, offset "
                      "%llu)",
                      options->meta_dir,
                      status == ST_DAMAGED ? "the log is damaged, too" : status_reason(status),
                      options->log.dir, (unsigned long long)r.survey.damaged_segment,
                      (unsigned long long)r.survey.damaged_offset);
    }
    if (status == ST_OK)
        *ret_rebuild = r.result;
    rebuilding_fini(&r);
    return status;
}
