#include "engine/local/writer/writer.h"

#include "base/clock.h"
#include "base/metric/turn.h"
#include "base/xalloc.h"
#include "codec/pb/rpc.pb.h"
#include "engine/local/writer/look_ahead.h"
#include "engine/permission.h"
#include "engine/quota.h"

#include <stdlib.h>

/*
 * One turn of the writer:
 *
 *     answer lease reads (renewals, time-to-live, lists): everything they can see is durable
 *     take the requests ─► apply them as a group ─► write and sync once ─► publish ─► answer
 *                              └── a group ends at GROUP_BYTES_MAX ──┘
 *                          the last group also revokes some expired leases
 *     in the middle of a long request, leases are renewed too: early.c
 *     then some background work (run_background): relocation, trimming, freeing memory
 */
enum {
    GROUP_BYTES_MAX = 1 << 20, /* a few milliseconds to write and sync */
    RELOCATIONS_PER_STEP = 16,
    RETIRED_WAIT_NS = 20 * 1000 * 1000,
    LEASE_READS_PER_TURN = 16384, /* in renewals: a few milliseconds */
    DEFERRED_LOOK_NS = 1000 * 1000,
};
/*
 * The throttle of background work: while requests wait, it gets one part in BACKGROUND_PART of the
 * time. It never takes more than background_ns_max at once.
 */
enum { BACKGROUND_PART = 10 };
static const int64_t background_ns_max = NS_PER_S / 1000;
/* How long an expired lease is kept because some shard has not read its input yet. */
static const int64_t progress_wait_ns = 30 * NS_PER_S;
static const int64_t progress_look_ns = NS_PER_S;
/* A turn that takes longer, or begins this much too late: the process or the disk was stalled. */
static const int64_t stall_ns = NS_PER_S;

/* -- Permissions -- */

/* With the rights after everything that was applied before it. */
static enum status may(struct local_writer *writer, const struct engine_op *op)
{
    return permission_check(op, writer->shared->auth.state.rights, &writer->lease->keys_of);
}

/* -- Groups -- */

static void post_compacted(struct local_writer *writer)
{
    while (writer->compacted) {
        struct mailbox_node *node = writer->compacted; /* posting it sets its `next` */
        writer->compacted = node->next;
        mailbox_post(&writer->shared->keeper.compactions, node);
    }
}

/*
 * Whether a change may be made that adds this cost to the store (engine/quota.h); 0 for one that
 * adds nothing. One beyond the quota raises the alarm, and puts are refused until it is disarmed.
 */
static enum status admit(struct local_writer *writer, int64_t cost)
{
    struct local_shared *shared = writer->shared;
    struct applier *applier = store_applier(shared->store);
    assert(cost >= 0);
    unsigned alarms = shared->alarms.count ? local_alarms_bits(&shared->alarms) : 0;
    if (alarms & 1u << ENGINE_ALARM_CORRUPT)
        return ST_CORRUPT;
    if (cost == 0)
        return ST_OK; /* deletes, compactions and revokes may end the lack of space */
    if (alarms & 1u << ENGINE_ALARM_NOSPACE)
        return ST_NO_SPACE;
    if (log_is_short(store_log(shared->store)))
        return ST_DISK_FULL; /* deletes and compactions still fit, and may free space */
    int64_t quota = shared->options.quota_bytes;
    int64_t size = LOCAL_DB_BYTES_EMPTY + applier->db_bytes + local_lease_db_bytes(writer->lease);
    if (quota <= 0 || size + cost < quota)
        return ST_OK;
    local_alarms_raise(&shared->alarms, applier, shared->options.member_id, ENGINE_ALARM_NOSPACE);
    local_warn(&shared->report,
               "the quota is exceeded and the alarm raised: compact, defragment, disarm it",
               ST_NO_SPACE, "");
    return ST_NO_SPACE;
}

