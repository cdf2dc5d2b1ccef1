#include "engine/local/shard.h"

#include "base/turn.h"
#include "base/xalloc.h"
#include "codec/pb/rpc.pb.h"
#include "engine/local/watch.h"
#include "engine/permission.h"
#include "store/change.h"
#include "store/range.h"
#include "store/txn.h"

#include <sched.h>
#include <stdlib.h>

/* A fraction of a millisecond, and some of them. */
enum { RANGE_KEYS_AT_ONCE = 2048, RANGE_KEYS_PER_TURN = 2 * RANGE_KEYS_AT_ONCE };

static void ranges_turn(struct local_shard *shard);

/* A transaction that only reads. In the operation's arena. */
struct local_reading {
    struct engine_write *write;
    struct range_state state;
    struct txn_reading reading;
    struct list in_shard; /* links local_shard.readings while it is not done */
};

static void on_again(struct timer *timer)
{
    (void)timer; /* the turn that follows does the work */
}

static struct local_shard *shard_of(struct engine_shard *shard)
{
    return CONTAINER_OF(shard, struct local_shard, shard);
}

/* -- Life -- */

/* As etcd counts them, and alerts do: what could not be done. "Compacted" is an answer. */
static bool has_failed(enum status status)
{
    return status == ST_TIMEOUT || status == ST_NOMEM || status == ST_DISK_FULL ||
           status == ST_INTERNAL;
}

static _Atomic unsigned *asked_of(struct local_shard *shard, unsigned kind);

static void receive_answer(void *owner, struct mailbox_node *node)
{
    struct local_shard *shard = owner;
    struct engine_op *op = op_of(node);
    struct slice name = local_op_name(op);
    if (name.len)
        turn_work("answering", name);
    shard->under_way--;
    _Atomic unsigned *asked = asked_of(shard, op->kind);
    if (asked)
        atomic_fetch_sub(asked, 1);
    local_count(shard->counts, LOCAL_ANSWERS, 1);
    local_count(shard->counts, LOCAL_WRITES_FAILED, has_failed(op->status));
    op->status = local_damage_told(shard->engine, op->status, SLICE_EMPTY);
    op->done(op);
}

static void receive_hearing(void *owner, struct mailbox_node *node)
{
    (void)node; /* it is the engine's */
    struct local_shard *shard = owner;
    shard->hearing_asked = true;
}

static struct local_hearing *hearing_of(struct local_shard *shard)
{
    return &shard->engine->hearing[shard->number];
}

enum status local_shard_new(struct engine *engine, struct loop *loop,
                            struct engine_shard **ret_shard)
{
    struct engine_local *local = CONTAINER_OF(engine, struct engine_local, engine);
    unsigned number = atomic_fetch_add(&local->shard_count, 1);
    if (number >= local->options.shards_max)
        return ST_LIMIT;
    struct local_shard *shard = xcalloc(1, sizeof(*shard));
    shard->shard.engine = engine;
    shard->engine = local;
    shard->loop = loop;
    shard->number = number;
    shard->slot = epoch_slot_add(store_epoch(local->store));
    shard->counts = local_metrics_join(local->metrics);
    list_init(&shard->ranges);
    list_init(&shard->readings);
    shard->again.fn = on_again;
    shard->range_keys_left = RANGE_KEYS_PER_TURN;
    mailbox_attach(&shard->answers, loop, receive_answer, shard);
    mailbox_attach(&shard->hearing, loop, receive_hearing, shard);
    local_hearing_begin(hearing_of(shard), &shard->hearing, loop_heard_ns(loop));
    local_shard_take_rights(shard);
    local->shards[number] = shard;
    *ret_shard = &shard->shard;
    return ST_OK;
}

