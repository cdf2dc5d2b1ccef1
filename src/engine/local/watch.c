#include "engine/local/watch.h"

#include "base/random.h"
#include "base/turn.h"
#include "base/xalloc.h"
#include "engine/local/history.h"
#include "engine/local/shard.h"

#include <stdlib.h>

struct local_watch {
    struct local_shard *shard;
    struct local_news *news; /* the engine's */
    struct mailbox mailbox;  /* of the news */
    struct local_history *history;
    struct watch_hub *hub;
    struct timer timer; /* set for when the hub next has something to do */
    int64_t told_ns;    /* of news whose turn has not ended; 0: none */
    bool more;          /* this turn's begin has not taken in all there is */
    /* The hub rests. News are held back, here or before they are sent, until it is over: nobody
     * wakes this thread for what it does not look at. */
    bool rests, held;
    int64_t rest_began_ns;
};

static void receive_news(void *owner, struct mailbox_node *node)
{
    (void)node; /* it is the engine's; the turn that follows looks for what is new */
    struct local_watch *watch = owner;
    watch->told_ns = watch->news->told_ns;
    if (watch->rests)
        watch->held = true;
    else
        local_news_received(watch->news);
}

static void begin_rest(struct local_watch *watch)
{
    watch->rests = true;
    watch->held = local_news_hold(watch->news);
    watch->rest_began_ns = loop_now_ns(watch->shard->loop);
}

static void end_rest(struct local_watch *watch)
{
    watch->rests = false;
    if (!watch->held)
        return; /* a message is on its way */
    if (!watch->told_ns)
        watch->told_ns = watch->rest_began_ns; /* nobody knows: not before */
    local_news_received(watch->news);
}

static void on_timer(struct timer *timer)
{
    (void)timer; /* the turn that follows does the work */
}

static void on_damage(void *ctx, enum status status)
{
    struct local_watch *watch = ctx;
    (void)local_damage_told(watch->shard->engine, status, SLICE_EMPTY);
}

struct local_watch *local_watch_new(struct local_shard *shard)
{
    struct local_watch *watch = xcalloc(1, sizeof(*watch));
    const struct engine_local_options *options = &shard->engine->options;
    struct engine_identity identity = engine_identity_get(&shard->engine->engine);
    watch->shard = shard;
    watch->timer.fn = on_timer;
    watch->news = &shard->engine->news[shard->number];
    mailbox_attach(&watch->mailbox, shard->loop, receive_news, watch);
    watch->news->to = &watch->mailbox;
    watch->history = local_history_new(&(struct local_history_options){
        .store = shard->engine->store,
        .slot = shard->slot,
        .news = watch->news,
        .on_damage = on_damage,
        .ctx = watch,
    });
    watch->hub = watch_hub_new(&(struct watch_hub_options){
        .history = local_history_base(watch->history),
        .identity = {identity.cluster_id, identity.member_id, identity.raft_term},
        .fragment_bytes = options->watch_fragment_bytes,
        .watchers_max = options->watchers_per_stream_max,
        .watchers_all = &shard->engine->watchers,
        .watchers_all_max = options->watchers_max,
        .snapshot = &shard->engine->watch_snapshots[shard->number],
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
    loop_timer_cancel(watch->shard->loop, &watch->timer);
    watch_hub_free(watch->hub);
    local_news_end(watch->news);
    mailbox_detach(&watch->mailbox);
    local_history_free(watch->history);
    free(watch);
}

struct watch_hub *local_watch_hub(struct local_watch *watch)
{
    return watch->hub;
}

static void set_timer(struct local_watch *watch, int64_t at_ns)
{
    struct loop *loop = watch->shard->loop;
    if (at_ns == CLOCK_NEVER)
        loop_timer_cancel(loop, &watch->timer);
    else if (!watch->timer.set || watch->timer.at_ns != at_ns)
        loop_timer_set(loop, &watch->timer, at_ns);
}

void local_watch_turn_begin(struct local_watch *watch)
{
    int64_t now_ns = loop_now_ns(watch->shard->loop);
    if (!local_history_wanted(watch->history) && watch_hub_next_ns(watch->hub) > now_ns)
        return;
    turn_phase("looking at what was written, for watches");
    if (watch->rests && watch_hub_paused_until(watch->hub) <= now_ns)
        end_rest(watch);
    local_history_turn_begin(watch->history);
    /* After the state that is to be told from was taken: never older rights for newer changes. */
    local_shard_take_rights(watch->shard);
    watch->more = watch_hub_turn_begin(watch->hub, now_ns);
    if (!watch->rests && watch_hub_paused_until(watch->hub) > now_ns)
        begin_rest(watch);
}

void local_watch_flushed(struct local_watch *watch)
{
    watch_hub_turn_end(watch->hub);
    local_news_taken(watch->news, watch_hub_revision(watch->hub));
    local_history_flushed(watch->history);
    if (watch->told_ns)
        local_observe(watch->shard->counts, LOCAL_FAN_OUT_SECONDS,
                      clock_mono_ns(clock_system()) - watch->told_ns);
    watch->told_ns = 0;
    set_timer(watch, watch->more ? loop_now_ns(watch->shard->loop) : watch_hub_next_ns(watch->hub));
    watch->more = false;
}
