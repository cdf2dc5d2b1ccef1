#include "engine/local/local_private.h"

#include "base/clock.h"
#include "base/turn.h"
#include "base/xalloc.h"
#include "base/yield_point.h"

#include <stdlib.h>

/* What the log got is taken over after this long, or when it is much. */
static const int64_t checkpoint_wait_ns = 5 * NS_PER_S;
/*
 * The log is idle, and marked, when it has not grown between two looks: so at the latest twice this
 * long after the last group, which is less than a second.
 */
static const int64_t mark_wait_ns = 400 * NS_PER_MS;
/* After a failure, mostly of a full disk. */
static const int64_t retry_wait_ns = NS_PER_S;
/* The same warning is not given more often. */
static const int64_t warn_again_ns = 60 * NS_PER_S;
/*
 * What can wait (dropping compacted versions, cleaning) is written in bursts that make the log's
 * syncs slower. While clients write, the keeper rests so many times as long as the last burst took.
 */
enum { REST_TIMES = 8 };
static const int64_t burst_rest_ns_max = NS_PER_S;
/* At a stop, for what can as well be done after the next start. */
static const int64_t last_checkpoint_ns = 2 * NS_PER_S;

static int64_t now_ns(void)
{
    return clock_mono_ns(clock_system());
}

/* -- Requests -- */

static void take_compactions(struct local_keeper *keeper)
{
    struct mailbox_node *next;
    for (struct mailbox_node *node = mailbox_take(&keeper->compactions); node; node = next) {
        next = node->next;
        struct local_compacted *compaction = CONTAINER_OF(node, struct local_compacted, in_mailbox);
        local_hashes_note(&keeper->hashes, compaction->before, compaction->revision);
        free(compaction);
    }
}

static void take_requests(struct local_keeper *keeper)
{
    struct mailbox_node *next;
    for (struct mailbox_node *node = mailbox_take(&keeper->requests); node; node = next) {
        next = node->next;
        struct engine_op *op = op_of(node);
        if (op->kind == LOCAL_DEFRAGMENT)
            op_chain_add(&keeper->defragmenter.waiting, op);
        else if (op->kind == LOCAL_HASH_KV)
            local_hashes_ask(&keeper->hashes, op);
        else if (op->kind == LOCAL_SNAPSHOT)
            local_snapshot_gather(&keeper->engine->snapshotter, op);
        else
            op_chain_add(&keeper->unsorted, op);
    }
}

/* -- Segments, checkpoints, cleaning -- */

/* Warns, and lets some time pass before anything that takes room is tried again. */
static void warn_and_wait(struct local_keeper *keeper, const char *what, enum status status,
                          const char *detail)
{
    int64_t now = now_ns();
    keeper->retry_at_ns = now + retry_wait_ns;
    if (keeper->warned_of == what && now - keeper->warned_ns < warn_again_ns)
        return; /* a full disk lasts */
    keeper->warned_of = what;
    keeper->warned_ns = now;
    local_warn(keeper->engine, what, status, detail);
}

static void prepare(struct local_keeper *keeper)
{
    turn_phase("making the next segment of the log");
    enum status status = keeper_prepare(keeper->keeper);
    if (status == ST_DISK_FULL && keeper_is_held_back(keeper->keeper))
        local_snapshots_shed(&keeper->engine->snapshotter);
    if (status != ST_OK)
        warn_and_wait(keeper, "no next segment of the log could be made", status,
                      status == ST_DISK_FULL ? "puts are refused until there is room: make some, "
                                               "or delete keys and compact"
                                             : "");
}

/* A failure holds up nothing else: on a full disk that would keep it from getting room. */
static void mark_failed(struct local_keeper *keeper, enum status status)
{
    int64_t now = now_ns();
    keeper->mark_look_ns = now + retry_wait_ns;
    if (keeper->mark_warned_ns && now - keeper->mark_warned_ns < warn_again_ns)
        return;
    keeper->mark_warned_ns = now;
    local_warn(keeper->engine, "it could not be noted how far the log is durable", status,
               "damage to the last writes would not be recognised");
}