void local_shard_free(struct engine_shard *base)
{
    struct local_shard *shard = shard_of(base);
    assert(shard->under_way == 0);
    assert(list_empty(&shard->ranges));
    assert(list_empty(&shard->readings));
    loop_timer_cancel(shard->loop, &shard->again);
    local_watch_free(shard->watch);
    while (atomic_load(&shard->posting))
        sched_yield();
    mailbox_detach(&shard->answers);
    local_hearing_end(hearing_of(shard));
    mailbox_detach(&shard->hearing);
    auth_rights_unref(shard->rights);
    shard->engine->shards[shard->number] = NULL;
    free(shard);
}

void local_shard_turn_begin(struct engine_shard *base)
{
    /* Reads take the newest view by themselves, which costs one load; watches share one. */
    struct local_shard *shard = shard_of(base);
    if (shard->watch)
        local_watch_turn_begin(shard->watch);
    local_shard_take_rights(shard);
    ranges_turn(shard);
}

static void post_chains(struct local_shard *shard)
{
    struct local_writer *writer = &shard->engine->writer;
    if (shard->writes.first)
        mailbox_post_chain(&writer->requests, shard->writes.first, shard->writes.last);
    if (shard->lease_reads.first)
        mailbox_post_chain(&writer->lease_reads, shard->lease_reads.first, shard->lease_reads.last);
    shard->writes = shard->lease_reads = (struct op_chain){0};
}

void local_shard_turn_end(struct engine_shard *base)
{
    post_chains(shard_of(base));
}

/* After what was read has been posted. If it does not reach far enough yet, the next turn does. */
static void answer_hearing(struct local_shard *shard)
{
    struct local_hearing *hearing = hearing_of(shard);
    int64_t heard_ns = loop_heard_ns(shard->loop);
    if (heard_ns < local_hearing_wanted(hearing))
        return;
    shard->hearing_asked = false;
    local_hearing_answer(hearing, heard_ns);
    waker_wake(&shard->engine->writer.waker);
}

void local_shard_flushed(struct engine_shard *base)
{
    struct local_shard *shard = shard_of(base);
    if (shard->watch) {
        turn_phase("ending the turn of watches");
        local_watch_flushed(shard->watch);
    }
    post_chains(shard); /* HTTP/1.1 looks at the next request when the answer before it is sent */
    if (shard->hearing_asked)
        answer_hearing(shard);
    if (!list_empty(&shard->ranges) || !list_empty(&shard->readings) || shard->hearing_asked)
        loop_timer_set(shard->loop, &shard->again, loop_now_ns(shard->loop));
}

struct watch_hub *local_shard_watch_hub(struct engine_shard *base)
{
    struct local_shard *shard = shard_of(base);
    if (!shard->watch)
        shard->watch = local_watch_new(shard);
    return local_watch_hub(shard->watch);
}

/* -- Reading -- */

static const struct store_view *pin(struct local_shard *shard, struct engine_op *op)
{
    op->pinned = epoch_pin(shard->slot);
    const struct store_view *view = store_view(shard->engine->store);
    op->revision = view->revision;
    return view;
}

static struct range_state state_of(struct local_shard *shard, const struct store_view *view)
{
    return (struct range_state){
        .root = view->root,
        .log = store_log(shard->engine->store),
        .revision = view->revision,
        .compact_revision = view->compact_revision,
    };
}

static void unpin(struct local_shard *shard, struct engine_op *op)
{
    if (op->pinned)
        epoch_unpin(shard->slot, op->pinned);
    op->pinned = 0;
}

/* The newest state, for who may read it: rights and data are of one moment. Not pinned if not. */
static enum status pin_checked(struct local_shard *shard, struct engine_op *op,
                               struct range_state *ret_state)
{
    const struct store_view *view = pin(shard, op);
    enum status status = gate_check(op, local_auth_of(view), NULL);
    if (status == ST_OK)
        *ret_state = state_of(shard, view);
    else
        unpin(shard, op);
    return status;
}

static void finish(struct engine_op *op, enum status status)
{
    op->status = local_damage_told(shard_of(op->shard)->engine, status, SLICE_EMPTY);
    op->done(op);
}

