#include "engine/local/shard.h"

#include "base/clock.h"
#include "base/turn.h"
#include "base/xalloc.h"
#include "codec/pb/rpc.pb.h"
#include "engine/permission.h"
#include "engine/quota.h"

#include <stdlib.h>

/*
 * One turn of the writer:
 *
 *     answer renewals of leases and questions about them: all they can see is durable
 *     take what arrived ─► apply it, a group ─► write and sync once ─► publish ─► answer
 *                              └── a group ends at GROUP_BYTES_MAX ──┘
 *                    the last one takes some leases along that have expired
 *     in the middle of a request that takes long, leases are renewed too: serve_between
 *     then some steps of what waits: relocation, trimming, memory
 */
enum {
    GROUP_BYTES_MAX = 1 << 20, /* a few milliseconds of writing and syncing */
    RELOCATIONS_PER_STEP = 16,
    RETIRED_WAIT_NS = 20 * 1000 * 1000,
    LEASE_READS_PER_TURN = 16384, /* renewals: some milliseconds */
    DEFERRED_LOOK_NS = 1000 * 1000,
};
/* Steps are taken for a tenth of the time since the last ones, so that writes keep nearly all of
 * it, and while no request waits; but not for longer than this. */
static const int64_t steps_ns_max = NS_PER_S / 1000;
enum { STEPS_PART = 10 };
/* How long a lease outlives its time because some shard has not read its clients yet. */
static const int64_t hearing_wait_ns = 30 * NS_PER_S;
static const int64_t hearing_look_ns = NS_PER_S;
/* A turn that takes longer, or comes so much too late: the process, or the disk, stood still. */
static const int64_t stall_ns = NS_PER_S;

/* -- Who may -- */

/* With the rights after all that was applied before it: what was taken away holds from there on. */
static enum status may(struct local_writer *writer, const struct engine_op *op)
{
    struct auth_leases leases = local_lease_keys(&writer->lease);
    return gate_check(op, writer->engine->auth.book.rights, &leases);
}

/* -- Groups -- */

/* Noted now, told the keeper once it is durable and visible. */
static void note_compacted(struct local_writer *writer, int64_t before, int64_t revision)
{
    struct local_compacted *message = xcalloc(1, sizeof(*message));
    message->before = before;
    message->revision = revision;
    message->in_mailbox.next = writer->compacted;
    writer->compacted = &message->in_mailbox;
}

static void tell_compacted(struct local_writer *writer)
{
    while (writer->compacted) {
        struct mailbox_node *node = writer->compacted;
        writer->compacted = node->next;
        mailbox_post(&writer->engine->keeper.compactions, node);
    }
}

/*
 * Whether a change may be made that adds so much to the store, as etcd reckons it; 0 for one that
 * adds nothing. What does not fit raises the alarm, and nothing more is put until it is disarmed.
 */
static enum status admit(struct local_writer *writer, int64_t cost)
{
    struct engine_local *engine = writer->engine;
    struct applier *applier = store_applier(engine->store);
    unsigned alarms = local_notices_bits(&engine->notices);
    if (alarms & 1u << ENGINE_ALARM_CORRUPT)
        return ST_CORRUPT;
    if (cost == 0)
        return ST_OK;
    if (alarms & 1u << ENGINE_ALARM_NOSPACE)
        return ST_NO_SPACE;
    if (log_is_short(store_log(engine->store)))
        return ST_DISK_FULL; /* deletes and compactions still fit, and may free some */
    int64_t quota = engine->options.quota_bytes;
    int64_t size = LOCAL_DB_BYTES_EMPTY + applier->db_bytes + local_lease_db_bytes(&writer->lease);
    if (quota <= 0 || size + cost < quota)
        return ST_OK;
    local_notices_raise(&engine->notices, applier, engine->options.member_id, ENGINE_ALARM_NOSPACE);
    local_warn(engine, "the quota is used up and the alarm raised: compact, defragment, disarm it",
               ST_NO_SPACE, "");
    return ST_NO_SPACE;
}

