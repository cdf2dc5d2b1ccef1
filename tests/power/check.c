#include "check.h"

#include "base/crc32c.h"
#include "base/xalloc.h"
#include "codec/pb/kv.pb.h"
#include "codec/pb/rpc.pb.h"
#include "store/mvcc/range.h"
#include "store/record/row_values.h"
#include "store/store.h"
#include "store/upkeep.h"

#include <inttypes.h>
#include <stdio.h>

/* A row that exists, as text. */
struct found_row {
    int table;
    char key[ROW_KEY_BYTES_MAX + 1];
};

struct checker {
    struct history *history;
    uint64_t position;
    const char *dir;
    struct error *error;
    struct found_row *rows;
    size_t row_count, row_capacity;
    struct store *store;
    struct upkeep *upkeep;
    const struct store_view *view;
    struct arena arena;
};

#define WRONG(checker, ...) error_set((checker)->error, ST_DAMAGED, __VA_ARGS__)

/* -- Rows -- */

static size_t find_row(const struct checker *checker, int table, const char *key)
{
    for (size_t i = 0; i < checker->row_count; i++) {
        if (checker->rows[i].table == table && strcmp(checker->rows[i].key, key) == 0)
            return i;
    }
    return SIZE_MAX;
}

static void name_row(const struct row *row, struct found_row *found)
{
    *found = (struct found_row){.table = (int)row->table};
    int64_t id;
    if (row->table == ROW_LEASE && row->key.len == sizeof(id)) {
        memcpy(&id, row->key.ptr, sizeof(id));
        snprintf(found->key, sizeof(found->key), "%" PRId64, id);
    } else {
        snprintf(found->key, sizeof(found->key), "%.*s", (int)row->key.len,
                 (const char *)row->key.ptr);
    }
}

static enum status note_row(void *ctx, const struct row *row)
{
    struct checker *checker = ctx;
    struct found_row found;
    name_row(row, &found);
    size_t at = find_row(checker, found.table, found.key);
    bool exists = !row->deleted;
    if (row->table == ROW_AUTH && strcmp(found.key, "authEnabled") == 0)
        exists = row->value.len == 1 && row->value.ptr[0] == 1;
    if (at != SIZE_MAX)
        checker->rows[at] = checker->rows[--checker->row_count];
    if (!exists)
        return ST_OK;
    if (checker->row_count == checker->row_capacity) {
        checker->row_capacity = checker->row_capacity ? checker->row_capacity * 2 : 64;
        checker->rows = xrealloc(checker->rows, checker->row_capacity * sizeof(*checker->rows));
    }
    checker->rows[checker->row_count++] = found;
    return ST_OK;
}

/*
 * The row is as some request left it that is not older than the last acknowledged one; `at` is the
 * first of its row. Before all requests it does not exist.
 */
static enum status check_row(struct checker *checker, size_t at)
{
    const struct history *history = checker->history;
    const struct row_change *first = &history->rows[at];
    bool found = find_row(checker, first->table, first->key) != SIZE_MAX;
    bool possible = !found;
    for (size_t i = at; i < history->row_count; i++) {
        const struct row_change *change = &history->rows[i];
        if (change->table != first->table || strcmp(change->key, first->key) != 0 ||
            change->sent > checker->position)
            continue;
        if (change->answered && change->answered <= checker->position)
            possible = false; /* what was before it is past */
        possible |= change->exists == found;
        bool is_there = change->revision && change->revision <= checker->view->revision;
        if (is_there && change->exists != found)
            return WRONG(checker, "row %d %s does not agree with the change at revision %" PRId64,
                         first->table, first->key, change->revision);
        if (change->revision && !is_there && change->exists == found)
            return WRONG(checker, "row %d %s is changed without the change at revision %" PRId64,
                         first->table, first->key, change->revision);
    }
    if (!possible)
        return WRONG(checker, "row %d %s should%s exist", first->table, first->key,
                     found ? " not" : "");
    return ST_OK;
}

static bool is_first_of_row(const struct history *history, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (history->rows[i].table == history->rows[at].table &&
            strcmp(history->rows[i].key, history->rows[at].key) == 0)
            return false;
    }
    return true;
}

static bool was_requested(const struct history *history, const struct found_row *found)
{
    for (size_t i = 0; i < history->row_count; i++) {
        if (history->rows[i].table == found->table && strcmp(history->rows[i].key, found->key) == 0)
            return true;
    }
    return false;
}

static enum status check_rows(struct checker *checker)
{
    for (size_t i = 0; i < checker->history->row_count; i++) {
        if (is_first_of_row(checker->history, i))
            TRY(check_row(checker, i));
    }
    for (size_t i = 0; i < checker->row_count; i++) {
        const struct found_row *found = &checker->rows[i];
        bool is_own = found->table == ROW_MEMBER || found->table == ROW_CLUSTER ||
                      found->table == ROW_ALARM || /* the alarm of a full disk */
                      strcmp(found->key, "authRevision") == 0;
        if (!is_own && !was_requested(checker->history, found))
            return WRONG(checker, "row %d %s was never requested", found->table, found->key);
    }
    return ST_OK;
}