static void mark(struct local_keeper *keeper)
{
    /* Lowered first: a group that the mark does not have yet raises it again. */
    atomic_store(&keeper->unmarked, false);
    keeper->mark_look_ns = CLOCK_NEVER;
    enum status status = keeper_mark(keeper->keeper);
    if (status != ST_OK)
        mark_failed(keeper, status);
    if (keeper_is_marked(keeper->keeper))
        return;
    /* A group came meanwhile. If its writer sees the flag raised here it wakes nobody. */
    atomic_store(&keeper->unmarked, true);
    if (keeper->mark_look_ns == CLOCK_NEVER)
        keeper->mark_look_ns = now_ns() + mark_wait_ns;
}

/* Nobody waits for a mark, and nobody is made to wait: it is written when no group comes. */
static void mark_if_idle(struct local_keeper *keeper)
{
    int64_t now = now_ns();
    if (!atomic_load(&keeper->unmarked) ||
        (now < keeper->mark_look_ns && keeper->mark_look_ns != CLOCK_NEVER))
        return;
    uint64_t index = log_durable_index(store_log(keeper->engine->store));
    bool idle = keeper->mark_look_ns != CLOCK_NEVER && index == keeper->mark_seen_index;
    keeper->mark_seen_index = index;
    keeper->mark_look_ns = now + mark_wait_ns;
    if (idle)
        mark(keeper);
}

/* In the middle of a long sort: what the writer, or the last write, cannot wait for. */
static void do_urgent(void *ctx)
{
    struct local_keeper *keeper = ctx;
    mark_if_idle(keeper);
    if (now_ns() >= keeper->retry_at_ns)
        prepare(keeper);
}

/* What the writer has found, all leases or all keys of one; one such list in a turn. */
static void sort_one(struct local_keeper *keeper)
{
    struct mailbox_node *node = keeper->unsorted.first;
    if (!node)
        return;
    keeper->unsorted.first = node->next;
    if (!node->next)
        keeper->unsorted.last = NULL;
    turn_work("sorting", local_op_name(op_of(node)));
    struct yield_point point = {.fn = do_urgent, .ctx = keeper};
    yield_point_here = &point;
    local_lease_sort(op_of(node));
    yield_point_here = NULL;
    local_answer(op_of(node));
}

static bool defragments(const struct local_keeper *keeper)
{
    return keeper->defragmenter.state != DEFRAGMENT_IDLE;
}

static void checkpoint_begin(struct local_keeper *keeper)
{
    atomic_store(&keeper->dirty, false);
    keeper->dirty_since_ns = CLOCK_NEVER;
    keeper_checkpoint_begin(keeper->keeper);
    keeper->checkpointing = true;
    keeper->checkpoints++;
}

static void checkpoint_failed(struct local_keeper *keeper, enum status status)
{
    keeper->checkpointing = false;
    atomic_store(&keeper->dirty, true);
    const char *what = "the checkpoint could not be written and will be tried again";
    if (status == ST_DAMAGED) {
        keeper->checkpoint_after_ns = now_ns() + warn_again_ns;
        local_warn(keeper->engine, what, status,
                   "copy the keys now: the next start will refuse this log");
    } else {
        warn_and_wait(keeper, what, status, keeper_error_text(keeper->keeper));
    }
}

static void rest_after(struct local_keeper *keeper, int64_t begun_ns)
{
    int64_t now = now_ns(), ns = REST_TIMES * (now - begun_ns);
    uint64_t index = log_durable_index(store_log(keeper->engine->store));
    bool quiet = index == keeper->rested_index || defragments(keeper);
    keeper->rested_index = index;
    keeper->rest_until_ns = quiet ? 0 : now + (ns < burst_rest_ns_max ? ns : burst_rest_ns_max);
}

static bool rests(const struct local_keeper *keeper, int64_t now)
{
    return now < keeper->rest_until_ns;
}