/*
 * Somebody watches who would be told of a compaction only because his shard has not come to look at
 * what is to be compacted. It will in a moment; until then the compaction waits.
 */
static bool defer_compaction(struct local_writer *writer, int64_t revision)
{
    struct engine_local *engine = writer->engine;
    const struct applier *applier = store_applier(engine->store);
    bool lags = false;
    for (unsigned i = 0; i < engine->options.shards_max && !lags; i++)
        lags = local_news_lags(&engine->news[i], revision);
    if (!lags || revision > applier->revision || revision <= applier->compact_revision)
        return false;
    if (!writer->deferred_until_ns)
        writer->deferred_until_ns = clock_add(writer->now_ns, engine->options.compaction_wait_ns);
    return writer->now_ns < writer->deferred_until_ns;
}

/* False: the operation is answered later. */
static bool compact(struct local_writer *writer, struct engine_op *op)
{
    const struct pb_compaction_request *request = op->request;
    struct applier *applier = store_applier(writer->engine->store);
    int64_t before = applier->compact_revision;
    if (defer_compaction(writer, request->revision)) {
        op_chain_add(&writer->deferred, op);
        return false;
    }
    op->status = admit(writer, 0);
    if (op->status == ST_OK)
        op->status = applier_compact(applier, request->revision);
    op->revision = applier->revision;
    if (op->status != ST_OK)
        return true;
    note_compacted(writer, before, request->revision);
    if (!request->physical)
        return true;
    op_chain_add(&writer->waiting, op);
    return false;
}

static enum engine_lease_call lease_call_of(const struct engine_op *op)
{
    return (enum engine_lease_call)(op->kind - LOCAL_LEASE);
}

static enum status write_keys(struct local_writer *writer, struct engine_write *write)
{
    struct applier *applier = store_applier(writer->engine->store);
    const void *request = write->op.request;
    struct arena *arena = write->op.arena;
    if (write->op.kind == LOCAL_PUT) {
        TRY(admit(writer, quota_cost_put(request)));
        return applier_put(applier, request, arena, &write->answer);
    }
    if (write->op.kind == LOCAL_DELETE_RANGE) {
        TRY(admit(writer, 0));
        return applier_delete_range(applier, request, arena, &write->answer);
    }
    TRY(admit(writer, quota_cost_txn(request)));
    return applier_txn(applier, request, arena, &write->answer);
}

static void write_lease(struct local_writer *writer, struct engine_op *op)
{
    enum engine_lease_call call = lease_call_of(op);
    op->revision = store_applier(writer->engine->store)->revision;
    op->status = admit(writer, call == ENGINE_LEASE_GRANT ? QUOTA_LEASE_COST : 0);
    if (op->status == ST_OK)
        local_lease_execute(&writer->lease, op, call, writer->now_ns);
    if (op->status == ST_OK && call == ENGINE_LEASE_GRANT &&
        writer->granted_count < WRITER_GRANTS_MAX)
        writer->granted[writer->granted_count++] = CONTAINER_OF(op, struct engine_lease, op)->id;
}

/* False: the operation is answered later. */
static bool execute(struct local_writer *writer, struct engine_op *op)
{
    struct engine_local *engine = writer->engine;
    struct applier *applier = store_applier(engine->store);
    struct engine_write *write = CONTAINER_OF(op, struct engine_write, op);
    if (op->kind == LOCAL_AUTH) { /* it knows who may what */
        writer->rights_pending = true;
        local_auth_execute(&engine->auth, CONTAINER_OF(op, struct engine_auth, op));
        return true;
    }
    op->revision = applier->revision;
    op->status = may(writer, op);
    if (op->status != ST_OK)
        return true;
    if (op->kind >= LOCAL_LEASE) {
        write_lease(writer, op);
        return true;
    }
    switch ((enum local_op_kind)op->kind) {
    case LOCAL_PUT:
    case LOCAL_DELETE_RANGE:
    case LOCAL_TXN:
        op->status = write_keys(writer, write);
        if (op->status == ST_OK)
            op->revision = write->answer.revision;
        break;
    case LOCAL_COMPACT:
        return compact(writer, op);
    case LOCAL_ALARM:
        op->status = local_notices_alarm(&engine->notices, applier,
                                         CONTAINER_OF(op, struct engine_alarm, op));
        op->revision = applier->revision;
        break;
    case LOCAL_MEMBERS:
        op->status = local_members_execute(&engine->members, applier,
                                           CONTAINER_OF(op, struct engine_members, op));
        break;
    case LOCAL_DOWNGRADE:
        op->status = local_notices_downgrade(&engine->notices, applier, op->request);
        op->revision = applier->revision;
        break;
    default:
        assert(false && "not for the writer");
    }
    return true;
}