/* -- The log: every change since the compaction -- */

static bool key_is(struct slice key, const struct version *version)
{
    return key.len == strlen(version->key) && memcmp(key.ptr, version->key, key.len) == 0;
}

static const struct version *find_in(const struct history *history, const struct change *change,
                                     struct slice key)
{
    for (size_t i = change->first; i < change->first + change->count; i++) {
        if (key_is(key, &history->versions[i]))
            return &history->versions[i];
    }
    return NULL;
}

/* Whether the record has the keys and values of the request, and no others. */
static bool record_is(const struct history *history, const struct log_record *record,
                      const struct change *change)
{
    struct change_walk walk;
    const struct change_head *head;
    size_t offset, count = 0;
    if (change_walk_init(&walk, record->body) != ST_OK)
        return false;
    while (change_walk_next(&walk, &head, &offset) == ST_OK && head) {
        struct change_kv kv;
        change_read_kv(head, &kv);
        const struct version *version = find_in(history, change, kv.key);
        if (!version || version->deleted != change_is_tombstone(head))
            return false;
        if (!version->deleted &&
            (kv.value.len != version->value_bytes || crc32c(0, kv.value) != version->value_crc ||
             kv.lease != version->lease))
            return false;
        count++;
    }
    return count == change->count;
}

/* A request that failed for its client, and that was done nevertheless. */
static struct change *find_unanswered(struct checker *checker, const struct log_record *record)
{
    struct history *history = checker->history;
    for (size_t i = 0; i < history->change_count; i++) {
        struct change *change = &history->changes[i];
        if (!change->revision && change->sent <= checker->position &&
            record_is(history, record, change))
            return change;
    }
    return NULL;
}

static enum status check_record(struct checker *checker, const struct log_record *record)
{
    const struct change *change = history_change(checker->history, record->revision);
    if (!change) {
        struct change *unanswered = find_unanswered(checker, record);
        if (!unanswered)
            return WRONG(checker, "revision %" PRId64 " was never requested", record->revision);
        unanswered->revision = record->revision;
        history_settle(checker->history);
        return ST_OK;
    }
    if (change->sent > checker->position)
        return WRONG(checker, "revision %" PRId64 " was not requested yet", record->revision);
    if (!record_is(checker->history, record, change))
        return WRONG(checker, "the log has another change at revision %" PRId64, record->revision);
    return ST_OK;
}

static enum status check_log(struct checker *checker)
{
    const struct store_view *view = checker->view;
    int64_t next = view->compact_revision > 1 ? view->compact_revision + 1 : 2;
    struct log_reader reader;
    log_reader_seek_revision(&reader, store_log(checker->store), next);
    struct log_record record;
    enum status status;
    while ((status = change_record_next(&reader, view->log_index, &record)) == ST_OK) {
        if (record.revision < next)
            continue;
        if (record.revision != next)
            return WRONG(checker, "the log has no change at revision %" PRId64, next);
        TRY(check_record(checker, &record));
        next++;
    }
    if (status != ST_END)
        return WRONG(checker, "the log cannot be read: %s", status_text(status));
    if (next != view->revision + 1)
        return WRONG(checker, "the log ends before revision %" PRId64 " of %" PRId64, next,
                     view->revision);
    return ST_OK;
}

/* -- Keys -- */

static enum status check_kv(struct checker *checker, const struct pb_key_value *kv,
                            const struct version *version)
{
    bool same = kv->mod_revision == version->revision &&
                kv->create_revision == version->create_revision &&
                kv->version == version->version && kv->lease == version->lease &&
                kv->value.len == version->value_bytes && crc32c(0, kv->value) == version->value_crc;
    if (!same)
        return WRONG(checker,
                     "%s has revision %" PRId64 ", %" PRId64 ", version %" PRId64
                     ", and should have %" PRId64 ", %" PRId64 ", %" PRId64,
                     version->key, kv->mod_revision, kv->create_revision, kv->version,
                     version->revision, version->create_revision, version->version);
    return ST_OK;
}

/* The next key that exists at a revision, and its version there; *at is advanced behind it. */
static const struct version *next_at(const struct history *history, int64_t revision, size_t *at)
{
    while (*at < history->by_key_count) {
        const struct version *newest = NULL, *first = history->by_key[*at];
        for (; *at < history->by_key_count && strcmp(history->by_key[*at]->key, first->key) == 0;
             (*at)++) {
            if (history->by_key[*at]->revision <= revision)
                newest = history->by_key[*at];
        }
        if (newest && !newest->deleted)
            return newest;
    }
    return NULL;
}

