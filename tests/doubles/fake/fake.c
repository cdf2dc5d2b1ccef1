#include "fake/fake.h"

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/random.h"
#include "base/xalloc.h"
#include "codec/pb/rpc.pb.h"
#include "engine/auth_state.h"
#include "engine/member_list.h"
#include "fake/history.h"
#include "fake/lease.h"
#include "watch/hub.h"

enum { ANSWER_BYTES_MAX = 1 << 30, FRAGMENT_BYTES = 2 << 20, WATCHERS_MAX = 1000 * 1000 };

struct fake {
    struct engine engine; /* first */
    struct fake_options options;
    struct random random;
    struct fake_model *model;
    struct fake_lease *lease;
    struct auth_state auth;
    struct member_list members;
    struct auth_rights *rights; /* one reference: of the turn */
    struct engine_op **waiting; /* owned array of the callers' operations */
    size_t waiting_count;
    size_t open_count;
    uint64_t index;
    enum status fail_status; /* ST_OK: the next one does not fail */
    struct slice fail_text;
    struct fake_history *history; /* owned; NULL until the first watch */
    struct watch_hub *hub;        /* the same */
    int64_t now_ns;
    struct engine_alarm_row alarm; /* the only one; type 0: none */
    char downgrade_target[ENGINE_VERSION_BYTES_MAX];
};

struct fake_shard {
    struct engine_shard shard; /* first */
};

/* The memory of the answers of one operation. */
struct fake_answer {
    struct arena arena;
    struct kv_range_answer range;
    size_t field;      /* the next to be filled */
    size_t field_at;   /* bytes of it filled */
    size_t window_end; /* fields before it may be filled */
};

static struct fake *fake_of(const struct engine *engine)
{
    return CONTAINER_OF(engine, struct fake, engine);
}

static struct fake *fake_of_op(const struct engine_op *op)
{
    return fake_of(op->shard->engine);
}

/* -- Answers -- */

static struct fake_answer *answer_new(struct fake *fake)
{
    struct fake_answer *answer = xcalloc(1, sizeof(*answer));
    arena_init(&answer->arena, NULL, 0, ANSWER_BYTES_MAX);
    fake->open_count++;
    return answer;
}

static void answer_free(struct fake *fake, struct fake_answer *answer)
{
    assert(fake->open_count > 0);
    fake->open_count--;
    arena_fini(&answer->arena);
    free(answer);
}

/* Each piece has its own memory, so that a sanitizer finds uses after the next read. */
struct fake_snapshot {
    uint64_t made;
    uint8_t *piece;
};

static enum status run_snapshot(struct fake *fake, struct engine_snapshot *snapshot)
{
    struct fake_snapshot *state = snapshot->state;
    if (!state) {
        snapshot->state = xcalloc(1, sizeof(*state));
        snapshot->bytes = FAKE_SNAPSHOT_BYTES;
        fake->open_count++;
        return ST_OK;
    }
    free(state->piece);
    size_t len = size_min(FAKE_SNAPSHOT_BYTES - state->made, ENGINE_SNAPSHOT_PIECE_BYTES);
    assert(len > 0);
    state->piece = xmalloc(len);
    for (size_t i = 0; i < len; i++)
        state->piece[i] = (uint8_t)((state->made + i) % FAKE_SNAPSHOT_CYCLE);
    state->made += len;
    snapshot->piece = slice_of(state->piece, len);
    memset(snapshot->digest, state->made == FAKE_SNAPSHOT_BYTES ? 'd' : 0,
           sizeof(snapshot->digest));
    return ST_OK;
}

enum { OP_BYTES = 256 };

/* Allocates as the local engine does, so that tests notice when operations pile up in one arena. */
static bool take_memory(struct engine_op *op)
{
    return !op->arena || arena_alloc(op->arena, OP_BYTES);
}

static enum status run_range(struct fake *fake, struct engine_range *range)
{
    if (!take_memory(&range->op))
        return ST_NOMEM;
    struct fake_answer *answer = answer_new(fake);
    enum status status =
        fake_model_range(fake->model, range->op.request, &answer->arena, &answer->range);
    if (status != ST_OK) {
        answer_free(fake, answer);
        return status;
    }
    answer->window_end = answer->range.field_count;
    range->count = answer->range.count;
    range->more = answer->range.more;
    range->kvs = (int64_t)answer->range.field_count;
    range->kvs_bytes = answer->range.fields_bytes;
    range->state = answer;
    return ST_OK;
}

