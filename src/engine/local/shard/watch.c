#include "engine/local/shard/watch.h"

#include "base/metric/turn.h"
#include "base/random.h"
#include "base/xalloc.h"
#include "engine/local/shard/history.h"
#include "io/loop.h"

#include <stdlib.h>

struct local_watch {
    struct local_watch_options options;
    struct revision_notice *notice; /* the engine's */
    struct mailbox mailbox;         /* receives the notice */
    struct local_history *history;
    struct watch_hub *hub;
    struct timer timer;  /* set for when the hub next has something to do */
    int64_t notified_ns; /* when the notice for this turn was sent; 0: there was none */
    bool more;           /* turn_begin has not read everything that was published */
    /* The hub pauses. Until the pause ends the notice is held back, here or before it is sent, so
     * that this thread is not woken for revisions that it does not read. */
    bool pauses, held;
    int64_t pause_began_ns;
};

static void receive_notice(void *owner, struct mailbox_node *node)
{
    (void)node; /* it belongs to the engine; the following turn reads the new revisions */
    struct local_watch *watch = owner;
    watch->notified_ns = watch->notice->sent_ns;
    if (watch->pauses)
        watch->held = true;
    else
        revision_notice_received(watch->notice);
}

static void end_pause(struct local_watch *watch)
{
    assert(watch->pauses);
    watch->pauses = false;
    if (!watch->held)
        return; /* the notice is already on its way */
    if (!watch->notified_ns)
        watch->notified_ns = watch->pause_began_ns; /* the earliest possible time */
    revision_notice_received(watch->notice);
}

static void on_timer(struct timer *timer)
{
    (void)timer; /* the following turn does the work */
}

static void on_damage(void *ctx, enum status status)
{
    struct local_watch *watch = ctx;
    if (status == ST_DAMAGED)
        (void)local_report_damage(&watch->options.shared->report, NULL);
}

struct local_watch *local_watch_new(const struct local_watch_options *from)
{
    struct local_watch *watch = xcalloc_aligned(_Alignof(struct local_watch), sizeof(*watch));
    struct local_shared *shared = from->shared;
    const struct engine_local_options *options = &shared->options;
    struct engine_identity identity = engine_identity_get(&shared->engine);
    watch->options = *from;
    watch->timer.fn = on_timer;
    watch->notice = &shared->notices[from->shard_number];
    loop_attach(from->loop, &watch->mailbox, receive_notice, watch);
    watch->notice->to = &watch->mailbox;
    watch->history = local_history_new(&(struct local_history_options){
        .store = shared->store,
        .slot = from->slot,
        .notice = watch->notice,
        .on_damage = on_damage,
        .ctx = watch,
    });
    struct watch_history *history = local_history_base(watch->history);
    if (from->wrap)
        history = from->wrap(from->wrap_ctx, history);
    watch->hub = watch_hub_new(&(struct watch_hub_options){
        .history = history,
        .identity = {identity.cluster_id, identity.member_id, identity.raft_term},
        .fragment_bytes = options->watch_fragment_bytes,
        .watchers_max = options->watchers_per_stream_max,
        .watchers_all = &shared->watchers,
        .watchers_all_max = options->watchers_max,
        .snapshot = &shared->watch_snapshots[from->shard_number],
        .progress_interval_ns = options->watch_progress_interval_ns,
        .seed = random_seed_system(),
    });
    return watch;
}

void local_watch_free(struct local_watch *watch)
{
    if (!watch)
        return;
    local_watch_flushed(watch);
    loop_timer_cancel(watch->options.loop, &watch->timer);
    watch_hub_free(watch->hub);
    revision_notice_end(watch->notice);
    mailbox_detach(&watch->mailbox);
    revision_notice_received(watch->notice); /* perhaps there, for the next shard with the number */
    local_history_free(watch->history);
    free(watch);
}

struct watch_hub *local_watch_hub(struct local_watch *watch)
{
    return watch->hub;
}

static void set_timer(struct local_watch *watch, int64_t at_ns)
{
    struct loop *loop = watch->options.loop;
    if (at_ns == CLOCK_NEVER)
        loop_timer_cancel(loop, &watch->timer);
    else if (!watch->timer.set || watch->timer.at_ns != at_ns)
        loop_timer_set(loop, &watch->timer, at_ns);
}

void local_watch_turn_begin(struct local_watch *watch)
{
    int64_t now_ns = loop_now_ns(watch->options.loop);
    if (!local_history_wanted(watch->history) && watch_hub_next_ns(watch->hub) > now_ns)
        return; /* there are no watchers, and nothing is left of those that were */
    turn_phase("reading new revisions for watches");
    if (watch->pauses && watch_hub_paused_until(watch->hub) <= now_ns)
        end_pause(watch);
    local_history_turn_begin(watch->history);
    /* After the state was loaded, so that events are never sent with rights older than they are. */
    local_auth_reader_refresh(watch->options.rights);
    watch->more = watch_hub_turn_begin(watch->hub, now_ns);
    if (!watch->pauses && watch_hub_paused_until(watch->hub) > now_ns) {
        watch->pauses = true;
        watch->held = revision_notice_hold(watch->notice);
        watch->pause_began_ns = now_ns;
    }
}

void local_watch_flushed(struct local_watch *watch)
{
    watch_hub_turn_end(watch->hub);
    revision_notice_seen(watch->notice, watch_hub_revision(watch->hub));
    local_history_flushed(watch->history);
    if (watch->notified_ns)
        local_observe(watch->options.counts, LOCAL_FAN_OUT_SECONDS,
                      clock_mono_ns(clock_system()) - watch->notified_ns);
    watch->notified_ns = 0;
    set_timer(watch,
              watch->more ? loop_now_ns(watch->options.loop) : watch_hub_next_ns(watch->hub));
    watch->more = false;
}
