/*
 * The random clients of the watch layer (watch/model_test.h) over a past that is fetched: the
 * mirror loses its oldest revisions from time to time, and the cluster, which has all of them, is
 * slow, breaks off, sends fragments, compacts, and sends wrong progress if it is an old one.
 */
#include "mirror/backfill/fake_cluster_test.h"
#include "watch/model_test.h"

static struct {
    struct clock_sim clock;
    struct loop *loop;
    struct backfill *backfill;
    size_t prefix_count;
    uint64_t fetches;
    bool slow_connection; /* the one that is being made */
    const struct watch_history_ops *memory;
    struct watch_history_ops mirror;
} own;

static const struct slice prefixes[] = {SLICE_LITERAL("k0"), SLICE_LITERAL("k1"),
                                        SLICE_LITERAL("k01")};

static bool chance(uint32_t of)
{
    return random_chance(&world->random, 1, of);
}

/* At its compact revision the mirror may have a state that was loaded, and no history, unless the
 * follower says that it has the events from there on. */
static enum status mirror_next(struct watch_history *history, struct watch_place *place,
                               int64_t last, struct watch_batch *ret_batch)
{
    int64_t compacted = world->memory.compacted;
    assert_true(!compacted || place->revision != compacted ||
                atomic_load(&fake.known_oldest) == compacted);
    return own.memory->next(history, place, last, ret_batch);
}

static struct watch_history *open_backfill(void)
{
    own.memory = world->memory.history.ops;
    own.mirror = *own.memory;
    own.mirror.next = mirror_next;
    world->memory.history.ops = &own.mirror;
    clock_sim_init(&own.clock, 0);
    assert_int_equal(loop_new(&own.clock.clock, &own.loop), ST_OK);
    fake_begin(&world->memory);
    atomic_store(&fake.progress_reliable, chance(2));
    own.prefix_count = chance(2) ? COUNT_OF(prefixes) : 0;
    static const size_t bytes[] = {1, 3000, 100 * 1000, 0};
    own.backfill = backfill_new(&(struct backfill_options){
        .loop = own.loop,
        .cluster = fake_known(),
        .prefixes = prefixes,
        .prefix_count = own.prefix_count,
        .compacted = fake_compacted,
        .bytes_max = bytes[random_below(&world->random, COUNT_OF(bytes))],
    });
    return backfill_wrap(own.backfill, &world->memory.history);
}

static void start_backfill(void)
{
    struct backfill_calls calls = fake_calls();
    backfill_start(own.backfill, &calls, world->hub);
}

static void stop_backfill(void)
{
    own.fetches += backfill_stats(own.backfill).started;
    backfill_stop(own.backfill);
    assert_int_equal(fake.count, 0);
}

static void close_backfill(void)
{
    assert_int_equal(backfill_stats(own.backfill).fetches, 0);
    backfill_free(own.backfill);
    loop_free(own.loop);
}

/* With prefixes, the order of events in a revision is that of the prefixes. */
static void order_events(void)
{
    const struct memory_revision *last = &world->memory.revisions[world->memory.revision];
    if (!own.prefix_count)
        return;
    for (size_t i = 1; i < last->count; i++)
        for (size_t k = i; k && last->events[k - 1].key.ptr[1] > last->events[k].key.ptr[1]; k--) {
            struct memory_event moved = last->events[k];
            last->events[k] = last->events[k - 1];
            last->events[k - 1] = moved;
        }
}

/* The mirror loses history, or the cluster does, with or without the knowledge of the shard. */
static void lose_history(void)
{
    int64_t newest = world->memory.published;
    if (chance(2)) {
        world->memory.compacted = random_between(&world->random, world->memory.compacted, newest);
        if (chance(2))
            atomic_store(&fake.known_oldest, world->memory.compacted + 1);
    } else if (chance(4)) {
        fake.compacted = random_between(&world->random, fake.compacted, newest);
        if (chance(2))
            atomic_store(&fake.known_compacted, fake.compacted);
    }
}

static bool step_call(struct upstream_call *call, bool drain)
{
    if (drain)
        return !call->paused && fake_step(call, 1000, 1000);
    if (call->paused && !chance(8)) /* a window that was given before */
        return false;
    if (chance(30)) {
        fake_break(call);
        return true;
    }
    if (!atomic_load(&fake.progress_reliable) && call->created_sent && chance(10)) {
        fake_respond(call, (struct pb_watch_response){.watch_id = -1}); /* it may be wrong */
        return true;
    }
    return !chance(3) && fake_step(call, 1 + (size_t)random_below(&world->random, 40),
                                   1 + (size_t)random_below(&world->random, chance(2) ? 3 : 100));
}

static bool turn_backfill(bool drain)
{
    bool more = false;
    backfill_flushed(own.backfill);
    fake.refuses = !drain && chance(10);
    if (!atomic_load(&fake.connected) && (drain || chance(own.slow_connection ? 100 : 5))) {
        atomic_fetch_add(&fake.times_connected, 1);
        atomic_store(&fake.connected, true);
    } else if (!drain && chance(50)) {
        atomic_store(&fake.connected, false);
        own.slow_connection = chance(3);
    }
    struct list *link = fake.calls.next;
    while (link != &fake.calls) {
        struct upstream_call *call = LIST_ENTRY(link, struct upstream_call, in_cluster);
        link = link->next;
        more |= step_call(call, drain);
    }
    clock_sim_advance(&own.clock, (drain ? 1000 : 30) * NS_PER_MS);
    loop_turn(own.loop, 0);
    backfill_check(own.backfill);
    return more;
}

int main(void)
{
    model_hooks = (struct model_hooks){
        .seeds = 8,
        .open = open_backfill,
        .opened = start_backfill,
        .closing = stop_backfill,
        .closed = close_backfill,
        .wrote = order_events,
        .compact = lose_history,
        .turn = turn_backfill,
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_watcher_receives_what_the_history_says),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    print_message("%llu fetches\n", (unsigned long long)own.fetches);
    return failed ? failed : own.fetches == 0;
}