static enum status run_write(struct fake *fake, struct engine_write *write)
{
    if (!take_memory(&write->op))
        return ST_NOMEM;
    struct fake_answer *answer = answer_new(fake);
    struct arena *arena = &answer->arena;
    const void *request = write->op.request;
    enum status status;
    if (write->op.kind == ENGINE_PUT)
        status = fake_model_put(fake->model, request, arena, &write->answer);
    else if (write->op.kind == ENGINE_DELETE_RANGE)
        status = fake_model_delete(fake->model, request, arena, &write->answer);
    else
        status = fake_model_txn(fake->model, request, arena, &write->answer);
    fake->index++;
    if (status == ST_OK)
        write->op.pinned = (uint64_t)(uintptr_t)answer;
    else
        answer_free(fake, answer);
    return status;
}

static enum status run_compact(struct fake *fake, const struct pb_compaction_request *request)
{
    fake->index++;
    return fake_model_compact(fake->model, request->revision);
}

/* Not etcd's hash; it only depends on what is stored. */
static enum status run_hash(struct fake *fake, struct engine_hash *hash)
{
    struct pb_range_request everything = {.key = SLICE_LITERAL("\0"),
                                          .range_end = SLICE_LITERAL("\0"),
                                          .revision = hash->at_revision};
    struct fake_answer *answer = answer_new(fake);
    enum status status = fake_model_range(fake->model, &everything, &answer->arena, &answer->range);
    uint32_t sum = 0;
    for (size_t i = 0; status == ST_OK && i < answer->range.field_count; i++)
        sum = crc32c(sum, answer->range.fields[i]);
    answer_free(fake, answer);
    hash->hash = sum;
    hash->compact_revision = fake_model_compact_revision(fake->model);
    hash->hash_revision = hash->at_revision ? hash->at_revision : fake_model_revision(fake->model);
    return status;
}

/* One alarm at a time. */
static enum status run_alarm(struct fake *fake, struct engine_alarm *alarm)
{
    const struct pb_alarm_request *request = alarm->op.request;
    struct engine_alarm_row row = {.member_id = request->member_id, .type = request->alarm};
    bool is_it = fake->alarm.type == row.type && fake->alarm.member_id == row.member_id;
    alarm->rows = arena_alloc(alarm->op.arena, sizeof(*alarm->rows));
    if (!alarm->rows)
        return ST_NOMEM;
    alarm->row_count = 0;
    if (request->action == PB_ALARM_ACTION_ACTIVATE && row.type)
        fake->alarm = row;
    bool shown = request->action == PB_ALARM_ACTION_GET ? fake->alarm.type != 0 : row.type != 0;
    if (request->action == PB_ALARM_ACTION_DEACTIVATE)
        shown = is_it;
    if (shown)
        alarm->rows[alarm->row_count++] = fake->alarm;
    if (request->action == PB_ALARM_ACTION_DEACTIVATE && is_it)
        fake->alarm = (struct engine_alarm_row){0};
    return ST_OK;
}

static enum status run_downgrade(struct fake *fake, const char *target)
{
    bool under_way = fake->downgrade_target[0] != '\0';
    if (under_way != (*target == '\0'))
        return under_way ? ST_DOWNGRADE_IN_PROCESS : ST_NO_INFLIGHT_DOWNGRADE;
    snprintf(fake->downgrade_target, sizeof(fake->downgrade_target), "%s", target);
    return ST_OK;
}

static enum status run_auth(struct fake *fake, struct engine_auth *op)
{
    struct auth_change change;
    TRY(auth_state_decide(&fake->auth, op, op->op.arena, &change));
    auth_state_commit(&fake->auth, op, &change);
    return ST_OK;
}

static enum status run_members(struct fake *fake, struct engine_members *members)
{
    if (members->call != ENGINE_MEMBER_LIST)
        TRY(member_list_change(&fake->members, members));
    return member_list_copy(&fake->members, members);
}

/* -- Operations -- */