/*
 * A watch must not be canceled as compacted only because its shard has not read the revisions yet.
 * The shard will do so soon; until then the compaction waits.
 */
static bool defer_compaction(struct local_writer *writer, int64_t revision)
{
    struct local_shared *shared = writer->shared;
    const struct applier *applier = store_applier(shared->store);
    bool lags = false;
    for (unsigned i = 0; i < shared->options.shards_max && !lags; i++)
        lags = revision_notice_lags(&shared->notices[i], revision);
    if (!lags || revision > applier->revision || revision <= applier->compact_revision)
        return false;
    if (!writer->deferred_until_ns)
        writer->deferred_until_ns = clock_add(writer->now_ns, shared->options.compaction_wait_ns);
    return writer->now_ns < writer->deferred_until_ns;
}

/* False: the operation is answered later. */
static bool compact(struct local_writer *writer, struct engine_op *op)
{
    const struct pb_compaction_request *request = op->request;
    struct applier *applier = store_applier(writer->shared->store);
    int64_t before = applier->compact_revision;
    if (defer_compaction(writer, request->revision)) {
        mailbox_chain_add(&writer->deferred, &op->in_mailbox);
        return false;
    }
    op->status = admit(writer, 0);
    if (op->status == ST_OK)
        op->status = applier_compact(applier, request->revision);
    op->revision = applier->revision;
    if (op->status != ST_OK)
        return true;
    assert(applier->compact_revision == request->revision);
    assert(applier->compact_revision > before);
    /* The keeper gets it once it is durable and visible. */
    struct local_compacted *message = xcalloc(1, sizeof(*message));
    message->before = before;
    message->revision = request->revision;
    message->in_mailbox.next = writer->compacted;
    writer->compacted = &message->in_mailbox;
    if (!request->physical)
        return true;
    /* The client wants to wait until the index is trimmed: see answer_waiting. */
    mailbox_chain_add(&writer->waiting, &op->in_mailbox);
    return false;
}

static enum status write_keys(struct local_writer *writer, struct engine_write *write)
{
    struct applier *applier = store_applier(writer->shared->store);
    const void *request = write->op.request;
    struct arena *arena = write->op.arena;
    if (write->op.kind == ENGINE_PUT) {
        TRY(admit(writer, quota_cost_put(request)));
        return applier_put(applier, request, arena, &write->answer);
    }
    if (write->op.kind == ENGINE_DELETE_RANGE) {
        TRY(admit(writer, 0));
        return applier_delete_range(applier, request, arena, &write->answer);
    }
    TRY(admit(writer, quota_cost_txn(request)));
    return applier_txn(applier, request, arena, &write->answer);
}

static void write_lease(struct local_writer *writer, struct engine_op *op)
{
    op->revision = store_applier(writer->shared->store)->revision;
    op->status = admit(writer, op->kind == ENGINE_LEASE_GRANT ? QUOTA_LEASE_COST : 0);
    if (op->status == ST_OK)
        local_lease_execute(writer->lease, op, writer->now_ns);
    if (op->status == ST_OK && op->kind == ENGINE_LEASE_GRANT &&
        writer->granted_count < WRITER_GRANTS_MAX)
        writer->granted[writer->granted_count++] = CONTAINER_OF(op, struct engine_lease, op)->id;
}

