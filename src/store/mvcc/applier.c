#include "store/mvcc/applier.h"

#include "base/yield_point.h"
#include "codec/pb/rpc.pb.h"
#include "store/mvcc/txn.h"
#include "store/mvcc/version.h"

#include <stdio.h>
#include <stdlib.h>

void applier_init(struct applier *applier, struct log *log, struct index *index)
{
    *applier = (struct applier){.log = log, .index = index, .revision = 1, .compact_revision = -1};
}

void applier_fini(struct applier *applier)
{
    buf_fini(&applier->keys);
}

void applier_settle_size(struct applier *applier)
{
    int64_t in_use = applier->db_bytes_in_use - applier->db_bytes_held;
    if (applier->db_bytes_held >= 0 && applier->db_bytes < in_use)
        applier->db_bytes = in_use; /* freed bytes are used up: the imitated file grows */
}

static struct range_state state_of(const struct applier *applier)
{
    return (struct range_state){
        .root = index_working_root(applier->index),
        .log = applier->log,
        .revision = applier->revision + (applier->changes > 0),
        .compact_revision = applier->compact_revision,
    };
}

/* After the reservation there is no way back: half a transaction must never be visible. */
static void must_have_memory(enum status status)
{
    if (status != ST_OK) {
        fputs("vigil: out of memory while applying a write\n", stderr);
        abort();
    }
}

/* -- The current record -- */

static enum status record_begin(struct applier *applier, size_t changes_bytes_max)
{
    assert(!applier->body);
    assert(applier->changes == 0 && applier->rows == 0);
    TRY(log_reserve(applier->log, CHANGE_BODY_HEAD_BYTES + changes_bytes_max));
    applier->body = log_append_begin(applier->log, &applier->body_loc);
    applier->body_bytes = CHANGE_BODY_HEAD_BYTES;
    applier->changes = 0;
    applier->rows = 0;
    return ST_OK;
}

/*
 * Ends the request: with changes it becomes a record and a revision, with rows alone a record,
 * without either nothing. Takes the status of the answer and returns that of the request: a write
 * that was applied and cannot be answered returns etcd's error for an unknown outcome, because a
 * client may take any other error as proof that nothing was written.
 */
static enum status record_end(struct applier *applier, enum status answered)
{
    bool changed = applier->changes > 0 || applier->rows > 0;
    assert(applier->body);
    assert(changed == (applier->body_bytes > CHANGE_BODY_HEAD_BYTES));
    if (!changed) {
        log_append_abort(applier->log);
    } else {
        uint32_t counts[2] = {applier->changes, applier->rows};
        _Static_assert(sizeof(counts) == CHANGE_BODY_HEAD_BYTES, "the head of a body");
        memcpy(applier->body, counts, sizeof(counts));
        applier->revision += applier->changes > 0;
        log_append_end(applier->log, applier->changes ? LOG_RECORD_KV : LOG_RECORD_ROWS,
                       applier->revision, applier->body_bytes);
    }
    applier->body = NULL;
    applier->changes = 0;
    applier->rows = 0;
    return answered != ST_OK && changed ? ST_TIMEOUT : answered;
}

static void account(struct applier *applier, size_t field_bytes)
{
    applier->db_bytes_in_use += applier_db_bytes(field_bytes);
    applier_settle_size(applier);
}

/* Where a change belongs. */
struct change_place {
    uint32_t sub;                    /* in its revision */
    const struct index_item *before; /* the key's item; NULL: it has none */
    /* Path that index_put_begin found; NULL: the index searches for the key. */
    struct index_path *path;
};

static void index_change(struct index *index, const struct change_place *place, struct slice key,
                         const struct index_version *version)
{
    if (place->path)
        index_put_end(index, key, version, place->path);
    else
        index_put(index, key, version);
}

