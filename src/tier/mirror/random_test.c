/*
 * A kube-apiserver whose collection changes at random, that breaks, forgets, lags behind, is
 * throttled, restarts, and is restored from backups. What readers see is compared with its history:
 * a watch from any version shows every change once and in order, a state is that of its version,
 * and no wait for a current one ends before the store has everything that was written before.
 *
 *     tier_mirror_random_test SEED      one run, for which TIER_LOG=1 prints what the mirror logs
 */
#include "tier/mirror/world_sim_test.h"

enum { WAITS = 6, STEPS = 300, SEEDS = 60 };

static struct run {
    struct random random;
    struct tier_test_wait waits[WAITS];
    uint64_t dirty; /* generations up to this one may be of a lost history */
    unsigned current_ok, version_ok, failed, watches, states;
} run;

static uint64_t last_number(void)
{
    return tier_follow()->generations.last_number;
}

/* -- Checks -- */

static void check_past(const struct tier_view *view)
{
    int64_t newest = local_mirror_revision(tier.f->engine);
    int64_t oldest = view->began > tier.mirror->compacted ? view->began : tier.mirror->compacted;
    int64_t revision = random_between(&run.random, oldest, newest);
    uint64_t version;
    struct tier_state state = tier_read_view(view, revision);
    assert_int_equal(state.status, ST_OK);
    assert_true(tier_collection_version(tier.collection, view->generation, revision, &version));
    assert_true(tier_is_state(&state, api_history(&api), (int)version));
    run.states++;
}

static void check_readers(void)
{
    struct tier_view view = tier_view();
    if (!view.generation || view.generation <= run.dirty)
        return;
    tier_check_state(api_history(&api));
    check_past(&view);
    uint64_t from =
        (uint64_t)random_between(&run.random, (int64_t)view.oldest, (int64_t)view.newest);
    if (from >= view.void_until || from <= view.void_after)
        (void)tier_check_watch(api_history(&api), from);
    run.watches++;
}

static void check_waits(void)
{
    for (size_t i = 0; i < WAITS; i++) {
        struct tier_test_wait *w = &run.waits[i];
        if (!w->done)
            continue;
        w->done = false;
        if (w->status == ST_OK && w->history == api.history) {
            struct tier_view view = tier_view();
            uint64_t version;
            /* Its generation may have ended since the wait was over. */
            if (w->wait.kind == TIER_WAIT_CURRENT &&
                tier_collection_version(tier.collection, view.generation, w->wait.revision,
                                        &version))
                tier_check_current(w);
        }
        run.current_ok += w->wait.kind == TIER_WAIT_CURRENT && w->status == ST_OK;
        run.version_ok += w->wait.kind == TIER_WAIT_VERSION && w->status == ST_OK;
        run.failed += w->status != ST_OK;
        w->wait = (struct tier_wait){0};
    }
}

/* -- What happens -- */

static void begin_wait(enum tier_wait_kind kind)
{
    for (size_t i = 0; i < WAITS; i++) {
        if (run.waits[i].wait.use || run.waits[i].done)
            continue;
        int version = api_version(&api) - (int)random_below(&run.random, 3);
        tier_wait_begin(&run.waits[i], kind, version, random_between(&run.random, 1, 5) * NS_PER_S);
        return;
    }
}

static void restore(void)
{
    int version = api_version(&api) - (int)random_below(&run.random, 12);
    if (api.history + 1 == API_HISTORIES_MAX || version < 1)
        return;
    kube_server_stop(&world.server);
    tier_run(NS_PER_S); /* what was on its way has arrived */
    api_restore(&api, version);
    run.dirty = last_number();
    if (random_chance(&run.random, 1, 2)) /* it has grown before it is read */
        for (int i = (int)random_below(&run.random, 20); i > 0; i--)
            api_change_one(&api);
    kube_server_start(&world.server);
}

static void restart(void)
{
    kube_server_stop(&world.server);
    tier_run(random_between(&run.random, 0, 3) * NS_PER_S);
    kube_server_start(&world.server);
}

static void forget(void)
{
    api.forgotten = api_version(&api) - (int)random_below(&run.random, 5);
    if (api.forgotten < 0)
        api.forgotten = 0;
    api_end_watches(&api, random_chance(&run.random, 1, 2) ? API_FORGETS : API_ENDS);
}

static bool is_known(int version)
{
    uint64_t known = tier_follow()->reflector.version;
    /* Several in a row, or beside those of a restored server, would be believed. */
    return known > (uint64_t)version && known <= (uint64_t)api_version(&api) &&
           tier_follow()->reflector.behind < 1;
}

/* A server that is behind what was delivered. A state that it answers later must be behind, too. */
static void fall_behind(void)
{
    int known = (int)tier_follow()->reflector.version;
    api.old_version = known - 1 - (int)random_below(&run.random, 3);
    api.states_behind = api.old_version > 0 ? 1 + (int)random_below(&run.random, 2) : 0;
}