/* False: the operation is answered later. */
static bool execute(struct local_writer *writer, struct engine_op *op)
{
    struct local_shared *shared = writer->shared;
    struct applier *applier = store_applier(shared->store);
    struct engine_write *write = CONTAINER_OF(op, struct engine_write, op);
    if (op->kind == ENGINE_AUTH) { /* checks permissions itself */
        writer->rights_pending = true;
        local_auth_execute(&shared->auth, CONTAINER_OF(op, struct engine_auth, op));
        return true;
    }
    if (op->kind == LOCAL_MIRROR) {
        local_mirror_writer_execute(&writer->mirror, CONTAINER_OF(op, struct mirror_batch, op),
                                    writer->now_ns);
        return false;
    }
    op->revision = applier->revision;
    op->status = may(writer, op);
    if (op->status != ST_OK)
        return true;
    switch ((enum engine_kind)op->kind) {
    case ENGINE_PUT:
    case ENGINE_DELETE_RANGE:
    case ENGINE_TXN:
        op->status = write_keys(writer, write);
        if (UNLIKELY(op->status == ST_DAMAGED))
            local_describe_damage(op);
        if (op->status == ST_OK)
            op->revision = write->answer.revision;
        break;
    case ENGINE_COMPACT:
        return compact(writer, op);
    case ENGINE_LEASE_GRANT:
    case ENGINE_LEASE_REVOKE:
    case ENGINE_LEASE_RENEW: /* one that needs a record, because a lease has expired */
        write_lease(writer, op);
        break;
    case ENGINE_ALARM:
        op->status = local_alarms_execute(&shared->alarms, applier,
                                          CONTAINER_OF(op, struct engine_alarm, op));
        op->revision = applier->revision;
        break;
    case ENGINE_MEMBERS:
        op->status = local_members_execute(&shared->members, applier,
                                           CONTAINER_OF(op, struct engine_members, op));
        break;
    case ENGINE_DOWNGRADE:
        op->status = local_alarms_downgrade(&shared->alarms, applier, op->request);
        op->revision = applier->revision;
        break;
    default:
        assert(false && "not for the writer");
    }
    return true;
}

/* True if it was not set before. */
static bool set_flag(_Atomic bool *flag)
{
    return !atomic_load_explicit(flag, memory_order_relaxed) && !atomic_exchange(flag, true);
}

/* Wakes the keeper when the log begins to grow, and again after checkpoint_bytes. */
static void wake_keeper(struct local_writer *writer, size_t bytes)
{
    struct local_keeper_inbox *keeper = &writer->shared->keeper;
    writer->bytes_since_wake += bytes;
    bool first = set_flag(&keeper->dirty);
    first = (bytes && set_flag(&keeper->unmarked)) || first;
    bool much = writer->bytes_since_wake > writer->shared->options.checkpoint_bytes;
    if (!first && !much && !log_wants_prepare(store_log(writer->shared->store)))
        return;
    writer->bytes_since_wake = 0;
    waker_wake(&keeper->waker);
}

/* Sends a notice to each shard that listens if there are new revisions or new permissions. */
static void notify_shards(struct local_writer *writer, bool rights_changed)
{
    struct local_shared *shared = writer->shared;
    int64_t revision = store_applier(shared->store)->revision;
    if (revision == writer->notified_revision && !rights_changed)
        return; /* the group only read, failed, or changed rows */
    assert(revision >= writer->notified_revision);
    writer->notified_revision = revision;
    unsigned used = local_shards_used(shared);
    for (unsigned i = 0; i < used; i++)
        revision_notice_send(&shared->notices[i]);
}

static int64_t now_ns(void)
{
    return clock_mono_ns(clock_system());
}

/* Adds what the store has counted since the last group, and the times of the group. */
static void count_group(struct local_writer *writer, size_t bytes)
{
    const struct applier *applier = store_applier(writer->shared->store);
    struct metric_block *counts = writer->counts;
    assert(applier->puts >= writer->puts);
    assert(applier->deletes >= writer->deletes);
    assert(applier->put_bytes >= writer->put_bytes);
    local_count(counts, LOCAL_PUTS, applier->puts - writer->puts);
    local_count(counts, LOCAL_DELETES, applier->deletes - writer->deletes);
    local_count(counts, LOCAL_PUT_BYTES, applier->put_bytes - writer->put_bytes);
    writer->puts = applier->puts;
    writer->deletes = applier->deletes;
    writer->put_bytes = applier->put_bytes;
    if (!bytes)
        return; /* nothing was written, and so the times are those of an earlier group */
    struct store_commit_times times = store_commit_times(writer->shared->store);
    assert(times.bytes == bytes);
    local_count(counts, LOCAL_LOG_BYTES, times.bytes);
    local_observe(counts, LOCAL_LOG_WRITE_SECONDS, times.write_ns);
    local_observe(counts, LOCAL_LOG_SYNC_SECONDS, times.sync_ns);
    local_observe(counts, LOCAL_GROUP_BYTES, (int64_t)times.bytes);
    local_observe(counts, LOCAL_GROUP_REQUESTS, writer->group_requests);
}

