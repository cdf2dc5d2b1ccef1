#include "mirror/follow/follower.h"

#include "base/xalloc.h"
#include "client/call/server_version.h"
#include "client/connect/error.h"
#include "mirror/follow/follower_internal.h"
#include "mirror/link/own_client.h"

#define NO_LEADER_PAUSE_NS (200 * NS_PER_MS)
#define COMPACTIONS_EVERY_NS (5 * NS_PER_S)
#define PROGRESS_EVERY_NS (1 * NS_PER_S) /* at least, if the server does not answer */

#define TO(state) (1u << FOLLOWER_##state)

/* Drawn in follower.h. */
static const uint16_t moves[] = {
    [FOLLOWER_CONNECTING] = TO(CONNECTING) | TO(COMPARING) | TO(PAUSING) | TO(RESET),
    [FOLLOWER_COMPARING] = TO(CONNECTING) | TO(FOLLOWING) | TO(DRAINING) | TO(PAUSING) | TO(RESET),
    [FOLLOWER_FOLLOWING] = TO(CONNECTING) | TO(PAUSING) | TO(RESET),
    [FOLLOWER_DRAINING] = TO(LOADING) | TO(PAUSING) | TO(RESET),
    [FOLLOWER_LOADING] = TO(GIVING) | TO(DRAINING) | TO(PAUSING) | TO(RESET),
    [FOLLOWER_GIVING] = TO(CONNECTING) | TO(RESET),
    [FOLLOWER_PAUSING] = TO(CONNECTING) | TO(RESET),
    [FOLLOWER_RESET] = 0,
};

static void compare(struct follower *follower);

void follower_check(const struct follower *follower)
{
    bool loads = follower->state == FOLLOWER_LOADING, gives = follower->state == FOLLOWER_GIVING;
    assert((follower->merge != NULL) == (follower->state == FOLLOWER_FOLLOWING));
    assert((follower->loader != NULL) == loads);
    assert((follower->walk != NULL) == loads);
    assert((follower->load != NULL) == (loads || gives));
    assert(!follower->pause.set || follower->state == FOLLOWER_PAUSING || gives);
    assert(!atomic_load(&follower->shown->connected) || follower->state == FOLLOWER_FOLLOWING);
}

/* Frees what only the state before needs, moves, and checks. */
void follower_move(struct follower *follower, enum follower_state next)
{
    assert(moves[follower->state] & (1u << next));
    if (follower->state == FOLLOWER_FOLLOWING) {
        atomic_store(&follower->shown->connected, false);
        atomic_store(&follower->shown->upstream_watches, 0);
        merge_free(TAKE(follower->merge));
        compactions_stop(follower->compactions);
        lag_monitor_stop(follower->lag_monitor);
        status_poll_stop(follower->status_poll);
        loop_timer_cancel(follower_loop(follower), &follower->progress);
    }
    if (follower->state == FOLLOWER_COMPARING)
        comparer_cancel(follower->comparer);
    if (follower->state == FOLLOWER_LOADING) {
        loader_free(TAKE(follower->loader));
        local_mirror_walk_free(TAKE(follower->walk));
    }
    if (next != FOLLOWER_GIVING && next != FOLLOWER_LOADING)
        load_free(TAKE(follower->load));
    follower->state = next;
    follow_log_expect_answer(&follower->follow_log,
                             next == FOLLOWER_CONNECTING || next == FOLLOWER_COMPARING);
    if (next != FOLLOWER_FOLLOWING && next != FOLLOWER_LOADING)
        follower_check(follower);
}

/* -- Connecting and comparing -- */

void follower_pause(struct follower *follower, const char *reason, int64_t pause_ns)
{
    follow_log_waiting(&follower->follow_log, reason);
    follower_move(follower, FOLLOWER_PAUSING);
    loop_timer_set(follower_loop(follower), &follower->pause,
                   loop_now_ns(follower_loop(follower)) + pause_ns);
}

static void on_pause_over(struct timer *timer)
{
    struct follower *follower = CONTAINER_OF(timer, struct follower, pause);
    if (follower->state == FOLLOWER_GIVING)
        follower_give_again(follower);
    else
        follower_connect(follower);
}

