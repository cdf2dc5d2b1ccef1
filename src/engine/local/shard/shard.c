#include "engine/local/shard/shard.h"

#include "base/metric/turn.h"
#include "base/xalloc.h"
#include "codec/pb/rpc.pb.h"
#include "engine/local/snapshot/snapshot.h"
#include "engine/permission.h"
#include "io/loop.h"
#include "store/log/prepare.h"
#include "store/mvcc/range.h"
#include "store/mvcc/txn.h"
#include "store/mvcc/version.h"

#include <sched.h>
#include <stdlib.h>

/* Keys examined for one range before the next gets its share (about 0.3 ms), and per turn. */
enum { RANGE_KEYS_AT_ONCE = 2048, RANGE_KEYS_PER_TURN = 2 * RANGE_KEYS_AT_ONCE };

static void ranges_turn(struct local_shard *shard);

/* A transaction that only reads. In the operation's arena. */
struct local_txn_read {
    struct engine_write *write;
    struct range_state state;
    struct txn_reading reading;
    struct list in_shard; /* links local_shard.txn_reads while it is not done */
};

static void on_again(struct timer *timer)
{
    (void)timer; /* the following turn does the work */
}

static struct local_shard *shard_of(struct engine_shard *shard)
{
    return CONTAINER_OF(shard, struct local_shard, base.shard);
}

/* -- Life -- */

/* As etcd counts failed proposals. Other errors, such as "compacted", are ordinary answers. */
static bool has_failed(enum status status)
{
    return status == ST_TIMEOUT || status == ST_NOMEM || status == ST_DISK_FULL ||
           status == ST_INTERNAL;
}

static _Atomic unsigned *waiting_of(struct local_shard *shard, unsigned kind);

static void receive_answer(void *owner, struct mailbox_node *node)
{
    struct local_shard *shard = owner;
    struct engine_op *op = op_of(node);
    struct slice name = local_op_name(op);
    if (name.len)
        turn_work("answering", name);
    shard->in_progress--;
    _Atomic unsigned *waiting = waiting_of(shard, op->kind);
    if (waiting)
        atomic_fetch_sub(waiting, 1);
    local_count(shard->counts, LOCAL_ANSWERS, 1);
    local_count(shard->counts, LOCAL_WRITES_FAILED, has_failed(op->status));
    if (UNLIKELY(op->status == ST_DAMAGED))
        op->status = local_report_damage(&shard->shared->report, op);
    op->done(op);
}

static void receive_progress_request(void *owner, struct mailbox_node *node)
{
    (void)node; /* it belongs to the engine */
    struct local_shard *shard = owner;
    shard->progress_requested = true;
}

static struct read_progress *progress_of(struct local_shard *shard)
{
    return &shard->shared->progress[shard->base.number];
}

/* The first number that no shard has; shards_max: there is none. */
static unsigned take_number(struct local_shared *shared)
{
    unsigned number = 0;
    while (number < shared->options.shards_max &&
           atomic_exchange(&shared->places[number].taken, true))
        number++;
    return number;
}

static struct local_place *place_of(struct local_shared *shared, unsigned number)
{
    struct local_place *place = &shared->places[number];
    if (!place->slot) {
        place->slot = epoch_slot_add(store_epoch(shared->store));
        place->counts = local_metrics_join(shared->metrics);
    }
    return place;
}

enum status local_shard_new(struct engine *engine, struct loop *loop,
                            struct engine_shard **ret_shard)
{
    struct local_shared *shared = CONTAINER_OF(engine, struct local_shared, engine);
    unsigned number = take_number(shared);
    if (number == shared->options.shards_max)
        return ST_LIMIT;
    /* Before the shard does anything that the writer has to notice. */
    unsigned used = atomic_load(&shared->shards_used);
    while (used <= number && !atomic_compare_exchange_weak(&shared->shards_used, &used, number + 1))
        continue;
    struct local_shard *shard = xcalloc_aligned(_Alignof(struct local_shard), sizeof(*shard));
    shard->base.shard.engine = engine;
    shard->base.number = number;
    shard->shared = shared;
    shard->loop = loop;
    shard->slot = place_of(shared, number)->slot;
    shard->rights = (struct local_auth_reader){
        .auth = &shared->auth,
        .slot = shard->slot,
        .shard = &shard->base.shard,
    };
    shard->counts = place_of(shared, number)->counts;
    list_init(&shard->ranges);
    list_init(&shard->txn_reads);
    shard->again.fn = on_again;
    shard->range_keys_left = RANGE_KEYS_PER_TURN;
    loop_attach(loop, &shard->base.answers, receive_answer, shard);
    loop_attach(loop, &shard->progress_requests, receive_progress_request, shard);
    read_progress_begin(progress_of(shard), &shard->progress_requests, loop_served_ns(loop));
    local_auth_reader_refresh(&shard->rights);
    shared->shards[number] = &shard->base;
    *ret_shard = &shard->base.shard;
    return ST_OK;
}