/* Chains, one for each shard, and then empty ones. */
static void answer(struct local_writer *writer, struct op_chain *chains)
{
    unsigned shards = writer->engine->options.shards_max;
    for (unsigned i = 0; i < shards; i++) {
        if (chains[i].first)
            local_answer_chain(writer->engine->shards[i], &chains[i]);
        chains[i] = (struct op_chain){0};
    }
}

/* True if it was not raised before. */
static bool raise_flag(_Atomic bool *flag)
{
    return !atomic_load_explicit(flag, memory_order_relaxed) && !atomic_exchange(flag, true);
}

/* The keeper is told when the log begins to grow, and then now and again. */
static void tell_keeper(struct local_writer *writer, size_t bytes)
{
    struct local_keeper *keeper = &writer->engine->keeper;
    writer->bytes_since_wake += bytes;
    bool first = raise_flag(&keeper->dirty);
    first = (bytes && raise_flag(&keeper->unmarked)) || first;
    bool much = writer->bytes_since_wake > writer->engine->options.checkpoint_bytes;
    if (!first && !much && !log_wants_prepare(store_log(writer->engine->store)))
        return;
    writer->bytes_since_wake = 0;
    waker_wake(&keeper->waker);
}

/* One message for each shard that listens, and only if there is something to read, or others may
 * read it. */
static void tell_shards(struct local_writer *writer, bool rights_changed)
{
    struct engine_local *engine = writer->engine;
    int64_t revision = store_applier(engine->store)->revision;
    if (revision == writer->told_revision && !rights_changed)
        return;
    writer->told_revision = revision;
    for (unsigned i = 0; i < engine->options.shards_max; i++)
        local_news_tell(&engine->news[i]);
}

static int64_t now_ns(void)
{
    return clock_mono_ns(clock_system());
}

/* What the store has counted since the last group, and how the group went. */
static void count_group(struct local_writer *writer, size_t bytes)
{
    const struct applier *applier = store_applier(writer->engine->store);
    struct metric_block *counts = writer->counts;
    local_count(counts, LOCAL_PUTS, applier->puts - writer->puts);
    local_count(counts, LOCAL_DELETES, applier->deletes - writer->deletes);
    local_count(counts, LOCAL_PUT_BYTES, applier->put_bytes - writer->put_bytes);
    writer->puts = applier->puts;
    writer->deletes = applier->deletes;
    writer->put_bytes = applier->put_bytes;
    if (!bytes)
        return;
    struct store_commit_times times = store_commit_times(writer->engine->store);
    local_count(counts, LOCAL_LOG_BYTES, times.bytes);
    local_observe(counts, LOCAL_LOG_WRITE_SECONDS, times.write_ns);
    local_observe(counts, LOCAL_LOG_SYNC_SECONDS, times.sync_ns);
    local_observe(counts, LOCAL_GROUP_BYTES, (int64_t)times.bytes);
    local_observe(counts, LOCAL_GROUP_REQUESTS, writer->group_requests);
}