static enum status compare_keys(struct checker *checker, int64_t revision,
                                const struct pb_range_response *response)
{
    size_t at = 0;
    for (size_t i = 0; i < response->kvs_count; i++) {
        const struct version *version = next_at(checker->history, revision, &at);
        const struct slice key = response->kvs[i].key;
        if (!version || !key_is(key, version))
            return WRONG(checker, "at revision %" PRId64 " there is %.*s, and should be %s",
                         revision, (int)key.len, (const char *)key.ptr,
                         version ? version->key : "no more");
        TRY(check_kv(checker, &response->kvs[i], version));
    }
    const struct version *missing = next_at(checker->history, revision, &at);
    if (missing)
        return WRONG(checker, "%s is missing at revision %" PRId64, missing->key, revision);
    return ST_OK;
}

static enum status check_keys(struct checker *checker, int64_t revision)
{
    struct range_state state = range_state_of(checker->view, store_log(checker->store));
    struct pb_range_request request = {
        .key = slice_of("", 1), .range_end = slice_of("", 1), .revision = revision};
    struct range range;
    enum status status = range_init(&range, &state, &request);
    if (status != ST_OK)
        return WRONG(checker, "the keys at revision %" PRId64 " cannot be read: %s", revision,
                     status_text(status));
    uint8_t *bytes = xmalloc(range.kvs_bytes + 1);
    size_t filled = range_fill(&range, bytes, range.kvs_bytes + 1);
    struct pb_range_response response;
    status = filled == range.kvs_bytes
                 ? pb_decode(&pb_range_response_table, slice_of(bytes, filled), &checker->arena,
                             &response)
                 : ST_DAMAGED;
    status = status == ST_OK ? compare_keys(checker, revision, &response)
                             : WRONG(checker, "a key cannot be read");
    free(bytes);
    range_fini(&range);
    return status;
}

/* -- Revisions, hashes, damage -- */

static enum status check_revisions(struct checker *checker)
{
    const struct store_view *view = checker->view;
    int64_t due = history_revision_due(checker->history, checker->position);
    if (view->revision < due)
        return WRONG(checker, "revision %" PRId64 " was acknowledged, and the store has %" PRId64,
                     due, view->revision);
    int64_t compaction_due = history_compaction_due(checker->history, checker->position);
    if (view->compact_revision < compaction_due)
        return WRONG(checker,
                     "a compaction to %" PRId64 " was acknowledged, and the store has %" PRId64,
                     compaction_due, view->compact_revision);
    if (view->compact_revision > 0 &&
        !history_was_compacted_to(checker->history, view->compact_revision, checker->position))
        return WRONG(checker, "no client requested a compaction to %" PRId64,
                     view->compact_revision);
    return ST_OK;
}

static enum status hash_at(struct checker *checker, int64_t revision, uint32_t *ret_hash)
{
    struct store_hash hash;
    struct upkeep_hash answer;
    enum status status = upkeep_hash_begin(checker->upkeep, revision, &hash, &answer);
    if (status == ST_OK)
        status = upkeep_hash_step(checker->upkeep, &hash, SIZE_MAX, ret_hash);
    if (status != ST_OK)
        return WRONG(checker, "the hash at revision %" PRId64 " cannot be computed: %s", revision,
                     status_text(status));
    return ST_OK;
}

static enum status check_hashes(struct checker *checker)
{
    const struct store_view *view = checker->view;
    for (size_t i = 0; i < checker->history->hash_count; i++) {
        const struct hash_answer *known = &checker->history->hashes[i];
        if (known->compacted != view->compact_revision || known->revision > view->revision ||
            !known->answered)
            continue;
        uint32_t hash;
        TRY(hash_at(checker, known->revision, &hash));
        if (hash != known->hash)
            return WRONG(checker, "the hash at revision %" PRId64 " is %08x and was %08x",
                         known->revision, hash, known->hash);
    }
    return ST_OK;
}

static void note_damage(void *ctx, const struct store_check_damage *damage)
{
    struct checker *checker = ctx;
    (void)WRONG(checker, "%s in segment %" PRIx64 " at %" PRIu64, damage->what, damage->segment_id,
                damage->offset);
}

static enum status check_damage(struct checker *checker)
{
    store_check_writer(checker->store);
    upkeep_check(checker->upkeep);
    checker->error->status = ST_OK;
    AUTO(store_check_freep) struct store_check *check = store_check_new(note_damage, checker);
    enum status status;
    do
        status = upkeep_check_step(checker->upkeep, check, SIZE_MAX);
    while (status == ST_AGAIN);
    struct store_check_counts counts = store_check_counts(check);
    if (counts.bad_records || counts.bad_versions)
        return checker->error->status;
    return status == ST_OK ? ST_OK : WRONG(checker, "the check failed: %s", status_text(status));
}