/* One transaction of the one that is under way. */
static enum status checkpoint_step(struct local_keeper *keeper)
{
    int64_t begun_ns = now_ns();
    bool can_wait = !keeper_checkpoint_lags(keeper->keeper);
    turn_phase("writing a checkpoint");
    bool done = false;
    enum status status = keeper_checkpoint_step(keeper->keeper, &done);
    if (!done)
        local_observe(keeper->counts, LOCAL_CHECKPOINT_SECONDS, now_ns() - begun_ns);
    if (can_wait)
        rest_after(keeper, begun_ns);
    if (status != ST_OK)
        checkpoint_failed(keeper, status);
    else if (done)
        keeper->checkpointing = false;
    return status;
}

/* At the end: what the log has is taken over, but of dropping what was compacted the rest is left
 * to the next start. */
static void checkpoint_last(struct local_keeper *keeper)
{
    int64_t until_ns = now_ns() + last_checkpoint_ns;
    checkpoint_begin(keeper);
    while (keeper->checkpointing && (now_ns() < until_ns || keeper_checkpoint_lags(keeper->keeper)))
        (void)checkpoint_step(keeper);
}

static void ask_writer(struct local_keeper *keeper, enum local_job_kind kind,
                       struct relocation *relocation)
{
    struct local_job *job = xcalloc(1, sizeof(*job));
    job->kind = kind;
    job->relocation = relocation;
    mailbox_post(&keeper->engine->writer.jobs, &job->in_mailbox);
}

/* The next segment that is worth it, or that defragmenting wants. One that is damaged stays as it
 * is: its damage must not be made to look right. */
static enum status next_to_clean(struct local_keeper *keeper, struct relocation **ret_relocation)
{
    struct local_defragmenter *defragmenter = &keeper->defragmenter;
    enum status status;
    do {
        status = defragmenter->state == DEFRAGMENT_CLEANING
                     ? keeper_defragment_next(keeper->keeper, defragmenter->id_end, ret_relocation)
                     : keeper_clean_begin(keeper->keeper, ret_relocation);
        if (status == ST_DAMAGED) {
            defragmenter->met_damage = true;
            local_warn(keeper->engine, "a segment of the log is damaged and is not cleaned", status,
                       "");
        }
    } while (status == ST_DAMAGED && !keeper_is_broken(keeper->keeper));
    return status;
}

/*
 * Hashes count what cleaning would drop. What the checkpoint has let go of was noted before that
 * was visible, so that all of it is in the mailbox by now. Cleaning waits for two hashes at most:
 * if there are always more, those of compactions are given up.
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

/* Begins to clean it. */
static enum status clean(struct local_keeper *keeper)
{
    struct relocation *relocation;
    int64_t begun_ns = now_ns();
    turn_phase("copying what is alive of a segment");
    enum status status = next_to_clean(keeper, &relocation);
    if (status != ST_OK) {
        warn_and_wait(keeper, "a segment of the log could not be cleaned", status,
                      keeper_error_text(keeper->keeper));
        return status;
    }
    if (!relocation)
        return ST_OK;
    local_observe(keeper->counts, LOCAL_CLEAN_SECONDS, now_ns() - begun_ns);
    rest_after(keeper, begun_ns);
    keeper->cleaning = true;
    ask_writer(keeper, LOCAL_RELOCATE, relocation);
    return ST_OK;
}

/* The checkpoint has the copies: the writer drops the old segment. */
static void cleaned(struct local_keeper *keeper, uint64_t old_segment)
{
    struct local_job *job = TAKE(keeper->moved_job);
    job->relocation = NULL;
    job->kind = LOCAL_FORGET;
    job->segment = old_segment;
    mailbox_post(&keeper->engine->writer.jobs, &job->in_mailbox);
    keeper->cleaning = false;
    local_count(keeper->counts, LOCAL_CLEANED_SEGMENTS, 1);
}