static enum status run(struct fake *fake, struct engine_op *op)
{
    struct auth_leases keys = fake_lease_keys(fake->lease);
    if (op->kind != ENGINE_AUTH) /* checks permissions itself */
        TRY(permission_check(op, fake->auth.rights, &keys));
    switch ((enum engine_kind)op->kind) {
    case ENGINE_RANGE:
        return run_range(fake, CONTAINER_OF(op, struct engine_range, op));
    case ENGINE_PUT:
    case ENGINE_DELETE_RANGE:
    case ENGINE_TXN:
        return run_write(fake, CONTAINER_OF(op, struct engine_write, op));
    case ENGINE_COMPACT:
        return run_compact(fake, op->request);
    case ENGINE_LEASE_GRANT:
    case ENGINE_LEASE_REVOKE:
    case ENGINE_LEASE_TIME_TO_LIVE:
    case ENGINE_LEASE_LIST:
    case ENGINE_LEASE_RENEW:
        fake->index++;
        return fake_lease_run(fake->lease, op, fake->auth.rights, fake->now_ns);
    case ENGINE_AUTH:
        return run_auth(fake, CONTAINER_OF(op, struct engine_auth, op));
    case ENGINE_MEMBERS:
        return run_members(fake, CONTAINER_OF(op, struct engine_members, op));
    case ENGINE_HASH_KV:
        return run_hash(fake, CONTAINER_OF(op, struct engine_hash, op));
    case ENGINE_ALARM:
        return run_alarm(fake, CONTAINER_OF(op, struct engine_alarm, op));
    case ENGINE_DEFRAGMENT:
        return atomic_load(&op->given_up) ? ST_CANCELED : ST_OK;
    case ENGINE_DOWNGRADE:
        return run_downgrade(fake, op->request);
    case ENGINE_SNAPSHOT_START:
    case ENGINE_SNAPSHOT_READ:
        return run_snapshot(fake, CONTAINER_OF(op, struct engine_snapshot, op));
    case ENGINE_WATCH_ADMIT: /* engine_watch_admit_by_rights */
    case ENGINE_NOT_STARTED:
        break;
    }
    return ST_INTERNAL;
}

static void complete(struct fake *fake, struct engine_op *op)
{
    op->text = SLICE_EMPTY;
    if (fake->fail_status != ST_OK) {
        op->status = fake->fail_status;
        op->text = fake->fail_text;
        fake->fail_status = ST_OK;
    } else {
        op->status = run(fake, op);
    }
    op->revision = fake_model_revision(fake->model);
    op->done(op);
}

static void start(struct engine_op *op)
{
    struct fake *fake = fake_of_op(op);
    op->pinned = 0;
    if (op->kind == ENGINE_RANGE)
        CONTAINER_OF(op, struct engine_range, op)->state = NULL;
    if (random_chance(&fake->random, fake->options.inline_percent, 100)) {
        complete(fake, op);
        return;
    }
    fake->waiting = xrealloc(fake->waiting, (fake->waiting_count + 1) * sizeof(struct engine_op *));
    fake->waiting[fake->waiting_count++] = op;
}

bool fake_step(struct engine *engine)
{
    struct fake *fake = fake_of(engine);
    if (fake->waiting_count == 0)
        return false;
    size_t chosen = random_below(&fake->random, fake->waiting_count);
    struct engine_op *op = fake->waiting[chosen];
    fake->waiting[chosen] = fake->waiting[--fake->waiting_count];
    complete(fake, op);
    return true;
}

size_t fake_waiting(const struct engine *engine)
{
    return fake_of(engine)->waiting_count;
}

size_t fake_open(const struct engine *engine)
{
    return fake_of(engine)->open_count;
}

void fake_fail_next(struct engine *engine, enum status status, struct slice text)
{
    fake_of(engine)->fail_status = status;
    fake_of(engine)->fail_text = text;
}

/* -- Functions of the table -- */

static void range_window(struct engine_range *range, int64_t keys_max, int64_t *ret_keys,
                         uint64_t *ret_bytes)
{
    struct fake_answer *answer = range->state;
    assert(answer->field_at == 0 && answer->field <= answer->window_end);
    size_t left = answer->range.field_count - answer->field;
    size_t keys = keys_max < (int64_t)left ? (size_t)keys_max : left;
    answer->window_end = answer->field + keys;
    *ret_keys = (int64_t)keys;
    *ret_bytes = 0;
    for (size_t i = answer->field; i < answer->window_end; i++)
        *ret_bytes += answer->range.fields[i].len;
}