void local_shard_free(struct engine_shard *base)
{
    struct local_shard *shard = shard_of(base);
    assert(shard->in_progress == 0);
    assert(list_empty(&shard->ranges));
    assert(list_empty(&shard->txn_reads));
    loop_timer_cancel(shard->loop, &shard->again);
    local_watch_free(shard->watch);
    while (atomic_load(&shard->base.posting))
        sched_yield();
    mailbox_detach(&shard->base.answers);
    read_progress_end(progress_of(shard));
    mailbox_detach(&shard->progress_requests);
    auth_rights_unref(shard->rights.rights);
    shard->shared->shards[shard->base.number] = NULL;
    atomic_store(&shard->shared->places[shard->base.number].taken, false);
    free(shard);
}

void local_shard_turn_begin(struct engine_shard *base)
{
    /* Each read loads the newest view itself, which is one load; watches share one view per turn.
     */
    struct local_shard *shard = shard_of(base);
    if (shard->watch)
        local_watch_turn_begin(shard->watch);
    local_auth_reader_refresh(&shard->rights);
    ranges_turn(shard);
}

static void post_chains(struct local_shard *shard)
{
    struct local_writer_inbox *writer = &shard->shared->writer;
    if (shard->writes.first)
        mailbox_post_chain(&writer->requests, &shard->writes);
    if (shard->lease_reads.first)
        mailbox_post_chain(&writer->lease_reads, &shard->lease_reads);
    shard->writes = shard->lease_reads = (struct mailbox_chain){0};
}

void local_shard_turn_end(struct engine_shard *base)
{
    post_chains(shard_of(base));
}

void local_shard_flushed(struct engine_shard *base)
{
    struct local_shard *shard = shard_of(base);
    if (shard->watch) {
        turn_phase("ending the turn of watches");
        local_watch_flushed(shard->watch);
    }
    post_chains(shard); /* HTTP/1.1 parses the next request when the answer before it was sent */
    /* The input of this turn is posted. If that is not enough yet, the next turn reports. */
    if (shard->progress_requested &&
        loop_served_ns(shard->loop) >= read_progress_wanted(progress_of(shard))) {
        shard->progress_requested = false;
        read_progress_report(progress_of(shard), loop_served_ns(shard->loop));
        waker_wake(&shard->shared->writer.waker);
    }
    if (!list_empty(&shard->ranges) || !list_empty(&shard->txn_reads) || shard->progress_requested)
        loop_timer_set(shard->loop, &shard->again, loop_now_ns(shard->loop));
}

struct watch_hub *local_shard_watch_hub(struct engine_shard *base)
{
    struct local_shard *shard = shard_of(base);
    if (!shard->watch)
        shard->watch = local_watch_new(&(struct local_watch_options){
            .shared = shard->shared,
            .loop = shard->loop,
            .slot = shard->slot,
            .rights = &shard->rights,
            .counts = shard->counts,
            .shard_number = shard->base.number,
            .wrap = shard->wrap,
            .wrap_ctx = shard->wrap_ctx,
        });
    return local_watch_hub(shard->watch);
}

/* -- Reading -- */

static const struct store_view *pin(struct local_shard *shard, struct engine_op *op)
{
    op->pinned = epoch_pin(shard->slot);
    const struct store_view *view = store_view(shard->shared->store);
    op->revision = view->revision;
    return view;
}

static struct range_state state_of(struct local_shard *shard, const struct store_view *view)
{
    return range_state_of(view, store_log(shard->shared->store));
}

static void unpin(struct local_shard *shard, struct engine_op *op)
{
    if (op->pinned)
        epoch_unpin(shard->slot, op->pinned);
    op->pinned = 0;
}

/* Pins the newest state and checks the operation with the rights of that same state. Not pinned
 * after a failure. ST_STOPPED: the engine has failed, and reads as little as it writes. */
