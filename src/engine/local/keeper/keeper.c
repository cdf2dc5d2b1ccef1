#include "engine/local/keeper/keeper.h"

#include "base/clock.h"
#include "base/metric/turn.h"
#include "base/xalloc.h"
#include "base/yield_point.h"
#include "engine/local/snapshot/snapshot.h"

#include <stdlib.h>

/* A checkpoint is written this long after the log has grown, or earlier if it has grown much. */
static const int64_t checkpoint_wait_ns = 5 * NS_PER_S;
/*
 * The log is idle, and is marked, if it has not grown between two looks: at the latest twice this
 * long after the last group, so within a second.
 */
static const int64_t mark_wait_ns = 400 * NS_PER_MS;
/* After a failure, usually a full disk. */
static const int64_t retry_wait_ns = NS_PER_S;
/* The shortest time between two equal warnings. */
static const int64_t warn_again_ns = 60 * NS_PER_S;
/*
 * Work that can wait (the checkpoint, dropping compacted versions, cleaning) writes in bursts that
 * slow down the syncs of the log. While clients write, the keeper rests REST_TIMES times as long as
 * the last burst took, but at most burst_rest_ns_max.
 */
enum { REST_TIMES = 8 };
static const int64_t burst_rest_ns_max = NS_PER_S;
/* Between two pieces of a new segment it also rests, but not longer than this. */
static const int64_t piece_rest_ns_max = 50 * NS_PER_MS;
/* Time at a stop for work that the next start could also do. */
static const int64_t last_checkpoint_ns = 2 * NS_PER_S;

static int64_t now_ns(void)
{
    return clock_mono_ns(clock_system());
}

/* -- Requests -- */

static void take_compactions(struct local_keeper *keeper)
{
    struct mailbox_node *next;
    for (struct mailbox_node *node = mailbox_take(&keeper->inbox->compactions); node; node = next) {
        next = node->next;
        struct local_compacted *compaction = CONTAINER_OF(node, struct local_compacted, in_mailbox);
        local_hashes_note(&keeper->hashes, compaction->before, compaction->revision);
        free(compaction);
    }
}

static void take_requests(struct local_keeper *keeper)
{
    struct mailbox_node *next;
    for (struct mailbox_node *node = mailbox_take(&keeper->inbox->requests); node; node = next) {
        next = node->next;
        struct engine_op *op = op_of(node);
        if (op->kind == ENGINE_DEFRAGMENT)
            mailbox_chain_add(&keeper->defragmenter.waiting, &op->in_mailbox);
        else if (op->kind == ENGINE_HASH_KV)
            local_hashes_request(&keeper->hashes, op);
        else if (op->kind == ENGINE_SNAPSHOT_START)
            local_snapshot_collect(keeper->shared, keeper->upkeep, op);
        else
            mailbox_chain_add(&keeper->unsorted, &op->in_mailbox);
    }
}

/* -- Segments, checkpoints, cleaning -- */

static void warn(struct local_keeper *keeper, const char *what, enum status status,
                 const char *detail)
{
    int64_t now = now_ns();
    if (keeper->last_warning == what && now - keeper->last_warning_ns < warn_again_ns)
        return; /* a full disk stays full for a while */
    keeper->last_warning = what;
    keeper->last_warning_ns = now;
    local_warn(&keeper->shared->report, what, status, detail);
}

/* Also delays further attempts at anything that needs disk space, except the next segment. */
static void warn_and_wait(struct local_keeper *keeper, const char *what, enum status status,
                          const char *detail)
{
    keeper->retry_at_ns = now_ns() + retry_wait_ns;
    warn(keeper, what, status, detail);
}

static void rest_after_piece(struct local_keeper *keeper, int64_t begun_ns)
{
    int64_t now = now_ns(), ns = REST_TIMES * (now - begun_ns);
    uint64_t index = log_durable_index(store_log(keeper->shared->store));
    bool quiet = index == keeper->prepared_index;
    keeper->prepared_index = index;
    keeper->prepare_at_ns = quiet ? 0 : now + (ns < piece_rest_ns_max ? ns : piece_rest_ns_max);
}