/* -- After a failure -- */

static bool has_failed(const struct local_writer *writer)
{
    return local_has_failed(&writer->shared->report);
}

/* Whether the group is on the disk is unknown. */
static void refuse_begun(struct local_writer *writer)
{
    local_refuse_chain(&writer->waiting, ST_TIMEOUT);
    local_refuse_chain(&writer->deferred, ST_STOPPED);
    for (unsigned i = 0; i <= writer->shared->options.shards_max; i++)
        local_refuse_chain(&writer->answers[i], ST_TIMEOUT);
    local_mirror_writer_refuse(&writer->mirror);
    post_compacted(writer); /* which only frees them now */
}

static void fail(struct local_writer *writer, const char *what, enum status status)
{
    local_fail(&writer->shared->report, what, status);
    refuse_begun(writer);
    waker_wake(&writer->shared->keeper.waker); /* it refuses what waits for the writer */
}

/* Also after a failure that the keeper has reported, wherever the writer was at that time. */
static void refuse_all(struct local_writer *writer)
{
    refuse_begun(writer);
    local_refuse(TAKE(writer->lease_left), ST_STOPPED);
    local_refuse(mailbox_take(&writer->inbox->lease_reads), ST_STOPPED);
    local_refuse(mailbox_take(&writer->inbox->requests), ST_STOPPED);
    if (mailbox_empty(&writer->inbox->requests) && mailbox_empty(&writer->inbox->lease_reads))
        mailbox_wait(&writer->inbox->requests, CLOCK_NEVER);
}

static void commit_group(struct local_writer *writer)
{
    size_t bytes = store_pending_bytes(writer->shared->store);
    if (writer->group_requests)
        local_observe(writer->counts, LOCAL_APPLY_SECONDS, now_ns() - writer->group_begun_ns);
    turn_phase("writing and syncing the log");
    enum status status = store_sync(writer->shared->store);
    if (status != ST_OK) {
        fail(writer, "the log could not be written", status);
        return;
    }
    /* The group is durable, and readers see it unless it is a hidden part of a mirror's load. */
    assert(store_pending_bytes(writer->shared->store) == 0);
    turn_phase("publishing a group");
    if (writer->shared->alarms.changed)
        local_alarms_publish(&writer->shared->alarms);
    if (writer->granted_count || local_lease_any(writer->lease))
        local_lease_publish(writer->lease);
    bool rights_changed = writer->shared->auth.changed;
    writer->shared->auth.changed = false;
    count_group(writer, bytes);
    /* What early answers must not show is visible now. */
    writer->granted_count = 0;
    writer->rights_pending = false;
    assert(store_applier(writer->shared->store)->revision >= writer->committed_revision);
    writer->committed_revision = store_applier(writer->shared->store)->revision;
    local_answers_send(writer->shared, writer->answers);
    notify_shards(writer, rights_changed);
    if (writer->mirror.applied.first)
        local_mirror_writer_published(&writer->mirror);
    post_compacted(writer);
    if (bytes)
        wake_keeper(writer, bytes);
    writer->group_requests = 0;
    turn_phase("freeing what a group has replaced");
    store_reclaim(writer->shared->store); /* others may be served in between */
}

static void end_group(void *ctx)
{
    commit_group(ctx);
}

static bool leases_are_over(const struct local_writer *writer)
{
    return local_lease_any(writer->lease) &&
           local_lease_next_ns(writer->lease) <= writer->lease_read_ns;
}