static enum status pin_checked(struct local_shard *shard, struct engine_op *op,
                               struct range_state *ret_state)
{
    if (local_has_failed(&shard->shared->report)) {
        op->pinned = 0;
        return ST_STOPPED;
    }
    const struct store_view *view = pin(shard, op);
    enum status status = permission_check(op, local_auth_of(view), NULL);
    if (status == ST_OK)
        *ret_state = state_of(shard, view);
    else
        unpin(shard, op);
    return status;
}

/* The status for the client, with the damage that was met on this thread as the reason. */
static enum status fail_if_damaged(struct engine_op *op, enum status status)
{
    if (LIKELY(status != ST_DAMAGED))
        return status;
    local_describe_damage(op);
    return local_report_damage(&shard_of(op->shard)->shared->report, op);
}

static void finish(struct engine_op *op, enum status status)
{
    op->status = fail_if_damaged(op, status);
    op->done(op);
}

/*
 * A pinned state cannot be freed, so the list of a slow reader moves to the newest state now and
 * then, where it finds the same versions at its revision. If that revision was compacted meanwhile,
 * it keeps the old state for GIVE_UP_AFTER_S and then fails.
 */
enum { PLAIN_GET_BYTES_MAX = 16 << 10, REPIN_AFTER_S = 1, GIVE_UP_AFTER_S = 60 };

/* Looks up some more of a list's keys in the newer state. True: done, the old state is unpinned. */
static bool repin_step(struct local_shard *shard, struct engine_range *range)
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
    if (!repin_step(shard, range))
        list_push_back(&shard->ranges, &range->in_shard);
}

/* On the thread that has given it up. */
static bool is_given_up(const struct engine_op *op)
{
    return atomic_load_explicit(&op->given_up, memory_order_relaxed);
}

/* Examines some of the keys that must be examined before the first byte can be sent. True: the
 * operation is done. */
static bool range_continue(struct local_shard *shard, struct engine_range *range)
{
    struct range *held = range->state;
    size_t keys = size_min(shard->range_keys_left, RANGE_KEYS_AT_ONCE), left = keys;
    enum status status = is_given_up(&range->op) ? ST_CANCELED : range_step(held, &left);
    shard->range_keys_left -= keys - left;
    if (status == ST_AGAIN)
        return false;
    if (status == ST_OK) {
        range->count = held->count;
        range->more = held->more;
        range->kvs = held->kvs;
        range->kvs_bytes = held->kvs_bytes;
        range->started_ns = loop_now_ns(shard->loop); /* until now the reader was not slow */
    } else {
        range_fini(held);
        range->state = NULL;
        unpin(shard, &range->op);
    }
    finish(&range->op, status);
    return true;
}

/* Executes a part of a transaction that only reads. True: the operation is done. */
static bool txn_read_continue(struct local_shard *shard, struct local_txn_read *reading)
{
    struct engine_write *write = reading->write;
    size_t keys = size_min(shard->range_keys_left, RANGE_KEYS_AT_ONCE), left = keys;
    enum status status = is_given_up(&write->op)
                             ? ST_CANCELED
                             : txn_reading_step(&reading->reading, &left, &write->answer);
    shard->range_keys_left -= keys - left;
    if (status == ST_AGAIN)
        return false;
    txn_reading_fini(&reading->reading);
    if (status != ST_OK)
        unpin(shard, &write->op);
    finish(&write->op, status);
    return true;
}

/* Continues the range that has waited longest. */
static void range_turn(struct local_shard *shard)
{
    struct list *link = list_pop_front(&shard->ranges);
    struct engine_range *range = LIST_ENTRY(link, struct engine_range, in_shard);
    if (!(range->pinned_newer ? repin_step : range_continue)(shard, range))
        list_push_back(&shard->ranges, &range->in_shard);
}

static void txn_read_turn(struct local_shard *shard)
{
    struct list *link = list_pop_front(&shard->txn_reads);
    struct local_txn_read *reading = LIST_ENTRY(link, struct local_txn_read, in_shard);
    if (!txn_read_continue(shard, reading))
        list_push_back(&shard->txn_reads, &reading->in_shard);
}