static void commit_group(struct local_writer *writer)
{
    size_t bytes = store_pending_bytes(writer->engine->store);
    if (writer->group_requests)
        local_observe(writer->counts, LOCAL_APPLY_SECONDS, now_ns() - writer->group_begun_ns);
    turn_phase("writing and syncing the log");
    enum status status = store_commit(writer->engine->store);
    if (status != ST_OK)
        local_fatal(writer->engine, "the log could not be written", status);
    turn_phase("publishing a group");
    local_notices_show(&writer->engine->notices);
    bool rights_changed = local_auth_committed(&writer->engine->auth);
    count_group(writer, bytes);
    writer->granted_count = 0;
    writer->rights_pending = false;
    writer->committed_revision = store_applier(writer->engine->store)->revision;
    answer(writer, writer->answers);
    tell_shards(writer, rights_changed);
    tell_compacted(writer);
    if (bytes)
        tell_keeper(writer, bytes);
    writer->group_requests = 0;
}

static unsigned shard_number(const struct engine_op *op)
{
    return CONTAINER_OF(op->shard, struct local_shard, shard)->number;
}

static bool leases_are_over(const struct local_writer *writer)
{
    return local_lease_next_ns(&writer->lease) <= writer->lease_heard_ns;
}

static void expire_leases(struct local_writer *writer)
{
    if (!leases_are_over(writer))
        return;
    turn_phase("revoking leases that have expired");
    enum status status = admit(writer, 0);
    if (status != ST_OK)
        local_lease_hold(&writer->lease, writer->now_ns); /* nothing is changed any more */
    else
        status = local_lease_expire(&writer->lease, writer->lease_heard_ns, GROUP_BYTES_MAX);
    if (status != ST_OK && status != ST_CORRUPT)
        local_warn(writer->engine, "leases that have expired could not be revoked", status,
                   "and will be tried again");
}

/* -- In the middle of a request -- */

/* Everybody may know that this lease exists: it did before the group, and is not being revoked. */
static bool is_settled(const struct local_writer *writer, int64_t id)
{
    for (unsigned i = 0; i < writer->granted_count; i++)
        if (writer->granted[i] == id)
            return false;
    return id != writer->lease.revoking && lessor_has(writer->lease.lessor, id);
}

static bool is_served_between(const struct local_writer *writer, const struct engine_op *op)
{
    const struct engine_renewals *renewals = CONTAINER_OF(op, const struct engine_renewals, op);
    const struct engine_lease *question = CONTAINER_OF(op, const struct engine_lease, op);
    if (lease_call_of(op) == ENGINE_LEASE_TIME_TO_LIVE)
        return !question->want_keys && is_settled(writer, question->id);
    if (lease_call_of(op) != ENGINE_LEASE_RENEW)
        return false;
    for (size_t i = renewals->answered; i < renewals->count; i++)
        if (!is_settled(writer, renewals->items[i].id))
            return false;
    return true;
}

/* False: it has to wait for the end of the group. */
static bool serve_one_between(struct local_writer *writer, struct engine_op *op, int64_t time_ns)
{
    if (!is_served_between(writer, op))
        return false;
    op->status = may(writer, op);
    if (op->status == ST_OK && !local_lease_read(&writer->lease, op, lease_call_of(op), time_ns))
        return false; /* it is late */
    op->revision = writer->committed_revision;
    op_chain_add(&writer->early[shard_number(op)], op);
    return true;
}

/*
 * In the middle of a request that takes long, leases are renewed. No answer relies on what is not
 * durable: a lease that this group has granted, has revoked or is revoking waits for its end, and
 * so does everybody if rights may have changed. Otherwise a request changes nothing of a lease but
 * which keys hang on it, and that is not shown here.
 */
static void serve_between(void *ctx)
{
    struct local_writer *writer = ctx;
    struct op_chain left = {0};
    if (writer->rights_pending || writer->granted_count == WRITER_GRANTS_MAX)
        return;
    struct mailbox_node *taken[] = {writer->lease_left, mailbox_take(&writer->lease_reads)};
    int64_t time_ns = now_ns();
    for (size_t i = 0; i < COUNT_OF(taken); i++) {
        for (struct mailbox_node *node = taken[i], *next; node; node = next) {
            next = node->next;
            if (!serve_one_between(writer, op_of(node), time_ns))
                op_chain_add(&left, op_of(node));
        }
    }
    writer->lease_left = left.first;
    answer(writer, writer->early);
}