/* A part of the next segment is made, and the next part can wait. */
static bool rests_after_piece(const struct local_keeper *keeper, int64_t now)
{
    return upkeep_is_preparing(keeper->upkeep) && now < keeper->prepare_at_ns &&
           !upkeep_prepare_lags(keeper->upkeep);
}

/* It waits only for its own failures: a writer that finds no segment makes one itself, and then all
 * puts wait for it. */
static void prepare(struct local_keeper *keeper)
{
    struct local_shared *shared = keeper->shared;
    int64_t begun_ns = now_ns();
    if (begun_ns < keeper->prepare_retry_ns || rests_after_piece(keeper, begun_ns))
        return;
    turn_phase("creating the next segment of the log");
    enum status status = upkeep_prepare_step(keeper->upkeep);
    bool goes_on = upkeep_is_preparing(keeper->upkeep);
    bool again = !goes_on && local_disk_look(&shared->alarms, status, &shared->report);
    keeper->prepare_retry_ns = again ? now_ns() + retry_wait_ns : 0;
    if (goes_on)
        rest_after_piece(keeper, begun_ns);
    /* Snapshots keep cleaned segments on the disk, which puts need more. */
    if (status == ST_DISK_FULL && upkeep_is_held_back(keeper->upkeep))
        local_snapshots_end_all(&shared->snapshots);
    if (status != ST_OK)
        warn(keeper, "the next segment of the log could not be created", status,
             status == ST_DISK_FULL ? "free space, or delete keys and compact" : "");
}

/* When the next segment needs the keeper again; CLOCK_NEVER: when the writer has taken one. */
static int64_t prepare_due_ns(const struct local_keeper *keeper)
{
    if (keeper->prepare_retry_ns)
        return keeper->prepare_retry_ns;
    if (!upkeep_is_preparing(keeper->upkeep))
        return CLOCK_NEVER;
    return upkeep_prepare_lags(keeper->upkeep) ? 0 : keeper->prepare_at_ns;
}

/* Unlike other failures this does not set retry_at_ns: on a full disk, the work that frees space
 * must not wait for it. */
static void mark_failed(struct local_keeper *keeper, enum status status)
{
    int64_t now = now_ns();
    keeper->mark_look_ns = now + retry_wait_ns;
    if (keeper->mark_warned_ns && now - keeper->mark_warned_ns < warn_again_ns)
        return;
    keeper->mark_warned_ns = now;
    local_warn(&keeper->shared->report, "the log could not be marked as durable", status,
               "damage to the last writes would not be detected");
}

static void mark(struct local_keeper *keeper)
{
    /* Cleared first: a group that the mark does not cover sets it again. */
    atomic_store(&keeper->inbox->unmarked, false);
    keeper->mark_look_ns = CLOCK_NEVER;
    enum status status = upkeep_mark(keeper->upkeep);
    if (status != ST_OK)
        mark_failed(keeper, status);
    if (upkeep_is_marked(keeper->upkeep))
        return;
    /* A group was written meanwhile. If the writer sees the flag set here, it wakes no thread. */
    atomic_store(&keeper->inbox->unmarked, true);
    if (keeper->mark_look_ns == CLOCK_NEVER)
        keeper->mark_look_ns = now_ns() + mark_wait_ns;
}

/* A mark costs a sync and is not urgent, so it is written only when no groups arrive. */
static void mark_if_idle(struct local_keeper *keeper)
{
    int64_t now = now_ns();
    if (!atomic_load(&keeper->inbox->unmarked) ||
        (now < keeper->mark_look_ns && keeper->mark_look_ns != CLOCK_NEVER))
        return;
    uint64_t index = log_durable_index(store_log(keeper->shared->store));
    bool idle = keeper->mark_look_ns != CLOCK_NEVER && index == keeper->mark_seen_index;
    keeper->mark_seen_index = index;
    keeper->mark_look_ns = now + mark_wait_ns;
    if (idle)
        mark(keeper);
}

/* In the middle of a long sort: work that cannot wait until it ends. */
static void do_urgent(void *ctx)
{
    struct local_keeper *keeper = ctx;
    mark_if_idle(keeper);
    prepare(keeper);
}

