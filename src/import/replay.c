#include "import/replay.h"

#include "auth/check.h"
#include "auth/store.h"
#include "base/random.h"
#include "base/xalloc.h"
#include "codec/pb/wire.h"
#include "import/db.h"
#include "import/replay_auth.h"
#include "lease/lessor.h"
#include "store/record/row_values.h"

#include <stdlib.h>

enum {
    ENTRY_NORMAL = 0,
    REQUEST_V2 = 2,      /* the number of the field, and that of the method in a request of v2 */
    LEASE_TTL_MIN_S = 2, /* etcd's minimum, unless its election timeout was changed */
    ALARMS_MAX = 64,
    LOOKS_DEEPER_MINOR = 7,
};
/* The limit for an answer, which is not used. */
#define ARENA_BYTES_MAX ((size_t)256 << 20)

struct alarm {
    int32_t type;
    uint64_t member_id;
};

struct import_replay {
    struct store_builder *builder; /* borrowed */
    unsigned etcd_minor;
    struct auth_store *auth;
    struct auth_rights *rights; /* computed from it */
    struct lessor *lessor;
    struct buf loaded; /* struct lessor_kept, until the start */
    struct slice *keys;
    size_t keys_capacity;
    struct alarm alarms[ALARMS_MAX];
    size_t alarm_count;
    struct import_replay_counts counts;
};

struct import_replay *import_replay_new(struct store_builder *builder, unsigned etcd_minor)
{
    struct import_replay *replay = xcalloc(1, sizeof(*replay));
    replay->etcd_minor = etcd_minor;
    replay->builder = builder;
    replay->auth = auth_store_new();
    replay->lessor = lessor_new(random_seed_system());
    return replay;
}

void import_replay_free(struct import_replay *replay)
{
    if (!replay)
        return;
    auth_rights_unref(replay->rights);
    auth_store_free(replay->auth);
    lessor_free(replay->lessor);
    buf_fini(&replay->loaded);
    free(replay->keys);
    free(replay);
}

const struct import_replay_counts *import_replay_counts(const struct import_replay *replay)
{
    return &replay->counts;
}

void import_replay_tally(const struct import_replay *replay, struct import_counts *counts)
{
    counts->leases = lessor_count(replay->lessor);
    counts->users = auth_store_user_count(replay->auth);
    counts->roles = auth_store_role_count(replay->auth);
    counts->alarms = replay->alarm_count;
    counts->auth_enabled = auth_store_enabled(replay->auth);
}

static struct applier *applier_of(const struct import_replay *replay)
{
    return store_applier(store_builder_store(replay->builder));
}

/* -- The state before the first entry -- */

static size_t alarm_find(const struct import_replay *replay, int32_t type, uint64_t member_id)
{
    size_t at = 0;
    while (at < replay->alarm_count &&
           !(replay->alarms[at].type == type && replay->alarms[at].member_id == member_id))
        at++;
    return at;
}

static bool alarm_is_raised(const struct import_replay *replay, int32_t type)
{
    for (size_t i = 0; i < replay->alarm_count; i++) {
        if (replay->alarms[i].type == type)
            return true;
    }
    return false;
}

static enum status take_alarm(struct import_replay *replay, const struct row *row)
{
    struct alarm alarm;
    TRY(alarm_row_read(row, &alarm.type, &alarm.member_id));
    if (replay->alarm_count == ALARMS_MAX)
        return ST_LIMIT;
    replay->alarms[replay->alarm_count++] = alarm;
    return ST_OK;
}

static enum status take_lease(struct import_replay *replay, const struct row *row)
{
    struct lease_row lease;
    TRY(lease_row_read(row, &lease));
    struct lessor_kept kept = {.id = lease.id, .ttl_s = lease.ttl_s};
    return buf_append(&replay->loaded, slice_of(&kept, sizeof(kept)));
}

enum status import_replay_row(void *ctx, const struct row *row)
{
    struct import_replay *replay = ctx;
    switch (row->table) {
    case ROW_LEASE:
        return take_lease(replay, row);
    case ROW_ALARM:
        return take_alarm(replay, row);
    default:
        return import_auth_take_row(replay->auth, row);
    }
}

static bool lease_exists(void *ctx, int64_t id)
{
    const struct import_replay *replay = ctx;
    return lessor_has(replay->lessor, id);
}

