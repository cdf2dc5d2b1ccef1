/* The state of the cluster: read, compared with the mirror, and given to it. */
#include "mirror/follow/follower_internal.h"

static bool walk_next(void *ctx, struct slice *ret_key, int64_t *ret_mod_revision)
{
    return local_mirror_walk_next(ctx, ret_key, ret_mod_revision);
}

static void walk_get(void *ctx, struct change_kv *ret_kv)
{
    local_mirror_walk_get(ctx, ret_kv);
}

static void on_load_progress(void *ctx, const char *text)
{
    struct follower *follower = ctx;
    if (text)
        follow_log_waiting(&follower->follow_log, text);
    else
        follow_log_loading(&follower->follow_log, follower->load, false);
}

static void on_loaded(void *ctx, const struct loader_result *result);

void follower_load(struct follower *follower)
{
    static const struct loader_hooks hooks = {.done = on_loaded, .progress = on_load_progress};
    struct error error = {0};
    struct mirror_walk *walk = local_mirror_walk_new(follower->mirror);
    struct load_walk walk_of_load = {walk_next, walk_get, walk};
    follower_forget_failure(follower);
    enum status status = load_new(follower->cluster->mirror.data_dir, walk_of_load, follower->given,
                                  &follower->load, &error);
    if (status != ST_OK) {
        local_mirror_walk_free(walk);
        follower_pause(follower, error.text, FOLLOWER_PAUSE_NS);
        return;
    }
    follower_move(follower, FOLLOWER_LOADING);
    follow_log_load(&follower->follow_log, follower->load_why);
    follower->is_proven = watches_is_open(follower->watches);
    follower->walk = walk;
    follower->loader = loader_new(&(struct loader_options){
        .client = follower->client,
        .ranges = &follower->ranges,
        .load = follower->load,
        .revision = follower->checks ? follower->given : 0,
        .hooks = &hooks,
        .ctx = follower,
    });
    follower_check(follower);
}

void follower_drain(struct follower *follower)
{
    follower_move(follower, FOLLOWER_DRAINING);
    if (apply_queue_is_idle(follower->apply_queue))
        follower_load(follower);
}

/* Gives parts while there is room. */
void follower_give(struct follower *follower)
{
    struct load_part part;
    bool is_last = follower->given == follower->load_revision;
    while (!is_last && apply_queue_has_room(follower->apply_queue)) {
        load_take(follower->load, APPLY_QUEUE_BATCH_BYTES, &part);
        is_last = part.is_last;
        apply_queue_push_part(follower->apply_queue, &part, follower->load_revision);
    }
    if (is_last)
        follower->given = follower->load_revision;
}

/* The disk was full, or a file could not be made. */
void follower_give_again(struct follower *follower)
{
    follower->failure = ST_OK;
    local_mirror_retry(follower->mirror);
    apply_queue_retry(follower->apply_queue);
}

/* Everything has returned from the mirror, and some of it was refused. A full disk is waited for:
 * to read the state again, which is in a file already, would need more space. */
void follower_giving_failed(struct follower *follower)
{
    if (!apply_queue_has_refused(follower->apply_queue)) {
        follower_reset(follower,
                       status_text(follower->failure)); /* a part of the state is missing */
        return;
    }
    follow_log_waiting(&follower->follow_log, status_text(follower->failure));
    loop_timer_set(follower_loop(follower), &follower->pause,
                   loop_now_ns(follower_loop(follower)) + FOLLOWER_PAUSE_NS);
}

/*
 * Also a state without a difference ends the history before it: a key may have been put and deleted
 * in between. If it is the mirror's own revision, live watches lack nothing, and older history is
 * fetched from the cluster, because only the state was proved to be the same.
 */
static void give_loaded(struct follower *follower, int64_t revision)
{
    assert(local_mirror_walk_is_complete(follower->walk));
    bool is_newer = revision > follower->given;
    if (!is_newer && load_different(follower->load)) {
        follower_reset(follower, "the mirror differs from the cluster at the same revision");
        return;
    }
    follow_log_loading(&follower->follow_log, follower->load, true);
    follower->load_revision = revision;
    follower_move(follower, FOLLOWER_GIVING);
    atomic_store(&follower->complete_at, revision);
    if (is_newer) {
        /* Older events are not in the mirror as soon as the state is visible. */
        atomic_store(&follower->shown->oldest, revision + 1);
        follower_give(follower);
    } else if (follower->checks) {
        atomic_store(&follower->shown->oldest, revision + 1);
        apply_queue_compact(follower->apply_queue, revision);
    } else {
        apply_queue_reach(follower->apply_queue, revision);
    }
}

static void on_loaded(void *ctx, const struct loader_result *result)
{
    struct follower *follower = ctx;
    /* A key whose stored bytes are damaged seems to differ from the cluster's, or to be missing,
     * which says nothing about the cluster's past. */
    if (follower_reset_if_damaged(follower))
        return;
    if (result->outcome == LOADER_COMPLETE) {
        give_loaded(follower, result->revision);
        return;
    }
    follower->is_proven = false;
    if (result->outcome == LOADER_COMPACTED) {
        follower->checks = false; /* only the present state can be read */
        follower_drain(follower);
    } else if (result->outcome == LOADER_OTHER) {
        follower_reset(follower, result->reason);
    } else {
        follower_pause(follower, result->reason, FOLLOWER_PAUSE_NS);
    }
}

void follower_loaded(struct follower *follower)
{
    atomic_fetch_add(&follower->shown->loads, 1);
    follower->load_why = NULL;
    follower->checks = false;
    history_check_fini(&follower->history_check);
    history_check_find(&follower->history_check, follower->mirror);
    follower_connect(follower);
}