static void do_rarely(void)
{
    switch (random_below(&run.random, 14)) {
    case 0:
        restore();
        break;
    case 1:
        restart();
        break;
    case 2:
        forget();
        break;
    case 3:
        fall_behind();
        break;
    case 4:
        api.throttles = (unsigned)random_below(&run.random, 3);
        break;
    case 5:
        api.breaks = (unsigned)random_below(&run.random, 4);
        break;
    case 6:
        api_end_watches(&api, API_BREAKS);
        break;
    case 7:
        api_end_watches(&api, API_FAILS);
        break;
    case 8:
        api.lag = (int)random_below(&run.random, 4);
        api_send_changes(&api);
        break;
    case 9:
        api.replays = (int)random_below(&run.random, 4);
        break;
    case 10:
        api.refuses_streams = random_chance(&run.random, 1, 2) ? 422 : 0;
        break;
    case 11:
        store_sim.refuses = random_chance(&run.random, 1, 3) ? ST_DISK_FULL : ST_OK;
        store_sim.refuses_after = (size_t)random_below(&run.random, 3);
        break;
    case 12:
        api_mute_watches(&api);
        break;
    default:
        api.forgets_as_event = !api.forgets_as_event;
    }
}

static void do_something(void)
{
    uint64_t choice = random_below(&run.random, 100);
    if (choice < 55)
        api_change_one(&api);
    else if (choice < 65)
        begin_wait(TIER_WAIT_CURRENT);
    else if (choice < 72)
        begin_wait(TIER_WAIT_VERSION);
    else if (choice < 78)
        api_bookmark(&api);
    else if (choice < 85)
        tier_run(random_between(&run.random, 1, 8) * NS_PER_S);
    else if (choice < 93)
        tier_run(random_between(&run.random, 1, 400) * NS_PER_MS);
    else
        do_rarely();
}

static void stop_trouble(void)
{
    store_sim.refuses = ST_OK;
    api.lag = api.replays = api.refuses_streams = api.states_behind = 0;
    api.throttles = api.breaks = 0;
    api_end_watches(&api, API_ENDS); /* also those that are mute */
    api_send_changes(&api);
}

static bool is_settled(void)
{
    struct tier_view view = tier_view();
    return view.phase == TIER_SERVING && view.connected && tier_is_complete();
}

static void run_seed(uint64_t seed)
{
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    options.seed = seed;
    run = (struct run){0};
    random_init(&run.random, seed);
    tier_begin(&options);
    tier.options.history_ns = 30 * NS_PER_S;
    api.has_kinds = seed % 2;
    api.is_known = is_known;
    api.pad_bytes = seed % 3 ? 1 : 3000;
    tier_start();
    tier_open();
    for (int i = 0; i < STEPS; i++) {
        do_something();
        check_waits();
        check_readers();
    }
    stop_trouble();
    TIER_RUN_UNTIL(is_settled());
    for (int i = 0; i < 20 && !is_settled(); i++) {
        begin_wait(TIER_WAIT_CURRENT);
        tier_run(30 * NS_PER_S);
        check_waits();
    }
    /* Whatever has happened, a current read sees the server's state in the end. */
    struct tier_test_wait last;
    tier_wait_begin(&last, TIER_WAIT_CURRENT, 0, 60 * NS_PER_S);
    TIER_RUN_UNTIL(last.done);
    if (last.status != ST_OK) { /* it has noticed that the history is another one */
        TIER_RUN_UNTIL(is_settled());
        tier_wait_begin(&last, TIER_WAIT_CURRENT, 0, 60 * NS_PER_S);
        TIER_RUN_UNTIL(last.done);
    }
    assert_int_equal(last.status, ST_OK);
    tier_check_current(&last);
    assert_true(tier_is_complete());
    tier_run(20 * NS_PER_S); /* the other waits end */
    check_waits();
    if (getenv("TIER_LOG"))
        print_message("seed %" PRIu64
                      ": current %u, version %u, failed %u, watches %u, generations "
                      "%" PRIu64 ", fences %" PRIu64 "\n",
                      seed, run.current_ok, run.version_ok, run.failed, run.watches, last_number(),
                      atomic_load(&tier.collection->counters.fences));
    tier_end();
}

static uint64_t only_seed;

static void readers_see_the_servers_history(void **state)
{
    (void)state;
    for (uint64_t seed = 1; !only_seed && seed <= SEEDS; seed++) {
        fprintf(stderr, "%" PRIu64 "%c", seed, seed == SEEDS ? '\n' : ' ');
        run_seed(seed);
    }
    if (only_seed)
        run_seed(only_seed);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(readers_see_the_servers_history)};
    if (argc > 1)
        only_seed = strtoull(argv[1], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