/* Appends one change to the record and updates the index. */
static void change_append_at(struct applier *applier, const struct change_place *place,
                             const struct change_kv *kv, bool tombstone)
{
    const struct index_item *before = place->before;
    assert(applier->body);
    assert(kv->mod_revision == applier->revision + 1);
    struct change_head head = {
        .revision = applier->revision + 1,
        .prev_revision = before ? before->newest.mod_revision : 0,
        .prev_sub = before ? before->newest.sub_revision : 0,
        .sub = place->sub,
        .flags = tombstone ? CHANGE_TOMBSTONE : 0,
    };
    log_loc loc = applier->body_loc + applier->body_bytes;
    applier->body_bytes += change_write(applier->body + applier->body_bytes, &head, kv);
    applier->changes++;
    account(applier, head.field_bytes);
    *(tombstone ? &applier->deletes : &applier->puts) += 1;
    applier->put_bytes += tombstone ? 0 : kv->key.len + kv->value.len;
    int64_t lease_before = before ? before->newest.lease : 0;
    index_change(applier->index, place, kv->key,
                 &(struct index_version){
                     .mod_revision = head.revision,
                     .create_revision = kv->create_revision,
                     .version = kv->version,
                     .lease = kv->lease,
                     .loc = loc,
                     .field_bytes = tombstone ? 0 : head.field_bytes,
                     .sub_revision = head.sub,
                 });
    /* Last, because the key may be stored with the lease that it leaves. */
    if (lease_before != kv->lease && applier->lease_moved)
        applier->lease_moved(applier->lease_ctx, kv->key, lease_before, kv->lease);
    yield_point_pass(1);
}

static void change_append(struct applier *applier, const struct index_item *before,
                          const struct change_kv *kv, bool tombstone)
{
    change_append_at(applier, &(struct change_place){.sub = applier->changes, .before = before}, kv,
                     tombstone);
}

static struct slice prev_field_of(const struct applier *applier, const struct index_item *item)
{
    if (!item || !index_item_live(item))
        return SLICE_EMPTY;
    const uint8_t *change = log_mapped_at(applier->log, item->newest.loc);
    return slice_of(change + CHANGE_HEAD_BYTES, item->newest.field_bytes);
}

/*
 * Versions that a request returns or keeps must be undamaged; this is checked before it is applied.
 */
static enum status version_check(const struct applier *applier, const struct index_item *item)
{
    const struct change_head *change;
    if (!item || !index_item_live(item))
        return ST_OK;
    return version_get(applier->log, item, item->newest.loc, &change);
}

/* -- Put -- */

/* What etcd checks before it applies a put, in its order. */
static enum status put_check(const struct applier *applier, const struct pb_put_request *request)
{
    if (request->lease &&
        !(applier->lease_exists && applier->lease_exists(applier->lease_ctx, request->lease)))
        return ST_LEASE_NOT_FOUND;
    if (!request->ignore_value && !request->ignore_lease && !request->prev_kv)
        return ST_OK; /* nothing of the version before is needed */
    const struct index_item *item = index_find(applier->index, request->key);
    if (request->ignore_value || request->prev_kv)
        TRY(version_check(applier, item));
    bool must_exist = request->ignore_value || request->ignore_lease;
    return !must_exist || (item && index_item_live(item)) ? ST_OK : ST_KEY_NOT_FOUND;
}

/* An upper bound of what a put adds to a record. */
static size_t put_bytes_max(const struct applier *applier, const struct pb_put_request *request)
{
    size_t value_bytes = request->value.len;
    if (request->ignore_value) {
        const struct index_item *item = index_find(applier->index, request->key);
        value_bytes = item ? item->newest.field_bytes : 0;
    }
    return change_bytes_max(request->key.len, value_bytes);
}

/* The value, which put_check has verified or this request has written. */
static struct slice value_of(const struct applier *applier, const struct index_item *item)
{
    const struct change_head *change;
    if (change_get(applier->log, item->newest.loc, &change) != ST_OK)
        return SLICE_EMPTY;
    struct change_kv kv;
    change_read_kv(change, &kv);
    return kv.value;
}

static void put_run(struct applier *applier, const struct pb_put_request *request,
                    struct kv_answer *answer)
{
    struct index_path path;
    const struct index_item *before = index_put_begin(applier->index, request->key, &path);
    bool exists = before && index_item_live(before);
    struct change_kv kv = {
        .key = request->key,
        .create_revision = exists ? before->newest.create_revision : applier->revision + 1,
        .mod_revision = applier->revision + 1,
        .version = exists ? before->newest.version + 1 : 1,
        .value = request->value,
        .lease = request->lease,
    };
    if (request->ignore_value && exists)
        kv.value = value_of(applier, before);
    if (request->ignore_lease && exists)
        kv.lease = before->newest.lease;
    *answer = (struct kv_answer){.kind = KV_ANSWER_PUT, .revision = applier->revision + 1};
    if (request->prev_kv)
        answer->put.prev_field = prev_field_of(applier, before);
    struct change_place place = {.sub = applier->changes, .before = before, .path = &path};
    change_append_at(applier, &place, &kv, false);
}