static void ranges_turn(struct local_shard *shard)
{
    shard->range_keys_left = RANGE_KEYS_PER_TURN;
    if (list_empty(&shard->ranges) && list_empty(&shard->txn_reads))
        return;
    turn_phase("continuing ranges and read-only transactions");
    while (shard->range_keys_left &&
           !(list_empty(&shard->ranges) && list_empty(&shard->txn_reads))) {
        if (!list_empty(&shard->txn_reads))
            txn_read_turn(shard);
        if (shard->range_keys_left && !list_empty(&shard->ranges))
            range_turn(shard);
    }
}

/* The most common read by far: one key with its value, at the newest revision. */
static bool is_plain_get(const struct pb_range_request *request)
{
    return request->range_end.len == 0 && request->revision == 0 && !request->keys_only &&
           !request->count_only && !request->min_mod_revision && !request->max_mod_revision &&
           !request->min_create_revision && !request->max_create_revision;
}

/* ST_AGAIN: the value is too long to be copied at once. */
static enum status plain_get(struct engine_range *range, const struct range_state *state,
                             const struct pb_range_request *request)
{
    const struct index_item *item = index_root_find(&state->root, request->key);
    if (!item || !index_item_live(item))
        return ST_OK;
    if (item->newest.field_bytes > PLAIN_GET_BYTES_MAX)
        return ST_AGAIN;
    const struct change_head *change;
    TRY(version_get(state->log, item, item->newest.loc, &change));
    range->field = change_field(change);
    range->count = range->kvs = 1;
    range->kvs_bytes = range->field.len;
    return ST_OK;
}

bool local_range_try(struct engine_range *range)
{
    struct local_shard *shard = shard_of(range->op.shard);
    const struct pb_range_request *request = range->op.request;
    struct range_state state;
    enum status status = pin_checked(shard, &range->op, &state);
    local_count(shard->counts, LOCAL_RANGES, 1);
    range->count = range->kvs = 0;
    range->kvs_bytes = 0;
    range->more = false;
    range->state = NULL;
    range->pinned_newer = 0;
    range->field = SLICE_EMPTY;
    if (status == ST_OK)
        status = is_plain_get(request) ? plain_get(range, &state, request) : ST_AGAIN;
    if (status != ST_AGAIN) {
        /* A get of a short value needs no state of its own: it is answered, or refused. */
        if (status != ST_OK)
            unpin(shard, &range->op);
        finish(&range->op, status);
        return true;
    }
    struct range *held = arena_alloc(range->op.arena, sizeof(*held));
    status = held ? range_begin(held, &state, request) : ST_NOMEM;
    if (status != ST_OK) {
        unpin(shard, &range->op);
        if (status == ST_COMPACTED)
            return false;
        finish(&range->op, status);
        return true;
    }
    /* What the range reads is pinned until it is closed. */
    range->state = held;
    range->pinned_ns = loop_now_ns(shard->loop);
    if (!range_continue(shard, range))
        list_push_back(&shard->ranges, &range->in_shard);
    return true;
}