/*
 * What a list pins cannot be freed, so a slow reader's list goes over to the newest state now and
 * again, which shows the same at its revision. If that was compacted meanwhile it may keep the old
 * state for a while, and is then given up.
 */
enum { PLAIN_GET_BYTES_MAX = 16 << 10, REPIN_AFTER_S = 1, GIVE_UP_AFTER_S = 60 };

/* Some more of a list's keys are looked up in the newer state. True: the old one is let go. */
static bool repin_go_on(struct local_shard *shard, struct engine_range *range)
{
    size_t keys = size_min(shard->range_keys_left, RANGE_KEYS_AT_ONCE), left = keys;
    bool done = range_rebase_step(range->state, &left);
    shard->range_keys_left -= keys - left;
    if (!done)
        return false;
    unpin(shard, &range->op);
    range->op.pinned = range->pinned_newer;
    range->pinned_newer = 0;
    return true;
}

static void repin(struct engine_range *range, int64_t now_ns)
{
    struct local_shard *shard = shard_of(range->op.shard);
    struct engine_op newer = {0};
    struct range_state state = state_of(shard, pin(shard, &newer));
    if (!range_rebase_begin(range->state, &state)) {
        unpin(shard, &newer);
        if (now_ns - range->started_ns > GIVE_UP_AFTER_S * NS_PER_S)
            range->op.status = ST_COMPACTED;
        return;
    }
    range->pinned_newer = newer.pinned;
    range->pinned_ns = now_ns;
    if (!repin_go_on(shard, range))
        list_push_back(&shard->ranges, &range->in_shard);
}

/* Some of what is to be looked at before the first byte can be sent. True: that is done. */
static bool range_go_on(struct local_shard *shard, struct engine_range *range)
{
    struct range *held = range->state;
    size_t keys = size_min(shard->range_keys_left, RANGE_KEYS_AT_ONCE), left = keys;
    enum status status = range->given_up ? ST_CANCELED : range_step(held, &left);
    shard->range_keys_left -= keys - left;
    if (status == ST_AGAIN)
        return false;
    if (status == ST_OK) {
        range->count = held->count;
        range->more = held->more;
        range->kvs = held->kvs;
        range->kvs_bytes = held->kvs_bytes;
        range->started_ns = loop_now_ns(shard->loop); /* so far it was not the reader who is slow */
    } else {
        status = local_damage_told(shard->engine, status, range_current_key(held));
        range_fini(held);
        range->state = NULL;
        unpin(shard, &range->op);
    }
    finish(&range->op, status);
    return true;
}

/* Some of what a transaction reads. True: that is done. */
static bool reading_go_on(struct local_shard *shard, struct local_reading *reading)
{
    struct engine_write *write = reading->write;
    size_t keys = size_min(shard->range_keys_left, RANGE_KEYS_AT_ONCE), left = keys;
    enum status status =
        write->given_up ? ST_CANCELED : txn_reading_step(&reading->reading, &left, &write->answer);
    shard->range_keys_left -= keys - left;
    if (status == ST_AGAIN)
        return false;
    txn_reading_fini(&reading->reading);
    if (status != ST_OK)
        unpin(shard, &write->op);
    finish(&write->op, status);
    return true;
}

/* Each goes on a little, the one that waited longest first. */
static void range_turn(struct local_shard *shard)
{
    struct list *link = list_pop_front(&shard->ranges);
    struct engine_range *range = LIST_ENTRY(link, struct engine_range, in_shard);
    if (!(range->pinned_newer ? repin_go_on : range_go_on)(shard, range))
        list_push_back(&shard->ranges, &range->in_shard);
}

static void reading_turn(struct local_shard *shard)
{
    struct list *link = list_pop_front(&shard->readings);
    struct local_reading *reading = LIST_ENTRY(link, struct local_reading, in_shard);
    if (!reading_go_on(shard, reading))
        list_push_back(&shard->readings, &reading->in_shard);
}