void follower_reset(struct follower *follower, const char *reason)
{
    follower_move(follower, FOLLOWER_RESET);
    if (follower->cluster->on_reset)
        follower->cluster->on_reset(follower->cluster->ctx, reason);
}

bool follower_reset_if_damaged(struct follower *follower)
{
    bool is_damaged = local_mirror_is_damaged(follower->mirror);
    if (is_damaged)
        follower_reset(follower, "stored bytes of the mirror are damaged");
    return is_damaged;
}

/* Everything has returned from the mirror. What it has refused is watched again. */
void follower_forget_failure(struct follower *follower)
{
    if (follower->failure == ST_OK)
        return;
    follower->failure = ST_OK;
    local_mirror_retry(follower->mirror);
    follower->given = local_mirror_revision(follower->mirror);
}

/* The stream may be open already. */
void follower_connect(struct follower *follower)
{
    loop_timer_cancel(follower_loop(follower), &follower->pause);
    follower_move(follower, FOLLOWER_CONNECTING);
    if (follower->failure != ST_OK && !apply_queue_is_idle(follower->apply_queue))
        return; /* the mirror has refused a batch; on_applied connects when the others are back */
    follower_forget_failure(follower);
    if (watches_is_open(follower->watches))
        compare(follower);
    else
        watches_open(follower->watches);
}

static void compare(struct follower *follower)
{
    struct mirror_state *shown = follower->shown;
    uint64_t known = atomic_load(&shown->cluster_id);
    struct comparer_question question = {
        .history_check = &follower->history_check,
        .mirrored = follower->given,
        .cluster_id = known ? known : follower->directory->cluster_id,
        .raft_term = follower->directory->raft_term,
        .raft = follower->directory->raft,
        .is_proven = follower->is_proven,
        .key = follower->ranges.items[0].key,
    };
    follower_move(follower, FOLLOWER_COMPARING);
    comparer_start(follower->comparer, &question);
}

/* The ids of the cluster are known now. False: the mirror cannot be used. */
static bool identify(struct follower *follower, const vigil_header *header)
{
    struct error error = {0};
    struct mirror_directory *mirror = follower->directory;
    atomic_store(&follower->shown->member_id, header->member_id);
    atomic_store(&follower->shown->raft_term, header->raft_term);
    if (mirror->cluster_id != header->cluster_id &&
        mirror_directory_identify(mirror, follower->cluster, header->cluster_id, &error) != ST_OK) {
        follower_pause(follower, error.text, FOLLOWER_PAUSE_NS);
        return false;
    }
    atomic_store(&follower->shown->cluster_id, header->cluster_id);
    atomic_store(&follower->shown->reached, true);
    if (mirror_directory_raise_term(mirror, follower->cluster, header->raft_term, &error) != ST_OK)
        follow_log_waiting(&follower->follow_log, error.text);
    return true;
}

static void note_complete(struct follower *follower)
{
    int64_t at = atomic_load(&follower->complete_at);
    if (at && atomic_load(&follower->shown->mirrored) >= at)
        atomic_store(&follower->shown->synced, true);
}

static void follow(struct follower *follower)
{
    bool all = follower->ranges.prefix_count == 0 || !follower->trust_progress;
    struct range everything = range_all();
    struct watches_request request = {
        .ranges = all ? &everything : follower->ranges.items,
        .count = all ? 1 : follower->ranges.count,
        .revision = follower->given + 1,
        .trust_progress = !all,
    };
    follower_move(follower, FOLLOWER_FOLLOWING);
    follower->all_keys = all;
    follower->progress_at_ns = 0;
    follower->progress_again = false;
    follower->intake = intake_default();
    follower->merge = merge_new(request.count, follower->given, follower->ranges.prefixes,
                                follower->ranges.prefix_count);
    request.merge = follower->merge;
    watches_create(follower->watches, &request);
    follower_check(follower);
}