void local_range_start(struct engine_op *op)
{
    if (!local_range_try(CONTAINER_OF(op, struct engine_range, op)))
        finish(op, ST_COMPACTED);
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

/* Moves a slow reader to the newest state. False: its revision was compacted. */
static bool repin_if_slow(struct engine_range *range)
{
    int64_t now_ns = loop_now_ns(shard_of(range->op.shard)->loop);
    if (now_ns - range->pinned_ns > REPIN_AFTER_S * NS_PER_S && !range->pinned_newer)
        repin(range, now_ns);
    return range->op.status == ST_OK;
}

/* Damage ends the range. */
static void note_damage(struct engine_range *range)
{
    struct range *held = range->state;
    if (range->op.status == ST_OK && range_status(held) != ST_OK)
        range->op.status = fail_if_damaged(&range->op, range_status(held));
}

bool local_range_next(struct engine_range *range, struct slice *ret_field)
{
    if (range->state) {
        bool taken = repin_if_slow(range) && range_take(range->state, ret_field);
        note_damage(range);
        return taken;
    }
    *ret_field = range->field;
    range->field = SLICE_EMPTY;
    return ret_field->len > 0;
}

size_t local_range_fill(struct engine_range *range, uint8_t *dst, size_t room)
{
    if (range->state) {
        size_t filled = repin_if_slow(range) ? range_fill(range->state, dst, room) : 0;
        note_damage(range);
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

/* -- Operations for the writer -- */

/* Another thread will answer one more operation. */
static void count_begun(struct local_shard *shard)
{
    shard->in_progress++;
    local_count(shard->counts, LOCAL_WRITES, 1);
}

static void add_for_writer(struct engine_op *op, struct mailbox_chain *chain)
{
    struct local_shard *shard = shard_of(op->shard);
    /* A mirror has no clients that write, and no leases: all of that belongs to the other server.
     */
    if (shard->shared->options.is_mirror) {
        finish(op, ST_UNIMPLEMENTED);
        return;
    }
    count_begun(shard);
    mailbox_chain_add(chain, &op->in_mailbox);
}

void local_send_to_writer(struct engine_op *op)
{
    add_for_writer(op, &shard_of(op->shard)->writes);
}

void local_put_start(struct engine_op *op)
{
    const struct pb_put_request *request = op->request;
    /* The answer refers to stored bytes, which stay pinned until it is closed. */
    op->pinned = request->prev_kv ? epoch_pin(shard_of(op->shard)->slot) : 0;
    local_send_to_writer(op);
}

void local_delete_range_start(struct engine_op *op)
{
    const struct pb_delete_range_request *request = op->request;
    op->pinned = request->prev_kv ? epoch_pin(shard_of(op->shard)->slot) : 0;
    local_send_to_writer(op);
}

void local_txn_start(struct engine_op *op)
{
    struct local_shard *shard = shard_of(op->shard);
    const struct pb_txn_request *request = op->request;
    local_count(shard->counts, LOCAL_TXNS, 1);
    if (!applier_txn_is_read_only(request)) {
        op->pinned = epoch_pin(shard->slot);
        local_send_to_writer(op);
        return;
    }
    struct local_txn_read *reading = arena_alloc(op->arena, sizeof(*reading));
    enum status status = reading ? pin_checked(shard, op, &reading->state) : ST_NOMEM;
    if (status != ST_OK) {
        finish(op, status);
        return;
    }
    reading->write = CONTAINER_OF(op, struct engine_write, op);
    txn_reading_begin(&reading->reading, &reading->state, request, op->arena);
    if (!txn_read_continue(shard, reading))
        list_push_back(&shard->txn_reads, &reading->in_shard);
}

void local_write_close(struct engine_write *write)
{
    unpin(shard_of(write->op.shard), &write->op);
}

void local_lease_read_start(struct engine_op *op)
{
    add_for_writer(op, &shard_of(op->shard)->lease_reads);
}

void local_lease_renew_start(struct engine_op *op)
{
    /* A busy shard does not make a renewal late. */
    CONTAINER_OF(op, struct engine_renewals, op)->asked_ns =
        loop_served_ns(shard_of(op->shard)->loop);
    local_lease_read_start(op);
}

/* -- Rights -- */

/* Calls are processed before turn_begin, so the rights of the last turn may be old. */
const struct auth_rights *local_auth_rights(struct engine_shard *base)
{
    local_auth_reader_refresh(&shard_of(base)->rights);
    return shard_of(base)->rights.rights;
}

/* -- Operations for the keeper and the snapshotter -- */

/* How many operations of a kind wait for the keeper; NULL: not counted, as snapshots, which the
 * keeper limits itself. */
static _Atomic unsigned *waiting_of(struct local_shard *shard, unsigned kind)
{
    struct local_keeper_inbox *keeper = &shard->shared->keeper;
    if (kind == ENGINE_HASH_KV)
        return &keeper->hashes_waiting;
    return kind == ENGINE_DEFRAGMENT ? &keeper->defragments_waiting : NULL;
}

static enum status take_place(struct local_shard *shard, unsigned kind)
{
    _Atomic unsigned *waiting = waiting_of(shard, kind);
    unsigned places = kind == ENGINE_HASH_KV ? LOCAL_HASHES_MAX : LOCAL_DEFRAGMENTS_MAX;
    if (!waiting || atomic_fetch_add(waiting, 1) < places)
        return ST_OK;
    atomic_fetch_sub(waiting, 1);
    return ST_REQUEST_TOO_MANY_REQUESTS;
}

void local_send_to_keeper(struct engine_op *op)
{
    struct local_shard *shard = shard_of(op->shard);
    struct range_state ignored;
    /* Permissions are checked here, because the keeper has none to check with. */
    enum status status = pin_checked(shard, op, &ignored);
    unpin(shard, op);
    if (status == ST_OK)
        status = take_place(shard, op->kind);
    if (status != ST_OK) {
        finish(op, status);
        return;
    }
    count_begun(shard);
    mailbox_post(&shard->shared->keeper.requests, &op->in_mailbox);
}

void local_snapshot_read(struct engine_op *op)
{
    struct local_shard *shard = shard_of(op->shard);
    count_begun(shard);
    local_snapshot_post(&shard->shared->snapshots, CONTAINER_OF(op, struct engine_snapshot, op),
                        false);
}

void local_snapshot_close(struct engine_snapshot *snapshot)
{
    local_snapshot_post(&shard_of(snapshot->op.shard)->shared->snapshots, snapshot, true);
}

void local_give_up(struct engine_op *op)
{
    /* The keeper may sleep while these wait for it. All others look at given_up soon enough. */
    if (op->kind == ENGINE_HASH_KV || op->kind == ENGINE_DEFRAGMENT)
        waker_wake(&shard_of(op->shard)->shared->keeper.waker);
}

/* -- Questions -- */

size_t local_shard_alarms_get(struct engine_shard *base, struct engine_alarm_row *ret_rows)
{
    return local_alarms_published(&shard_of(base)->shared->alarms, ret_rows);
}

void local_shard_metrics_write(struct engine_shard *base, struct metric_page *page)
{
    struct local_shard *shard = shard_of(base);
    local_metrics_write(shard->shared->metrics, page);
    local_check_metrics_write(&shard->shared->check, page);
    metric_page_head(page, "vigil_store_damaged_reads_total", METRIC_COUNTER,
                     "Requests and watches that failed because of damaged data.");
    metric_page_row(page, "vigil_store_damaged_reads_total", "",
                    atomic_load(&shard->shared->report.damaged_requests));
    metric_page_gauge(page, "vigil_disk_full",
                      "1: puts are refused because the disk of the data directory is full.",
                      local_disk_is_full(&shard->shared->alarms));
    uint64_t free_bytes;
    if (log_free_bytes(store_log(shard->shared->store), &free_bytes) == ST_OK)
        metric_page_gauge(page, "vigil_disk_free_bytes",
                          "Space left on the disk of the data directory.", free_bytes);
    uint64_t pinned = epoch_pin(shard->slot);
    const struct store_view *view = store_view(shard->shared->store);
    metric_page_gauge(page, "etcd_debugging_mvcc_keys_total", "Number of keys.",
                      view->root.live_keys);
    epoch_unpin(shard->slot, pinned);
    const struct local_lease *lease = &shard->shared->lease;
    metric_page_gauge(page, "vigil_leases", "Leases that exist.", lease->leases);
    metric_page_gauge(page, "vigil_lease_keys", "Keys attached to a lease.", lease->attached);
    metric_page_gauge(page, "etcd_debugging_auth_revision", "Revision of users and roles.",
                      atomic_load(&shard->shared->auth.newest_revision));
}

/*
 * The index that etcd would show. Its log has two more entries for each term, the leader's first
 * one and the member's attributes, and two for the cluster at the first start. A store begins in
 * term 2.
 */
static uint64_t raft_index(const struct store *store, const struct store_view *view)
{
    return view->log_index + 2 * store_term(store);
}

void local_status_get(struct engine_shard *base, struct engine_status *ret_status)
{
    struct local_shard *shard = shard_of(base);
    int64_t lease_bytes = local_lease_db_bytes(&shard->shared->lease);
    uint64_t pinned = epoch_pin(shard->slot);
    const struct store_view *view = store_view(shard->shared->store);
    *ret_status = (struct engine_status){
        .revision = view->revision,
        .compact_revision = view->compact_revision,
        .keys = view->root.live_keys,
        .raft_index = raft_index(shard->shared->store, view),
        .applied_index = raft_index(shard->shared->store, view),
        .db_size_bytes = LOCAL_DB_BYTES_EMPTY + view->db_bytes + lease_bytes,
        .db_size_in_use_bytes = LOCAL_DB_BYTES_IN_USE_EMPTY + view->db_bytes_in_use + lease_bytes,
        .quota_bytes = shard->shared->options.quota_bytes,
        .alarms = local_alarms_published_bits(&shard->shared->alarms),
    };
    struct local_alarms *alarms = &shard->shared->alarms;
    if (atomic_load_explicit(&alarms->has_published_target, memory_order_relaxed))
        local_alarms_published_target(alarms, ret_status->downgrade_target);
    epoch_unpin(shard->slot, pinned);
}