static void ranges_turn(struct local_shard *shard)
{
    shard->range_keys_left = RANGE_KEYS_PER_TURN;
    if (list_empty(&shard->ranges) && list_empty(&shard->readings))
        return;
    turn_phase("continuing ranges and read-only transactions");
    while (shard->range_keys_left &&
           !(list_empty(&shard->ranges) && list_empty(&shard->readings))) {
        if (!list_empty(&shard->readings))
            reading_turn(shard);
        if (shard->range_keys_left && !list_empty(&shard->ranges))
            range_turn(shard);
    }
}

/* The most common read by far: one key, as it is now, whole. */
static bool is_plain_get(const struct pb_range_request *request)
{
    return request->range_end.len == 0 && request->revision == 0 && !request->keys_only &&
           !request->count_only && !request->min_mod_revision && !request->max_mod_revision &&
           !request->min_create_revision && !request->max_create_revision;
}

/* ST_AGAIN: it is too long to be copied out at once. */
static enum status plain_get(struct engine_range *range, const struct range_state *state,
                             const struct pb_range_request *request)
{
    const struct index_item *item = index_root_find(&state->root, request->key);
    if (!item || !index_item_live(item))
        return ST_OK;
    if (item->newest.field_bytes > PLAIN_GET_BYTES_MAX)
        return ST_AGAIN;
    const struct change_head *change;
    TRY(change_get(state->log, item->newest.loc, &change));
    range->field = change_field(change);
    range->count = range->kvs = 1;
    range->kvs_bytes = range->field.len;
    return ST_OK;
}

void local_range_start(struct engine_shard *base, struct engine_range *range,
                       const struct pb_range_request *request)
{
    struct local_shard *shard = shard_of(base);
    struct range_state state;
    enum status status = pin_checked(shard, &range->op, &state);
    local_count(shard->counts, LOCAL_RANGES, 1);
    range->count = range->kvs = 0;
    range->kvs_bytes = 0;
    range->more = false;
    range->state = NULL;
    range->pinned_newer = 0;
    range->given_up = false;
    range->field = SLICE_EMPTY;
    if (status != ST_OK) {
        finish(&range->op, status);
        return;
    }
    status = is_plain_get(request) ? plain_get(range, &state, request) : ST_AGAIN;
    if (status != ST_AGAIN) {
        if (status != ST_OK)
            unpin(shard, &range->op);
        finish(&range->op, local_damage_told(shard->engine, status, request->key));
        return;
    }
    struct range *held = arena_alloc(range->op.arena, sizeof(*held));
    status = held ? range_begin(held, &state, request) : ST_NOMEM;
    if (status != ST_OK) {
        unpin(shard, &range->op);
        finish(&range->op, status);
        return;
    }
    range->state = held;
    range->pinned_ns = loop_now_ns(shard->loop);
    if (!range_go_on(shard, range))
        list_push_back(&shard->ranges, &range->in_shard);
}

void local_range_window(struct engine_range *range, int64_t keys_max, int64_t *ret_keys,
                        uint64_t *ret_bytes)
{
    if (range->state) {
        range_window(range->state, keys_max, ret_keys, ret_bytes);
        return;
    }
    *ret_keys = range->field.len && keys_max > 0 ? 1 : 0;
    *ret_bytes = *ret_keys ? range->field.len : 0;
}

/* A slow reader goes over to the newest state now and then. False: its revision is gone. */
static bool keep_up(struct engine_range *range)
{
    int64_t now_ns = loop_now_ns(shard_of(range->op.shard)->loop);
    if (now_ns - range->pinned_ns > REPIN_AFTER_S * NS_PER_S && !range->pinned_newer)
        repin(range, now_ns);
    return range->op.status == ST_OK;
}

/* What could not be read ends it for who reads it. */
static void note_broken(struct engine_range *range)
{
    struct range *held = range->state;
    if (range->op.status == ST_OK && range_status(held) != ST_OK)
        range->op.status = local_damage_told(shard_of(range->op.shard)->engine, range_status(held),
                                             range_current_key(held));
}