static bool range_next(struct engine_range *range, struct slice *ret_field)
{
    struct fake_answer *answer = range->state;
    if (answer->field == answer->window_end)
        return false;
    *ret_field = answer->range.fields[answer->field++];
    return true;
}

static size_t range_fill(struct engine_range *range, uint8_t *dst, size_t room)
{
    struct fake_answer *answer = range->state;
    size_t filled = 0;
    while (filled < room && answer->field < answer->window_end) {
        struct slice field = answer->range.fields[answer->field];
        size_t n = size_min(room - filled, field.len - answer->field_at);
        slice_copy(dst + filled, slice_sub(field, answer->field_at, n));
        filled += n;
        answer->field_at += n;
        if (answer->field_at == field.len) {
            answer->field++;
            answer->field_at = 0;
        }
    }
    return filled;
}

static void range_close(struct engine_range *range)
{
    if (range->state)
        answer_free(fake_of_op(&range->op), range->state);
    range->state = NULL;
}

static void write_close(struct engine_write *write)
{
    if (write->op.pinned)
        answer_free(fake_of_op(&write->op), (struct fake_answer *)(uintptr_t)write->op.pinned);
    write->op.pinned = 0;
}

static size_t alarms_get(struct engine_shard *shard, struct engine_alarm_row *ret_rows)
{
    struct fake *fake = fake_of(shard->engine);
    ret_rows[0] = fake->alarm;
    return fake->alarm.type ? 1 : 0;
}

static void snapshot_close(struct engine_snapshot *snapshot)
{
    struct fake_snapshot *state = snapshot->state;
    fake_of_op(&snapshot->op)->open_count--;
    free(state->piece);
    free(state);
}

static uint64_t auth_revision(const struct engine *engine)
{
    return auth_rights_revision(fake_of(engine)->auth.rights);
}

static void take_rights(struct engine_shard *shard)
{
    struct fake *fake = fake_of(shard->engine);
    struct auth_rights *before = fake->rights;
    if (before == fake->auth.rights)
        return;
    fake->rights = auth_rights_ref(fake->auth.rights);
    engine_auth_notify(shard);
    auth_rights_unref(before);
}

static const struct auth_rights *auth_rights(struct engine_shard *shard)
{
    take_rights(shard);
    return fake_of(shard->engine)->rights;
}

static void status_get(struct engine_shard *shard, struct engine_status *ret_status)
{
    struct fake *fake = fake_of(shard->engine);
    *ret_status = (struct engine_status){
        .revision = fake_model_revision(fake->model),
        .compact_revision = fake_model_compact_revision(fake->model),
        .raft_index = fake->index,
        .applied_index = fake->index,
        .db_size_bytes = 20480,
        .db_size_in_use_bytes = 16384,
        .quota_bytes = INT64_C(2) << 30,
        .alarms = fake->alarm.type ? 1u << fake->alarm.type : 0,
    };
    memcpy(ret_status->downgrade_target, fake->downgrade_target, sizeof(fake->downgrade_target));
}

static void metrics_write(struct engine_shard *shard, struct metric_page *page)
{
    (void)shard;
    (void)page; /* it has no metrics */
}

static struct engine_identity identity(const struct engine *engine)
{
    return fake_of(engine)->options.identity;
}

static enum status shard_new(struct engine *engine, struct loop *loop,
                             struct engine_shard **ret_shard)
{
    (void)loop;
    struct fake_shard *shard = xcalloc(1, sizeof(*shard));
    shard->shard.engine = engine;
    *ret_shard = &shard->shard;
    return ST_OK;
}

static void shard_free(struct engine_shard *shard)
{
    struct fake *fake = fake_of(shard->engine);
    watch_hub_free(fake->hub);
    fake_history_free(fake->history);
    fake->hub = NULL;
    fake->history = NULL;
    free(CONTAINER_OF(shard, struct fake_shard, shard));
}

/* -- Watching -- */

static size_t or_default(size_t value, size_t fallback)
{
    return value ? value : fallback;
}