enum status applier_put(struct applier *applier, const struct pb_put_request *request,
                        struct arena *arena, struct kv_answer *ret_answer)
{
    (void)arena; /* as all requests have it */
    TRY(put_check(applier, request));
    TRY(record_begin(applier, put_bytes_max(applier, request)));
    put_run(applier, request, ret_answer);
    return record_end(applier, ST_OK);
}

/* -- DeleteRange -- */

/* An upper bound for the tombstones of the keys that exist now. */
static size_t delete_bytes_max(const struct applier *applier, struct range_bounds bounds)
{
    struct range_state state = state_of(applier);
    struct range_walk walk;
    range_walk_init(&walk, &state, bounds, 0);
    size_t bytes = 0;
    for (const struct range_kv *kv; (kv = range_walk_next(&walk));)
        bytes += change_bytes_max(kv->item->key_len, 0);
    return bytes;
}

static enum status delete_check(const struct applier *applier,
                                const struct pb_delete_range_request *request)
{
    if (!request->prev_kv)
        return ST_OK;
    struct range_state state = state_of(applier);
    struct range_walk walk;
    range_walk_init(&walk, &state, range_bounds_of(request->key, request->range_end), 0);
    for (const struct range_kv *kv; (kv = range_walk_next(&walk));)
        TRY(version_check(applier, kv->item));
    return ST_OK;
}

/*
 * Collects the items first, because deleting changes the tree that is walked. They stay readable
 * meanwhile.
 */
static void delete_collect(struct applier *applier, struct range_bounds bounds)
{
    struct range_state state = state_of(applier);
    struct range_walk walk;
    range_walk_init(&walk, &state, bounds, 0);
    buf_reset(&applier->keys, 1 << 20);
    for (const struct range_kv *kv; (kv = range_walk_next(&walk));)
        must_have_memory(buf_append(&applier->keys, slice_of(&kv->item, sizeof(kv->item))));
}

static enum status delete_answer_prev(struct applier *applier, struct arena *arena,
                                      struct kv_delete_answer *answer)
{
    const struct index_item *const *items = (const void *)applier->keys.ptr;
    size_t count = (size_t)answer->deleted;
    assert(count == applier->keys.len / sizeof(*items));
    struct slice *fields = arena_calloc(arena, count, sizeof(*fields));
    if (!fields)
        return ST_NOMEM;
    for (size_t i = 0; i < count; i++) {
        fields[i] = prev_field_of(applier, items[i]);
        answer->prev_fields_bytes += fields[i].len;
    }
    answer->prev_fields = fields;
    answer->prev_field_count = count;
    return ST_OK;
}

/* Always deletes. Only the answer can fail, when memory is exhausted (see record_end). */
static enum status delete_run(struct applier *applier,
                              const struct pb_delete_range_request *request, struct arena *arena,
                              struct kv_answer *answer)
{
    delete_collect(applier, range_bounds_of(request->key, request->range_end));
    const struct index_item *const *items = (const void *)applier->keys.ptr;
    size_t count = applier->keys.len / sizeof(*items);
    assert(applier->keys.len % sizeof(*items) == 0);
    *answer = (struct kv_answer){.kind = KV_ANSWER_DELETE, .delete_range.deleted = (int64_t)count};
    enum status status = ST_OK;
    if (request->prev_kv)
        status = delete_answer_prev(applier, arena, &answer->delete_range);
    for (size_t i = 0; i < count; i++) {
        struct change_kv kv = {.key = index_item_key(items[i]),
                               .mod_revision = applier->revision + 1};
        change_append(applier, items[i], &kv, true);
    }
    answer->revision = applier->revision + (applier->changes > 0);
    return status;
}

enum status applier_delete_range(struct applier *applier,
                                 const struct pb_delete_range_request *request, struct arena *arena,
                                 struct kv_answer *ret_answer)
{
    struct range_bounds bounds = range_bounds_of(request->key, request->range_end);
    TRY(delete_check(applier, request));
    TRY(record_begin(applier, delete_bytes_max(applier, bounds)));
    return record_end(applier, delete_run(applier, request, arena, ret_answer));
}