/* Sorts one list of leases, or of the keys of a lease, that the writer has collected. */
static void sort_one(struct local_keeper *keeper)
{
    struct mailbox_node *node = mailbox_chain_take(&keeper->unsorted);
    if (!node)
        return;
    turn_work("sorting", local_op_name(op_of(node)));
    struct yield_point point = {.fn = do_urgent, .ctx = keeper};
    yield_point_here = &point;
    local_lease_sort(op_of(node));
    yield_point_here = NULL;
    local_answer(op_of(node));
}

static void checkpoint_begin(struct local_keeper *keeper)
{
    atomic_store(&keeper->inbox->dirty, false);
    keeper->dirty_since_ns = CLOCK_NEVER;
    upkeep_checkpoint_begin(keeper->upkeep);
    keeper->checkpointing = true;
    keeper->checkpoints++;
}

static void checkpoint_failed(struct local_keeper *keeper, enum status status)
{
    keeper->checkpointing = false;
    atomic_store(&keeper->inbox->dirty, true);
    keeper->dirty_since_ns = now_ns(); /* the writer finds it set, and wakes no thread */
    const char *what = "the checkpoint could not be written and will be tried again";
    if (status == ST_DAMAGED) {
        keeper->checkpoint_after_ns = now_ns() + warn_again_ns;
        local_warn(&keeper->shared->report, what, status,
                   "copy the keys now: the next start will refuse this log");
    } else {
        warn_and_wait(keeper, what, status, upkeep_error_text(keeper->upkeep));
    }
}

static void rest_after(struct local_keeper *keeper, int64_t begun_ns, int64_t times)
{
    int64_t now = now_ns(), ns = times * (now - begun_ns);
    uint64_t index = log_durable_index(store_log(keeper->shared->store));
    /* Clients have not written since the last rest, or an operator waits for a defragmentation. */
    bool quiet = index == keeper->rested_index || keeper->defragmenter.state != DEFRAGMENT_IDLE;
    keeper->rested_index = index;
    keeper->rest_until_ns = quiet ? 0 : now + (ns < burst_rest_ns_max ? ns : burst_rest_ns_max);
}

static bool rests(const struct local_keeper *keeper, int64_t now)
{
    return now < keeper->rest_until_ns;
}

static bool lags_by(const struct local_keeper *keeper, unsigned checkpoints)
{
    uint64_t bytes = keeper->shared->options.checkpoint_bytes;
    return upkeep_checkpoint_lag_bytes(keeper->upkeep) >= checkpoints * bytes;
}

/* Dropping versions can always wait. Adding records can wait while a start would replay less than
 * twice checkpoint_bytes. */
static bool checkpoint_can_wait(const struct local_keeper *keeper)
{
    return !upkeep_checkpoint_lags(keeper->upkeep) || !lags_by(keeper, 2);
}

/* REST_TIMES, and less and less from checkpoint_bytes to twice as much, so that the checkpoint
 * becomes as fast as the log grows before it may not rest at all. */
static int64_t rest_times(const struct local_keeper *keeper)
{
    uint64_t most = keeper->shared->options.checkpoint_bytes;
    uint64_t lag = upkeep_checkpoint_lag_bytes(keeper->upkeep), over = lag > most ? lag - most : 0;
    return over < most ? (int64_t)(REST_TIMES - REST_TIMES * over / most) : 0;
}

/* One transaction of the checkpoint in progress. */
static enum status checkpoint_step(struct local_keeper *keeper)
{
    int64_t begun_ns = now_ns();
    bool can_wait = checkpoint_can_wait(keeper);
    turn_phase("writing a checkpoint");
    bool done = false;
    enum status status = upkeep_checkpoint_step(keeper->upkeep, &done);
    if (!done)
        local_observe(keeper->counts, LOCAL_CHECKPOINT_SECONDS, now_ns() - begun_ns);
    if (can_wait)
        rest_after(keeper, begun_ns, rest_times(keeper));
    if (status != ST_OK)
        checkpoint_failed(keeper, status);
    else if (done)
        keeper->checkpointing = false;
    return status;
}

/* At the stop: brings the checkpoint up to the log. Dropping compacted versions is limited in time;
 * the rest is left to the next start. */