static void on_compared(void *ctx, const struct comparer_result *result)
{
    struct follower *follower = ctx;
    if (result->verdict == COMPARER_OTHER) {
        follower_reset(follower, result->reason);
        return;
    }
    if (result->verdict == COMPARER_FAILED) {
        watches_avoid_server(follower->watches); /* it may be cut off from the others */
        follower_pause(follower, result->reason, FOLLOWER_PAUSE_NS);
        return;
    }
    mirror_state_heard(follower->shown, result->header.revision);
    follower->trust_progress = server_version_has_progress(slice_from_text(result->version));
    atomic_store(&follower->shown->progress_reliable, follower->trust_progress);
    if (!identify(follower, &result->header))
        return;
    snprintf(follower->version, sizeof(follower->version), "%s", result->version);
    if (result->verdict == COMPARER_UNPROVEN && !follower->load_why) {
        /* Nothing contradicts the mirror, but nothing proves it either. The state of the cluster is
         * loaded and compared with it. */
        follower->load_why = "the cluster may have been restored since it was followed";
        follower->checks = true;
    }
    if (follower->load_why) {
        follower_drain(follower);
        return;
    }
    /* The cluster has the history of the mirror, and only continues it. */
    follower->is_proven = true;
    atomic_store(&follower->complete_at, result->header.revision);
    note_complete(follower);
    follow(follower);
}

/* -- Following -- */

static void request_progress(struct follower *follower)
{
    if (follower->state != FOLLOWER_FOLLOWING || follower->all_keys)
        return;
    if (follower->progress_at_ns) {
        /* The server is still to answer the last request, perhaps with a revision that is too old
         * for this caller. */
        follower->progress_again = true;
        return;
    }
    follower->progress_at_ns = loop_now_ns(follower_loop(follower));
    follower->progress_again = false;
    watches_request_progress(follower->watches);
    loop_timer_set(follower_loop(follower), &follower->progress,
                   loop_now_ns(follower_loop(follower)) + PROGRESS_EVERY_NS);
}

static void on_progress_late(struct timer *timer)
{
    struct follower *follower = CONTAINER_OF(timer, struct follower, progress);
    follower->progress_at_ns = 0;
    if (follower->progress_again || merge_waits(follower->merge))
        request_progress(follower);
}

static void on_progress(struct follower *follower)
{
    loop_timer_cancel(follower_loop(follower), &follower->progress);
    follower->progress_at_ns = 0;
    if (follower->progress_again)
        request_progress(follower);
}

static void pump(struct follower *follower)
{
    struct merge_taken taken;
    while (apply_queue_has_room(follower->apply_queue) &&
           merge_take(follower->merge, APPLY_QUEUE_BATCH_BYTES, &taken)) {
        history_check_note_last(&follower->history_check, taken.changes, taken.change_count);
        follower->given = taken.reach;
        apply_queue_push(follower->apply_queue, &taken);
    }
    if (intake_regulate(&follower->intake, follower->merge, follower->apply_queue))
        watches_pause(follower->watches, follower->intake.is_paused);
    /* Events of one prefix wait until all other watches have passed their revision, which a prefix
     * without events does only by a progress notification. */
    if (merge_waits(follower->merge))
        request_progress(follower);
    if (intake_is_beyond(&follower->intake, follower->merge)) {
        follower->load_why = "too many events wait for those of other prefixes";
        watches_give_up(follower->watches);
    }
}

static void on_received(void *ctx, const vigil_header *header, size_t events)
{
    struct follower *follower = ctx;
    mirror_state_answered(follower->shown, loop_now_ns(follower_loop(follower)));
    if (header) {
        mirror_state_heard(follower->shown, header->revision);
        atomic_store(&follower->shown->member_id, header->member_id);
        if (events)
            lag_monitor_note_delivery(follower->lag_monitor, header->revision);
    }
    atomic_fetch_add(&follower->shown->upstream_events, events);
    if (events == 0)
        on_progress(follower);
    pump(follower);
}