static void expire_leases(struct local_writer *writer)
{
    if (!leases_are_over(writer))
        return;
    turn_phase("revoking expired leases");
    enum status status = admit(writer, 0);
    if (status != ST_OK)
        local_lease_hold(writer->lease, writer->now_ns); /* no changes are allowed */
    else
        status = local_lease_expire(writer->lease, writer->lease_read_ns, GROUP_BYTES_MAX);
    if (status != ST_OK && status != ST_CORRUPT)
        local_warn(&writer->shared->report, "expired leases could not be revoked", status,
                   "this will be tried again");
}

static bool may_take_long(const struct engine_op *op)
{
    return op->kind == ENGINE_DELETE_RANGE || op->kind == ENGINE_TXN ||
           op->kind == ENGINE_LEASE_REVOKE;
}

/* -- Running -- */

static void run_requests(struct local_writer *writer, struct mailbox_node *node)
{
    const struct mailbox_node *ahead = node;
    assert(!yield_point_here); /* early answers never run requests themselves */
    yield_point_here = &writer->yield_point;
    while (node) {
        struct engine_op *op = op_of(node);
        /* A request that is alone has nothing to wait for at the same time. */
        if (node == ahead && node->next)
            ahead = local_look_ahead(store_applier(writer->shared->store), node);
        /* While `granted` is full, no lease could be renewed in the middle of a long request. */
        if (writer->granted_count == WRITER_GRANTS_MAX && may_take_long(op))
            commit_group(writer);
        if (has_failed(writer))
            break; /* it is refused with those behind it */
        node = node->next;
        /* Read before executing: afterwards the operation may be freed. */
        unsigned shard = op->kind == LOCAL_MIRROR ? 0 : local_shard_number(op);
        struct slice name = local_op_name(op);
        if (writer->group_requests++ == 0) {
            turn_phase("applying puts");
            writer->group_begun_ns = now_ns();
        }
        if (name.len)
            turn_work("applying", name);
        if (execute(writer, op)) {
            if (UNLIKELY(op->status == ST_DISK_FULL))
                local_disk_note(&writer->shared->alarms, &writer->shared->keeper.waker);
            mailbox_chain_add(&writer->answers[shard], &op->in_mailbox);
        }
        if (store_pending_bytes(writer->shared->store) > GROUP_BYTES_MAX)
            commit_group(writer);
    }
    if (node)
        local_refuse(node, ST_STOPPED);
    if (!has_failed(writer))
        expire_leases(writer);
    /* A hidden part of a mirror's load ends its groups itself. */
    if (!has_failed(writer) && !store_is_hidden(writer->shared->store))
        commit_group(writer); /* also with yield_point_here set, because it may take long */
    assert(writer->granted_count == 0 || has_failed(writer) ||
           store_is_hidden(writer->shared->store));
    yield_point_here = NULL;
}

/* All shards have read, and posted to us, what their clients sent before this time. A stuck shard
 * is ignored after progress_wait_ns, so that it does not keep leases alive forever. */
static int64_t input_read_ns(const struct local_writer *writer)
{
    struct local_shared *shared = writer->shared;
    int64_t read_ns = writer->now_ns;
    unsigned used = local_shards_used(shared);
    for (unsigned i = 0; i < used; i++) {
        int64_t of_shard = read_progress_ns(&shared->progress[i]);
        read_ns = of_shard < read_ns ? of_shard : read_ns;
    }
    int64_t at_least = writer->now_ns - progress_wait_ns;
    return read_ns > at_least ? read_ns : at_least;
}

/* A lease has expired, but its renewal may still be in a socket: asks the shards to read their
 * input. */