static void lease_moved(void *ctx, struct slice key, int64_t from, int64_t to)
{
    struct import_replay *replay = ctx;
    lessor_move_key(replay->lessor, key, from, to);
}

static void renew_rights(struct import_replay *replay)
{
    auth_rights_unref(replay->rights);
    replay->rights = auth_rights_new(replay->auth);
}

enum status import_replay_start(struct import_replay *replay)
{
    TRY(store_builder_flush(replay->builder));
    const struct lessor_kept *kept = (const void *)replay->loaded.ptr;
    lessor_load(replay->lessor, kept, replay->loaded.len / sizeof(*kept), 0);
    buf_fini(&replay->loaded);
    /* Keys refer to their leases, but not the reverse. The lessor must know the keys of each lease
     * to revoke it. */
    if (lessor_count(replay->lessor))
        store_leased_keys(store_builder_store(replay->builder), lease_moved, replay);
    struct applier *applier = applier_of(replay);
    applier->lease_exists = lease_exists;
    applier->lease_moved = lease_moved;
    applier->lease_ctx = replay;
    renew_rights(replay);
    return ST_OK;
}

/* -- Whether it may -- */

static enum status each_key(void *ctx, int64_t lease, uint64_t whose, auth_key_fn visit,
                            void *visit_ctx)
{
    const struct import_replay *replay = ctx;
    (void)whose;
    return lessor_each_key(replay->lessor, lease, UINT32_MAX, visit, visit_ctx);
}

static struct auth_asker asker_of(struct import_replay *replay,
                                  const struct pb_log_request *request)
{
    struct auth_asker asker = {
        .rights = replay->rights,
        .leases = {.ctx = replay, .each_key = each_key},
    };
    if (request->header) {
        asker.principal.user = request->header->username;
        asker.principal.revision = request->header->auth_revision;
    }
    return asker;
}

/* A transaction that cannot write is allowed when the space is exceeded. Before 3.7 a nested one
 * was not examined, and so was allowed as well. */
static bool txn_puts(const struct pb_txn_request *request, bool looks_deeper)
{
    for (int branch = 0; branch < 2; branch++) {
        const struct pb_request_op *ops = branch ? request->failure : request->success;
        size_t count = branch ? request->failure_count : request->success_count;
        for (size_t i = 0; i < count; i++) {
            if (ops[i].request_case == PB_REQUEST_OP_REQUEST_PUT ||
                (looks_deeper && ops[i].request_case == PB_REQUEST_OP_REQUEST_TXN &&
                 txn_puts(ops[i].request_txn, true)))
                return true;
        }
    }
    return false;
}

static enum status check_alarms(const struct import_replay *replay,
                                const struct pb_log_request *request)
{
    bool is_kv = request->put || request->delete_range || request->txn || request->compaction ||
                 request->lease_grant || request->lease_revoke;
    if (is_kv && alarm_is_raised(replay, PB_ALARM_TYPE_CORRUPT))
        return ST_CORRUPT;
    /* Deleting, compacting and revoking free space, so they are allowed. */
    bool takes_space =
        request->put || request->lease_grant ||
        (request->txn && txn_puts(request->txn, replay->etcd_minor >= LOOKS_DEEPER_MINOR));
    if (takes_space && alarm_is_raised(replay, PB_ALARM_TYPE_NOSPACE))
        return ST_NO_SPACE;
    return ST_OK;
}

static enum status check_rights(struct import_replay *replay, const struct pb_log_request *request)
{
    struct auth_asker asker = asker_of(replay, request);
    if (import_auth_needs_admin(request))
        return auth_rights_check_admin(replay->rights, &asker.principal);
    if (request->put)
        return auth_check_put(&asker, request->put);
    if (request->delete_range)
        return auth_check_delete_range(&asker, request->delete_range);
    if (request->txn)
        return auth_check_txn(&asker, request->txn);
    if (request->lease_revoke)
        return auth_check_lease_write(&asker, request->lease_revoke->id);
    return ST_OK;
}

/* -- Doing it -- */

/* Checks what an API would have checked; the log of a real etcd contains nothing else. Removes
 * options of ranges that only affect the answer. */