static void on_live(void *ctx)
{
    struct follower *follower = ctx;
    mirror_state_answered(follower->shown, loop_now_ns(follower_loop(follower)));
    atomic_fetch_add(&follower->shown->times_connected, 1);
    atomic_store(&follower->shown->connected, true);
    atomic_store(&follower->shown->upstream_watches,
                 follower->all_keys ? 1 : follower->ranges.count);
    follow_log_following(&follower->follow_log,
                         (struct mirror_followed){
                             .revision = follower->given,
                             .cluster_id = atomic_load(&follower->shown->cluster_id),
                             .member_id = atomic_load(&follower->shown->member_id),
                             .raft_term = atomic_load(&follower->shown->raft_term),
                             .version = follower->version,
                         });
    compactions_start(follower->compactions);
    lag_monitor_start(follower->lag_monitor);
    status_poll_start(follower->status_poll);
    follower->shown->on_mirrored(follower->shown->ctx); /* linearizable reads wait for this, too */
    if (!atomic_load(&follower->shown->synced))
        request_progress(follower); /* prefixes may be complete without any event */
}

static void on_opened(void *ctx)
{
    struct follower *follower = ctx;
    follower->is_proven = false; /* the server may be another one */
    if (follower->state == FOLLOWER_CONNECTING && follower->failure == ST_OK)
        compare(follower);
}

static void on_broken(void *ctx, bool is_only_that)
{
    struct follower *follower = ctx;
    follower->is_proven = false;
    if (follower->state != FOLLOWER_FOLLOWING && follower->state != FOLLOWER_COMPARING)
        return;
    if (follower->state == FOLLOWER_FOLLOWING)
        atomic_fetch_add(&follower->shown->resumes, 1);
    const char *why = channel_failure(follower->client->channel);
    if (is_only_that)
        follow_log_waiting(&follower->follow_log,
                           *why ? why : "the watch of the cluster has broken");
    follower_move(follower, FOLLOWER_CONNECTING);
}

static void on_lost(void *ctx)
{
    struct follower *follower = ctx;
    follower->load_why = "events of the cluster are missing, damaged, or too large for the watch";
    if (follower->state == FOLLOWER_CONNECTING)
        follower_connect(follower);
}

static void on_refused(void *ctx, enum grpc_code code, struct slice text)
{
    struct follower *follower = ctx;
    enum status status = client_status_of(text);
    /* Another member may be better off. */
    bool is_useless = status == ST_NO_LEADER || status == ST_NOT_SUPPORTED_FOR_LEARNER;
    char reason[VIGIL_ERROR_TEXT_BYTES];
    (void)code;
    if (status == ST_CORRUPT) {
        on_lost(follower);
        return;
    }
    snprintf(reason, sizeof(reason), "the watch is refused: %.*s", SLICE_ARGS(text));
    if (is_useless)
        watches_avoid_server(follower->watches);
    if (follower->state == FOLLOWER_CONNECTING)
        follower_pause(follower, reason, is_useless ? NO_LEADER_PAUSE_NS : FOLLOWER_PAUSE_NS);
}

static void on_compacted(void *ctx, int64_t compact_revision)
{
    struct follower *follower = ctx;
    mirror_state_raise(&follower->shown->compacted, compact_revision);
    follower->load_why = "the cluster has compacted events that the mirror lacks";
    if (follower->state == FOLLOWER_CONNECTING)
        follower_connect(follower);
}

/* -- What the mirror says -- */

/* The writer's thread. */
static void on_visible(void *ctx, int64_t revision)
{
    struct follower *follower = ctx;
    mirror_state_mirrored(follower->shown, revision);
    note_complete(follower);
}

static void on_applied(void *ctx, enum status status)
{
    struct follower *follower = ctx;
    bool idle = apply_queue_is_idle(follower->apply_queue);
    if (status != ST_OK)
        follower->failure = status;
    if (follower->state == FOLLOWER_GIVING && follower->failure != ST_OK) {
        /* The mirror has refused a part of the state. The parts behind it come back first. */
        if (idle)
            follower_giving_failed(follower);
    } else if (follower->state == FOLLOWER_GIVING) {
        /* There is room for the next part; or the last one is applied, and the load complete. */
        if (follower->given != follower->load_revision)
            follower_give(follower);
        else if (idle)
            follower_loaded(follower);
    } else if (follower->failure != ST_OK && follower->state == FOLLOWER_FOLLOWING) {
        /* Without this change, the mirror can apply none of those that follow it. They are watched
         * again after a pause. */
        watches_give_up(follower->watches);
        follower_pause(follower, status_text(status), FOLLOWER_PAUSE_NS);
    } else if (follower->failure != ST_OK && follower->state == FOLLOWER_CONNECTING && idle) {
        /* The last batch is back, for which follower_connect has waited. */
        follower_connect(follower);
    } else if (follower->state == FOLLOWER_FOLLOWING) {
        pump(follower);
    } else if (follower->state == FOLLOWER_DRAINING && idle) {
        /* Nothing that was given before can change the mirror while the state is compared with it.
         */
        follower_forget_failure(follower);
        follower_load(follower);
    }
}