/* One of these may take long: it does not begin while nobody could be served meanwhile. */
static void make_room_between(struct local_writer *writer, const struct engine_op *op)
{
    bool may_take_long = op->kind == LOCAL_DELETE_RANGE || op->kind == LOCAL_TXN ||
                         op->kind == (unsigned)LOCAL_LEASE + ENGINE_LEASE_REVOKE;
    if (may_take_long && writer->granted_count == WRITER_GRANTS_MAX)
        commit_group(writer);
}

/* -- Running -- */

static void run_requests(struct local_writer *writer, struct mailbox_node *node)
{
    yield_point_here = &writer->yield_point;
    while (node) {
        struct engine_op *op = op_of(node);
        node = node->next;
        unsigned shard = shard_number(op); /* before it: what is answered may be gone */
        make_room_between(writer, op);
        struct slice name = local_op_name(op);
        if (writer->group_requests++ == 0) {
            turn_phase("applying puts");
            writer->group_begun_ns = now_ns();
        }
        if (name.len)
            turn_work("applying", name);
        if (execute(writer, op))
            op_chain_add(&writer->answers[shard], op);
        if (store_pending_bytes(writer->engine->store) > GROUP_BYTES_MAX)
            commit_group(writer);
    }
    expire_leases(writer);
    commit_group(writer); /* which may take long too */
    yield_point_here = NULL;
}

/* What clients sent before this moment has been posted, if it is for us; but a shard that is stuck
 * keeps no lease alive for ever. */
static int64_t heard_ns(const struct local_writer *writer)
{
    const struct engine_local *engine = writer->engine;
    int64_t heard = writer->now_ns;
    for (unsigned i = 0; i < engine->options.shards_max; i++) {
        int64_t of_shard = local_hearing_heard(&engine->hearing[i]);
        heard = of_shard < heard ? of_shard : heard;
    }
    int64_t at_least = writer->now_ns - hearing_wait_ns;
    return heard > at_least ? heard : at_least;
}

/* A lease's time is over, and its renewal may lie in a socket: the shards are asked to read it. */
static bool awaits_hearing(struct local_writer *writer)
{
    struct engine_local *engine = writer->engine;
    if (!local_lease_is_due(&writer->lease, writer->now_ns) || leases_are_over(writer))
        return false;
    for (unsigned i = 0; i < engine->options.shards_max; i++)
        if (local_hearing_heard(&engine->hearing[i]) < writer->now_ns)
            local_hearing_ask(&engine->hearing[i], writer->now_ns);
    return true;
}

/*
 * Before a group: nothing is pending, so what these see is durable, and their answers wait for
 * nothing. What has expired is to be revoked first, in a group.
 */
static void take_lease_reads(struct local_writer *writer)
{
    struct op_chain to_execute = {0};
    if (!writer->lease_left) {
        writer->lease_taken_ns = heard_ns(writer);
        writer->lease_left = mailbox_take(&writer->lease_reads);
    }
    if (writer->lease_left)
        turn_phase("renewing leases");
    for (size_t work = 0; writer->lease_left && work < LEASE_READS_PER_TURN;) {
        struct engine_op *op = op_of(writer->lease_left);
        writer->lease_left = op->in_mailbox.next;
        struct slice name = local_op_name(op);
        if (name.len)
            turn_work("answering", name);
        work += local_lease_work(&writer->lease, op, lease_call_of(op));
        op->status = may(writer, op);
        if (op->status != ST_OK)
            op_chain_add(&writer->answers[shard_number(op)], op);
        else if (!local_lease_read(&writer->lease, op, lease_call_of(op), writer->now_ns))
            op_chain_add(&to_execute, op);
        else if (local_lease_is_unsorted(op, lease_call_of(op)))
            mailbox_post(&writer->engine->keeper.requests, &op->in_mailbox);
        else
            op_chain_add(&writer->answers[shard_number(op)], op);
    }
    if (!writer->lease_left)
        writer->lease_heard_ns = writer->lease_taken_ns;
    answer(writer, writer->answers);
    if (to_execute.first)
        run_requests(writer, to_execute.first);
}