bool local_range_next(struct engine_range *range, struct slice *ret_field)
{
    if (range->state) {
        bool taken = keep_up(range) && range_take(range->state, ret_field);
        note_broken(range);
        return taken;
    }
    *ret_field = range->field;
    range->field = SLICE_EMPTY;
    return ret_field->len > 0;
}

size_t local_range_fill(struct engine_range *range, uint8_t *dst, size_t room)
{
    if (range->state) {
        size_t filled = keep_up(range) ? range_fill(range->state, dst, room) : 0;
        note_broken(range);
        return filled;
    }
    size_t n = size_min(range->field.len, room);
    slice_copy(dst, slice_sub(range->field, 0, n));
    range->field = slice_sub(range->field, n, range->field.len - n);
    return n;
}

void local_range_close(struct engine_range *range)
{
    struct local_shard *shard = shard_of(range->op.shard);
    if (range->state)
        range_fini(range->state);
    range->state = NULL;
    if (range->pinned_newer) {
        list_remove(&range->in_shard);
        epoch_unpin(shard->slot, range->pinned_newer);
        range->pinned_newer = 0;
    }
    unpin(shard, &range->op);
}

/* -- Writing -- */

/* The shard waits for one answer more. */
static void begun(struct local_shard *shard)
{
    shard->under_way++;
    local_count(shard->counts, LOCAL_WRITES, 1);
}

static void hand_over(struct local_shard *shard, struct engine_op *op, enum local_op_kind kind,
                      const void *request)
{
    op->kind = (uint8_t)kind;
    op->request = request;
    begun(shard);
    op_chain_add(&shard->writes, op);
}

void local_put(struct engine_shard *base, struct engine_write *write,
               const struct pb_put_request *request)
{
    struct local_shard *shard = shard_of(base);
    /* An answer that points to stored bytes must find them: they are pinned until it is closed. */
    write->op.pinned = request->prev_kv ? epoch_pin(shard->slot) : 0;
    hand_over(shard, &write->op, LOCAL_PUT, request);
}

void local_delete_range(struct engine_shard *base, struct engine_write *write,
                        const struct pb_delete_range_request *request)
{
    struct local_shard *shard = shard_of(base);
    write->op.pinned = request->prev_kv ? epoch_pin(shard->slot) : 0;
    hand_over(shard, &write->op, LOCAL_DELETE_RANGE, request);
}

void local_txn(struct engine_shard *base, struct engine_write *write,
               const struct pb_txn_request *request)
{
    struct local_shard *shard = shard_of(base);
    local_count(shard->counts, LOCAL_TXNS, 1);
    if (!applier_txn_is_read_only(request)) {
        write->op.pinned = epoch_pin(shard->slot);
        hand_over(shard, &write->op, LOCAL_TXN, request);
        return;
    }
    struct local_reading *reading = arena_alloc(write->op.arena, sizeof(*reading));
    enum status status = reading ? pin_checked(shard, &write->op, &reading->state) : ST_NOMEM;
    if (status != ST_OK) {
        finish(&write->op, status);
        return;
    }
    reading->write = write;
    write->given_up = false;
    txn_reading_begin(&reading->reading, &reading->state, request, write->op.arena);
    if (!reading_go_on(shard, reading))
        list_push_back(&shard->readings, &reading->in_shard);
}

void local_write_close(struct engine_write *write)
{
    unpin(shard_of(write->op.shard), &write->op);
}

void local_compact(struct engine_shard *base, struct engine_op *op,
                   const struct pb_compaction_request *request)
{
    hand_over(shard_of(base), op, LOCAL_COMPACT, request);
}