/* -- Txn -- */

bool applier_txn_is_read_only(const struct pb_txn_request *request)
{
    for (int branch = 0; branch < 2; branch++) {
        struct txn_branch ops = txn_branch_of(request, branch == 0);
        for (size_t i = 0; i < ops.count; i++) {
            if (ops.ops[i].request_case != PB_REQUEST_OP_REQUEST_RANGE)
                return false;
        }
    }
    return true;
}

/* The space that the chosen operations may need, summed while they are checked. */
struct txn_need {
    size_t bytes;
    size_t put_keys_bytes; /* for tombstones of keys that the transaction itself puts */
    size_t deletes;
};

static enum status txn_check(struct applier *applier, const struct pb_txn_request *request,
                             const bool **choices, struct txn_need *need)
{
    struct txn_branch branch = txn_branch_of(request, *(*choices)++);
    struct range_state state = state_of(applier);
    for (size_t i = 0; i < branch.count; i++) {
        const struct pb_request_op *op = &branch.ops[i];
        switch (op->request_case) {
        case PB_REQUEST_OP_REQUEST_RANGE:
            TRY(txn_check_range(&state, op->request_range));
            break;
        case PB_REQUEST_OP_REQUEST_PUT:
            TRY(put_check(applier, op->request_put));
            need->bytes += put_bytes_max(applier, op->request_put);
            need->put_keys_bytes += change_bytes_max(op->request_put->key.len, 0);
            break;
        case PB_REQUEST_OP_REQUEST_DELETE_RANGE:
            need->deletes++;
            TRY(delete_check(applier, op->request_delete_range));
            need->bytes +=
                delete_bytes_max(applier, range_bounds_of(op->request_delete_range->key,
                                                          op->request_delete_range->range_end));
            break;
        case PB_REQUEST_OP_REQUEST_TXN:
            TRY(txn_check(applier, op->request_txn, choices, need));
            break;
        default:
            break;
        }
    }
    return ST_OK;
}

/*
 * Checks before anything is written that what the transaction reads can be answered; afterwards the
 * only possible error would be an unknown outcome. Its own earlier writes need no check.
 */
static enum status txn_check_reads(const struct range_state *state,
                                   const struct pb_txn_request *request, const bool **choices)
{
    struct txn_branch branch = txn_branch_of(request, *(*choices)++);
    for (size_t i = 0; i < branch.count; i++) {
        const struct pb_request_op *op = &branch.ops[i];
        if (op->request_case == PB_REQUEST_OP_REQUEST_TXN)
            TRY(txn_check_reads(state, op->request_txn, choices));
        if (op->request_case != PB_REQUEST_OP_REQUEST_RANGE)
            continue;
        AUTO(arena_fini) struct arena arena;
        arena_init(&arena, NULL, 0, SIZE_MAX);
        struct kv_range_answer answer;
        TRY(range_answer(state, op->request_range, &arena, &answer));
    }
    return ST_OK;
}

static enum status txn_run(struct applier *applier, const struct pb_txn_request *request,
                           const bool **choices, struct arena *arena, struct kv_answer *answer);

static enum status op_run(struct applier *applier, const struct pb_request_op *op,
                          const bool **choices, struct arena *arena, struct kv_answer *answer)
{
    switch (op->request_case) {
    case PB_REQUEST_OP_REQUEST_RANGE: {
        struct range_state state = state_of(applier);
        *answer = (struct kv_answer){.kind = KV_ANSWER_RANGE, .revision = state.revision};
        return range_answer(&state, op->request_range, arena, &answer->range);
    }
    case PB_REQUEST_OP_REQUEST_PUT:
        put_run(applier, op->request_put, answer);
        return ST_OK;
    case PB_REQUEST_OP_REQUEST_DELETE_RANGE:
        return delete_run(applier, op->request_delete_range, arena, answer);
    case PB_REQUEST_OP_REQUEST_TXN:
        return txn_run(applier, op->request_txn, choices, arena, answer);
    default:
        assert(false && "the API code rejects empty operations");
        return ST_INTERNAL;
    }
}

/*
 * Runs all operations even when memory for an answer is exhausted, because a transaction is all or
 * nothing.
 */