/* -- Compactions -- */

static void on_compaction_found(void *ctx, int64_t revision)
{
    struct follower *follower = ctx;
    mirror_state_raise(&follower->shown->compacted, revision);
    revision = atomic_load(&follower->shown->compacted);
    if (follower->state != FOLLOWER_FOLLOWING || revision > follower->given ||
        revision <= local_mirror_compact_revision(follower->mirror) ||
        !apply_queue_has_room(follower->apply_queue))
        return; /* perhaps the next time */
    mirror_state_raise(&follower->shown->oldest, revision);
    apply_queue_compact(follower->apply_queue, revision);
}

static int64_t newest_heard(void *ctx, int64_t *ret_known)
{
    struct follower *follower = ctx;
    *ret_known = atomic_load(&follower->shown->compacted);
    return atomic_load(&follower->shown->heard);
}

static void run_compacted(struct driver_command *command)
{
    struct follower *follower = CONTAINER_OF(command, struct follower, compacted);
    atomic_store(&follower->compacted_posted, false);
    if (!follower->client->driver.ended)
        on_compaction_found(follower, atomic_load(&follower->compacted_to));
}

void follower_note_compaction(struct follower *follower, int64_t revision)
{
    mirror_state_raise(&follower->compacted_to, revision);
    if (!atomic_exchange(&follower->compacted_posted, true))
        driver_post(&follower->client->driver, &follower->compacted);
}

static void run_progress_wanted(struct driver_command *command)
{
    struct follower *follower = CONTAINER_OF(command, struct follower, progress_wanted);
    atomic_store(&follower->progress_posted, false);
    if (!follower->client->driver.ended)
        request_progress(follower);
}

void follower_request_progress(struct follower *follower)
{
    if (!atomic_exchange(&follower->progress_posted, true))
        driver_post(&follower->client->driver, &follower->progress_wanted);
}

/* -- Damage -- */

/* The cluster has just answered, so that the mirror can be loaded again. */
static void on_status_answered(void *ctx)
{
    (void)follower_reset_if_damaged(ctx);
}

/* -- A member that is behind -- */

static int64_t received_of(void *ctx)
{
    struct follower *follower = ctx;
    if (follower->given < atomic_load(&follower->shown->heard))
        request_progress(follower); /* the rest may be outside the prefixes */
    bool waits = merge_bytes(follower->merge) || !apply_queue_is_idle(follower->apply_queue);
    return waits ? INT64_MAX : follower->given;
}

static void leave_member(void *ctx, const char *reason)
{
    struct follower *follower = ctx;
    follow_log_waiting(&follower->follow_log, reason);
    watches_avoid_server(follower->watches);
}

/* -- The thread -- */

static void end_part(struct driver_part *part)
{
    (void)part;
}

/* Ends everything that uses the client. What the mirror may still use is freed later. */
static void free_part(struct driver_part *part)
{
    struct follower *follower = CONTAINER_OF(part, struct follower, part);
    loop_timer_cancel(follower_loop(follower), &follower->pause);
    loop_timer_cancel(follower_loop(follower), &follower->progress);
    follow_log_stop(&follower->follow_log);
    compactions_free(TAKE(follower->compactions));
    lag_monitor_free(TAKE(follower->lag_monitor));
    status_poll_free(TAKE(follower->status_poll));
    member_poll_free(TAKE(follower->member_poll));
    comparer_free(TAKE(follower->comparer));
    loader_free(TAKE(follower->loader));
    watches_free(TAKE(follower->watches));
}