void local_lease_start_op(struct engine_shard *base, struct engine_op *op,
                          enum engine_lease_call call)
{
    struct local_shard *shard = shard_of(base);
    bool writes = call == ENGINE_LEASE_GRANT || call == ENGINE_LEASE_REVOKE;
    if (call == ENGINE_LEASE_RENEW) /* it came after this: it is not late because we were busy */
        CONTAINER_OF(op, struct engine_renewals, op)->asked_ns = loop_heard_ns(shard->loop);
    op->kind = (uint8_t)(LOCAL_LEASE + (unsigned)call);
    begun(shard);
    op_chain_add(writes ? &shard->writes : &shard->lease_reads, op);
}

/* -- Rights -- */

void local_auth_start_op(struct engine_shard *base, struct engine_auth *auth)
{
    hand_over(shard_of(base), &auth->op, LOCAL_AUTH, NULL);
}

/* Calls are answered before their turn begins: what the last one saw may be long ago. */
const struct auth_rights *local_auth_rights(struct engine_shard *base)
{
    local_shard_take_rights(shard_of(base));
    return shard_of(base)->rights;
}

/* What we hold is not freed, so an address that is the same is the same rights. */
void local_shard_take_rights(struct local_shard *shard)
{
    struct engine_local *engine = shard->engine;
    if (atomic_load_explicit(&engine->auth.shown, memory_order_acquire) == shard->rights)
        return;
    uint64_t pinned = epoch_pin(shard->slot);
    struct auth_rights *before = shard->rights;
    shard->rights = auth_rights_ref(local_auth_of(store_view(engine->store)));
    epoch_unpin(shard->slot, pinned);
    if (before && before != shard->rights)
        engine_auth_tell(&shard->shard);
    auth_rights_unref(before);
}

/* -- Maintenance -- */

/* How many of a kind the keeper has; NULL: they are not counted. It refuses snapshots itself. */
static _Atomic unsigned *asked_of(struct local_shard *shard, unsigned kind)
{
    struct local_keeper *keeper = &shard->engine->keeper;
    if (kind == LOCAL_HASH_KV)
        return &keeper->hashes_asked;
    return kind == LOCAL_DEFRAGMENT ? &keeper->defragments_asked : NULL;
}

static enum status take_place(struct local_shard *shard, enum local_op_kind kind)
{
    _Atomic unsigned *asked = asked_of(shard, kind);
    unsigned places = kind == LOCAL_HASH_KV ? LOCAL_HASHES_MAX : LOCAL_DEFRAGMENTS_MAX;
    if (!asked || atomic_fetch_add(asked, 1) < places)
        return ST_OK;
    atomic_fetch_sub(asked, 1);
    return ST_REQUEST_TOO_MANY_REQUESTS;
}

/* For the keeper, who knows nobody. */
static void ask_keeper(struct local_shard *shard, struct engine_op *op, enum local_op_kind kind)
{
    struct range_state ignored;
    enum status status = pin_checked(shard, op, &ignored);
    unpin(shard, op);
    if (status == ST_OK)
        status = take_place(shard, kind);
    if (status != ST_OK) {
        finish(op, status);
        return;
    }
    op->kind = (uint8_t)kind;
    begun(shard);
    mailbox_post(&shard->engine->keeper.requests, &op->in_mailbox);
}

void local_hash_kv(struct engine_shard *base, struct engine_hash *hash)
{
    atomic_store(&hash->given_up, false);
    ask_keeper(shard_of(base), &hash->op, LOCAL_HASH_KV);
}

void local_hash_give_up(struct engine_hash *hash)
{
    atomic_store(&hash->given_up, true);
    waker_wake(&shard_of(hash->op.shard)->engine->keeper.waker);
}

void local_alarm(struct engine_shard *base, struct engine_alarm *alarm,
                 const struct pb_alarm_request *request)
{
    hand_over(shard_of(base), &alarm->op, LOCAL_ALARM, request);
}

size_t local_alarms_get(struct engine_shard *base,
                        struct engine_alarm_row ret_rows[ENGINE_ALARMS_MAX])
{
    return local_notices_shown(&shard_of(base)->engine->notices, ret_rows);
}