static void checkpoint_last(struct local_keeper *keeper)
{
    int64_t until_ns = now_ns() + last_checkpoint_ns;
    checkpoint_begin(keeper);
    while (keeper->checkpointing && (now_ns() < until_ns || upkeep_checkpoint_lags(keeper->upkeep)))
        (void)checkpoint_step(keeper);
}

static void ask_writer(struct local_keeper *keeper, enum local_job_kind kind,
                       struct relocation *relocation)
{
    struct local_job *job = xcalloc(1, sizeof(*job));
    job->kind = kind;
    job->relocation = relocation;
    mailbox_post(&keeper->shared->writer.jobs, &job->in_mailbox);
}

/* The next segment that is worth cleaning, or that defragmenting needs to clean. A damaged segment
 * is left alone: copying would give damaged bytes a valid checksum. */
static enum status next_to_clean(struct local_keeper *keeper, struct relocation **ret_relocation)
{
    struct local_defragmenter *defragmenter = &keeper->defragmenter;
    enum status status;
    do {
        status = defragmenter->state == DEFRAGMENT_CLEANING
                     ? upkeep_defragment_next(keeper->upkeep, defragmenter->id_end, ret_relocation)
                     : upkeep_clean_begin(keeper->upkeep, ret_relocation);
        if (status == ST_DAMAGED) {
            defragmenter->met_damage = true;
            local_warn(&keeper->shared->report,
                       "a segment of the log is damaged and is not cleaned", status, "");
        }
    } while (status == ST_DAMAGED && !upkeep_is_broken(keeper->upkeep));
    return status;
}

/*
 * Hashes cover versions that cleaning would drop. Compactions whose versions the checkpoint has
 * dropped were announced before they became visible, so all of them are in the mailbox by now.
 * Cleaning waits for at most two hashes: if there are always more, those of compactions are
 * dropped.
 */
static bool may_clean(struct local_keeper *keeper)
{
    struct local_hashes *hashes = &keeper->hashes;
    if (keeper->cleaning)
        return false;
    take_compactions(keeper);
    if (hashes->ended >= keeper->wants_cleaning_since + 2)
        local_hashes_forget_noted(hashes);
    return !local_hashes_hold_cleaning(hashes);
}

static void want_cleaning(struct local_keeper *keeper)
{
    if (!keeper->wants_cleaning)
        keeper->wants_cleaning_since = keeper->hashes.ended;
    keeper->wants_cleaning = true;
}

/* Begins to clean the next segment, if there is one. */
static enum status clean(struct local_keeper *keeper)
{
    struct relocation *relocation;
    int64_t begun_ns = now_ns();
    turn_phase("copying the live records of a segment");
    enum status status = next_to_clean(keeper, &relocation);
    if (status != ST_OK) {
        warn_and_wait(keeper, "a segment of the log could not be cleaned", status,
                      upkeep_error_text(keeper->upkeep));
        return status;
    }
    if (!relocation)
        return ST_OK;
    local_observe(keeper->counts, LOCAL_CLEAN_SECONDS, now_ns() - begun_ns);
    rest_after(keeper, begun_ns, REST_TIMES);
    keeper->cleaning = true;
    ask_writer(keeper, LOCAL_RELOCATE, relocation);
    return ST_OK;
}

/* The checkpoint contains the copies: the writer removes the old segment. */
static void cleaned(struct local_keeper *keeper, uint64_t old_segment)
{
    struct local_job *job = TAKE(keeper->relocated_job);
    job->relocation = NULL;
    job->kind = LOCAL_FORGET;
    job->segment = old_segment;
    mailbox_post(&keeper->shared->writer.jobs, &job->in_mailbox);
    keeper->cleaning = false;
    local_count(keeper->counts, LOCAL_CLEANED_SEGMENTS, 1);
}

/*
 * The index points to the copies that the writer was given. The writer gets more of them, or a step
 * of the checkpoint follows. On a full disk this is tried again, because it frees space; after
 * damage, too, but rarely, and no other segment is cleaned. True: the segment is cleaned.
 */