static enum status txn_run(struct applier *applier, const struct pb_txn_request *request,
                           const bool **choices, struct arena *arena, struct kv_answer *answer)
{
    bool succeeded = *(*choices)++;
    struct txn_branch branch = txn_branch_of(request, succeeded);
    struct kv_answer *answers = arena_calloc(arena, branch.count, sizeof(*answers));
    enum status status = answers ? ST_OK : ST_NOMEM;
    struct kv_answer dropped;
    for (size_t i = 0; i < branch.count; i++) {
        enum status one =
            op_run(applier, &branch.ops[i], choices, arena, answers ? &answers[i] : &dropped);
        if (status == ST_OK)
            status = one;
    }
    *answer = (struct kv_answer){
        .kind = KV_ANSWER_TXN,
        .txn = {.succeeded = succeeded, .answers = answers, .answer_count = branch.count},
    };
    return status;
}

enum status applier_txn(struct applier *applier, const struct pb_txn_request *request,
                        struct arena *arena, struct kv_answer *ret_answer)
{
    struct range_state state = state_of(applier);
    struct txn_path path;
    TRY(txn_choose(&state, request, arena, &path));

    struct txn_need need = {0};
    const bool *choices = path.choices;
    TRY(txn_check(applier, request, &choices, &need));
    assert(choices == path.choices + path.count);
    choices = path.choices;
    if (need.bytes) /* it writes: without a write, an error of a read is an error of the request */
        TRY(txn_check_reads(&state, request, &choices));
    TRY(record_begin(applier, need.bytes + need.put_keys_bytes * (need.deletes > 0)));

    choices = path.choices;
    enum status status =
        record_end(applier, txn_run(applier, request, &choices, arena, ret_answer));
    assert(choices == path.choices + path.count); /* every branch that was chosen was run */
    ret_answer->revision = applier->revision;
    return status;
}

/* -- Rows -- */

static enum status rows_bytes_max(const struct row *rows, size_t row_count,
                                  const struct slice *keys, size_t key_count, size_t *ret_bytes)
{
    size_t bytes = 0;
    for (size_t i = 0; i < row_count; i++) {
        if (rows[i].key.len > ROW_KEY_BYTES_MAX)
            return ST_LIMIT;
        bytes += row_bytes(&rows[i]);
    }
    for (size_t i = 0; i < key_count; i++)
        bytes += change_bytes_max(keys[i].len, 0);
    *ret_bytes = bytes;
    return ST_OK;
}

enum status applier_rows(struct applier *applier, const struct row *rows, size_t row_count,
                         const struct slice *keys, size_t key_count, int64_t *ret_revision)
{
    size_t bytes;
    assert(row_count <= UINT32_MAX);
    TRY(rows_bytes_max(rows, row_count, keys, key_count, &bytes));
    TRY(record_begin(applier, bytes));
    for (size_t i = 0; i < key_count; i++) {
        const struct index_item *item = index_find(applier->index, keys[i]);
        if (!item || !index_item_live(item))
            continue; /* deleted before, perhaps by this record */
        struct change_kv kv = {.key = keys[i], .mod_revision = applier->revision + 1};
        change_append(applier, item, &kv, true);
    }
    for (size_t i = 0; i < row_count; i++)
        applier->body_bytes += row_write(applier->body + applier->body_bytes, &rows[i]);
    applier->rows = (uint32_t)row_count;
    enum status status = record_end(applier, ST_OK);
    if (ret_revision)
        *ret_revision = applier->revision;
    return status;
}

/* -- Importing what another server has stored -- */

static enum status kept_check(const struct applier *applier, int64_t revision,
                              const struct imported_change *changes, size_t count,
                              size_t *ret_bytes)
{
    if (count == 0 || count > UINT32_MAX || revision <= applier->revision)
        return ST_INVALID;
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        if (i && changes[i].sub <= changes[i - 1].sub)
            return ST_INVALID;
        bytes += change_bytes_max(changes[i].kv.key.len, changes[i].kv.value.len);
    }
    *ret_bytes = bytes;
    return ST_OK;
}