void local_defragment(struct engine_shard *base, struct engine_defragment *defragment)
{
    atomic_store(&defragment->given_up, false);
    ask_keeper(shard_of(base), &defragment->op, LOCAL_DEFRAGMENT);
}

void local_defragment_give_up(struct engine_defragment *defragment)
{
    atomic_store(&defragment->given_up, true);
    waker_wake(&shard_of(defragment->op.shard)->engine->keeper.waker);
}

void local_snapshot_start(struct engine_shard *base, struct engine_snapshot *snapshot)
{
    ask_keeper(shard_of(base), &snapshot->op, LOCAL_SNAPSHOT);
}

void local_snapshot_read(struct engine_snapshot *snapshot)
{
    begun(shard_of(snapshot->op.shard));
    local_snapshot_post(snapshot, false);
}

void local_snapshot_close(struct engine_snapshot *snapshot)
{
    local_snapshot_post(snapshot, true);
}

void local_members_start_op(struct engine_shard *base, struct engine_members *members)
{
    hand_over(shard_of(base), &members->op, LOCAL_MEMBERS, NULL);
}

void local_downgrade(struct engine_shard *base, struct engine_op *op, const char *target)
{
    hand_over(shard_of(base), op, LOCAL_DOWNGRADE, target);
}

void local_shard_metrics_write(struct engine_shard *base, struct metric_page *page)
{
    struct local_shard *shard = shard_of(base);
    local_metrics_write(shard->engine->metrics, page);
    local_check_metrics_write(&shard->engine->keeper.check, page);
    metric_page_head(page, "vigil_store_damaged_reads_total", METRIC_COUNTER,
                     "Requests and watches that failed because of damaged data.");
    metric_page_row(page, "vigil_store_damaged_reads_total", "",
                    atomic_load(&shard->engine->damage.reads));
    uint64_t pinned = epoch_pin(shard->slot);
    const struct store_view *view = store_view(shard->engine->store);
    metric_page_gauge(page, "etcd_debugging_mvcc_keys_total", "Keys there are.",
                      view->root.live_keys);
    epoch_unpin(shard->slot, pinned);
    const struct local_lease *lease = &shard->engine->writer.lease;
    metric_page_gauge(page, "vigil_leases", "Leases that exist.", lease->leases);
    metric_page_gauge(page, "vigil_lease_keys", "Keys attached to a lease.", lease->attached);
    metric_page_gauge(page, "etcd_debugging_auth_revision", "The changes of users and roles.",
                      atomic_load(&shard->engine->auth.shown_revision));
}

/*
 * The index that etcd would show: its log has two entries more for each term, a leader's first and
 * the member's own name, and at the first start two for the cluster. A store begins in term 2.
 */
static uint64_t raft_index(const struct store *store, const struct store_view *view)
{
    return view->log_index + 2 * store_term(store);
}

void local_status_get(struct engine_shard *base, struct engine_status *ret_status)
{
    struct local_shard *shard = shard_of(base);
    int64_t lease_bytes = local_lease_db_bytes(&shard->engine->writer.lease);
    uint64_t pinned = epoch_pin(shard->slot);
    const struct store_view *view = store_view(shard->engine->store);
    *ret_status = (struct engine_status){
        .revision = view->revision,
        .compact_revision = view->compact_revision,
        .raft_index = raft_index(shard->engine->store, view),
        .applied_index = raft_index(shard->engine->store, view),
        .db_size_bytes = LOCAL_DB_BYTES_EMPTY + view->db_bytes + lease_bytes,
        .db_size_in_use_bytes = LOCAL_DB_BYTES_IN_USE_EMPTY + view->db_bytes_in_use + lease_bytes,
        .quota_bytes = shard->engine->options.quota_bytes,
        .alarms = local_notices_shown_bits(&shard->engine->notices),
    };
    local_notices_shown_target(&shard->engine->notices, ret_status->downgrade_target);
    epoch_unpin(shard->slot, pinned);
}