static bool continue_cleaning(struct local_keeper *keeper)
{
    struct relocation *relocation = keeper->relocated_job->relocation;
    uint64_t old_segment = relocation->old_segment;
    turn_phase("writing the checkpoint of a cleaned segment");
    int64_t begun_ns = now_ns();
    bool done = false;
    enum status status = upkeep_clean_step(keeper->upkeep, relocation, &done);
    const char *what = "the checkpoint of a cleaned segment could not be written";
    if (status == ST_DAMAGED) {
        keeper->clean_retry_ns = now_ns() + warn_again_ns;
        warn(keeper, what, status, upkeep_error_text(keeper->upkeep));
        return false;
    }
    if (status == ST_DISK_FULL) {
        warn_and_wait(keeper, what, status, upkeep_error_text(keeper->upkeep));
        return false;
    }
    if (status != ST_OK) {
        local_fail(&keeper->shared->report, what, status);
        waker_wake(&keeper->shared->writer.waker);
        return false;
    }
    rest_after(keeper, begun_ns, REST_TIMES);
    if (done)
        cleaned(keeper, old_segment);
    else if (relocation->count)
        mailbox_post(&keeper->shared->writer.jobs, &TAKE(keeper->relocated_job)->in_mailbox);
    return done;
}

static bool can_continue_cleaning(const struct local_keeper *keeper, int64_t now)
{
    return keeper->relocated_job && now >= keeper->clean_retry_ns && !rests(keeper, now);
}

/* -- Defragmenting -- */

static const unsigned defragment_moves[] = {
    [DEFRAGMENT_IDLE] = 1u << DEFRAGMENT_TRIMMING,
    [DEFRAGMENT_TRIMMING] = 1u << DEFRAGMENT_DROPPING,
    [DEFRAGMENT_DROPPING] = 1u << DEFRAGMENT_CLEANING | 1u << DEFRAGMENT_IDLE,
    [DEFRAGMENT_CLEANING] = 1u << DEFRAGMENT_SHRINKING | 1u << DEFRAGMENT_IDLE,
    [DEFRAGMENT_SHRINKING] = 1u << DEFRAGMENT_SAVING,
    [DEFRAGMENT_SAVING] = 1u << DEFRAGMENT_IDLE,
};

static void defragment_move(struct local_keeper *keeper, enum defragment_state next)
{
    assert(defragment_moves[keeper->defragmenter.state] & 1u << next);
    keeper->defragmenter.state = next;
}

/* Answers the operations of a chain that were given up; with `all`, every one. */
static void answer_defragments(struct local_keeper *keeper, struct mailbox_chain *chain,
                               enum status status, bool all)
{
    struct mailbox_chain kept = {0};
    if (!chain->first)
        return;
    int64_t revision = upkeep_revision(keeper->upkeep);
    for (struct mailbox_node *node = chain->first, *next; node; node = next) {
        next = node->next;
        struct engine_op *op = op_of(node);
        bool given_up = atomic_load(&op->given_up);
        if (!all && !given_up) {
            mailbox_chain_add(&kept, &op->in_mailbox);
            continue;
        }
        op->status = given_up ? ST_CANCELED : status;
        op->revision = revision;
        local_answer(op);
    }
    *chain = kept;
}

static void defragment_begin(struct local_keeper *keeper)
{
    struct local_defragmenter *defragmenter = &keeper->defragmenter;
    defragmenter->served = defragmenter->waiting;
    defragmenter->waiting = (struct mailbox_chain){0};
    defragmenter->wanted = false;
    defragmenter->begun_ns = now_ns();
    defragmenter->met_damage = false;
    local_count(keeper->counts, LOCAL_DEFRAGMENTS_BEGUN, 1);
    defragment_move(keeper, DEFRAGMENT_TRIMMING);
    ask_writer(keeper, LOCAL_TRIM, NULL);
}

static void defragment_finish(struct local_keeper *keeper, enum status status)
{
    defragment_move(keeper, DEFRAGMENT_IDLE);
    if (status == ST_OK)
        local_observe(keeper->counts, LOCAL_DEFRAGMENT_SECONDS,
                      now_ns() - keeper->defragmenter.begun_ns);
    local_count(keeper->counts, LOCAL_DEFRAGMENTS_ENDED, 1);
    answer_defragments(keeper, &keeper->defragmenter.served, status, true);
}