static void take_deferred(struct local_writer *writer)
{
    struct mailbox_node *node = writer->deferred.first;
    if (!node)
        return;
    writer->deferred = (struct op_chain){0};
    run_requests(writer, node);
    if (!writer->deferred.first)
        writer->deferred_until_ns = 0;
}

/* -- Between groups -- */

static void answer_waiting(struct local_writer *writer)
{
    if (!store_compaction_done(writer->engine->store))
        return;
    if (writer->settling)
        mailbox_post(&writer->engine->keeper.moved, &TAKE(writer->settling)->in_mailbox);
    for (struct mailbox_node *node = writer->waiting.first, *next; node; node = next) {
        next = node->next;
        local_answer(op_of(node));
    }
    writer->waiting = (struct op_chain){0};
}

static void take_jobs(struct local_writer *writer)
{
    struct store *store = writer->engine->store;
    for (struct mailbox_node *node = mailbox_take(&writer->jobs), *next; node; node = next) {
        next = node->next;
        struct local_job *job = CONTAINER_OF(node, struct local_job, in_mailbox);
        switch (job->kind) {
        case LOCAL_RELOCATE:
            assert(!writer->relocating);
            writer->relocating = job;
            break;
        case LOCAL_SETTLE:
            assert(!writer->settling);
            writer->settling = job;
            break;
        case LOCAL_SHRINK:
            store_shrink(store);
            commit_group(writer);
            mailbox_post(&writer->engine->keeper.moved, &job->in_mailbox);
            break;
        case LOCAL_FORGET:
            store_forget_segment(store, job->segment);
            free(job);
            commit_group(writer);
            break;
        }
    }
}

static void relocate_some(struct local_writer *writer)
{
    bool done;
    enum status status = store_relocate(writer->engine->store, writer->relocating->relocation,
                                        RELOCATIONS_PER_STEP, &done);
    if (status != ST_OK)
        local_fatal(writer->engine, "the log could not be written", status);
    if (!done)
        return;
    mailbox_post(&writer->engine->keeper.moved, &TAKE(writer->relocating)->in_mailbox);
}

/* What can be done now: trimming may have to wait for readers. */
static bool has_steps(const struct local_writer *writer)
{
    const struct store *store = writer->engine->store;
    return writer->relocating || (store_has_work(store) && !store_work_waits(store));
}

static void step(struct local_writer *writer)
{
    turn_phase("moving what the cleaner has copied");
    if (writer->relocating)
        relocate_some(writer);
    turn_phase("trimming what was compacted");
    bool trims = store_has_work(writer->engine->store);
    enum status status = store_work(writer->engine->store);
    if (status != ST_OK)
        local_fatal(writer->engine, "the log could not be read", status);
    if (trims && !store_has_work(writer->engine->store))
        tell_keeper(writer, 0); /* the checkpoint has something to let go of */
    answer_waiting(writer);
}

static bool has_requests(const struct local_writer *writer)
{
    return !mailbox_empty(&writer->requests) || !mailbox_empty(&writer->lease_reads) ||
           writer->lease_left;
}

static void steps(struct local_writer *writer)
{
    int64_t begun_ns = now_ns(), now = begun_ns, part_ns = (now - writer->stepped_ns) / STEPS_PART;
    int64_t share_ns = part_ns < steps_ns_max ? part_ns : steps_ns_max;
    do {
        step(writer);
        now = now_ns();
    } while (has_steps(writer) &&
             now - begun_ns < (has_requests(writer) ? share_ns : steps_ns_max));
    writer->stepped_ns = now;
}

/* -- The thread -- */

static bool nothing_to_do(const struct local_writer *writer)
{
    return !has_requests(writer) && mailbox_empty(&writer->jobs) && !has_steps(writer);
}

/*
 * The time is taken before what has arrived: a renewal that came in time is never too late. A wait
 * that ends much too late was our process being stopped; renewals wait in the sockets then, and
 * have a second to come in. Of a turn that took long only a second counts.
 */