static enum status txn_prepare(struct pb_txn_request *request)
{
    for (int branch = 0; branch < 2; branch++) {
        struct pb_request_op *ops = branch ? request->failure : request->success;
        size_t count = branch ? request->failure_count : request->success_count;
        for (size_t i = 0; i < count; i++) {
            struct pb_request_op *op = &ops[i];
            switch (op->request_case) {
            case PB_REQUEST_OP_REQUEST_RANGE: {
                struct pb_range_request *range = op->request_range;
                /* The range must still be examined, because a compacted or future revision makes
                 * the transaction fail. */
                *range = (struct pb_range_request){.key = range->key,
                                                   .range_end = range->range_end,
                                                   .revision = range->revision,
                                                   .count_only = true};
                break;
            }
            case PB_REQUEST_OP_REQUEST_PUT:
                if (op->request_put->key.len == 0)
                    return ST_DAMAGED;
                op->request_put->prev_kv = false;
                break;
            case PB_REQUEST_OP_REQUEST_DELETE_RANGE:
                op->request_delete_range->prev_kv = false;
                break;
            case PB_REQUEST_OP_REQUEST_TXN:
                TRY(txn_prepare(op->request_txn));
                break;
            default:
                return ST_DAMAGED;
            }
        }
    }
    return ST_OK;
}

static enum status grant(struct import_replay *replay, const struct pb_lease_grant_request *request)
{
    if (request->id == 0)
        return ST_LEASE_NOT_FOUND;
    TRY(lessor_check_grant(replay->lessor, request->id, request->ttl));
    int64_t ttl_s = request->ttl > LEASE_TTL_MIN_S ? request->ttl : LEASE_TTL_MIN_S;
    struct lease_row lease = {.id = request->id, .ttl_s = ttl_s};
    struct row row = lease_row_make(&lease, false);
    TRY(applier_rows(applier_of(replay), &row, 1, NULL, 0, NULL));
    lessor_grant(replay->lessor, lease.id, lease.ttl_s, 0);
    return ST_OK;
}

static enum status revoke(struct import_replay *replay, int64_t id)
{
    struct lessor_lease found;
    if (!lessor_get(replay->lessor, id, &found))
        return ST_LEASE_NOT_FOUND;
    if (found.key_count > replay->keys_capacity) {
        replay->keys_capacity = found.key_count;
        replay->keys = xrealloc(replay->keys, found.key_count * sizeof(*replay->keys));
    }
    if (found.key_count) {
        lessor_keys(replay->lessor, id, replay->keys);
        /* etcd deletes the keys of a lease in the order of their names, which numbers the changes
         * of the revision. */
        lessor_keys_sort(replay->keys, found.key_count);
    }
    struct row row = lease_row_make(&(struct lease_row){.id = id}, true);
    TRY(applier_rows(applier_of(replay), &row, 1, replay->keys, found.key_count, NULL));
    lessor_revoke(replay->lessor, id);
    return ST_OK;
}

/* A leader records the remaining time of a lease now and then. */
static enum status checkpoint(struct import_replay *replay,
                              const struct pb_lease_checkpoint_request *request)
{
    for (size_t i = 0; i < request->checkpoints_count; i++) {
        const struct pb_lease_checkpoint *one = &request->checkpoints[i];
        struct lessor_lease found;
        /* The lease was revoked between the checkpoint and its place in the log. */
        if (!lessor_get(replay->lessor, one->id, &found))
            continue;
        struct lease_row lease = {.id = found.id, .ttl_s = found.ttl_s};
        if (one->remaining_ttl > 0 && one->remaining_ttl < found.ttl_s)
            lease.remaining_s = one->remaining_ttl;
        struct row row = lease_row_make(&lease, false);
        TRY(applier_rows(applier_of(replay), &row, 1, NULL, 0, NULL));
    }
    return ST_OK;
}

static enum status change_alarm(struct import_replay *replay,
                                const struct pb_alarm_request *request)
{
    bool raise = request->action == PB_ALARM_ACTION_ACTIVATE;
    /* A request that only lists the alarms changes nothing. */
    if (!raise && request->action != PB_ALARM_ACTION_DEACTIVATE)
        return ST_OK;
    size_t at = alarm_find(replay, request->alarm, request->member_id);
    if ((at < replay->alarm_count) == raise || request->alarm == PB_ALARM_TYPE_NONE)
        return ST_OK;
    if (raise && replay->alarm_count == ALARMS_MAX)
        return ST_LIMIT;
    struct alarm_row_key key = alarm_row_key_make(request->alarm, request->member_id);
    struct row row = alarm_row_make(&key, !raise);
    TRY(applier_rows(applier_of(replay), &row, 1, NULL, 0, NULL));
    if (raise)
        replay->alarms[replay->alarm_count++] = (struct alarm){request->alarm, request->member_id};
    else
        replay->alarms[at] = replay->alarms[--replay->alarm_count];
    return ST_OK;
}