/*
 * The writer has pointed the index to the copies it was given: it gets more, or the checkpoint
 * follows, a step at a time. On a full disk that is tried again, since it is what makes room.
 * True: it is done.
 */
static bool go_on_cleaning(struct local_keeper *keeper)
{
    struct relocation *relocation = keeper->moved_job->relocation;
    uint64_t old_segment = relocation->old_segment;
    turn_phase("writing the checkpoint of a cleaned segment");
    int64_t begun_ns = now_ns();
    bool done = false;
    enum status status = keeper_clean_step(keeper->keeper, relocation, &done);
    rest_after(keeper, begun_ns);
    if (status == ST_DISK_FULL || status == ST_DAMAGED) {
        warn_and_wait(keeper, "the checkpoint of a cleaned segment could not be written", status,
                      keeper_error_text(keeper->keeper));
        return false;
    }
    if (status != ST_OK)
        local_fatal(keeper->engine, "the checkpoint of a cleaned segment could not be written",
                    status);
    if (done)
        cleaned(keeper, old_segment);
    else if (relocation->count)
        mailbox_post(&keeper->engine->writer.jobs, &TAKE(keeper->moved_job)->in_mailbox);
    return done;
}

static bool goes_on_cleaning(const struct local_keeper *keeper, int64_t now)
{
    return keeper->moved_job && !rests(keeper, now);
}

/* -- Defragmenting -- */