/* Makes one step, unless the next one is the writer's. */
static void defragment(struct local_keeper *keeper)
{
    struct local_defragmenter *defragmenter = &keeper->defragmenter;
    if (defragmenter->state == DEFRAGMENT_IDLE &&
        (defragmenter->waiting.first || defragmenter->wanted))
        defragment_begin(keeper);
    if (defragmenter->state == DEFRAGMENT_CLEANING && now_ns() < keeper->clean_retry_ns)
        defragment_finish(keeper, ST_DAMAGED); /* it did what it could */
    if (defragmenter->state != DEFRAGMENT_CLEANING || keeper->cleaning)
        return;
    want_cleaning(keeper);
    if (!may_clean(keeper))
        return;
    keeper->wants_cleaning = false;
    enum status status = clean(keeper);
    if (status != ST_OK) {
        defragment_finish(keeper, status);
    } else if (!keeper->cleaning) {
        defragment_move(keeper, DEFRAGMENT_SHRINKING);
        ask_writer(keeper, LOCAL_SHRINK, NULL);
    }
}

/*
 * The writer has returned a job. After TRIMMING, a checkpoint must drop the trimmed versions before
 * segments are cleaned; after SHRINKING, a checkpoint must save the new size.
 */
static void defragment_await_checkpoint(struct local_keeper *keeper, enum defragment_state state)
{
    defragment_move(keeper, state);
    keeper->defragmenter.checkpoint = keeper->checkpoints + 1;
}

static bool defragment_waits_for_checkpoint(const struct local_keeper *keeper)
{
    enum defragment_state state = keeper->defragmenter.state;
    return state == DEFRAGMENT_DROPPING || state == DEFRAGMENT_SAVING;
}

/* A checkpoint has ended or failed. */
static void defragment_checkpointed(struct local_keeper *keeper, enum status status)
{
    struct local_defragmenter *defragmenter = &keeper->defragmenter;
    if (!defragment_waits_for_checkpoint(keeper) || keeper->checkpoints < defragmenter->checkpoint)
        return;
    if (status == ST_OK && defragmenter->state == DEFRAGMENT_DROPPING) {
        defragmenter->id_end = upkeep_defragment_end(keeper->upkeep);
        defragment_move(keeper, DEFRAGMENT_CLEANING);
        return;
    }
    bool all = status != ST_OK || !defragmenter->met_damage;
    defragment_finish(keeper, all ? status : ST_DAMAGED);
}

static void take_finished(struct local_keeper *keeper)
{
    for (struct mailbox_node *node = mailbox_take(&keeper->inbox->finished), *next; node;
         node = next) {
        next = node->next;
        struct local_job *job = CONTAINER_OF(node, struct local_job, in_mailbox);
        if (job->kind == LOCAL_RELOCATE) {
            assert(!keeper->relocated_job);
            keeper->relocated_job = job;
            continue;
        }
        if (job->kind == LOCAL_TRIM)
            defragment_await_checkpoint(keeper, DEFRAGMENT_DROPPING);
        else
            defragment_await_checkpoint(keeper, DEFRAGMENT_SAVING);
        free(job);
    }
}

/* -- The thread -- */

static bool checkpoint_is_due(const struct local_keeper *keeper)
{
    if (defragment_waits_for_checkpoint(keeper))
        return true;
    if (keeper->dirty_since_ns == CLOCK_NEVER || now_ns() < keeper->checkpoint_after_ns)
        return false;
    return now_ns() - keeper->dirty_since_ns >= checkpoint_wait_ns || lags_by(keeper, 1);
}

static void checkpoint(struct local_keeper *keeper)
{
    /* Noted during a checkpoint, too: the writer wakes the keeper only once for the records that
     * the next checkpoint must contain. */
    if (keeper->dirty_since_ns == CLOCK_NEVER && atomic_load(&keeper->inbox->dirty))
        keeper->dirty_since_ns = now_ns();
    if (!keeper->checkpointing && checkpoint_is_due(keeper))
        checkpoint_begin(keeper);
    if (!keeper->checkpointing || (checkpoint_can_wait(keeper) && rests(keeper, now_ns())))
        return;
    bool drops = !upkeep_checkpoint_lags(keeper->upkeep);
    enum status status = checkpoint_step(keeper);
    /* Dropping may take minutes: the log must not grow without bound. */
    bool ends = !keeper->checkpointing, goes_on = !ends && drops && lags_by(keeper, 2);
    if (status == ST_OK && (ends || goes_on))
        want_cleaning(keeper);
    if (ends)
        defragment_checkpointed(keeper, status);
    if (goes_on)
        checkpoint_begin(keeper);
}