static bool request_progress(struct local_writer *writer)
{
    struct local_shared *shared = writer->shared;
    if (!local_lease_any(writer->lease) || !local_lease_is_due(writer->lease, writer->now_ns) ||
        leases_are_over(writer))
        return false;
    for (unsigned i = 0; i < shared->options.shards_max; i++)
        if (read_progress_ns(&shared->progress[i]) < writer->now_ns)
            read_progress_ask(&shared->progress[i], writer->now_ns);
    return true;
}

/*
 * Before a group nothing is pending, so everything these calls see is durable and their answers
 * need not wait for a sync. Expired leases among them must be revoked first, in a group.
 */
static void take_lease_reads(struct local_writer *writer)
{
    struct mailbox_chain to_execute = {0};
    assert(store_pending_bytes(writer->shared->store) == 0);
    if (!writer->lease_left) {
        writer->lease_taken_ns = input_read_ns(writer);
        writer->lease_left = mailbox_take(&writer->inbox->lease_reads);
    }
    if (writer->lease_left)
        turn_phase("renewing leases");
    for (size_t work = 0; writer->lease_left && work < LEASE_READS_PER_TURN;) {
        struct engine_op *op = op_of(writer->lease_left);
        writer->lease_left = op->in_mailbox.next;
        struct slice name = local_op_name(op);
        if (name.len)
            turn_work("answering", name);
        work += local_lease_work(writer->lease, op);
        op->status = may(writer, op);
        if (op->status != ST_OK)
            mailbox_chain_add(&writer->answers[local_shard_number(op)], &op->in_mailbox);
        /* A lease of the call has expired, and must be revoked before the answer. */
        else if (!local_lease_read(writer->lease, op, writer->now_ns))
            mailbox_chain_add(&to_execute, &op->in_mailbox);
        /* A list of very many keys: the keeper sorts it, and answers. */
        else if (local_lease_is_unsorted(op))
            mailbox_post(&writer->shared->keeper.requests, &op->in_mailbox);
        else
            mailbox_chain_add(&writer->answers[local_shard_number(op)], &op->in_mailbox);
    }
    if (!writer->lease_left)
        writer->lease_read_ns = writer->lease_taken_ns;
    local_answers_send(writer->shared, writer->answers);
    if (to_execute.first)
        run_requests(writer, to_execute.first);
}

static void take_deferred(struct local_writer *writer)
{
    if (writer->mirror.deferred.first) {
        local_mirror_writer_continue(&writer->mirror, writer->now_ns);
        run_requests(writer, NULL);
    }
    struct mailbox_node *node = writer->deferred.first;
    if (!node)
        return;
    writer->deferred = (struct mailbox_chain){0};
    run_requests(writer, node);
    if (!writer->deferred.first)
        writer->deferred_until_ns = 0;
}

/* -- Background work, between groups -- */

/* Answers those that wait for the end of a compaction, if it has ended: clients and the keeper. */
static void answer_waiting(struct local_writer *writer)
{
    if (!store_compaction_done(writer->shared->store))
        return;
    if (writer->trimming)
        mailbox_post(&writer->shared->keeper.finished, &TAKE(writer->trimming)->in_mailbox);
    for (struct mailbox_node *node = writer->waiting.first, *next; node; node = next) {
        next = node->next;
        local_answer(op_of(node));
    }
    writer->waiting = (struct mailbox_chain){0};
}

static void take_jobs(struct local_writer *writer)
{
    struct store *store = writer->shared->store;
    for (struct mailbox_node *node = mailbox_take(&writer->inbox->jobs), *next; node; node = next) {
        next = node->next;
        struct local_job *job = CONTAINER_OF(node, struct local_job, in_mailbox);
        switch (job->kind) {
        case LOCAL_RELOCATE:
            assert(!writer->relocating);
            writer->relocating = job;
            break;
        case LOCAL_TRIM:
            assert(!writer->trimming);
            writer->trimming = job;
            break;
        case LOCAL_SHRINK:
            store_shrink(store);
            commit_group(writer);
            mailbox_post(&writer->shared->keeper.finished, &job->in_mailbox);
            break;
        case LOCAL_FORGET:
            store_forget_segment(store, job->segment);
            free(job);
            commit_group(writer);
            break;
        }
    }
}