static enum status import(struct applier *applier, int64_t revision,
                          const struct imported_change *changes, size_t count, bool mirrors)
{
    size_t bytes;
    TRY(kept_check(applier, revision, changes, count, &bytes));
    TRY(record_begin(applier, bytes));
    applier->revision = revision - 1; /* revisions that were compacted in between are skipped */
    for (size_t i = 0; i < count; i++) {
        struct change_kv kv = changes[i].kv;
        kv.mod_revision = revision;
        const struct index_item *before = index_find(applier->index, kv.key);
        if (mirrors && changes[i].is_tombstone && !(before && index_item_live(before)))
            continue;
        change_append_at(applier, &(struct change_place){.sub = changes[i].sub, .before = before},
                         &kv, changes[i].is_tombstone);
    }
    return record_end(applier, ST_OK);
}

enum status applier_import(struct applier *applier, int64_t revision,
                           const struct imported_change *changes, size_t count)
{
    return import(applier, revision, changes, count, false);
}

/* -- A mirror -- */

enum status applier_mirror(struct applier *applier, int64_t revision,
                           const struct imported_change *changes, size_t count)
{
    TRY(import(applier, revision, changes, count, true));
    applier_reach(applier, revision); /* also if no change was left */
    assert(applier->revision == revision);
    return ST_OK;
}

void applier_reach(struct applier *applier, int64_t revision)
{
    if (applier->revision < revision)
        applier->revision = revision;
}

enum status applier_mirror_compact(struct applier *applier, int64_t compact, int64_t reached)
{
    struct change_compaction body = {.compact_revision = compact, .reached = reached};
    log_loc loc;
    TRY(log_reserve(applier->log, sizeof(body)));
    memcpy(log_append_begin(applier->log, &loc), &body, sizeof(body));
    log_append_end(applier->log, LOG_RECORD_COMPACT, 0, sizeof(body));
    applier->compact_revision = compact;
    applier_reach(applier, reached);
    return ST_OK;
}

/* -- Compaction and replay -- */

enum status applier_compact(struct applier *applier, int64_t revision)
{
    if (revision <= applier->compact_revision)
        return ST_COMPACTED;
    if (revision > applier->revision)
        return ST_FUTURE_REV;
    log_loc loc;
    TRY(log_reserve(applier->log, sizeof(revision)));
    memcpy(log_append_begin(applier->log, &loc), &revision, sizeof(revision));
    log_append_end(applier->log, LOG_RECORD_COMPACT, 0, sizeof(revision));
    applier->compact_revision = revision;
    assert(applier_is_complete(applier));
    return ST_OK;
}

static enum status replay_kv(struct applier *applier, const struct log_record *record)
{
    struct change_walk walk;
    TRY(change_walk_init(&walk, record->body));
    const struct change_head *head;
    size_t offset;
    for (;;) {
        TRY(change_walk_next(&walk, &head, &offset));
        if (!head)
            break;
        struct change_kv kv;
        change_read_kv(head, &kv);
        index_put(applier->index, kv.key,
                  &(struct index_version){
                      .mod_revision = head->revision,
                      .create_revision = kv.create_revision,
                      .version = kv.version,
                      .lease = kv.lease,
                      .loc = record->body_loc + offset,
                      .field_bytes = change_is_tombstone(head) ? 0 : head->field_bytes,
                      .sub_revision = head->sub,
                  });
        account(applier, head->field_bytes);
    }
    applier->revision = record->revision;
    return ST_OK;
}

static enum status replay_rows(const struct applier *applier, const struct log_record *record)
{
    struct row_walk walk;
    TRY(row_walk_init(&walk, record->body));
    struct row row;
    enum status status;
    while ((status = row_walk_next(&walk, &row)) == ST_OK) {
        if (applier->row_seen)
            TRY(applier->row_seen(applier->row_ctx, &row));
    }
    return status == ST_END ? ST_OK : status;
}

static enum status replay_compaction(struct applier *applier, const struct log_record *record)
{
    struct change_compaction compaction;
    TRY(change_compaction_read(record->body, &compaction));
    applier->compact_revision = compaction.compact_revision;
    applier_reach(applier, compaction.reached);
    return ST_OK;
}

enum status applier_replay(struct applier *applier, const struct log_record *record)
{
    switch (record->type) {
    case LOG_RECORD_KV:
        TRY(replay_kv(applier, record));
        return replay_rows(applier, record);
    case LOG_RECORD_ROWS:
        return replay_rows(applier, record);
    case LOG_RECORD_COMPACT:
        return replay_compaction(applier, record);
    default:
        return ST_WRONG_FORMAT;
    }
}