/* Cleaning begins as soon as the current hash has ended; no other hash begins before it. */
static bool cleaning_is_next(const struct local_keeper *keeper, int64_t now)
{
    return keeper->wants_cleaning && !keeper->cleaning && !rests(keeper, now);
}

/* One segment after another, until none is worth cleaning. */
static void clean_in_turn(struct local_keeper *keeper)
{
    if (can_continue_cleaning(keeper, now_ns()) && continue_cleaning(keeper))
        want_cleaning(keeper);
    if (cleaning_is_next(keeper, now_ns()) && keeper->defragmenter.state != DEFRAGMENT_CLEANING &&
        may_clean(keeper)) {
        keeper->wants_cleaning = false;
        (void)clean(keeper);
    }
}

/* While clients write, the first of them is followed by a rest: then the other is the first. */
static void checkpoint_and_clean(struct local_keeper *keeper)
{
    if (!rests(keeper, now_ns()))
        keeper->cleans_first = !keeper->cleans_first;
    if (keeper->cleans_first)
        clean_in_turn(keeper);
    checkpoint(keeper);
    if (!keeper->cleans_first)
        clean_in_turn(keeper);
}

/* One step of each kind of work. */
static void work(struct local_keeper *keeper)
{
    take_compactions(keeper);
    turn_phase("answering requests");
    take_requests(keeper);
    take_finished(keeper);
    answer_defragments(keeper, &keeper->defragmenter.served, ST_CANCELED, false);
    answer_defragments(keeper, &keeper->defragmenter.waiting, ST_CANCELED, false);
    turn_phase("checking the store");
    local_check_turn(&keeper->check, now_ns());
    mark_if_idle(keeper);
    turn_phase("hashing the history");
    bool waits = now_ns() < keeper->retry_at_ns;
    local_hashes_turn(&keeper->hashes, waits || !cleaning_is_next(keeper, now_ns()));
    sort_one(keeper);
    prepare(keeper);
    if (waits)
        return;
    checkpoint_and_clean(keeper);
    defragment(keeper);
}

static bool is_busy(const struct local_keeper *keeper, int64_t now)
{
    if (local_hashes_busy(&keeper->hashes) || keeper->unsorted.first ||
        prepare_due_ns(keeper) <= now)
        return true;
    if (now < keeper->retry_at_ns)
        return false;
    if (keeper->checkpointing && !checkpoint_can_wait(keeper))
        return true;
    return !rests(keeper, now) &&
           (keeper->checkpointing || can_continue_cleaning(keeper, now) ||
            cleaning_is_next(keeper, now) || defragment_waits_for_checkpoint(keeper) ||
            (keeper->defragmenter.state == DEFRAGMENT_CLEANING && !keeper->cleaning));
}

static bool has_messages(const struct local_keeper *keeper)
{
    return !mailbox_empty(&keeper->inbox->requests) ||
           !mailbox_empty(&keeper->inbox->compactions) || !mailbox_empty(&keeper->inbox->finished);
}