static void take_time(struct local_writer *writer)
{
    int64_t before_ns = writer->now_ns, until_ns = writer->rest_until_ns;
    writer->now_ns = now_ns();
    writer->rest_until_ns = 0;
    if (until_ns && writer->now_ns > clock_add(until_ns, stall_ns))
        local_lease_away(&writer->lease, until_ns - stall_ns, writer->now_ns);
    else if (!until_ns && writer->now_ns > before_ns + stall_ns)
        local_lease_away(&writer->lease, before_ns + stall_ns, writer->now_ns);
}

static void rest(struct local_writer *writer, int64_t from_ns)
{
    int64_t until_ns = local_lease_next_ns(&writer->lease);
    if (writer->hears)
        until_ns = writer->now_ns + hearing_look_ns; /* an answer ends the wait */
    int64_t retired_ns = writer->now_ns + RETIRED_WAIT_NS;
    int64_t deferred_ns = writer->now_ns + DEFERRED_LOOK_NS;
    if (writer->deferred.first && deferred_ns < until_ns)
        until_ns = deferred_ns;
    if (store_has_retired(writer->engine->store) && retired_ns < until_ns)
        until_ns = retired_ns;
    writer->rest_until_ns = until_ns;
    if (until_ns > from_ns)
        mailbox_wait(&writer->requests, until_ns == CLOCK_NEVER ? CLOCK_NEVER : until_ns - from_ns);
}

static void *writer_main(void *arg)
{
    struct local_writer *writer = arg;
    while (!atomic_load_explicit(&writer->stopping, memory_order_acquire) || has_requests(writer)) {
        take_time(writer);
        turn_begin(writer->turn, writer->now_ns);
        take_lease_reads(writer);
        take_deferred(writer);
        struct mailbox_node *requests = mailbox_take(&writer->requests);
        if (requests || leases_are_over(writer))
            run_requests(writer, requests);
        take_jobs(writer);
        bool retired = store_has_retired(writer->engine->store);
        if (has_steps(writer) || (retired && !requests) || writer->waiting.first ||
            writer->settling)
            steps(writer);
        writer->hears = awaits_hearing(writer);
        int64_t ended_ns = now_ns();
        turn_end(writer->turn, ended_ns);
        if (nothing_to_do(writer))
            rest(writer, ended_ns);
    }
    return NULL;
}

void local_writer_init(struct local_writer *writer, struct engine_local *engine)
{
    writer->engine = engine;
    writer->turn = local_turn(engine, "writer");
    writer->counts = local_metrics_join(engine->metrics);
    writer->lease.counts = writer->counts;
    writer->answers = xcalloc(engine->options.shards_max, sizeof(*writer->answers));
    writer->early = xcalloc(engine->options.shards_max, sizeof(*writer->early));
    writer->yield_point = (struct yield_point){.fn = serve_between, .ctx = writer};
    writer->committed_revision = store_applier(engine->store)->revision;
    waker_init_thread(&writer->waker);
    mailbox_init(&writer->requests, &writer->waker);
    mailbox_init(&writer->lease_reads, &writer->waker);
    mailbox_init(&writer->jobs, &writer->waker);
}

void local_writer_start(struct local_writer *writer)
{
    writer->now_ns = now_ns();
    int error = pthread_create(&writer->thread, NULL, writer_main, writer);
    if (error)
        local_fatal(writer->engine, "no thread for the writer", status_from_errno(error));
    pthread_setname_np(writer->thread, "vigil-writer");
}

void local_writer_stop(struct local_writer *writer)
{
    atomic_store_explicit(&writer->stopping, true, memory_order_release);
    waker_wake(&writer->waker);
    pthread_join(writer->thread, NULL);
}

void local_writer_fini(struct local_writer *writer)
{
    if (writer->relocating)
        local_job_free(writer->relocating);
    if (writer->settling)
        local_job_free(writer->settling);
    for (struct mailbox_node *node = mailbox_take(&writer->jobs), *next; node; node = next) {
        next = node->next;
        local_job_free(CONTAINER_OF(node, struct local_job, in_mailbox));
    }
    local_lease_fini(&writer->lease);
    free(writer->answers);
    free(writer->early);
    waker_fini(&writer->waker);
}