static void make_parts(struct follower *follower)
{
    static const struct watches_ops ops = {
        .opened = on_opened,
        .broken = on_broken,
        .refused = on_refused,
        .compacted = on_compacted,
        .live = on_live,
        .received = on_received,
        .lost = on_lost,
    };
    follow_log_start(&follower->follow_log, follower->cluster, &follower->shown->follow_failure,
                     follower_loop(follower), follower->client->channel);
    follower->watches = watches_new(follower->client, &ops, follower);
    follower->comparer = comparer_new(follower->client, on_compared, follower);
    follower->compactions = compactions_new(&(struct compactions_options){
        .client = follower->client,
        .key = follower->ranges.items[0].key,
        .every_ns = COMPACTIONS_EVERY_NS,
        .newest = newest_heard,
        .found = on_compaction_found,
        .ctx = follower,
    });
    follower->lag_monitor = lag_monitor_new(&(struct lag_monitor_options){
        .client = follower->client,
        .key = follower->ranges.items[0].key,
        .state = follower->shown,
        .received = received_of,
        .leave = leave_member,
        .ctx = follower,
    });
    follower->status_poll = status_poll_new(&(struct status_poll_options){
        .client = follower->client,
        .state = follower->shown,
        .raft = &follower->directory->raft,
        .answered = on_status_answered,
        .ctx = follower,
    });
    follower->member_poll = member_poll_new(follower_loop(follower), &follower->cluster->upstream,
                                            &follower->shown->member_table);
}

static void run_begin(struct driver_command *command)
{
    struct follower *follower = CONTAINER_OF(command, struct follower, begin);
    struct driver *driver = &follower->client->driver;
    if (driver->ended)
        return;
    pthread_setname_np(pthread_self(), "vigil-follower");
    make_parts(follower);
    follower->part.end = end_part;
    follower->part.free = free_part;
    list_push_back(&driver->parts, &follower->part.in_driver);
    if (follower->directory->is_warm)
        history_check_find(&follower->history_check, follower->mirror);
    follower_connect(follower);
}

static struct follower *follower_new(const struct follower_options *options)
{
    struct follower *follower = xcalloc(1, sizeof(*follower));
    follower->directory = options->mirror;
    follower->cluster = options->cluster;
    follower->shown = options->state;
    follower->mirror = options->mirror->engine;
    follower->load_why = options->mirror->is_warm ? NULL : "there is no mirror yet";
    follower->pause.fn = on_pause_over;
    follower->progress.fn = on_progress_late;
    follower->begin.run = run_begin;
    follower->progress_wanted.run = run_progress_wanted;
    follower->compacted.run = run_compacted;
    ranges_init(&follower->ranges, options->cluster->prefixes, options->cluster->prefix_count);
    return follower;
}

static enum status start_client(struct follower *follower, struct error *error)
{
    TRY(own_client_new(&follower->cluster->upstream, &follower->client, error));
    follower->apply_queue = apply_queue_new(&(struct apply_queue_options){
        .mirror = follower->mirror,
        .driver = &follower->client->driver,
        .visible = on_visible,
        .done = on_applied,
        .ctx = follower,
    });
    driver_post(&follower->client->driver, &follower->begin);
    return ST_OK;
}

enum status follower_start(const struct follower_options *options, struct follower **ret_follower,
                           struct error *error)
{
    struct follower *follower = follower_new(options);
    if (options->mirror->is_warm) {
        /* The directory has a mirror from an earlier run, which is served at once. */
        follower->given = local_mirror_revision(follower->mirror);
        atomic_store(&follower->shown->mirrored, follower->given);
        atomic_store(&follower->shown->oldest, local_mirror_compact_revision(follower->mirror) + 1);
    }
    enum status status = start_client(follower, error);
    if (status != ST_OK) {
        follower_stop(follower);
        return status;
    }
    *ret_follower = follower;
    return ST_OK;
}

void follower_stop(struct follower *follower)
{
    if (!follower)
        return;
    if (follower->client)
        driver_free_silently(&follower->client->driver);
    apply_queue_free(follower->apply_queue);
    merge_free(follower->merge);
    load_free(follower->load);
    local_mirror_walk_free(follower->walk);
    history_check_fini(&follower->history_check);
    ranges_fini(&follower->ranges);
    free(follower);
}