/* -- All of it -- */

static enum status open_store(struct checker *checker)
{
    checker->row_count = 0;
    enum status status = store_open(
        &(struct store_options){
            .fs = fs_posix(),
            .dir = checker->dir,
            .segment_bytes_first = 1 << 20,
            .segment_bytes_max = 4 << 20,
            .checkpoint_map_bytes = (size_t)1 << 30,
            .readers_max = 2,
            .salt = checker->position,
            .cluster_id = 1,
            .member_id = 2,
            .row_seen = note_row,
            .row_ctx = checker,
        },
        &checker->store, checker->error);
    if (status != ST_OK)
        return ST_DAMAGED;
    checker->upkeep = upkeep_new(checker->store);
    upkeep_join(checker->upkeep);
    checker->view = store_view(checker->store);
    return ST_OK;
}

static void close_store(struct checker *checker)
{
    upkeep_free(checker->upkeep);
    store_close(checker->store);
}

static enum status check_state(struct checker *checker)
{
    const struct store_view *view = checker->view;
    int64_t oldest = view->compact_revision > 1 ? view->compact_revision : 1;
    TRY(check_revisions(checker));
    TRY(check_log(checker));
    TRY(check_keys(checker, view->revision));
    TRY(check_keys(checker, oldest));
    TRY(check_keys(checker, oldest + (view->revision - oldest) / 2));
    TRY(check_rows(checker));
    TRY(check_hashes(checker));
    return check_damage(checker);
}

/* Adds a put to the store and to the history. */
static enum status put_one(struct checker *checker)
{
    struct pb_put_request request = {.key = SLICE_LITERAL("zz/after"),
                                     .value = SLICE_LITERAL("the power failed")};
    struct kv_answer answer;
    enum status status =
        applier_put(store_applier(checker->store), &request, &checker->arena, &answer);
    if (status == ST_OK)
        status = store_commit(checker->store);
    if (status != ST_OK)
        return WRONG(checker, "a put after the failure failed: %s", status_text(status));
    struct history *history = checker->history;
    history->changes =
        xrealloc(history->changes, (history->change_count + 1) * sizeof(*history->changes));
    history->versions =
        xrealloc(history->versions, (history->version_count + 1) * sizeof(*history->versions));
    /* Later revisions of the history never happened. */
    for (size_t i = 0; i < history->change_count; i++) {
        if (history->changes[i].revision >= answer.revision)
            history->changes[i].revision = 0;
    }
    for (size_t i = 0; i < history->row_count; i++) {
        if (history->rows[i].revision >= answer.revision)
            history->rows[i].sent = UINT64_MAX;
    }
    history->changes[history->change_count++] = (struct change){
        .answered = 1, .revision = answer.revision, .first = history->version_count, .count = 1};
    struct version *version = &history->versions[history->version_count++];
    *version = (struct version){.value_bytes = (uint32_t)request.value.len,
                                .value_crc = crc32c(0, request.value)};
    snprintf(version->key, sizeof(version->key), "zz/after");
    history_settle(history);
    checker->view = store_view(checker->store);
    return ST_OK;
}

static enum status check_again(struct checker *checker)
{
    uint32_t before, after;
    TRY(put_one(checker));
    TRY(hash_at(checker, 0, &before));
    int64_t revision = checker->view->revision;
    /* Half of the images are read from the checkpoint the second time, the others from the log. */
    if (checker->position % 2 && upkeep_checkpoint(checker->upkeep) != ST_OK)
        return WRONG(checker, "no checkpoint after the failure: %s",
                     upkeep_error_text(checker->upkeep));
    close_store(checker);
    TRY(open_store(checker));
    if (checker->view->revision != revision)
        return WRONG(checker, "revision %" PRId64 " became %" PRId64 " at the second start",
                     revision, checker->view->revision);
    TRY(check_keys(checker, revision));
    TRY(check_rows(checker));
    TRY(hash_at(checker, 0, &after));
    if (before != after)
        return WRONG(checker, "the hash changed at the second start");
    return check_damage(checker);
}

enum status check_dir(struct history *history, uint64_t position, const char *dir,
                      struct check_result *ret_result, struct error *ret_error)
{
    struct checker checker = {
        .history = history, .position = position, .dir = dir, .error = ret_error};
    arena_init(&checker.arena, NULL, 0, 1 << 30);
    *ret_result = (struct check_result){.revision_due = history_revision_due(history, position)};
    TRY(open_store(&checker));
    ret_result->revision = checker.view->revision;
    ret_result->compact_revision = checker.view->compact_revision;
    ret_result->log_index = checker.view->log_index;
    TRY(check_state(&checker));
    TRY(check_again(&checker));
    close_store(&checker);
    arena_fini(&checker.arena);
    free(checker.rows);
    return ST_OK;
}