static struct watch_hub *get_watch_hub(struct engine_shard *shard)
{
    struct fake *fake = fake_of(shard->engine);
    if (fake->hub)
        return fake->hub;
    const struct fake_options *options = &fake->options;
    fake->history = fake_history_new(fake->model);
    fake->hub = watch_hub_new(&(struct watch_hub_options){
        .history = fake_history_base(fake->history),
        .identity = {options->identity.cluster_id, options->identity.member_id,
                     options->identity.raft_term},
        .fragment_bytes = or_default(options->watch_fragment_bytes, FRAGMENT_BYTES),
        .watchers_max = (unsigned)or_default(options->watchers_max, WATCHERS_MAX),
        .progress_interval_ns =
            options->watch_progress_ns ? options->watch_progress_ns : 600 * NS_PER_S,
        .seed = options->seed,
    });
    return fake->hub;
}

static bool watch_report(const struct engine *engine, unsigned i, struct watch_report *ret_report)
{
    const struct fake *fake = fake_of(engine);
    if (i > 0 || !fake->hub)
        return false;
    *ret_report = *watch_hub_scan_stats(fake->hub);
    return true;
}

static void shard_turn_begin(struct engine_shard *shard)
{
    struct fake *fake = fake_of(shard->engine);
    take_rights(shard);
    while (fake->hub && watch_hub_turn_begin(fake->hub, fake->now_ns))
        ;
}

static void shard_turn_end(struct engine_shard *shard)
{
    (void)shard; /* writes were accepted when they were started */
}

static void flushed(struct engine_shard *shard)
{
    struct fake *fake = fake_of(shard->engine);
    if (!fake->hub)
        return;
    watch_hub_turn_end(fake->hub);
    fake_history_turn_end(fake->history);
}

void fake_set_now(struct engine *engine, int64_t now_ns)
{
    fake_of(engine)->now_ns = now_ns;
}

bool fake_listens(const struct engine *engine)
{
    const struct fake *fake = fake_of(engine);
    return fake->history && fake_history_listens(fake->history);
}

static const struct engine_ops fake_ops = {
    .start =
        {
            [ENGINE_RANGE... ENGINE_AUTH] = start,
            [ENGINE_WATCH_ADMIT] = engine_watch_admit_by_rights,
            [ENGINE_WATCH_ADMIT + 1 ... ENGINE_KINDS - 1] = start,
        },
    .range_window = range_window,
    .range_next = range_next,
    .range_fill = range_fill,
    .range_close = range_close,
    .write_close = write_close,
    .snapshot_close = snapshot_close,
    .identity = identity,
    .auth_revision = auth_revision,
    .watch_report = watch_report,
    .shard_new = shard_new,
    .shard_free = shard_free,
    .turn_begin = shard_turn_begin,
    .turn_end = shard_turn_end,
    .flushed = flushed,
    .watch_hub = get_watch_hub,
    .auth_rights = auth_rights,
    .status_get = status_get,
    .alarms_get = alarms_get,
    .metrics_write = metrics_write,
};

struct engine *fake_new(const struct fake_options *options)
{
    struct fake *fake = xcalloc(1, sizeof(*fake));
    fake->engine.ops = &fake_ops;
    fake->options = *options;
    fake->model = fake_model_new();
    fake->lease = fake_lease_new(fake->model, options->seed);
    fake->members = (struct member_list){.self = options->identity.member_id, .learners_max = 1};
    struct engine_member *self = member_dup(&(struct engine_member){
        .id = options->identity.member_id,
        .peer_urls = &SLICE_LITERAL("http://localhost:2380"),
        .peer_url_count = 1,
    });
    if (!self)
        abort();
    member_list_put(&fake->members, self);
    auth_state_init(&fake->auth);
    auth_state_open(&fake->auth);
    fake->rights = auth_rights_ref(fake->auth.rights);
    random_init(&fake->random, options->seed);
    return &fake->engine;
}

void fake_free(struct engine *engine)
{
    if (!engine)
        return;
    struct fake *fake = fake_of(engine);
    assert(fake->waiting_count == 0);
    assert(fake->open_count == 0);
    fake_lease_free(fake->lease);
    auth_rights_unref(fake->rights);
    auth_state_fini(&fake->auth);
    member_list_fini(&fake->members);
    fake_model_free(fake->model);
    free(fake->waiting);
    free(fake);
}