static const unsigned defragment_moves[] = {
    [DEFRAGMENT_IDLE] = 1u << DEFRAGMENT_SETTLING,
    [DEFRAGMENT_SETTLING] = 1u << DEFRAGMENT_DROPPING,
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

/* Answers those of a chain that nobody waits for any more; with `all`, every one. */
static void answer_defragments(struct local_keeper *keeper, struct op_chain *chain,
                               enum status status, bool all)
{
    struct op_chain kept = {0};
    if (!chain->first)
        return;
    int64_t revision = keeper_revision(keeper->keeper);
    for (struct mailbox_node *node = chain->first, *next; node; node = next) {
        next = node->next;
        struct engine_op *op = op_of(node);
        bool given_up = atomic_load(&CONTAINER_OF(op, struct engine_defragment, op)->given_up);
        if (!all && !given_up) {
            op_chain_add(&kept, op);
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
    defragmenter->waiting = (struct op_chain){0};
    defragmenter->wanted = false;
    defragmenter->begun_ns = now_ns();
    defragmenter->met_damage = false;
    local_count(keeper->counts, LOCAL_DEFRAGMENTS_BEGUN, 1);
    defragment_move(keeper, DEFRAGMENT_SETTLING);
    ask_writer(keeper, LOCAL_SETTLE, NULL);
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

/* One step, if there is one to be made without the writer. */
static void defragment(struct local_keeper *keeper)
{
    struct local_defragmenter *defragmenter = &keeper->defragmenter;
    if (defragmenter->state == DEFRAGMENT_IDLE &&
        (defragmenter->waiting.first || defragmenter->wanted))
        defragment_begin(keeper);
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
 * Back from the writer. Either it has trimmed what compactions left, and the checkpoint is to let
 * go of that before all is cleaned; or the size as it is now is to last.
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

/* A checkpoint has ended, well or not. */
static void defragment_checkpointed(struct local_keeper *keeper, enum status status)
{
    struct local_defragmenter *defragmenter = &keeper->defragmenter;
    if (!defragment_waits_for_checkpoint(keeper) || keeper->checkpoints < defragmenter->checkpoint)
        return;
    if (status == ST_OK && defragmenter->state == DEFRAGMENT_DROPPING) {
        defragmenter->id_end = keeper_defragment_end(keeper->keeper);
        defragment_move(keeper, DEFRAGMENT_CLEANING);
        return;
    }
    bool all = status != ST_OK || !defragmenter->met_damage;
    defragment_finish(keeper, all ? status : ST_DAMAGED);
}

static void take_moved(struct local_keeper *keeper)
{
    for (struct mailbox_node *node = mailbox_take(&keeper->moved), *next; node; node = next) {
        next = node->next;
        struct local_job *job = CONTAINER_OF(node, struct local_job, in_mailbox);
        if (job->kind == LOCAL_RELOCATE) {
            assert(!keeper->moved_job);
            keeper->moved_job = job;
            continue;
        }
        if (job->kind == LOCAL_SETTLE)
            defragment_await_checkpoint(keeper, DEFRAGMENT_DROPPING);
        else
            defragment_await_checkpoint(keeper, DEFRAGMENT_SAVING);
        free(job);
    }
}

/* -- The thread -- */

static bool checkpoint_is_due(struct local_keeper *keeper)
{
    if (defragment_waits_for_checkpoint(keeper))
        return true;
    if (!atomic_load(&keeper->dirty) || now_ns() < keeper->checkpoint_after_ns)
        return false;
    if (keeper->dirty_since_ns == CLOCK_NEVER)
        keeper->dirty_since_ns = now_ns();
    return now_ns() - keeper->dirty_since_ns >= checkpoint_wait_ns ||
           keeper_checkpoint_lag_bytes(keeper->keeper) >= keeper->engine->options.checkpoint_bytes;
}

static void checkpoint(struct local_keeper *keeper)
{
    if (!keeper->checkpointing && checkpoint_is_due(keeper))
        checkpoint_begin(keeper);
    bool can_wait = !keeper_checkpoint_lags(keeper->keeper);
    if (!keeper->checkpointing || (can_wait && rests(keeper, now_ns())))
        return;
    enum status status = checkpoint_step(keeper);
    if (keeper->checkpointing)
        return;
    if (status == ST_OK)
        want_cleaning(keeper);
    defragment_checkpointed(keeper, status);
}

/* The next thing but one hash under way: no other hash begins before it. */
static bool cleaning_is_next(const struct local_keeper *keeper, int64_t now)
{
    return keeper->wants_cleaning && !keeper->cleaning && !rests(keeper, now);
}

/* One step of each thing that there is to do. */
static void work(struct local_keeper *keeper)
{
    take_compactions(keeper);
    turn_phase("answering requests");
    take_requests(keeper);
    take_moved(keeper);
    answer_defragments(keeper, &keeper->defragmenter.served, ST_CANCELED, false);
    answer_defragments(keeper, &keeper->defragmenter.waiting, ST_CANCELED, false);
    turn_phase("checking the store");
    local_check_turn(&keeper->check, keeper->engine, now_ns());
    mark_if_idle(keeper);
    turn_phase("hashing the history");
    bool waits = now_ns() < keeper->retry_at_ns;
    local_hashes_turn(&keeper->hashes, waits || !cleaning_is_next(keeper, now_ns()));
    sort_one(keeper);
    if (waits)
        return;
    prepare(keeper); /* if there is no room for it, what follows may make some */
    /* One cleaning leads to the next, until none is worth it. */
    if (goes_on_cleaning(keeper, now_ns()) && go_on_cleaning(keeper))
        want_cleaning(keeper);
    checkpoint(keeper);
    defragment(keeper);
    if (cleaning_is_next(keeper, now_ns()) && keeper->defragmenter.state != DEFRAGMENT_CLEANING &&
        may_clean(keeper)) {
        keeper->wants_cleaning = false;
        (void)clean(keeper);
    }
}

static bool is_busy(const struct local_keeper *keeper, int64_t now)
{
    if (local_hashes_busy(&keeper->hashes) || keeper->unsorted.first)
        return true;
    if (keeper->checkpointing && keeper_checkpoint_lags(keeper->keeper))
        return now >= keeper->retry_at_ns;
    return now >= keeper->retry_at_ns && !rests(keeper, now) &&
           (keeper->checkpointing || keeper->moved_job || cleaning_is_next(keeper, now) ||
            defragment_waits_for_checkpoint(keeper) ||
            (keeper->defragmenter.state == DEFRAGMENT_CLEANING && !keeper->cleaning));
}

static bool has_messages(const struct local_keeper *keeper)
{
    return !mailbox_empty(&keeper->requests) || !mailbox_empty(&keeper->compactions) ||
           !mailbox_empty(&keeper->moved);
}

/* When there is something to do, unless a message comes. */
static int64_t next_ns(const struct local_keeper *keeper, int64_t now)
{
    if (now < keeper->retry_at_ns)
        return keeper->retry_at_ns;
    if (rests(keeper, now))
        return keeper->rest_until_ns;
    if (keeper->dirty_since_ns == CLOCK_NEVER)
        return CLOCK_NEVER;
    int64_t due = keeper->dirty_since_ns + checkpoint_wait_ns;
    return due > keeper->checkpoint_after_ns ? due : keeper->checkpoint_after_ns;
}

/* How long there is not. */
static int64_t rest_ns(const struct local_keeper *keeper)
{
    int64_t now = now_ns(), next = next_ns(keeper, now);
    if (keeper->check.next_ns < next)
        next = keeper->check.next_ns;
    if (keeper->mark_look_ns < next)
        next = keeper->mark_look_ns;
    if (next == CLOCK_NEVER)
        return CLOCK_NEVER;
    return next > now ? next - now : 0;
}

static void *keeper_main(void *arg)
{
    struct local_keeper *keeper = arg;
    keeper_join(keeper->keeper);
    while (!atomic_load_explicit(&keeper->stopping, memory_order_acquire)) {
        turn_begin(keeper->turn, now_ns());
        work(keeper);
        turn_end(keeper->turn, now_ns());
        if (!has_messages(keeper) && !is_busy(keeper, now_ns()))
            mailbox_wait(&keeper->requests, rest_ns(keeper));
    }
    take_compactions(keeper);
    take_requests(keeper);
    take_moved(keeper);
    local_hashes_stop(&keeper->hashes);
    while (keeper->unsorted.first)
        sort_one(keeper);
    checkpoint_last(keeper); /* a cleaning is gone on with after the next start */
    mark(keeper);
    return NULL;
}

void local_keeper_init(struct local_keeper *keeper, struct engine_local *engine)
{
    keeper->engine = engine;
    keeper->turn = local_turn(engine, "keeper");
    keeper->counts = local_metrics_join(engine->metrics);
    keeper->keeper = keeper_new(engine->store);
    local_hashes_init(&keeper->hashes, engine, keeper->keeper, keeper->counts);
    local_check_init(&keeper->check, keeper->keeper, keeper->counts,
                     engine->options.check_interval_ns, now_ns());
    atomic_store(&keeper->dirty, true); /* what was replayed is not in the checkpoint */
    keeper->dirty_since_ns = CLOCK_NEVER;
    atomic_store(&keeper->unmarked, true);
    keeper->mark_look_ns = CLOCK_NEVER;
    waker_init_thread(&keeper->waker);
    mailbox_init(&keeper->requests, &keeper->waker);
    mailbox_init(&keeper->compactions, &keeper->waker);
    mailbox_init(&keeper->moved, &keeper->waker);
}

void local_keeper_start(struct local_keeper *keeper)
{
    int error = pthread_create(&keeper->thread, NULL, keeper_main, keeper);
    if (error)
        local_fatal(keeper->engine, "no thread for the keeper", status_from_errno(error));
    pthread_setname_np(keeper->thread, "vigil-keeper");
}

void local_keeper_stop(struct local_keeper *keeper)
{
    atomic_store_explicit(&keeper->stopping, true, memory_order_release);
    waker_wake(&keeper->waker);
    pthread_join(keeper->thread, NULL);
}

void local_keeper_fini(struct local_keeper *keeper)
{
    if (keeper->moved_job)
        local_job_free(keeper->moved_job);
    local_check_fini(&keeper->check);
    keeper_free(keeper->keeper);
    waker_fini(&keeper->waker);
}