static enum status change_keys(struct import_replay *replay, struct pb_log_request *request,
                               struct arena *arena)
{
    struct applier *applier = applier_of(replay);
    struct kv_answer answer;
    if (request->put) {
        if (request->put->key.len == 0)
            return ST_DAMAGED;
        request->put->prev_kv = false;
        return applier_put(applier, request->put, arena, &answer);
    }
    if (request->delete_range) {
        request->delete_range->prev_kv = false;
        return applier_delete_range(applier, request->delete_range, arena, &answer);
    }
    TRY(txn_prepare(request->txn));
    return applier_txn(applier, request->txn, arena, &answer);
}

static enum status execute(struct import_replay *replay, struct pb_log_request *request,
                           struct arena *arena)
{
    if (request->put || request->delete_range || request->txn)
        return change_keys(replay, request, arena);
    if (request->compaction)
        return applier_compact(applier_of(replay), request->compaction->revision);
    if (request->lease_grant)
        return grant(replay, request->lease_grant);
    if (request->lease_revoke)
        return revoke(replay, request->lease_revoke->id);
    if (request->lease_checkpoint)
        return checkpoint(replay, request->lease_checkpoint);
    if (request->alarm)
        return change_alarm(replay, request->alarm);
    bool changed = false;
    TRY(import_auth_change(replay->auth, applier_of(replay), request, arena, &changed));
    if (changed)
        renew_rights(replay);
    return ST_OK;
}

/* The request was refused as etcd refuses requests of clients, and nothing else is wrong. */
static bool is_refusal(enum status status)
{
    return status != ST_OK && status < ST_NOMEM && status != ST_TIMEOUT;
}

static enum status run(struct import_replay *replay, struct pb_log_request *request,
                       struct arena *arena)
{
    enum status status = check_alarms(replay, request);
    if (status == ST_OK)
        status = check_rights(replay, request);
    if (status == ST_OK)
        status = execute(replay, request, arena);
    if (status == ST_TIMEOUT)
        status = ST_OK; /* done; only the unused answer was too long */
    /* etcd writes a request to its log before it knows whether it can be applied. */
    if (is_refusal(status)) {
        replay->counts.refused++;
        return ST_OK;
    }
    TRY(status);
    replay->counts.applied++;
    return store_builder_step(replay->builder);
}

/* Requests of the v2 API have their method, or themselves, in a field that v3 does not have. */
static enum status is_v2(struct slice bytes, bool *ret_is_v2)
{
    const uint8_t *p = bytes.ptr, *end = p + bytes.len;
    *ret_is_v2 = false;
    while (p < end) {
        uint64_t tag, number;
        size_t len;
        p = pb_varint_read(p, end, &tag);
        if (!p)
            return ST_DAMAGED;
        if (tag >> 3 == REQUEST_V2) {
            *ret_is_v2 = true;
            return ST_OK;
        }
        if ((tag & 7) == PB_WIRE_LEN) {
            p = pb_len_read(p, end, &len);
            p = p ? p + len : NULL;
        } else if ((tag & 7) == PB_WIRE_VARINT) {
            p = pb_varint_read(p, end, &number);
        } else {
            return ST_DAMAGED;
        }
        if (!p)
            return ST_DAMAGED;
    }
    return ST_OK;
}

enum status import_replay_entry(struct import_replay *replay, const struct pb_log_entry *entry)
{
    if (entry->type != ENTRY_NORMAL || entry->data.len == 0)
        return ST_OK; /* membership changes and elections */
    bool v2;
    TRY(is_v2(entry->data, &v2));
    replay->counts.v2 += v2;
    if (v2)
        return ST_OK;
    struct arena arena;
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    struct pb_log_request request;
    enum status status = pb_decode(&pb_log_request_table, entry->data, &arena, &request);
    if (status == ST_MALFORMED)
        status = ST_DAMAGED;
    if (status == ST_OK)
        status = run(replay, &request, &arena);
    arena_fini(&arena);
    return status;
}