/* There is something that can be done now; trimming may have to wait for readers. */
static bool has_background(const struct local_writer *writer)
{
    const struct store *store = writer->shared->store;
    return writer->relocating || (store_is_trimming(store) && !store_trim_waits(store));
}

static void background_step(struct local_writer *writer)
{
    struct store *store = writer->shared->store;
    enum status status = ST_OK;
    bool relocated = false;
    assert(!store_is_hidden(store));
    assert(store_pending_bytes(store) == 0);
    turn_phase("pointing the index to relocated records");
    if (writer->relocating)
        status =
            store_relocate(store, writer->relocating->relocation, RELOCATIONS_PER_STEP, &relocated);
    if (status != ST_OK)
        fail(writer, "the log could not be written", status);
    else if (relocated)
        mailbox_post(&writer->shared->keeper.finished, &TAKE(writer->relocating)->in_mailbox);
    turn_phase("trimming compacted versions");
    bool trims = store_is_trimming(store);
    status = store_trim_step(store);
    if (status != ST_OK) {
        fail(writer, "the log could not be read", status);
        return;
    }
    if (trims && !store_is_trimming(store))
        wake_keeper(writer, 0); /* that was the end: the checkpoint can drop the same versions */
    answer_waiting(writer);
}

static bool has_requests(const struct local_writer *writer)
{
    return !mailbox_empty(&writer->inbox->requests) ||
           !mailbox_empty(&writer->inbox->lease_reads) || writer->lease_left;
}

/* Works until its part of the time is used up, but at least one step. */
static void run_background(struct local_writer *writer)
{
    int64_t begun_ns = now_ns(), now = begun_ns;
    int64_t part_ns = (now - writer->background_ended_ns) / BACKGROUND_PART;
    int64_t share_ns = part_ns < background_ns_max ? part_ns : background_ns_max;
    do {
        background_step(writer);
        now = now_ns();
    } while (!has_failed(writer) && has_background(writer) &&
             now - begun_ns < (has_requests(writer) ? share_ns : background_ns_max));
    writer->background_ended_ns = now;
}

/* -- The thread -- */

/*
 * The time is read before the mailboxes, so that a renewal that arrived in time is never too late.
 * If a wait ended much too late, the process was stopped; renewals are still in the sockets and get
 * a second to be read. Of a turn that took long, only one second counts for leases.
 */
static void take_time(struct local_writer *writer)
{
    int64_t before_ns = writer->now_ns, until_ns = writer->wait_until_ns;
    writer->now_ns = now_ns();
    writer->wait_until_ns = 0;
    if (until_ns && writer->now_ns > clock_add(until_ns, stall_ns))
        local_lease_away(writer->lease, until_ns - stall_ns, writer->now_ns);
    else if (!until_ns && writer->now_ns > before_ns + stall_ns)
        local_lease_away(writer->lease, before_ns + stall_ns, writer->now_ns);
}

/* Sleeps until a message arrives, or something is due that no message announces. */
static void wait_for_work(struct local_writer *writer, int64_t from_ns)
{
    assert(from_ns >= writer->now_ns);
    assert(writer->wait_until_ns == 0);
    int64_t until_ns =
        local_lease_any(writer->lease) ? local_lease_next_ns(writer->lease) : CLOCK_NEVER;
    if (writer->awaits_progress)
        until_ns = writer->now_ns + progress_look_ns; /* a report of a shard ends the wait */
    int64_t retired_ns = writer->now_ns + RETIRED_WAIT_NS;
    int64_t deferred_ns = writer->now_ns + DEFERRED_LOOK_NS;
    bool deferred = writer->deferred.first || writer->mirror.deferred.first;
    if (deferred && deferred_ns < until_ns)
        until_ns = deferred_ns;
    if (store_has_retired(writer->shared->store) && retired_ns < until_ns)
        until_ns = retired_ns;
    writer->wait_until_ns = until_ns;
    if (until_ns > from_ns)
        mailbox_wait(&writer->inbox->requests,
                     until_ns == CLOCK_NEVER ? CLOCK_NEVER : until_ns - from_ns);
}