static int64_t checkpoint_due_ns(const struct local_keeper *keeper)
{
    if (keeper->dirty_since_ns == CLOCK_NEVER)
        return CLOCK_NEVER;
    int64_t due = keeper->dirty_since_ns + checkpoint_wait_ns;
    return due > keeper->checkpoint_after_ns ? due : keeper->checkpoint_after_ns;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* When there is work again, unless a message arrives earlier. */
static int64_t next_ns(const struct local_keeper *keeper, int64_t now)
{
    int64_t next = prepare_due_ns(keeper);
    if (now < keeper->retry_at_ns)
        return earlier(next, keeper->retry_at_ns);
    if (keeper->relocated_job && now < keeper->clean_retry_ns)
        next = earlier(next, keeper->clean_retry_ns);
    return earlier(next, rests(keeper, now) ? keeper->rest_until_ns : checkpoint_due_ns(keeper));
}

/* How long to wait for a message. */
static int64_t wait_ns(const struct local_keeper *keeper)
{
    int64_t now = now_ns(), next = next_ns(keeper, now);
    next = earlier(next, earlier(keeper->check.next_ns, keeper->mark_look_ns));
    return next == CLOCK_NEVER ? CLOCK_NEVER : next > now ? next - now : 0;
}

/* The engine has stopped: nothing may be written. */
static void refuse_all(struct local_keeper *keeper)
{
    take_compactions(keeper);
    take_finished(keeper);
    take_requests(keeper); /* a snapshot that begins again ends where the others end */
    answer_defragments(keeper, &keeper->defragmenter.served, ST_STOPPED, true);
    answer_defragments(keeper, &keeper->defragmenter.waiting, ST_STOPPED, true);
    local_hashes_stop(&keeper->hashes);
    while (keeper->unsorted.first)
        sort_one(keeper);
}

static void *keeper_main(void *arg)
{
    struct local_keeper *keeper = arg;
    upkeep_join(keeper->upkeep);
    while (!atomic_load_explicit(&keeper->stopping, memory_order_acquire)) {
        if (local_has_failed(&keeper->shared->report)) {
            refuse_all(keeper);
            mailbox_wait(&keeper->inbox->requests, CLOCK_NEVER);
            continue;
        }
        turn_begin(keeper->turn, now_ns());
        work(keeper);
        turn_end(keeper->turn, now_ns());
        if (!has_messages(keeper) && !is_busy(keeper, now_ns()))
            mailbox_wait(&keeper->inbox->requests, wait_ns(keeper));
    }
    take_compactions(keeper);
    take_requests(keeper);
    take_finished(keeper);
    local_hashes_stop(&keeper->hashes);
    while (keeper->unsorted.first)
        sort_one(keeper);
    if (local_has_failed(&keeper->shared->report)) {
        refuse_all(keeper);
        return NULL;
    }
    checkpoint_last(keeper); /* unfinished cleaning is repeated after the next start */
    mark(keeper);
    return NULL;
}

void local_keeper_init(struct local_keeper *keeper, struct local_shared *shared)
{
    struct local_keeper_inbox *inbox = &shared->keeper;
    keeper->shared = shared;
    keeper->inbox = inbox;
    keeper->turn = local_turn(shared, "keeper");
    keeper->counts = local_metrics_join(shared->metrics);
    keeper->upkeep = upkeep_new(shared->store);
    local_hashes_init(&keeper->hashes, &shared->report, keeper->upkeep, keeper->counts);
    local_check_init(&keeper->check,
                     &(struct local_check_options){
                         .upkeep = keeper->upkeep,
                         .counts = keeper->counts,
                         .report = &shared->report,
                         .result = &shared->check,
                         .interval_ns = shared->options.check_interval_ns,
                     },
                     now_ns());
    atomic_store(&inbox->dirty, true); /* replayed records are not in the checkpoint */
    keeper->dirty_since_ns = CLOCK_NEVER;
    atomic_store(&inbox->unmarked, true);
    keeper->mark_look_ns = CLOCK_NEVER;
    waker_init_thread(&inbox->waker);
    mailbox_init(&inbox->requests, &inbox->waker);
    mailbox_init(&inbox->compactions, &inbox->waker);
    mailbox_init(&inbox->finished, &inbox->waker);
}

void local_keeper_start(struct local_keeper *keeper)
{
    int error = pthread_create(&keeper->thread, NULL, keeper_main, keeper);
    if (error)
        local_fatal(&keeper->shared->report, "cannot create the thread of the keeper",
                    status_from_errno(error));
    pthread_setname_np(keeper->thread, "vigil-keeper");
}

void local_keeper_stop(struct local_keeper *keeper)
{
    atomic_store_explicit(&keeper->stopping, true, memory_order_release);
    waker_wake(&keeper->inbox->waker);
    pthread_join(keeper->thread, NULL);
}

void local_keeper_fini(struct local_keeper *keeper)
{
    if (keeper->relocated_job)
        local_job_free(keeper->relocated_job);
    local_check_fini(&keeper->check);
    upkeep_free(keeper->upkeep);
    waker_fini(&keeper->inbox->waker);
}