static void *writer_main(void *arg)
{
    struct local_writer *writer = arg;
    const struct store *store = writer->shared->store;
    while (!atomic_load_explicit(&writer->stopping, memory_order_acquire) || has_requests(writer)) {
        if (has_failed(writer)) {
            refuse_all(writer);
            continue;
        }
        take_time(writer);
        turn_begin(writer->turn, writer->now_ns);
        take_lease_reads(writer);
        take_deferred(writer);
        struct mailbox_node *requests = mailbox_take(&writer->inbox->requests);
        if (requests || leases_are_over(writer))
            run_requests(writer, requests);
        /* While a mirror's load is hidden, nothing else may touch the store. */
        if (!has_failed(writer) && !store_is_hidden(store)) {
            take_jobs(writer);
            bool frees = !requests && store_has_retired(store);
            if (has_background(writer) || frees || writer->waiting.first || writer->trimming)
                run_background(writer);
        }
        writer->awaits_progress = request_progress(writer);
        int64_t ended_ns = now_ns();
        turn_end(writer->turn, ended_ns);
        bool has_more = !mailbox_empty(&writer->inbox->jobs) || has_background(writer);
        if (!has_requests(writer) && (!has_more || store_is_hidden(store)))
            wait_for_work(writer, ended_ns);
    }
    return NULL;
}

void local_writer_init(struct local_writer *writer, struct local_shared *shared)
{
    struct local_writer_inbox *inbox = &shared->writer;
    writer->shared = shared;
    writer->inbox = inbox;
    writer->lease = &shared->lease;
    writer->turn = local_turn(shared, "writer");
    writer->counts = local_metrics_join(shared->metrics);
    writer->lease->counts = writer->counts;
    writer->answers = xcalloc(shared->options.shards_max + 1, sizeof(*writer->answers));
    writer->early = xcalloc(shared->options.shards_max + 1, sizeof(*writer->early));
    writer->mirror =
        (struct local_mirror_writer){.shared = shared, .commit = end_group, .ctx = writer};
    writer->yield_point = (struct yield_point){.fn = local_writer_answer_early, .ctx = writer};
    writer->committed_revision = store_applier(shared->store)->revision;
    waker_init_thread(&inbox->waker);
    mailbox_init(&inbox->requests, &inbox->waker);
    mailbox_init(&inbox->lease_reads, &inbox->waker);
    mailbox_init(&inbox->jobs, &inbox->waker);
}

void local_writer_start(struct local_writer *writer)
{
    writer->now_ns = now_ns();
    int error = pthread_create(&writer->thread, NULL, writer_main, writer);
    if (error)
        local_fatal(&writer->shared->report, "cannot create the thread of the writer",
                    status_from_errno(error));
    pthread_setname_np(writer->thread, "vigil-writer");
}

void local_writer_stop(struct local_writer *writer)
{
    atomic_store_explicit(&writer->stopping, true, memory_order_release);
    waker_wake(&writer->inbox->waker);
    pthread_join(writer->thread, NULL);
}

void local_writer_fini(struct local_writer *writer)
{
    if (writer->relocating)
        local_job_free(writer->relocating);
    if (writer->trimming)
        local_job_free(writer->trimming);
    for (struct mailbox_node *node = mailbox_take(&writer->inbox->jobs), *next; node; node = next) {
        next = node->next;
        local_job_free(CONTAINER_OF(node, struct local_job, in_mailbox));
    }
    free(writer->answers);
    free(writer->early);
    waker_fini(&writer->inbox->waker);
}
